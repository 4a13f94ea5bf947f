"""Every example in a docstring of the package runs."""

from __future__ import annotations

import doctest
import importlib
import io
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules():
    """Dotted names of the modules whose source has an example."""
    for file in sorted((SOURCE / "mycelia").rglob("*.py")):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        if parts[-1] != "__main__" and ">>> " in file.read_text(encoding="utf-8"):
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("name", list(modules()))
def test_examples(name):
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    tests = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name), name)
    failed = sum(runner.run(test, out=report.write).failed for test in tests)
    assert failed == 0, report.getvalue()


def test_a_wrong_example_is_found():
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=len).failed == 1
