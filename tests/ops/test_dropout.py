"""Dropout: shares, scales, whole channels, gradients, messages."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError


@pytest.fixture(autouse=True)
def _seeded():
    ms.set_seed(3)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 0.001, 0.9995])
def test_share_and_scale(p):
    n = 200_000
    y = ops.dropout(ops.ones((n,)), p).asnumpy()
    assert set(np.unique(y)) <= {np.float32(0), np.float32(1 / (1 - p))}
    assert abs((y == 0).mean() - p) < 5 * np.sqrt(p * (1 - p) / n)


def test_nothing_to_drop():
    x = Tensor([1.0, 2.0])
    assert ops.dropout(x, 0.0) is x
    assert ops.dropout(x, 0.5, training=False) is x
    assert ops.dropout(x, 1.0).tolist() == [0.0, 0.0]
    assert ops.dropout(ops.zeros((0, 3))).shape == (0, 3)
    assert ops.dropout(Tensor([np.nan, np.inf]), 1.0).tolist() == [0.0, 0.0]


def test_the_gradient_uses_the_same_mask():
    y, slope = ms.value_and_grad(lambda x: (ops.dropout(x, 0.4) * 3).sum())(ops.ones((50,)))
    mask = slope.asnumpy() != 0
    np.testing.assert_allclose(slope.asnumpy()[mask], 3 / 0.6, rtol=1e-6)
    assert y.item() == pytest.approx(slope.asnumpy().sum(), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "shape"), [("dropout1d", (5, 40, 7)), ("dropout2d", (5, 40, 3, 2)), ("dropout3d", (5, 40, 2, 2, 2))]
)
def test_whole_channels(name, shape):
    y = getattr(ops, name)(ops.ones(shape), 0.5).asnumpy().reshape(200, -1)
    assert (y == y[:, :1]).all()
    assert 60 < (y[:, 0] == 0).sum() < 140
    single = getattr(ops, name)(ops.ones(shape[1:]), 0.5).asnumpy().reshape(40, -1)
    assert (single == single[:, :1]).all()
    with pytest.raises(ShapeError, match="without the batch"):
        getattr(ops, name)(ops.ones((3,)))


def test_alpha_dropout_keeps_mean_and_variance():
    x = ops.randn(100_000)
    y = ops.alpha_dropout(x, 0.2).asnumpy()
    assert abs(y.mean()) < 0.03
    assert abs(y.var() - 1) < 0.03
    channels = ops.feature_alpha_dropout(ops.ones((2, 50, 3)), 0.5).asnumpy()
    assert (channels == channels[:, :, :1]).all()


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float64])
def test_dtypes(dtype):
    assert ops.dropout(ops.ones((8,), dtype)).dtype is dtype
    assert ops.dropout(Tensor([1, 2])).dtype is ms.float32


def test_messages():
    with pytest.raises(ArgumentValueError, match=r"'p' got 1.5.*probability to drop") as caught:
        ops.dropout(Tensor([1.0]), 1.5)
    assert "test_dropout.py" in str(caught.value)
    with pytest.raises(ArgumentTypeError, match=r"'p' got '0\.5'"):
        ops.dropout(Tensor([1.0]), "0.5")
