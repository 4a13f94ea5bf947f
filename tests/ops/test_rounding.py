"""Rounding, signs, magnitudes: integers, decimals, special values, zero gradients."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, DTypeError

X = np.array([0.5, 1.5, -2.5, -0.4, 2.675, np.inf, np.nan], np.float32)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_like_numpy_and_integers_as_they_are(name):
    np.testing.assert_array_equal(getattr(ops, name)(Tensor(X)).asnumpy(), getattr(np, name)(X))
    np.testing.assert_array_equal(getattr(Tensor(X), name)().asnumpy(), getattr(np, name)(X))
    whole = Tensor([3, -4])
    assert getattr(ops, name)(whole) is whole


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "sign"])
def test_gradients_are_zero(name):
    assert ms.grad(lambda x: getattr(ops, name)(x).sum())(Tensor([0.7, -1.2])).tolist() == [0.0, 0.0]


def test_decimals():
    np.testing.assert_allclose(ops.round(Tensor([1.25, -2.671], ms.float64), decimals=2).asnumpy(), [1.25, -2.67])
    assert ops.round(Tensor([125, 135, -2675]), decimals=-1).tolist() == [120, 140, -2680]
    assert ops.round(Tensor([127, -128], ms.int8), decimals=-3).tolist() == [0, 0]
    assert round(Tensor([0.5, 1.5, 2.4])).tolist() == [0.0, 2.0, 2.0]
    np.testing.assert_allclose(round(Tensor([1.234]), 1).asnumpy(), [1.2], rtol=1e-6)
    assert ops.round(Tensor([1e30]), decimals=5).asnumpy()[0] == np.float32(1e30)
    with pytest.raises(ArgumentTypeError, match=r"argument 'decimals' got 1.5"):
        ops.round(Tensor([1.0]), decimals=1.5)


def test_abs_and_signs():
    assert abs(Tensor([-3, 2])).tolist() == [3, 2]
    assert Tensor([3 + 4j]).abs().dtype is ms.float64
    assert ops.absolute is ops.abs
    assert ops.abs(Tensor([True])).dtype is ms.bool_
    np.testing.assert_array_equal(
        ops.sign(Tensor([-2.0, 0.0, np.nan])).asnumpy(), np.array([-1.0, 0.0, np.nan], np.float32)
    )
    np.testing.assert_allclose(ops.sgn(Tensor([3 + 4j, 0j])).asnumpy(), [0.6 + 0.8j, 0])
    assert ops.sgn(Tensor([-2.0])).item() == -1.0
    assert ms.grad(lambda x: ops.abs(x).sum())(Tensor([0.0, -2.0])).tolist() == [0.0, -1.0]
    with pytest.raises(DTypeError, match="sign: argument 'input' got dtype Complex128"):
        ops.sign(Tensor([1j]))


def test_copysign_nextafter_heaviside():
    np.testing.assert_array_equal(
        np.signbit(ops.copysign(Tensor([1.0, 2.0]), Tensor([-0.0, 1.0])).asnumpy()), [True, False]
    )
    assert ops.copysign(Tensor([1, 2]), -1).tolist() == [-1.0, -2.0]
    for dtype in (np.float32, np.float64):
        x, to = np.array([1.0, 0.0, -1.0], dtype), np.array([2.0, -1.0, -1.0], dtype)
        assert ops.nextafter(Tensor(x), Tensor(to)).asnumpy().tobytes() == np.nextafter(x, to).tobytes()
    assert ops.heaviside(Tensor([-1, 0, 1]), 7).tolist() == [0, 7, 1]


def test_nan_to_num():
    x = Tensor([np.nan, np.inf, -np.inf, 1.0])
    info = np.finfo(np.float32)
    assert ops.nan_to_num(x).tolist() == [0.0, float(info.max), float(info.min), 1.0]
    assert x.nan_to_num(1.0, 2.0, -3.0).tolist() == [1.0, 2.0, -3.0, 1.0]
    assert ops.nan_to_num(Tensor([np.inf], ms.float16)).item() == 65504.0
    assert ops.nan_to_num(Tensor([1, 2])).tolist() == [1, 2]
    assert np.isnan(ops.nan_to_num(x, nan=float("nan")).asnumpy()[0])
    assert ms.grad(lambda t: ops.nan_to_num(t).sum())(x).tolist() == [0.0, 0.0, 0.0, 1.0]


def test_frac_and_in_place():
    np.testing.assert_array_equal(ops.frac(Tensor([-1.5, 2.25])).asnumpy(), [-0.5, 0.25])
    assert ops.frac(Tensor([3])).tolist() == [0]
    x = Tensor([1.5, -1.5])
    assert x.floor_().tolist() == [1.0, -2.0]
    assert x.sign_().tolist() == [1.0, -1.0]
