"""Operations on bits."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import DTypeError

A, B = np.array([6, 5, -8]), np.array([3, 1, 2])


@pytest.mark.parametrize(
    ("fn", "name"),
    [
        (operator.and_, "bitwise_and"), (operator.or_, "bitwise_or"), (operator.xor, "bitwise_xor"),
        (operator.lshift, "bitwise_left_shift"), (operator.rshift, "bitwise_right_shift"),
    ],
)  # fmt: skip
def test_operators_functions_methods(fn, name):
    want = fn(A, B)
    for made in (
        fn(Tensor(A), Tensor(B)),
        getattr(ops, name)(Tensor(A), B),
        getattr(Tensor(A), name)(Tensor(B)),
        fn(A, Tensor(B)),
    ):
        assert made.tolist() == want.tolist()
    assert fn(Tensor(A), 1).tolist() == fn(A, 1).tolist()
    assert fn(1, Tensor(B)).tolist() == fn(1, B).tolist()


def test_not():
    assert ops.bitwise_not(Tensor([0, 5])).tolist() == [-1, -6]
    assert ops.invert(Tensor([True, False])).tolist() == [False, True]
    assert Tensor([1], ms.uint8).bitwise_not().tolist() == [254]


def test_shifts_beyond_the_width():
    assert ops.bitwise_left_shift(Tensor([1, 2]), 70).tolist() == [0, 0]
    assert ops.bitwise_right_shift(Tensor([-8, 8]), 70).tolist() == [-1, 0]
    assert ops.bitwise_right_shift(Tensor([200], ms.uint8), 1).tolist() == [100]


def test_population_count():
    made = ops.population_count(Tensor([7, -1], ms.int16))
    assert made.dtype is ms.uint8
    assert made.tolist() == [3, 16]


def test_floats_are_refused():
    with pytest.raises(DTypeError, match="bitwise_and: argument 'input' got dtype Float32; it takes Bool, Int8"):
        Tensor([1.5]) & 1
    with pytest.raises(DTypeError, match="Float32"):
        ops.bitwise_not(Tensor([1.5]))
