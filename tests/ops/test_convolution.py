"""Convolutions as users call them: padding modes, forms of arguments, transposed ones, messages."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ops.convolution import convolution, transposed_convolution

RNG = np.random.default_rng(2)
X, W, BIAS = RNG.standard_normal((2, 4, 6, 7)), RNG.standard_normal((6, 2, 3, 2)), RNG.standard_normal(6)
ONES, KERNEL = np.ones((1, 1, 6, 6), np.float32), np.ones((1, 1, 3, 3), np.float32)


def test_same_padding_puts_the_odd_zero_at_the_end():
    # values of MindSpore 2.10
    y = ops.conv2d(Tensor(ONES), Tensor(KERNEL), stride=2, pad_mode="same")
    assert y.tolist() == [[[[9.0, 9.0, 6.0], [9.0, 9.0, 6.0], [6.0, 6.0, 4.0]]]]
    y = ops.conv2d(Tensor(ONES[:, :, :5, :5]), Tensor(KERNEL), stride=2, pad_mode="SAME")
    assert y.tolist() == [[[[4.0, 6.0, 4.0], [6.0, 9.0, 6.0], [4.0, 6.0, 4.0]]]]


@pytest.mark.parametrize(
    ("padding", "shape"), [(1, (3, 3)), ((1, 2), (3, 4)), ((1, 2, 0, 1), (4, 3)), ([0, 0], (2, 2))]
)
def test_forms_of_padding(padding, shape):
    assert ops.conv2d(Tensor(ONES), Tensor(KERNEL), None, 2, "pad", padding).shape == (1, 1, *shape)


@pytest.mark.torch
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_against_torch(dtype):
    torch = pytest.importorskip("torch")
    x, w, b = (a.astype(dtype) for a in (X, W, BIAS))
    got = ops.conv2d(Tensor(x), Tensor(w), Tensor(b), (2, 1), "pad", (1, 2), (1, 2), 2)
    want = torch.conv2d(*map(torch.from_numpy, (x, w, b)), (2, 1), (1, 2), (1, 2), 2)
    np.testing.assert_allclose(got.asnumpy(), want.numpy(), rtol=1e-4, atol=1e-5)
    single = ops.conv2d(Tensor(x[0]), Tensor(w), Tensor(b), groups=2)
    np.testing.assert_allclose(
        single.asnumpy(), torch.conv2d(*map(torch.from_numpy, (x[0], w, b)), groups=2).numpy(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.torch
@pytest.mark.parametrize("n", [1, 2, 3])
def test_transposed_against_torch(n):
    torch = pytest.importorskip("torch")
    x, w, b = RNG.standard_normal((2, 4, *(3, 4, 2)[:n])), RNG.standard_normal((4, 3, *(3, 2, 2)[:n])), BIAS
    options = {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2, "dilation": 2}
    name = f"conv_transpose{n}d"
    got = getattr(ops, name)(Tensor(x), Tensor(w), Tensor(b), **options)
    want = getattr(torch.nn.functional, name)(*map(torch.from_numpy, (x, w, b)), **options)
    np.testing.assert_allclose(got.asnumpy(), want.numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("mode", "kernel", "stride", "size"),
    [("same", 3, 2, 10), ("valid", 3, 2, 11), ("valid", 1, 2, 10), ("pad", 3, 2, 11)],
)
def test_transposed_sizes_of_each_mode(mode, kernel, stride, size):
    x, w = Tensor(np.ones((1, 1, 5))), Tensor(np.ones((1, 1, kernel)))
    y = transposed_convolution("conv1d_transpose", 1, x, w, None, stride, mode)
    assert y.shape == (1, 1, size)
    assert y.sum().item() <= 5 * kernel


def test_mint_form():
    x, w = Tensor(X[:, :2]), Tensor(W)
    np.testing.assert_allclose(
        convolution(x, w, padding="same").asnumpy(), ops.conv2d(x, w, pad_mode="same").asnumpy(), rtol=1e-12
    )
    np.testing.assert_allclose(
        convolution(x, w, padding=(1, 0), stride=2).asnumpy(), ops.conv2d(x, w, None, 2, "pad", (1, 0)).asnumpy()
    )
    with pytest.raises(ArgumentValueError, match="stride of 1"):
        convolution(x, w, padding="same", stride=2)


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16])
def test_half_precision(dtype):
    x, w = RNG.standard_normal((1, 64, 5, 5)), RNG.standard_normal((2, 64, 3, 3))
    a, b = Tensor(x).astype(dtype), Tensor(w).astype(dtype)
    exact = ops.conv2d(a.astype(ms.float64), b.astype(ms.float64)).asnumpy()
    got = ops.conv2d(a, b)
    assert got.dtype is dtype
    step = 2.0**-10 if dtype is ms.float16 else 2.0**-7
    np.testing.assert_allclose(got.astype(ms.float64).asnumpy(), exact, rtol=step, atol=step * np.abs(exact).max())


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (ops.conv2d, ShapeError, r"'weight'.*4 channels in all"),
        (lambda x, w: ops.conv2d(x, w, groups=2, pad_mode="mirror"), ArgumentValueError, '"same", "valid" or "pad"'),
        (lambda x, w: ops.conv2d(x, w, groups=2, padding=1), ArgumentValueError, 'takes 0 with pad_mode "valid"'),
        (lambda x, w: ops.conv2d(x, w, groups=2, stride=0), ArgumentValueError, "'stride' got 0"),
        (lambda x, w: ops.conv2d(x, w, groups=2, stride=(1, 2, 3)), ArgumentValueError, "an int, or 2"),
        (lambda x, w: ops.conv2d(x, w, groups=2, dilation=9), ShapeError, "within the padded input"),
        (lambda x, w: ops.conv2d(x[0, 0], w), ShapeError, "'input' got shape"),
        (lambda x, w: ops.conv1d(x[0], w), ShapeError, "'weight' got shape"),
        (ops.conv_transpose2d, ShapeError, "the 4 channels"),
        (lambda x, w: ops.conv_transpose2d(x, w[:4], output_padding=1), ArgumentValueError, "less than the stride"),
    ],
)
def test_messages(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call(Tensor(X), Tensor(W))
    assert "test_convolution.py" in str(caught.value)
