"""Random programs mean the same staged as run eagerly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings, strategies as st
from tests.frontend.programs import forget, function_of, program_of, programs
from tests.frontend.staging import Staged, assert_same, copied

from mycelia import Tensor
from mycelia.compiler.executable import Executable

_INPUTS = (
    (Tensor([1.0, 2.0]), Tensor(1.0), Tensor(1)),
    (Tensor([4.0, -3.0]), Tensor(5.0), Tensor(3)),
    (Tensor([0.0, 0.0]), Tensor(0.0), Tensor(0)),
    (Tensor([-2.0, 6.0]), Tensor(-4.0), Tensor(2)),
)
_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)


def _agrees(source: str, p: int) -> None:
    f = function_of(source)
    staged = Staged(f, *copied(_INPUTS[0]), p)
    for case in _INPUTS:
        ours, eager = copied(case), copied(case)
        expected: Any = f(*eager, p)
        assert_same((staged(*ours, p), ours), (expected, eager))
    forget(f)


@settings(max_examples=200, suppress_health_check=_SLOW)
@given(programs(size=18), st.sampled_from([0, 3]))
def test_staged_is_eager(source: str, p: int) -> None:
    _agrees(source, p)


@settings(max_examples=20, suppress_health_check=_SLOW)
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
def test_many_staged_are_eager(chunk: int) -> None:
    for seed in range(625 * chunk, 625 * (chunk + 1)):
        _agrees(program_of(seed, 40), (0, 1, 3)[seed % 3])
