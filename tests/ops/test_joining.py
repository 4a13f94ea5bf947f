"""Tensors put together and taken apart, and padding."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, OutOfRangeError, ShapeError

X = np.arange(24.0).reshape(2, 3, 4)


def same(got, want):
    np.testing.assert_array_equal(got.asnumpy(), want)
    assert got.shape == np.shape(want)


def all_same(got, want):
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        same(g, w)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_together(axis):
    parts = [Tensor(X), Tensor(-X), Tensor(X * 2)]
    arrays = [X, -X, X * 2]
    same(ops.concat(parts, axis), np.concatenate(arrays, axis))
    same(ops.cat(tuple(parts), axis=axis), np.concatenate(arrays, axis))
    same(ops.concat(parts, dim=axis), np.concatenate(arrays, axis))
    same(ops.stack(parts, axis), np.stack(arrays, axis))
    same(ops.stack(parts, dim=axis), np.stack(arrays, axis))


def test_promotion():
    assert ops.concat([Tensor([1]), Tensor([2.5])]).dtype is ms.float32
    assert ops.stack([Tensor([1], ms.int8), Tensor([2], ms.int64)]).dtype is ms.int64
    assert ops.concat([Tensor([1.0], ms.float16), Tensor([1.0], ms.bfloat16)]).dtype is ms.float32
    same(ops.concat([Tensor([1.0, 2.0]), [3.0], np.array([4], np.int32)]), [1.0, 2.0, 3.0, 4.0])
    same(ops.stack([1, 2]), [1, 2])
    with pytest.raises(DTypeError, match="no common dtype"):
        ops.concat([Tensor([1], ms.uint64), Tensor([1], ms.int64)])


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
def test_the_stacks_of_numpy(name):
    for arrays in ([np.arange(3.0), -np.arange(3.0)], [X[0], -X[0]], [X, -X], [np.array(1.0), np.array(2.0)]):
        same(getattr(ops, name)([Tensor(a) for a in arrays]), getattr(np, name)(arrays))
    same(ops.row_stack([Tensor(X[0]), Tensor(X[1])]), np.vstack([X[0], X[1]]))


def test_block_diag():
    scipy = pytest.importorskip("scipy.linalg")
    arrays = [X[0], np.array([1.0, 2.0]), np.array(3.0), np.zeros((0, 2))]
    same(ops.block_diag(*[Tensor(a) for a in arrays]), scipy.block_diag(*arrays))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_apart(axis):
    x = Tensor(X)
    length = X.shape[axis]
    all_same(ops.split(x, 2, axis), np.split(X, range(2, length, 2), axis))
    all_same(ops.split(x, [1, length - 1], axis), np.split(X, [1], axis))
    all_same(x.split(split_size=1, dim=axis), np.split(X, length, axis))
    all_same(x.tensor_split(2, axis), np.array_split(X, 2, axis))
    all_same(ops.tensor_split(x, [1, -1], axis), np.split(X, [1, -1], axis))
    all_same(x.unbind(axis), list(np.moveaxis(X, axis, 0)))
    all_same(ops.unstack(x, axis=axis), list(np.moveaxis(X, axis, 0)))
    all_same(x.chunk(2, dim=axis), np.split(X, [-(-length // 2)], axis) if length > 1 else [X])


def test_apart_as_numpy():
    x = Tensor(X)
    all_same(x.hsplit(3), np.hsplit(X, 3))
    all_same(ops.vsplit(x, [1]), np.vsplit(X, [1]))
    all_same(x.dsplit([1, 3]), np.dsplit(X, [1, 3]))
    all_same(ops.hsplit(Tensor([1.0, 2.0]), 2), np.hsplit(np.array([1.0, 2.0]), 2))
    all_same(ops.tensor_split(Tensor(np.arange(5)), [3, 1, 9]), [np.arange(3), [], np.arange(1, 5), []])
    assert ops.split(Tensor(np.zeros((0, 2))), 3)[0].shape == (0, 2)
    assert ops.unstack(Tensor(np.zeros((0, 2)))) == ()


def test_gradients():
    weights = Tensor(np.arange(12.0).reshape(3, 4))

    def f(x):
        first, _, last = ops.unstack(x, 1)
        left, right = ops.split(ops.concat([first, last * 2.0]), [1, 3])
        return (ops.stack([left[0], right[2]]) * weights[:2]).sum()

    want = np.zeros((2, 3, 4))
    want[0, 0], want[1, 2] = np.arange(4.0), 2 * np.arange(4.0, 8.0)
    same(ms.grad(f)(Tensor(X)), want)


def test_in_a_graph():
    joined, part = run_staged(lambda x: (ops.concat(ops.unstack(x), 1), ops.split(x, 2, 2)[1]), X)
    np.testing.assert_array_equal(joined, np.concatenate(list(X), 1))
    np.testing.assert_array_equal(part, X[:, :, 2:])


# padding


def test_pad_with_a_number():
    x = Tensor(X)
    same(ops.pad(x, (1, 2)), np.pad(X, ((0, 0), (0, 0), (1, 2))))
    same(ops.pad(x, (1, 2, 0, 3), value=-1), np.pad(X, ((0, 0), (0, 3), (1, 2)), constant_values=-1))
    same(ops.pad(x, ((1, 0), (0, 1), (2, 2))), np.pad(X, ((1, 0), (0, 1), (2, 2))))
    same(ops.pad(x, (-1, 1, -1, -1)), np.pad(X[:, 1:-1, 1:], ((0, 0), (0, 0), (0, 1))))
    same(ops.pad(x, Tensor([1, 0])), np.pad(X, ((0, 0), (0, 0), (1, 0))))
    same(ops.pad(Tensor([1, 2]), (1, 1), value=7), [7, 1, 2, 7])
    same(ops.pad(Tensor([True]), (1, 0)), [False, True])
    same(ops.pad(Tensor([1.0]), (1, 0), value=Tensor([np.inf])), [np.inf, 1.0])
    same(ops.pad(x, ()), X)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "symmetric"])
def test_pad_from_the_tensor(mode):
    theirs = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    same(ops.pad(Tensor(X), (1, 2, 2, 0), mode), np.pad(X, ((0, 0), (2, 0), (1, 2)), theirs))
    same(ops.pad(Tensor(X), (-1, 1), mode), np.pad(X, ((0, 0), (0, 0), (0, 1)), theirs)[:, :, 1:])
    weights = np.random.default_rng(0).normal(size=(2, 5, 7))
    got = ms.grad(lambda t: (ops.pad(t, (1, 2, 2, 0), mode) * Tensor(weights)).sum())(Tensor(X)).asnumpy()
    places = np.pad(np.arange(24).reshape(2, 3, 4), ((0, 0), (2, 0), (1, 2)), theirs)
    want = np.zeros(24)
    np.add.at(want, places.ravel(), weights.ravel())
    np.testing.assert_allclose(got, want.reshape(X.shape))


def test_the_gradient_of_the_padding_value():
    got = ms.grad(lambda v: (ops.pad(Tensor(X), (1, 2), value=v) * 2.0).sum())(Tensor(np.float64(0.5)))
    assert got.item() == 2.0 * 6 * 3


def test_padding_to_a_length():
    same(ops.padding(Tensor([[7.0], [8.0]]), 3), [[7.0, 0.0, 0.0], [8.0, 0.0, 0.0]])
    with pytest.raises(ShapeError, match="the last of length 1"):
        ops.padding(Tensor([[1.0, 2.0]]))
    with pytest.raises(ArgumentValueError, match="pad_dim_size"):
        ops.padding(Tensor([[1.0]]), 0)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: ops.concat([]), ArgumentValueError, "at least one tensor"),
        (ops.concat, ArgumentTypeError, "a tuple or list of tensors"),
        (lambda x: ops.concat(5), ArgumentTypeError, "a tuple or list"),
        (lambda x: ops.concat([x, x[0]]), ShapeError, r"'tensors\[1\]' got shape \(3, 4\)"),
        (lambda x: ops.concat([x, x[:, :1]]), ShapeError, "except along axis 0"),
        (lambda x: ops.concat([Tensor(1.0)]), ShapeError, "use stack"),
        (lambda x: ops.concat([x], 3), OutOfRangeError, "axis"),
        (lambda x: ops.stack([x, x[:1]]), ShapeError, r"the shape of tensors\[0\], \(2, 3, 4\)"),
        (lambda x: ops.stack([x], 4), OutOfRangeError, "from -4 to 3"),
        (lambda x: ops.split(x, [1, 2]), ShapeError, "add up to 2"),
        (lambda x: ops.split(x, 0), ArgumentValueError, "at least 1"),
        (lambda x: ops.split(x, [-1, 3]), ArgumentValueError, "at least 0"),
        (lambda x: ops.split(Tensor(1.0), 1), ShapeError, "zero-dimensional"),
        (lambda x: ops.chunk(x, 0), ArgumentValueError, "chunks"),
        (lambda x: ops.tensor_split(x, 0), ArgumentValueError, "at least 1"),
        (lambda x: ops.dsplit(x[0], 2), ShapeError, "at least 3 axes"),
        (lambda x: ops.vsplit(x[0, 0], 2), ShapeError, "at least two axes"),
        (ops.block_diag, ShapeError, "at most two axes"),
        (lambda x: ops.pad(x, (1,)), ArgumentValueError, "pairs"),
        (lambda x: ops.pad(x, (1,) * 8), ArgumentValueError, "at most the 3 axes"),
        (lambda x: ops.pad(x, (4, 0), "reflect"), ShapeError, "at most 3 in mode 'reflect'"),
        (lambda x: ops.pad(x, (5, 0), "circular"), ShapeError, "at most 4"),
        (lambda x: ops.pad(x, (-3, -3)), ShapeError, "at most its length"),
        (lambda x: ops.pad(x, (1, 1), "mirror"), ArgumentValueError, "'reflect'"),
        (lambda x: ops.pad(x, (1, 1), "reflect", 2.0), ArgumentValueError, "mode 'constant'"),
        (lambda x: ops.pad(x, ((1, 1),)), ArgumentValueError, "3 pairs"),
    ],
)  # fmt: skip
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call(Tensor(X))


def test_mirror_pad():
    same(ops.mirror_pad(Tensor(X[0]), Tensor([[1, 1], [2, 0]]), "REFLECT"), np.pad(X[0], ((1, 1), (2, 0)), "reflect"))
    same(ops.mirror_pad(Tensor(X[0]), [[3, 0], [0, 4]], "SYMMETRIC"), np.pad(X[0], ((3, 0), (0, 4)), "symmetric"))
    with pytest.raises(ArgumentValueError, match="REFLECT"):
        ops.mirror_pad(Tensor(X), [[0, 0]] * 3, "reflect")
    with pytest.raises(ArgumentValueError, match="3 pairs"):
        ops.mirror_pad(Tensor(X), [[0, 0]], "REFLECT")


def test_tuple_to_array():
    assert ops.tuple_to_array((1, 2)).dtype is ms.int32
    assert ops.tuple_to_array((1.5, 2)).dtype is ms.float32
    with pytest.raises(ArgumentTypeError, match="a tuple of numbers"):
        ops.tuple_to_array(("a",))
