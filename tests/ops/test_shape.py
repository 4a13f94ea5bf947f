"""Shapes and orders of axes: reshape, transpose, broadcast, squeeze, questions about the shape."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, OutOfRangeError, ShapeError

X = np.arange(24.0).reshape(2, 3, 4)


def same(got, want):
    np.testing.assert_array_equal(got.asnumpy(), want)
    assert got.shape == np.shape(want)


def test_reshape():
    x = Tensor(X)
    for shape in ((4, 6), (-1,), (2, -1, 2), (24, 1)):
        same(ops.reshape(x, shape), X.reshape(shape))
        same(x.reshape(shape), X.reshape(shape))
        same(x.view(*shape), X.reshape(shape))
    same(x.reshape(shape=(6, 4)), X.reshape(6, 4))
    same(ops.reshape(x, Tensor([6, 4])), X.reshape(6, 4))
    same(ops.reshape(x, shape=[6, 4]), X.reshape(6, 4))
    assert ops.reshape(Tensor(np.zeros((0, 3))), (3, -1)).shape == (3, 0)
    assert ops.reshape(Tensor(5.0), (1, 1)).shape == (1, 1)
    same(x.ravel(), X.ravel())
    same(x.reshape_as(Tensor(X.T)), X.reshape(4, 3, 2))
    same(x.view_as(Tensor(X.T)), X.reshape(4, 3, 2))


def test_flatten():
    x = Tensor(X)
    same(ops.flatten(x), X.reshape(2, 12))
    same(ops.flatten(x, start_dim=0, end_dim=1), X.reshape(6, 4))
    same(ops.flatten(x, "F", start_dim=0), X.ravel("F"))
    same(x.flatten("F"), X.ravel("F"))
    same(x.flatten(1, 2), X.reshape(2, 12))
    same(x.flatten(start_dim=1), X.reshape(2, 12))
    assert ops.flatten(Tensor(1.0)).shape == (1,)
    assert ops.flatten(Tensor([1.0, 2.0])).shape == (2,)


def test_transpose():
    x = Tensor(X)
    same(ops.transpose(x, (2, 0, 1)), X.transpose(2, 0, 1))
    same(ops.transpose(x, input_perm=(2, 0, -2)), X.transpose(2, 0, 1))
    same(ops.transpose(x, dims=(0, 2, 1)), X.transpose(0, 2, 1))
    same(ops.permute(x, axis=(1, 0, 2)), X.transpose(1, 0, 2))
    same(x.permute(1, 0, 2), X.transpose(1, 0, 2))
    same(x.permute(dims=(1, 0, 2)), X.transpose(1, 0, 2))
    same(x.transpose(1, 0, 2), X.transpose(1, 0, 2))
    same(x.transpose([1, 0, 2]), X.transpose(1, 0, 2))
    same(x.transpose(0, 2), X.swapaxes(0, 2))
    same(x.transpose(), X.T)
    same(x.transpose(None), X.T)
    same(x.swapaxes(0, -1), X.swapaxes(0, -1))
    same(x.swapdims(dim0=0, dim1=1), X.swapaxes(0, 1))
    same(x.movedim(0, -1), np.moveaxis(X, 0, -1))
    same(x.moveaxis((0, 1), (-1, 0)), np.moveaxis(X, (0, 1), (-1, 0)))
    same(x.T, X.T)
    same(x.mT, X.swapaxes(1, 2))
    c = X[0] + 1j * X[1]
    same(Tensor(c).H, c.conj().T)
    same(Tensor(c).mH, c.conj().T)
    same(ops.adjoint(Tensor(c)), c.conj().T)
    same(Tensor(c).t(), c.T)


def test_broadcast():
    row = Tensor([1.0, 2.0])
    same(ops.broadcast_to(row, (3, 2)), np.broadcast_to([1.0, 2.0], (3, 2)))
    same(row.broadcast_to((3, -1)), np.broadcast_to([1.0, 2.0], (3, 2)))
    same(row.expand(3, 2), np.broadcast_to([1.0, 2.0], (3, 2)))
    same(row.expand(size=(3, 2)), np.broadcast_to([1.0, 2.0], (3, 2)))
    same(row.expand_as(Tensor(np.zeros((3, 2)))), np.broadcast_to([1.0, 2.0], (3, 2)))
    a, b = ops.broadcast_tensors(row, Tensor([[1.0], [2.0]]))
    assert a.shape == b.shape == (2, 2)
    assert [t.shape for t in ops.broadcast_tensors([row, Tensor(1.0)])] == [(2,), (2,)]


def test_axes_of_length_one():
    x = Tensor(np.zeros((1, 2, 1)))
    assert ops.squeeze(x).shape == (2,)
    assert ops.squeeze(x, 0).shape == (2, 1)
    assert ops.squeeze(x, dim=(0, 2)).shape == (2,)
    assert x.squeeze(1).shape == (1, 2, 1)
    assert x.squeeze(axis=-1).shape == (1, 2)
    assert x.squeeze(0, 2).shape == (2,)
    assert ops.squeeze(x, ()).shape == (1, 2, 1)
    assert ops.expand_dims(x, -1).shape == (1, 2, 1, 1)
    assert x.unsqueeze(dim=0).shape == (1, 1, 2, 1)
    assert x.expand_dims(axis=1).shape == (1, 1, 2, 1)
    assert Tensor(1.0).unsqueeze(0).shape == (1,)
    for rank in (1, 2, 3):
        fn, theirs = getattr(ops, f"atleast_{rank}d"), getattr(np, f"atleast_{rank}d")
        for data in (np.array(1.0), np.zeros(2), np.zeros((2, 3)), X):
            assert fn(Tensor(data)).shape == theirs(data).shape
        assert [t.ndim for t in fn([Tensor(1.0), Tensor([1.0])])] == [rank, rank]


def test_questions():
    x = Tensor(X)
    assert (ops.shape(x), ops.size(x), ops.rank(x), ops.numel(x)) == ((2, 3, 4), 24, 3, 24)
    assert (x.dim(), x.ndimension(), x.nelement(), x.numel()) == (3, 3, 24, 24)
    assert ops.dyn_shape(x).asnumpy().tolist() == [2, 3, 4]
    with pytest.raises(ArgumentTypeError, match="a Tensor"):
        ops.shape([1, 2])


def test_gradients():
    weights = Tensor(X)
    for fn in (
        lambda t: t.reshape(24).reshape(2, 3, 4), lambda t: t.transpose(2, 0, 1).permute(1, 2, 0),
        lambda t: ops.expand_dims(t, 1).squeeze(1), lambda t: t.swapaxes(0, 2).T,
    ):  # fmt: skip
        same(ms.grad(lambda t, fn=fn: (fn(t) * weights).sum())(Tensor(X)), X)
    got = ms.grad(lambda t: (t.broadcast_to(2, 3, 4) * weights).sum())(Tensor(np.zeros((3, 1))))
    same(got, X.sum((0, 2))[:, None])


def test_in_a_graph():
    (got,) = run_staged(lambda t: t.reshape(6, -1).T.flatten("F").broadcast_to(2, -1), X)
    np.testing.assert_array_equal(got, np.broadcast_to(X.ravel(), (2, 24)))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: x.reshape(5, 5), ShapeError, r"\(5, 5\) \(25 elements\); it takes 24 elements"),
        (lambda x: x.reshape(-1, -1), ArgumentValueError, "at most one -1"),
        (lambda x: x.reshape(-1, 7), ShapeError, "divide the 24 elements"),
        (lambda x: x.reshape(-2, 12), ArgumentValueError, "at least -1"),
        (lambda x: x.reshape(2.0, 12), ArgumentTypeError, "an int"),
        (lambda x: ops.transpose(x, (0, 1)), ArgumentValueError, "each of the 3 axes"),
        (lambda x: ops.transpose(x, (0, 1, 1)), ArgumentValueError, "once"),
        (lambda x: x.swapaxes(0, 3), OutOfRangeError, "'axis1' got 3"),
        (lambda x: x.movedim((0, 1), 0), ArgumentValueError, "as many as 'source'"),
        (lambda x: x.movedim((0, 0), (0, 1)), ArgumentValueError, "each axis once"),
        (lambda x: x.broadcast_to(2, 3, 5), ShapeError, "broadcasts to"),
        (lambda x: x.broadcast_to(-1, 2, 3, 4), ArgumentValueError, "-1 only"),
        (lambda x: x.expand_dims(4), OutOfRangeError, "'axis' got 4; it takes an axis from -4 to 3"),
        (lambda x: x.squeeze(3), OutOfRangeError, "axis"),
        (lambda x: ops.flatten(x, "Q"), ArgumentValueError, '"C" or "F"'),
        (lambda x: ops.flatten(x, start_dim=2, end_dim=1), ArgumentValueError, "not after"),
        (lambda x: x.H, ShapeError, "a matrix"),
        (lambda x: x[0, 0].mT, ShapeError, "at least two axes"),
        (lambda x: ops.broadcast_tensors(x, x[:, :2]), ShapeError, r"'tensors\[1\]'"),
    ],
)  # fmt: skip
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call(Tensor(X))
