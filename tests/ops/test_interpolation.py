"""Resampling, sampling at places, affine grids, and pixels moved to channels, as users call them."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ops.interpolation import interpolate_ext

RNG = np.random.default_rng(9)
RAMP = np.arange(16.0, dtype=np.float32).reshape(1, 1, 4, 4)
SHAPES = {3: (2, 3, 7), 4: (2, 3, 5, 6), 5: (1, 2, 3, 4, 5)}


def test_values_of_mindspore():
    x = Tensor(RAMP)
    row = ops.interpolate(x, size=(7, 3), mode="bilinear").asnumpy()[0, 0, 0]
    np.testing.assert_allclose(row, [0.1666667, 1.5, 2.8333335], rtol=1e-6)
    row = ops.interpolate(x, size=(7, 3), mode="bicubic").asnumpy()[0, 0, 0]
    np.testing.assert_allclose(
        row, [-0.21378386, 1.1831343, 2.5800521], atol=1e-3
    )  # MindSpore rounds weights to a table
    row = ops.interpolate(x, size=(3, 9), mode="bicubic", align_corners=True).asnumpy()[0, 0, 0, :4]
    np.testing.assert_allclose(row, [0.0, 0.29443359, 0.66796875, 1.16601562], rtol=1e-5, atol=1e-6)
    assert ops.interpolate(x, size=(2, 2), mode="nearest-exact").tolist() == [[[[5.0, 7.0], [13.0, 15.0]]]]
    stepped = ops.interpolate(x.reshape(1, 1, 1, 4, 4), scale_factor=1.7, mode="trilinear").asnumpy()
    np.testing.assert_allclose(stepped[0, 0, 0, 0, :4], [0.0, 0.3823529, 0.9705882, 1.5588233], rtol=1e-5, atol=1e-6)
    recomputed = ops.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True).asnumpy()
    np.testing.assert_allclose(recomputed[0, 0, 0, :3], [0.0, 0.5, 1.1666667], rtol=1e-5, atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("mode", "rank", "align"),
    [
        *[(mode, rank, None) for mode in ("nearest", "nearest-exact", "area") for rank in (3, 4, 5)],
        *[
            (mode, rank, a)
            for mode, rank in (("linear", 3), ("bilinear", 4), ("trilinear", 5), ("bicubic", 4))
            for a in (False, True)
        ],
    ],
)
def test_against_torch(mode, rank, align):
    torch = pytest.importorskip("torch")
    x = RNG.standard_normal(SHAPES[rank])
    for options in (
        {"size": (4, 7, 2)[: rank - 2]},
        {"scale_factor": 2.0},
        {"scale_factor": (1.6, 0.7, 1.3)[: rank - 2]},
    ):
        got = interpolate_ext(Tensor(x), mode=mode, align_corners=align, **options)
        want = torch.nn.functional.interpolate(torch.from_numpy(x), mode=mode, align_corners=align, **options)
        np.testing.assert_allclose(got.asnumpy(), want.numpy(), rtol=1e-9, atol=1e-10)


def test_special_values_stay_where_they_are():
    x = np.ones((1, 1, 4), np.float32)
    x[0, 0, 3] = np.nan
    up = ops.interpolate(Tensor(x), size=8)
    assert np.isnan(up.asnumpy()).tolist() == [[[False] * 6 + [True] * 2]]
    ct = Tensor(np.array([[[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, np.inf, 1.0]]], np.float32))
    slope = ms.grad(lambda x: (ops.interpolate(x, size=8) * ct).sum())(Tensor(x))
    assert slope.tolist() == [[[2.0, 2.0, 2.0, np.inf]]]


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_in_float32(mode, padding):
    torch = pytest.importorskip("torch")
    x = RNG.standard_normal((2, 3, 5, 6)).astype(np.float32)
    grid = RNG.uniform(-1.6, 1.6, (2, 4, 3, 2)).astype(np.float32)
    got = ops.grid_sample(Tensor(x), Tensor(grid), mode, padding, True)
    want = torch.nn.functional.grid_sample(torch.from_numpy(x), torch.from_numpy(grid), mode, padding, True)
    np.testing.assert_allclose(got.asnumpy(), want.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Since version 1.3.0:UserWarning")
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 3, 4, 2), (2, 1, 1, 1)])
def test_affine_grid(size, align):
    torch = pytest.importorskip("torch")
    n = len(size) - 2
    theta = RNG.standard_normal((2, n, n + 1))
    got = ops.affine_grid(Tensor(theta), size, align)
    want = torch.nn.functional.affine_grid(torch.from_numpy(theta), size, align)
    np.testing.assert_allclose(got.asnumpy(), want.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.torch
def test_pixels_and_channels():
    torch = pytest.importorskip("torch")
    x = RNG.standard_normal((2, 12, 4, 6))
    t = torch.from_numpy(x)
    np.testing.assert_array_equal(ops.pixel_shuffle(Tensor(x), 2).asnumpy(), torch.pixel_shuffle(t, 2).numpy())
    np.testing.assert_array_equal(ops.pixel_unshuffle(Tensor(x), 2).asnumpy(), torch.pixel_unshuffle(t, 2).numpy())
    np.testing.assert_array_equal(ops.channel_shuffle(Tensor(x), 3).asnumpy(), torch.channel_shuffle(t, 3).numpy())


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (ops.interpolate, ArgumentValueError, "neither of size and scale_factor"),
        (lambda x: ops.interpolate(x, 3, 2.0), ArgumentValueError, "both of size and scale_factor"),
        (lambda x: ops.interpolate(x, 3, mode="cubic"), ArgumentValueError, "bicubic"),
        (lambda x: ops.interpolate(x, 3, mode="linear"), ShapeError, "3 axes for 'linear'"),
        (lambda x: ops.interpolate(x, 3, align_corners=True), ArgumentValueError, "None unless linear or cubic"),
        (lambda x: ops.interpolate(x, (3, 0)), ArgumentValueError, "'size'"),
        (lambda x: ops.interpolate(x, scale_factor=0.1), ArgumentValueError, "leave elements"),
        (lambda x: ops.grid_sample(x, ops.zeros((1, 2, 2, 3))), ShapeError, "2 coordinates"),
        (lambda x: ops.grid_sample(x, ops.zeros((1, 2, 2, 2)), "cubic"), ArgumentValueError, "bicubic"),
        (lambda x: ops.affine_grid(ops.zeros((1, 2, 3)), (1, 1, 2)), ShapeError, r"\(batch, 2, 3\)"),
        (lambda x: ops.pixel_shuffle(x, 2), ShapeError, "multiple of 4"),
        (lambda x: ops.channel_shuffle(x, 2), ShapeError, "multiple of 2"),
    ],
)
def test_messages(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call(Tensor(RAMP))
    assert "test_interpolation.py" in str(caught.value)
