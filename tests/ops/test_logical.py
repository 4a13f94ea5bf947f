"""Truth values and classes of numbers."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentValueError

X = np.array([0.0, -0.0, 1.5, np.inf, -np.inf, np.nan, -np.nan], np.float32)


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_pairs_of_any_dtype(name):
    a, b = np.array([1, 0, 2, 0]), np.array([1.0, 0.0, 0.0, 3.0])
    want = getattr(np, name)(a, b)
    for made in (getattr(ops, name)(Tensor(a), Tensor(b)), getattr(Tensor(a), name)(b)):
        assert made.dtype is ms.bool_
        np.testing.assert_array_equal(made.asnumpy(), want)


def test_not_and_the_operators_on_bools():
    t, f = Tensor([True, False]), Tensor([True, True])
    assert (~t).tolist() == [False, True]
    assert (~Tensor([3, 0])).tolist() == [False, True], "as MindSpore: not of the truth, not the bits"
    assert (t & f).tolist() == [True, False]
    assert (t | f).tolist() == [True, True]
    assert (t ^ f).tolist() == [False, True]
    assert (True & t).tolist() == [True, False]
    assert Tensor([2.0, 0.0]).logical_not().tolist() == [False, True]


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit"])
def test_classes(name):
    np.testing.assert_array_equal(getattr(ops, name)(Tensor(X)).asnumpy(), getattr(np, name)(X))
    whole = np.array([-1, 0, 3])
    np.testing.assert_array_equal(getattr(Tensor(whole), name)().asnumpy(), getattr(np, name)(whole))
    assert getattr(ops, name)(Tensor([True])).dtype is ms.bool_


def test_classes_of_complex_numbers():
    z = Tensor([complex(np.nan, 1), complex(1, np.inf), 1 + 1j])
    assert ops.isnan(z).tolist() == [True, False, False]
    assert ops.isinf(z).tolist() == [False, True, False]
    assert ops.isfinite(z).tolist() == [False, False, True]
    assert ops.isreal(Tensor([1 + 0j, 1j])).tolist() == [True, False]
    assert ops.isreal(Tensor([1.0])).tolist() == [True]


def test_python_answers():
    assert ops.is_nonzero(Tensor([2])) is True
    assert ops.is_nonzero(Tensor(0.0)) is False
    with pytest.raises(ArgumentValueError, match=r"is_nonzero: argument 'input' got shape \(2,\)"):
        ops.is_nonzero(Tensor([1, 2]))
    assert ops.is_tensor(Tensor([1]))
    assert not ops.is_tensor(np.ones(1))
