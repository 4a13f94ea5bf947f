"""Flip, roll, rotate, tile and repeat; windows of images and blocks."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, GraphError, OutOfRangeError, ShapeError

X = np.arange(24.0).reshape(2, 3, 4)
IMAGES = np.sin(np.arange(2 * 3 * 5 * 6.0)).reshape(2, 3, 5, 6)


def same(got, want):
    np.testing.assert_array_equal(got.asnumpy(), want)
    assert got.shape == np.shape(want)


def test_flip():
    x = Tensor(X)
    same(ops.flip(x, (0, 2)), np.flip(X, (0, 2)))
    same(ops.flip(x, -1), np.flip(X, -1))
    same(x.flip(0, 1), np.flip(X, (0, 1)))
    same(x.flip(dims=(1,)), np.flip(X, 1))
    same(ops.flip(x, ()), X)
    same(x.fliplr(), np.fliplr(X))
    same(x.flipud(), np.flipud(X))
    same(x.reverse([1]), np.flip(X, 1))


def test_roll_and_rotate():
    x = Tensor(X)
    same(ops.roll(x, 5), np.roll(X, 5))
    same(x.roll(shifts=(1, -2), dims=(0, 2)), np.roll(X, (1, -2), (0, 2)))
    same(ops.roll(x, (1, 1), (1, 1)), np.roll(X, (1, 1), (1, 1)))
    same(ops.roll(Tensor(np.zeros((0, 2))), 1, 0), np.zeros((0, 2)))
    for k in range(-1, 5):
        same(ops.rot90(x, k, (0, 2)), np.rot90(X, k, (0, 2)))
        same(x.rot90(k, (2, 1)), np.rot90(X, k, (2, 1)))


def test_tile_and_repeat():
    x = Tensor(X)
    for times in ((2,), (1, 2), (2, 1, 3), (2, 1, 1, 2), (0, 1, 1), ()):
        same(ops.tile(x, times), np.tile(X, times))
    same(x.tile(2, 3), np.tile(X, (2, 3)))
    same(x.tile(reps=(2, 3)), np.tile(X, (2, 3)))
    same(x.repeat(2, 1, 3), np.tile(X, (2, 1, 3)))
    same(x.repeat(2, axis=1), np.repeat(X, 2, 1))
    for axis in (None, 0, -1):
        same(ops.repeat_interleave(x, 3, axis), np.repeat(X, 3, axis))
        same(x.repeat_interleave(2, dim=axis), np.repeat(X, 2, axis))
    same(ops.repeat_interleave(x, Tensor([2, 0, 1]), 1), np.repeat(X, [2, 0, 1], 1))
    same(ops.repeat_interleave(x, 2, 0, output_size=4), np.repeat(X, 2, 0))
    same(ops.repeat_elements(x, 2, 2), np.repeat(X, 2, 2))
    assert ops.tile(Tensor(2.0), (2,)).shape == (2,)


@pytest.mark.parametrize(
    "fn",
    [
        lambda t: ops.flip(t, (0, 1)), lambda t: ops.roll(t, (1, 2), (1, 0)), lambda t: ops.rot90(t, 3, (0, 1)),
        lambda t: ops.tile(t, (2, 1, 3)), lambda t: ops.repeat_interleave(t, 2, 1),
        lambda t: ops.repeat_interleave(t, Tensor([1, 0, 2]), 1),
    ],
)  # fmt: skip
def test_gradients(fn):
    places = fn(Tensor(np.arange(24).reshape(X.shape))).asnumpy()
    weights = np.random.default_rng(1).normal(size=places.shape)
    want = np.zeros(24)
    np.add.at(want, places.ravel(), weights.ravel())
    got = ms.grad(lambda t: (fn(t) * Tensor(weights)).sum())(Tensor(X)).asnumpy()
    np.testing.assert_allclose(got, want.reshape(X.shape))


def test_in_a_graph():
    (got,) = run_staged(lambda t: ops.repeat_interleave(ops.roll(t, 1, 1), [1, 2], 0), X)
    np.testing.assert_array_equal(got, np.repeat(np.roll(X, 1, 1), [1, 2], 0))
    with pytest.raises(GraphError):
        run_staged(lambda t, n: ops.repeat_interleave(t, n, 0), X, np.array([1, 2]))


@pytest.mark.torch
@pytest.mark.parametrize(
    "options", [{}, {"stride": 2}, {"padding": (1, 2), "dilation": (2, 1)}, {"stride": (1, 3), "padding": 1}]
)
def test_windows_against_torch(options):
    torch = pytest.importorskip("torch")
    theirs = torch.nn.functional.unfold(torch.tensor(IMAGES), (2, 3), **options)
    columns = ops.unfold(Tensor(IMAGES), (2, 3), **options)
    np.testing.assert_array_equal(columns.asnumpy(), theirs.numpy())
    back = torch.nn.functional.fold(theirs, (5, 6), (2, 3), **options)
    np.testing.assert_allclose(ops.fold(columns, (5, 6), (2, 3), **options).asnumpy(), back.numpy())


def test_windows():
    columns = ops.unfold(Tensor(IMAGES), 2, stride=2, padding=1)
    same(columns, Tensor(IMAGES).unfold(2, 1, 1, 2).asnumpy())
    pieces = columns.reshape(2, 3, 4, -1)
    same(ops.fold(columns, Tensor([5, 6]), 2, padding=1, stride=2), pieces.col2im((5, 6), 2, 1, 1, 2).asnumpy())
    half = ops.fold(ops.ones((1, 9, 16), ms.float16), (6, 6), 3)
    assert half.dtype is ms.float16
    assert half.asnumpy().max() == 9.0


def test_blocks():
    x = np.arange(32.0).reshape(1, 2, 4, 4)
    deep = ops.space_to_depth(Tensor(x), 2)
    assert deep.shape == (1, 8, 2, 2)
    same(ops.depth_to_space(deep, 2), x)
    assert deep.asnumpy()[0, :, 0, 0].tolist() == [0, 16, 1, 17, 4, 20, 5, 21]
    batch = ops.space_to_batch_nd(Tensor(x), [2, 2], [[0, 2], [1, 1]])
    assert batch.shape == (4, 2, 3, 3)
    same(ops.batch_to_space_nd(batch, [2, 2], [[0, 2], [1, 1]]), x)
    line = ops.space_to_batch_nd(Tensor(x), [2], [[0, 0]])
    assert line.shape == (2, 2, 4, 2)
    same(ops.batch_to_space_nd(line, [2], [[0, 0]]), x)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: ops.flip(x, 3), OutOfRangeError, "dims"),
        (lambda x: ops.flip(x, (0, 0)), ArgumentValueError, "each axis once"),
        (lambda x: ops.fliplr(x[0, 0]), ShapeError, "at least two axes"),
        (lambda x: ops.flipud(Tensor(1.0)), ShapeError, "at least one axis"),
        (lambda x: ops.roll(x, (1, 2)), ArgumentValueError, "one int when 'dims' is not given"),
        (lambda x: ops.roll(x, (1, 2), 0), ArgumentValueError, "each of the 1 axes"),
        (lambda x: ops.rot90(x, 1, (0, 0)), ArgumentValueError, "two different axes"),
        (lambda x: ops.tile(x, (-1,)), ArgumentValueError, "at least 0"),
        (lambda x: x.repeat(2), ArgumentValueError, "a number for each axis"),
        (lambda x: ops.repeat_interleave(x, [1, 2], 1), ArgumentValueError, "one for each of the 3 elements"),
        (lambda x: ops.repeat_interleave(x, -1), ArgumentValueError, "at least 0"),
        (lambda x: ops.repeat_interleave(x, 2, 0, output_size=5), ArgumentValueError, "output_size"),
        (lambda x: ops.repeat_elements(x, 0), ArgumentValueError, "at least 1"),
        (lambda x: ops.repeat_elements(x, 1.5), ArgumentTypeError, "an int"),
        (lambda x: ops.unfold(x, 2), ShapeError, "four axes"),
        (lambda x: ops.unfold(Tensor(IMAGES), 7), ShapeError, "padded length 5"),
        (lambda x: ops.unfold(Tensor(IMAGES), (1, 2, 3)), ArgumentValueError, "height and width"),
        (lambda x: ops.unfold(Tensor(IMAGES), 2, stride=0), ArgumentValueError, "at least 1"),
        (lambda x: ops.fold(x, (3, 3), 2), ShapeError, r"\(N, C \* 4, 4\)"),
        (lambda x: ops.space_to_batch_nd(x, [3], [[0, 0]]), ShapeError, "divisors"),
        (lambda x: ops.space_to_batch_nd(x, [2], [[0, 0], [0, 0]]), ArgumentValueError, "1 pairs"),
        (lambda x: ops.batch_to_space_nd(x, [3, 3], [[0, 0], [0, 0]]), ShapeError, "multiple of 9"),
        (lambda x: ops.depth_to_space(Tensor(IMAGES), 2), ShapeError, "divides the 3 channels"),
        (lambda x: ops.space_to_depth(Tensor(IMAGES), 2), ShapeError, "divisor of height 5"),
    ],
)  # fmt: skip
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call(Tensor(X))


def test_resize():
    same(Tensor(X).resize(2, 3), X.ravel()[:6].reshape(2, 3))
    same(Tensor([1.0, 2.0]).resize((2, 2)), [[1.0, 2.0], [0.0, 0.0]])
    with pytest.raises(ArgumentValueError, match="at least 0"):
        Tensor(X).resize(-1)
