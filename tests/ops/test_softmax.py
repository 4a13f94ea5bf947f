"""Softmax and its relatives as users call them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentValueError, OutOfRangeError

X = np.random.default_rng(5).standard_normal((2, 3, 4))


@pytest.mark.parametrize("axis", [-1, 0, 1, (0, 2)])
def test_values(axis):
    want = special.softmax(X, axis)
    np.testing.assert_allclose(ops.softmax(Tensor(X), axis).asnumpy(), want, rtol=1e-12)
    np.testing.assert_allclose(Tensor(X).softmax(axis).asnumpy(), want, rtol=1e-12)
    np.testing.assert_allclose(Tensor(X).softmax(dim=axis).asnumpy(), want, rtol=1e-12)
    np.testing.assert_allclose(ops.log_softmax(Tensor(X), axis).asnumpy(), np.log(want), rtol=1e-12)
    np.testing.assert_allclose(ops.softmin(Tensor(X), axis).asnumpy(), special.softmax(-X, axis), rtol=1e-12)


def test_dtypes():
    assert ops.softmax(Tensor([1, 2])).dtype is ms.float32
    assert ops.softmax(Tensor([1, 2]), dtype=ms.float16).dtype is ms.float16
    assert ops.softmax(Tensor([1.0], ms.bfloat16)).dtype is ms.bfloat16
    many = ops.softmax(ops.zeros((5000,), ms.float16))  # the sum is more than float16 counts to
    np.testing.assert_allclose(many.asnumpy(), np.float16(1 / 5000), rtol=1e-2)


def test_large_numbers_do_not_overflow():
    assert ops.softmax(Tensor([1e4, 0.0])).tolist() == [1.0, 0.0]
    assert ops.log_softmax(Tensor([0.0, -1e4])).tolist() == [0.0, -1e4]
    masked = ops.softmax(Tensor([-np.inf, 0.0, 0.0]))
    assert masked.tolist() == [0.0, 0.5, 0.5]


def test_gumbel_softmax():
    ms.set_seed(1)
    logits = Tensor(np.log([0.7, 0.2, 0.1]), ms.float32).expand((4000, 3))
    hard = ops.gumbel_softmax(logits, 0.5, True)
    assert set(np.unique(hard.asnumpy())) == {0.0, 1.0}
    np.testing.assert_allclose(hard.asnumpy().mean(0), [0.7, 0.2, 0.1], atol=0.03)
    soft = ops.gumbel_softmax(logits, 2.0)
    np.testing.assert_allclose(soft.asnumpy().sum(1), 1, rtol=1e-5)
    slope = ms.grad(lambda x: (ops.gumbel_softmax(x, hard=True) * Tensor([1.0, 2.0, 3.0])).sum())(Tensor(X[0, :, :3]))
    assert np.abs(slope.asnumpy()).sum() > 0
    with pytest.raises(ArgumentValueError, match="positive"):
        ops.gumbel_softmax(logits, 0.0)


def test_an_axis_that_is_not_there():
    with pytest.raises(OutOfRangeError, match="axis from -3 to 2"):
        ops.softmax(Tensor(X), 3)
