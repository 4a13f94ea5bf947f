"""Functions whose source is not in an ordinary file: notebooks, prompts, zip archives, doctests, ``exec``."""

from __future__ import annotations

import doctest
import importlib
import linecache
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.frontend.staging import check

import mycelia as ms
from mycelia import Tensor
from mycelia.core.errors import GraphError

_SOURCE = """
import mycelia as ms
from mycelia import Tensor

def halved(x):
    n = 0
    while x.sum() > 1:
        x, n = x / 2, n + 1
    return x, n

class Net(ms.nn.Cell):
    def construct(self, x):
        return halved(x)[0] if x.sum() > 0 else -x
"""
_INPUTS = (Tensor([4.0, 3.0]),), (Tensor([-1.0, 0.0]),), (Tensor([0.25, 0.25]),)


def _run_as_a_cell(source: str, name: str) -> dict[str, Any]:
    """What a notebook does: the lines are known to :mod:`linecache` under a name that is no file."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, name, "exec"), scope)
    return scope


def test_a_notebook_cell() -> None:
    scope = _run_as_a_cell(_SOURCE, "ipykernel_77/1234567.py")
    check(scope["halved"], *_INPUTS)
    net = scope["Net"]()
    check(lambda x: net(x), *_INPUTS)


def test_a_notebook_cell_that_is_run_again() -> None:
    first = _run_as_a_cell(_SOURCE, "<ipython-input-1>")["halved"]
    check(first, *_INPUTS)
    second = _run_as_a_cell(_SOURCE.replace("x / 2", "x / 4"), "<ipython-input-2>")["halved"]
    check(second, *_INPUTS)
    assert ms.jit(second)(Tensor([4.0, 4.0]))[0].tolist() == [0.25, 0.25]


def test_a_module_in_a_zip_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("packed_model/__init__.py", _SOURCE)
    monkeypatch.syspath_prepend(str(archive))
    module = importlib.import_module("packed_model")
    check(module.halved, *_INPUTS)
    monkeypatch.delitem(sys.modules, "packed_model")


def test_a_doctest() -> None:
    text = """
    >>> import mycelia as ms
    >>> @ms.jit
    ... def f(x):
    ...     for i in range(x.sum().astype(ms.int64)):
    ...         if i > 2:
    ...             return x * i
    ...     return x
    >>> print(f(ms.Tensor([1.0, 1.0])), f(ms.Tensor([2.0, 3.0])))
    [1. 1.] [6. 9.]
    """
    example = doctest.DocTestParser().get_doctest(text, {}, "example", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


def test_a_prompt_or_a_program_from_standard_input() -> None:
    program = textwrap.dedent("""
        import mycelia as ms
        @ms.jit
        def f(x):
            if x.sum() > 0:
                x = x * 2
            return x

        try:
            print(f(ms.Tensor([1.0])).tolist(), f(ms.Tensor([-1.0])).tolist())
        except ms.core.errors.GraphError as error:
            print("source" in str(error), "file" in str(error))
    """)
    ran = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.strip() in ("[2.0] [-1.0]", "True True")


def test_without_source_what_needs_none_runs() -> None:
    scope: dict[str, Any] = {"np": np}
    exec("def f(x, n):\n    return x * n if n > 1 else -x", scope)
    assert ms.jit(scope["f"])(Tensor([1.0]), 3).tolist() == [3.0]


def test_without_source_what_needs_one_says_so() -> None:
    scope: dict[str, Any] = {}
    exec("def f(x):\n    return x if x.sum() > 0 else -x", scope)
    with pytest.raises(GraphError) as caught:
        ms.jit(scope["f"])(Tensor([1.0]))
    assert "source" in str(caught.value)
    assert "file" in str(caught.value)
