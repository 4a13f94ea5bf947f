"""Random programs mean the same staged as run eagerly."""

from __future__ import annotations

import gc
import textwrap
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings, strategies as st
from tests.frontend.programs import (
    SLOW,
    forget,
    function_of,
    program_of,
    programs,
    rare_collections,  # noqa: F401 (a fixture of every test here)
)
from tests.frontend.staging import Staged, assert_same, copied

from mycelia import Tensor
from mycelia.compiler.executable import Executable

_INPUTS = (
    (Tensor([1.0, 2.0]), Tensor(1.0), Tensor(1)),
    (Tensor([4.0, -3.0]), Tensor(5.0), Tensor(3)),
    (Tensor([0.0, 0.0]), Tensor(0.0), Tensor(0)),
    (Tensor([-2.0, 6.0]), Tensor(-4.0), Tensor(2)),
)


def _agrees(source: str, p: int) -> None:
    f = function_of(source)
    try:
        staged = Staged(f, *copied(_INPUTS[0]), p)
        for case in _INPUTS:
            ours, eager = copied(case), copied(case)
            expected: Any = f(*eager, p)
            assert_same((staged(*ours, p), ours), (expected, eager))
    except Exception as error:
        error.add_note(f"p = {p}\n{source}")
        raise
    forget(f)


@settings(max_examples=200, suppress_health_check=SLOW)
@given(programs(size=18), st.sampled_from([0, 3]))
def test_staged_is_eager(source: str, p: int) -> None:
    _agrees(source, p)


@settings(max_examples=20, suppress_health_check=SLOW)
@given(programs(size=16))
def test_compiled_is_eager(source: str) -> None:
    f = function_of(source)
    staged = Staged(f, *copied(_INPUTS[0]), 2)
    program = Executable(staged.graph)
    for case in _INPUTS:
        expected = f(*copied(case), 2)
        arrays = program([t._value for t in (*copied(case), *staged.captured)])
        tensors = iter(arrays)
        for leaf, wanted in zip(staged.leaves, expected, strict=True):
            got = next(tensors) if isinstance(leaf, Tensor) else leaf
            np.testing.assert_allclose(
                np.asarray(got), wanted.asnumpy() if isinstance(wanted, Tensor) else wanted, rtol=1e-6
            )


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(4))
@settings(max_examples=625, phases=[Phase.generate], suppress_health_check=SLOW, deadline=None)
@given(st.integers(0, 2**40))
def test_many_staged_are_eager(chunk: int, number: int) -> None:
    _agrees(program_of(4 * number + chunk, 40), (0, 1, 3)[number % 3])
    if number % 50 == 0:
        gc.collect()


#: Programs that random ones led to: what was wrong once.
_FOUND = {
    "a name bound in an operand that is left out keeps its value": """
        w = 0
        while w < 3 and (i := i * 0 + 2) < 3:
            w += 1
            if s > 0:
                i = i * 5
            elif i != 4:
                i = i * 0
        return i
    """,
    "a break in finally leaves the return alone that it runs before": """
        try:
            if s > 0:
                return s
        finally:
            for n in (1, 2):
                if s > n:
                    break
        return s * 10
    """,
    "a loop in finally runs before the return": """
        try:
            if s > 0:
                return (s, c)
        finally:
            while i < 9:
                i += 2
                if i > 4:
                    break
            c[0] = i + 0.5
        return (s * 10, c)
    """,
    "an operand of and is left out with what it binds": """
        i = j = 3
        while i > 0 and (s > 0 and (s := (s if (s := s - 1) < 0 else s)) < 2):
            i = i - 1
        return (s, i, j)
    """,
}


@pytest.mark.parametrize("what", _FOUND)
def test_programs_found(what: str) -> None:
    lines = textwrap.dedent(_FOUND[what]).strip().splitlines()
    source = "\n".join(["def f(a, s, i, p):", "    c = a * 3", *["    " + line for line in lines], ""])
    _agrees(source, 2)
