"""Cartesian products, combinations and integrals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, OutOfRangeError, ShapeError


def test_cartesian_prod():
    a, b, c = [1.0, 2.0], [3.0, 4.0, 5.0], [6.0]
    got = ops.cartesian_prod(*[Tensor(v) for v in (a, b, c)])
    assert got.asnumpy().tolist() == [list(way) for way in itertools.product(a, b, c)]
    assert ops.cartesian_prod(Tensor([1, 2])).shape == (2, 1)
    with pytest.raises(ShapeError, match=r"inputs\[1\]"):
        ops.cartesian_prod(Tensor([1]), Tensor([[1]]))
    with pytest.raises(ArgumentValueError, match="at least one vector"):
        ops.cartesian_prod()


@pytest.mark.parametrize("r", [0, 1, 2, 4])
def test_combinations(r):
    x = [5, 7, 9]
    assert ops.combinations(Tensor(x), r).asnumpy().tolist() == [list(way) for way in itertools.combinations(x, r)]
    want = [list(way) for way in itertools.combinations_with_replacement(x, r)]
    assert ops.combinations(Tensor(x), r, True).asnumpy().tolist() == want
    with pytest.raises(ShapeError, match="one axis"):
        ops.combinations(Tensor([[1]]))
    with pytest.raises(ArgumentValueError, match="'r' got -1"):
        ops.combinations(Tensor(x), -1)


def test_trapz():
    y, x = np.sin(np.arange(12.0)).reshape(3, 4), np.array([0.0, 1.0, 3.0, 3.5])
    np.testing.assert_allclose(ops.trapz(Tensor(y)).asnumpy(), np.trapezoid(y))
    np.testing.assert_allclose(ops.trapz(Tensor(y), dx=0.5, dim=0).asnumpy(), np.trapezoid(y, dx=0.5, axis=0))
    np.testing.assert_allclose(ops.trapz(Tensor(y), Tensor(x)).asnumpy(), np.trapezoid(y, x))
    np.testing.assert_allclose(ops.trapz(Tensor(y), Tensor(y * 2)).asnumpy(), np.trapezoid(y, y * 2))
    assert ops.trapz(Tensor([1, 2])).dtype is ms.float32
    assert ops.trapz(Tensor([5.0])).item() == 0.0
    got = ms.grad(lambda t: ops.trapz(t, Tensor(x)))(Tensor(y[0])).asnumpy()
    np.testing.assert_allclose(got, [0.5, 1.5, 1.25, 0.25])
    with pytest.raises(ShapeError, match="a vector of 4 places"):
        ops.trapz(Tensor(y), Tensor([1.0, 2.0]))
    with pytest.raises(OutOfRangeError, match="dim"):
        ops.trapz(Tensor(y), dim=2)
    with pytest.raises(ArgumentTypeError, match="dx"):
        ops.trapz(Tensor(y), dx="1")
    with pytest.raises(ShapeError, match="zero-dimensional"):
        ops.trapz(Tensor(1.0))
