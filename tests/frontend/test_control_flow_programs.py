"""Random programs mean the same staged as run eagerly."""

from __future__ import annotations

import linecache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings

import mycelia as ms
from tests.frontend.programs import function_of, programs
from tests.frontend.staging import Staged, assert_same, copied

_INPUTS = (
    (ms.Tensor([1.0, 2.0]), ms.Tensor(1.0), ms.Tensor(1)),
    (ms.Tensor([4.0, -3.0]), ms.Tensor(5.0), ms.Tensor(3)),
    (ms.Tensor([0.0, 0.0]), ms.Tensor(0.0), ms.Tensor(0)),
    (ms.Tensor([-2.0, 6.0]), ms.Tensor(-4.0), ms.Tensor(2)),
)


def _agrees(source: str) -> None:
    f = function_of(source)
    note(source)
    for p in (0, 3):
        staged = Staged(f, *copied(_INPUTS[0]), p)
        for case in _INPUTS:
            ours, eager = copied(case), copied(case)
            expected: Any = f(*eager, p)
            assert_same((staged(*ours, p), ours), (expected, eager))
    linecache.cache.pop(f.__code__.co_filename)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs())
def test_staged_is_eager(source: str) -> None:
    _agrees(source)


@pytest.mark.slow
@settings(max_examples=2500, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs(size=40))
def test_many_staged_are_eager(source: str) -> None:
    _agrees(source)
