"""Pooling as users call it: padding modes, ceil mode, indices, power averages, adaptive sizes, messages."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ops.max_avg_pooling import avg_pooling, max_pooling, pool_by_mode

RAMP = np.arange(49.0, dtype=np.float32).reshape(1, 1, 7, 7)
X = np.random.default_rng(3).standard_normal((2, 3, 7, 8))
OPTIONS = [(3, 2, 1, True), (3, 2, 1, False), (2, 2, 0, True), (2, 3, 1, True), ((3, 2), (2, 1), (1, 0), True)]


def test_values_of_mindspore():
    x = Tensor(RAMP)
    ceil = ops.avg_pool2d(x, 3, 2, 1, True)
    np.testing.assert_allclose(ceil.asnumpy()[0, 0, 0], [1.7777778, 3.6666667, 5.0, 4.0], rtol=1e-6)
    assert ops.avg_pool2d(x, 3, 2, 1, True, False).tolist()[0][0][3] == [39.0, 40.5, 42.5, 44.0]
    assert ops.avg_pool2d(x, 3, 3, 0, True).tolist()[0][0][2] == [43.0, 46.0, 48.0]
    assert ops.avg_pool2d(x, 3, 2, (1, 0, 0, 1)).tolist()[0][0][1] == [15.0, 17.0, 19.0]
    six = Tensor(np.arange(36.0, dtype=np.float32).reshape(1, 1, 6, 6))
    assert pool_by_mode("max", six, 3, 2, "same").tolist()[0][0] == [[14, 16, 17], [26, 28, 29], [32, 34, 35]]
    assert pool_by_mode("avg", six, 3, 2, "SAME").tolist()[0][0] == [[7, 9, 10.5], [19, 21, 22.5], [28, 30, 31.5]]
    y, index = ops.max_pool2d(x, 3, 2, 1, 1, True, True)
    assert index.tolist()[0][0][0] == [8, 10, 12, 13]
    assert index.dtype is ms.int64
    assert (y.asnumpy().ravel() == index.asnumpy().ravel()).all()


@pytest.mark.torch
@pytest.mark.parametrize(("kernel", "stride", "padding", "ceil"), OPTIONS)
def test_against_torch(kernel, stride, padding, ceil):
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    t = torch.from_numpy(X)
    got = ops.avg_pool2d(Tensor(X), kernel, stride, padding, ceil)
    np.testing.assert_allclose(got.asnumpy(), F.avg_pool2d(t, kernel, stride, padding, ceil).numpy(), rtol=1e-12)
    got = ops.avg_pool2d(Tensor(X), kernel, stride, padding, ceil, False, 5)
    np.testing.assert_allclose(
        got.asnumpy(), F.avg_pool2d(t, kernel, stride, padding, ceil, False, 5).numpy(), rtol=1e-12
    )
    y, index = ops.max_pool2d(Tensor(X), kernel, stride, padding, 1, True, ceil)
    want, places = F.max_pool2d(t, kernel, stride, padding, 1, ceil, return_indices=True)
    np.testing.assert_array_equal(y.asnumpy(), want.numpy())
    np.testing.assert_array_equal(index.asnumpy(), places.numpy())


@pytest.mark.torch
@pytest.mark.parametrize("n", [1, 2, 3])
def test_each_number_of_axes(n):
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    x = np.random.default_rng(n).standard_normal((2, 3, *(6, 5, 4)[:n]))
    t = torch.from_numpy(x)
    for name in ("max_pool", "avg_pool"):
        got = getattr(ops, f"{name}{n}d")(Tensor(x), 2, 2)
        np.testing.assert_allclose(got.asnumpy(), getattr(F, f"{name}{n}d")(t, 2, 2).numpy(), rtol=1e-12)
    for name in ("adaptive_avg_pool", "adaptive_max_pool"):
        got = getattr(ops, f"{name}{n}d")(Tensor(x), 3)
        np.testing.assert_allclose(got.asnumpy(), getattr(F, f"{name}{n}d")(t, 3).numpy(), rtol=1e-12)
    if n < 3:
        for p in (1, 2, 3):
            got = getattr(ops, f"lp_pool{n}d")(Tensor(np.abs(x)), p, 2, 2, True)
            want = getattr(F, f"lp_pool{n}d")(t.abs(), p, 2, 2, True)
            np.testing.assert_allclose(got.asnumpy(), want.numpy(), rtol=1e-6, atol=1e-12)


def test_the_gradient_goes_to_the_first_maximum():
    x = Tensor([[[1.0, 1.0, 0.0, 5.0, 2.0, 5.0]]])
    grads = ms.grad(lambda x: (ops.max_pool1d(x, 3) * Tensor([1.0, 10.0])).sum())(x)
    assert grads.tolist() == [[[1.0, 0.0, 0.0, 10.0, 0.0, 0.0]]]
    nan = Tensor([[[1.0, np.nan, 3.0, np.nan]]])
    assert ms.grad(lambda x: ops.max_pool1d(x, 4).sum())(nan).tolist() == [[[0.0, 1.0, 0.0, 0.0]]]


def test_special_values_and_integers():
    x = Tensor([[[-np.inf, -np.inf, np.nan, 1.0]]])
    np.testing.assert_array_equal(ops.max_pool1d(x, 2).asnumpy(), [[[-np.inf, np.nan]]])
    assert ops.max_pool1d(Tensor([[[3, -7, 1, 2]]], ms.int8), 2, 2, 1).tolist() == [[[3, 1, 2]]]
    assert ops.max_pool2d(ops.ones((0, 2, 4, 4)), 2).shape == (0, 2, 2, 2)
    assert ops.max_pool2d(Tensor(RAMP[0]), 2).shape == (1, 3, 3)
    big = ops.avg_pool1d(ops.full((1, 1, 4096), 300.0, dtype=ms.float16), 4096)
    assert big.item() == 300.0


def test_channels_last_and_modes():
    nhwc = pool_by_mode("max", Tensor(X.transpose(0, 2, 3, 1).copy()), 2, 2, "valid", "NHWC")
    np.testing.assert_array_equal(nhwc.asnumpy().transpose(0, 3, 1, 2), ops.max_pool2d(Tensor(X), 2).asnumpy())
    same = max_pooling("MaxPool1d", 1, Tensor(X[0]), 3, 2, "same")
    assert same.shape == (3, 7, 4)
    padded = avg_pooling("AvgPool2d", 2, Tensor(X), 3, 2, "pad", 1)
    assert padded.shape == (2, 3, 4, 4)


def test_adaptive_forms():
    x = Tensor(RAMP)
    assert ops.adaptive_avg_pool2d(x, (3, None)).shape == (1, 1, 3, 7)
    y, index = ops.adaptive_max_pool2d(x, (3, 2), True)
    assert y.tolist() == [[[[17, 20], [31, 34], [45, 48]]]]
    assert index.tolist() == [[[[17, 20], [31, 34], [45, 48]]]]
    nan = Tensor([[[np.nan, 1.0, 2.0, 3.0, 4.0]]])
    np.testing.assert_array_equal(ops.adaptive_avg_pool1d(nan, 2).asnumpy(), [[[np.nan, 3.0]]])


@pytest.mark.torch
def test_unpooling():
    torch = pytest.importorskip("torch")
    y, index = ops.max_pool2d(Tensor(X), 2, return_indices=True)
    got = ops.max_unpool2d(y, index, 2, output_size=(7, 8))
    want = torch.nn.functional.max_unpool2d(*(torch.from_numpy(a.asnumpy()) for a in (y, index)), 2, output_size=(7, 8))
    np.testing.assert_array_equal(got.asnumpy(), want.numpy())
    with pytest.raises(ArgumentValueError, match="within a stride"):
        ops.max_unpool2d(y, index, 2, output_size=(9, 9))
    with pytest.raises(ShapeError, match="'indices'"):
        ops.max_unpool2d(y, index[:1], 2)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: ops.max_pool2d(x, 9), ShapeError, "within the padded input"),
        (lambda x: ops.max_pool2d(x, 2, padding=2), ArgumentValueError, "less than the window"),
        (lambda x: ops.max_pool1d(x, 2), ShapeError, "3 axes"),
        (lambda x: ops.avg_pool2d(x, 2, divisor_override=-1), ArgumentValueError, "'divisor_override' got -1"),
        (lambda x: ops.avg_pool2d(x, (2, 2, 2)), ArgumentValueError, "'kernel_size'"),
        (lambda x: ops.adaptive_avg_pool2d(x, (2, -3)), ArgumentValueError, "'output_size'"),
        (lambda x: ops.lp_pool2d(x, 0, 2), ArgumentValueError, "other than 0"),
        (lambda x: pool_by_mode("max", x, 2, 2, "pad"), ArgumentValueError, '"same" or "valid"'),
    ],
)
def test_messages(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call(Tensor(X))
    assert "test_max_avg_pooling.py" in str(caught.value)
