"""Comparisons: operators, what is not comparable, out-of-range numbers, tolerances."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError

A, B = np.array([1.0, 2.0, np.nan], np.float32), np.array([2.0, 2.0, np.nan], np.float32)


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_operators_functions_and_methods(name):
    want = getattr(operator, name)(A, B)
    for made in (
        getattr(operator, name)(Tensor(A), Tensor(B)),
        getattr(ops, name)(Tensor(A), B),
        getattr(Tensor(A), name)(Tensor(B)),
    ):
        assert made.dtype is ms.bool_
        np.testing.assert_array_equal(made.asnumpy(), want)
    np.testing.assert_array_equal(getattr(operator, name)(Tensor(A), 2).asnumpy(), getattr(operator, name)(A, 2))
    np.testing.assert_array_equal(getattr(operator, name)(2, Tensor(A)).asnumpy(), getattr(operator, name)(2, A))


def test_long_names_are_the_same_functions():
    for short, long in (
        ("eq", "equal"),
        ("ne", "not_equal"),
        ("lt", "less"),
        ("le", "less_equal"),
        ("gt", "greater"),
        ("ge", "greater_equal"),
    ):
        assert getattr(ops, short) is getattr(ops, long)


@pytest.mark.parametrize("other", [None, "a", (1, 2), [1, 2], object()])
def test_compared_with_what_is_no_number(other):
    x = Tensor([1, 2])
    assert (x == other) is False
    assert (x != other) is True
    with pytest.raises(TypeError, match="not supported between"):
        operator.lt(x, other)


def test_hash_is_identity():
    x, y = Tensor([1]), Tensor([1])
    assert hash(x) != hash(y)
    assert len({x, y, x}) == 2
    assert {x: 1}[x] == 1


def test_in():
    assert 2 in Tensor([[1, 2], [3, 4]])
    assert 5 not in Tensor([1, 2])
    assert "a" not in Tensor([1, 2])


@pytest.mark.parametrize("dtype", [ms.uint8, ms.int8, ms.int64, ms.uint64])
def test_a_number_that_the_dtype_does_not_hold_is_compared_by_value(dtype):
    bounds = np.iinfo(dtype.np)
    x = Tensor(np.array([bounds.min, bounds.max], dtype.np))
    above, below = bounds.max + 1, bounds.min - 1
    assert (x == above).tolist() == [False, False]
    assert (x < above).tolist() == [True, True]
    assert (x > below).tolist() == [True, True]
    assert (above > x).tolist() == [True, True]
    assert (x == bounds.max).tolist() == [False, True]


def test_complex_numbers_have_no_order():
    z = Tensor([1j, 2j])
    assert (z == 1j).tolist() == [True, False]
    with pytest.raises(DTypeError, match="less: argument 'input' got dtype Complex128"):
        operator.lt(z, z)


def test_isclose_and_allclose():
    a, b = np.array([1.0, np.inf, np.nan, 0.0]), np.array([1.0 + 1e-6, np.inf, np.nan, 1e-9])
    for equal_nan in (False, True):
        np.testing.assert_array_equal(
            ops.isclose(Tensor(a), Tensor(b), equal_nan=equal_nan).asnumpy(), np.isclose(a, b, equal_nan=equal_nan)
        )
        assert ops.allclose(Tensor(a), Tensor(b), equal_nan=equal_nan) is bool(np.allclose(a, b, equal_nan=equal_nan))
    assert ops.isclose(Tensor([1, 2]), Tensor([1, 3])).tolist() == [True, False]
    assert Tensor([1.0]).isclose(Tensor([1.5]), rtol=0.5).tolist() == [True]
    with pytest.raises(ArgumentValueError, match="argument 'rtol' got -1; it takes a number of at least 0"):
        ops.isclose(Tensor([1.0]), Tensor([1.0]), rtol=-1)
    with pytest.raises(ArgumentTypeError, match="argument 'atol' got str"):
        ops.isclose(Tensor([1.0]), Tensor([1.0]), atol="x")


def test_equal_of_whole_tensors():
    assert ops.equal_ext(Tensor([1, 2]), Tensor([1, 2])) is True
    assert ops.equal_ext(Tensor([1, 2]), Tensor([1, 3])) is False
    assert ops.equal_ext(Tensor([1, 2]), Tensor([[1, 2]])) is False


def test_approximate_equal():
    assert ops.approximate_equal(Tensor([1.0, 2.0]), Tensor([1.0, 2.1]), 0.2).tolist() == [True, True]
    assert ops.approximate_equal(Tensor([1.0, 2.0]), Tensor([1.0, 2.1])).tolist() == [True, False]
    with pytest.raises(ArgumentTypeError, match="argument 'tolerance'"):
        ops.approximate_equal(Tensor([1.0]), Tensor([1.0]), True)


def test_staged():
    got = run_staged(lambda a, b: (a == b, a < 2, (a > b) | (a != b)), A, B)
    np.testing.assert_array_equal(got[0], A == B)
    np.testing.assert_array_equal(got[1], A < 2)
    np.testing.assert_array_equal(got[2], (A > B) | (A != B))
