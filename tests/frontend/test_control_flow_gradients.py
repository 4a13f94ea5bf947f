"""The gradient of random programs: a staged graph, differentiated by transformation, against the eager tape.

Programs compute with small whole numbers, so that both ways meet the same steps of ``%`` at the same points,
and take the same side of them.
"""

from __future__ import annotations

import gc
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
from tests.frontend.staging import Staged, copied

import mycelia as ms
from mycelia import Tensor, grad
from mycelia.core import tree

_INPUTS = (
    (Tensor([1.0, 2.0]), Tensor(1.0), Tensor(1)),
    (Tensor([4.0, -3.0]), Tensor(5.0), Tensor(3)),
    (Tensor([-2.0, 6.0]), Tensor(-4.0), Tensor(2)),
)


def _wide(case: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The inputs with floats in float64."""
    return tuple([x.astype(ms.float64) if x.dtype.is_inexact else x for x in case])


def _agrees(source: str, p: int) -> None:
    f = function_of(source)

    def total(a: Tensor, s: Tensor, i: Tensor) -> Any:
        found = (s - s) + (a - a).sum()
        for x in tree.leaves(f(a, s, i, p)):
            if isinstance(x, Tensor) and x.dtype.is_inexact:
                found = found + x.sum()
        return found

    gradient = grad(total, (0, 1))
    try:
        staged = Staged(gradient, *copied(_INPUTS[0]))
        for case in _INPUTS:
            got, want = [run(*copied(case)) for run in (staged, gradient)]
            if not all(np.isfinite(w.asnumpy()).all() for w in want):
                # squares of squares in a loop leave the range of float32: the same in float64, where they have to fit
                wide = _wide(case)
                got, want = [run(*copied(wide)) for run in (Staged(gradient, *copied(wide)), gradient)]
            for g, w in zip(got, want, strict=True):
                assert np.isfinite(w.asnumpy()).all()
                np.testing.assert_allclose(g.asnumpy(), w.asnumpy(), rtol=1e-5)
    except Exception as error:
        error.add_note(f"p = {p}\n{source}")
        raise
    forget(f)


@settings(max_examples=60, suppress_health_check=SLOW)
@given(programs(size=14), st.sampled_from([0, 3]))
def test_gradient_of_staged_is_that_of_eager(source: str, p: int) -> None:
    _agrees(source, p)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(4))
@settings(max_examples=500, phases=[Phase.generate], suppress_health_check=SLOW, deadline=None)
@given(st.integers(0, 2**40))
def test_many_gradients_of_staged_are_those_of_eager(chunk: int, number: int) -> None:
    _agrees(program_of(4 * number + chunk, 24), (0, 1, 3)[number % 3])
    if number % 50 == 0:
        gc.collect()
