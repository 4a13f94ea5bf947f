"""Reads at given places, tables looked up, and slices with computed starts."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Parameter, Tensor, ops
from mycelia.core.errors import ArgumentValueError, DTypeError, OutOfRangeError, ShapeError

X = np.arange(24.0).reshape(2, 3, 4)
TABLE = X[0]


def same(got, want):
    np.testing.assert_array_equal(got.asnumpy(), want)
    assert got.shape == np.shape(want)


def test_gather():
    x, index = Tensor(X), np.array([[2, 0], [1, -1]])
    same(ops.gather(x, Tensor(index), 1), np.take(X, index, 1))
    same(ops.gather(x, Tensor(index, ms.int32), -2), np.take(X, index, 1))
    same(ops.gather(x, [1, 0], 0), X[[1, 0]])
    same(ops.gather(x, 1, 0), X[1])
    same(ops.gather(x, [], 0), X[:0])
    same(ops.gather(x, Tensor([1], ms.uint8), 0), X[[1]])
    batched = np.stack([X[b][index[b]] for b in range(2)])
    same(ops.gather(x, Tensor(index), 1, 1), batched)
    same(ops.gather(x, Tensor(index), 1, batch_dims=-1), batched)
    same(x.gather(Tensor([0]), 0), X[[0]])
    same(x.gather(input_indices=Tensor([0]), axis=0), X[[0]])
    same(Tensor(TABLE).gather(1, Tensor([[0], [1], [3]])), [[0.0], [5.0], [11.0]])
    same(Tensor(TABLE).gather(dim=1, index=Tensor([[0], [1], [3]])), [[0.0], [5.0], [11.0]])


def test_elements():
    x, index = Tensor(X), np.array([[[0, 1, 2, 0]], [[2, 2, -1, 1]]])
    same(ops.gather_elements(x, 1, Tensor(index)), np.take_along_axis(X, index, 1))
    same(ops.gather_d(x, -2, Tensor(index)), np.take_along_axis(X, index, 1))
    same(x.gather_elements(dim=1, index=Tensor(index)), np.take_along_axis(X, index, 1))
    same(ops.gather_elements(x, 0, Tensor([[[1, 0]]])), [[[12.0, 1.0]]])
    assert ops.gather_elements(Tensor(3.0), 0, Tensor(0)).item() == 3.0
    same(ops.take_along_dim(x, Tensor([[[1]], [[2]]]), 1), np.take_along_axis(X, np.array([[[1]], [[2]]]), 1))
    same(ops.take_along_dim(x, Tensor([3, 5])), [3.0, 5.0])


def test_rows_of_indices():
    x = Tensor(X)
    same(ops.gather_nd(x, Tensor([[0, 1], [1, -1]])), X[[0, 1], [1, -1]])
    same(x.gather_nd(Tensor([[[1]]])), X[[[1]]])
    same(ops.gather_nd(x, Tensor([1, 2, 3])), X[1, 2, 3])
    assert ops.gather_nd(x, Tensor(np.zeros((2, 0), int))).shape == (2, 2, 3, 4)


def test_slices_by_index():
    x = Tensor(X)
    same(ops.index_select(x, 1, Tensor([2, -1, 0])), X[:, [2, -1, 0]])
    same(x.index_select(dim=2, index=Tensor([1])), X[:, :, [1]])
    same(ops.index_select(x, 0, Tensor(1)), X[[1]])
    same(ops.take(x, Tensor([[0, 23], [5, -1]])), X.ravel()[[[0, 23], [5, -1]]])
    same(x.take(Tensor([0, 9, -5]), 1), X[:, [0, 2, 0]])
    same(x.take([0, 4, -2], axis=1, mode="wrap"), X[:, [0, 1, 1]])
    same(x.take([0, 2], axis=1, mode="raise"), X[:, [0, 2]])
    same(x.take(index=Tensor([3])), [3.0])


def test_indices_outside_are_refused():
    x, far = Tensor(TABLE), Tensor([[0], [3], [1]])
    cases = {
        "gather": lambda: ops.gather(x, far, 0), "gather_elements": lambda: ops.gather_elements(x, 0, far),
        "gather_nd": lambda: ops.gather_nd(x, far), "index_select": lambda: ops.index_select(x, 0, Tensor([3])),
        "embedding": lambda: ops.embedding(far, x),
    }  # fmt: skip
    for name, call in cases.items():
        with pytest.raises(OutOfRangeError, match=f"{name}.*got the index 3; it takes indices from -3 to 2"):
            call()
    with pytest.raises(OutOfRangeError, match="the index -25"):
        ops.take(Tensor(X), Tensor([-25]))
    with pytest.raises(OutOfRangeError, match="the index 7"):
        Tensor(X).take([7], 1, "raise")
    with pytest.raises(OutOfRangeError, match="the axis is empty"):
        ops.gather(Tensor(np.zeros((0, 2))), Tensor([0]), 0)


def test_indices_outside_read_zero_in_a_graph():
    far = np.array([0, 5, -9])
    (got,) = run_staged(lambda x, i: ops.gather(x, i, 0), TABLE, far)
    np.testing.assert_array_equal(got, [TABLE[0], np.zeros(4), np.zeros(4)])
    (got,) = run_staged(ms.grad(lambda x, i: (ops.gather(x, i, 0) ** 2).sum()), TABLE, far)
    np.testing.assert_array_equal(got, [2 * TABLE[0], np.zeros(4), np.zeros(4)])
    with pytest.raises(OutOfRangeError, match="the index 5"):
        run_staged(lambda x: ops.gather(x, [5], 0), TABLE)


def test_gradients_add_up():
    same(ms.grad(lambda x: ops.gather(x, Tensor([1, 1, 0]), 0).sum())(Tensor(TABLE)), [[1.0] * 4, [2.0] * 4, [0.0] * 4])
    half = Tensor(np.zeros((2, 1)), ms.float16)
    many = Tensor(np.zeros(3000, np.int64))
    assert ms.grad(lambda x: ops.gather(x, many, 0).sum())(half).asnumpy().tolist() == [[3000.0], [0.0]]


def test_one_hot():
    same(ops.one_hot(Tensor([0, 2]), 3), [[1, 0, 0], [0, 0, 1]])
    assert ops.one_hot(Tensor([0, 2]), 3).dtype is ms.int64
    same(ops.one_hot(Tensor([0, 7, -1]), 2, 1.0, -1.0), [[1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0]])
    same(ops.one_hot(Tensor([[0, 1]]), 2, axis=0), [[[1, 0]], [[0, 1]]])
    same(ops.one_hot(Tensor(1), 3, True, False), [False, True, False])
    assert ops.one_hot(Tensor([0]), 2, Tensor(1.0, ms.bfloat16), 0).dtype is ms.bfloat16
    assert ops.one_hot(Tensor([0]), 0).shape == (1, 0)
    got = ms.grad(lambda on: ops.one_hot(Tensor([0, 2, 9]), 3, on, 0.0).sum())(Tensor(2.0))
    assert got.item() == 2.0


def test_embedding():
    table = Tensor(TABLE)
    same(ops.embedding(Tensor([[2, 0]]), table), TABLE[[[2, 0]]])
    weights = np.arange(12.0).reshape(3, 4)

    def f(t, **options):
        return (ops.embedding(Tensor([2, 0, 2]), t, **options) * Tensor(weights)).sum()

    same(ms.grad(f)(table), [weights[1], np.zeros(4), weights[0] + weights[2]])
    same(ms.grad(lambda t: f(t, padding_idx=-1))(table), [weights[1], np.zeros(4), np.zeros(4)])
    same(
        ms.grad(lambda t: f(t, scale_grad_by_freq=True))(table),
        [weights[1], np.zeros(4), (weights[0] + weights[2]) / 2],
    )


def test_embedding_with_a_longest_norm():
    table = Parameter(Tensor([[3.0, 4.0], [6.0, 8.0], [0.3, 0.4]]), name="t")
    out = ops.embedding(Tensor([0, 2]), table, max_norm=1.0)
    np.testing.assert_allclose(out.asnumpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-5)
    np.testing.assert_allclose(table.asnumpy(), [[0.6, 0.8], [6.0, 8.0], [0.3, 0.4]], rtol=1e-5)
    got = ms.grad(lambda t: ops.embedding(Tensor([1]), t, max_norm=1.0).sum())(Tensor([[3.0, 4.0], [6.0, 8.0]]))
    same(got, [[0.0, 0.0], [1.0, 1.0]])


def test_boxes():
    x = Tensor(X)
    same(ops.slice(x, (0, 1, 2), (2, 2, -1)), X[:, 1:3, 2:])
    same(ops.slice(x, Tensor([1, 0, 0]), [1, 3, 4]), X[1:])
    same(ops.narrow(x, 1, 1, 2), X[:, 1:])
    same(x.narrow(dim=2, start=-2, length=2), X[:, :, 2:])
    same(ops.narrow(x, 0, 0, 0), X[:0])
    same(ops.dynamic_slice(x, [0, Tensor(1), -2], [2, 2, 2]), X[:, 1:3, 2:])
    same(ops.dynamic_slice(x, [9, 0, 0], [1, 3, 4]), X[1:])
    want = X.copy()
    want[0:1, 1:3, 0:2] = -1.0
    same(ops.dynamic_update_slice(x, -np.ones((1, 2, 2)), [0, Tensor(1), 0]), want)


def test_boxes_in_a_graph():
    one, two = run_staged(lambda x, i: (ops.slice(x, (0, i, 0), (2, 1, 4)), ops.narrow(x, 2, i, 2)), X, np.array(1))
    np.testing.assert_array_equal(one, X[:, 1:2])
    np.testing.assert_array_equal(two, X[:, :, 1:3])
    (got,) = run_staged(lambda x, i: ops.slice(x, i, (1, 2, 2)), X, np.array([1, 0, 2]))
    np.testing.assert_array_equal(got, X[1:, :2, 2:])


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: ops.gather(x, Tensor([0.5]), 0), DTypeError, "'input_indices' got dtype Float32; it takes integers"),
        (lambda x: ops.gather(x, Tensor([0]), 3), OutOfRangeError, "axis"),
        (lambda x: ops.gather(x, Tensor([0, 0, 0]), 1, 1), ShapeError, r"first lengths \(2,\)"),
        (lambda x: ops.gather(x, Tensor([0]), 0, 1), ShapeError, "batch_dims"),
        (lambda x: ops.gather(Tensor(1.0), Tensor([0]), 0), ShapeError, "zero-dimensional"),
        (lambda x: ops.gather_elements(x, 0, Tensor([0])), ShapeError, "as many axes"),
        (lambda x: ops.gather_elements(x, 0, Tensor(np.zeros((1, 4, 1), int))), ShapeError, "except along axis 0"),
        (lambda x: ops.gather_nd(x, Tensor([[0, 0, 0, 0]])), ShapeError, "at most 3"),
        (lambda x: ops.index_select(x, 0, Tensor([[0]])), ShapeError, "one axis"),
        (lambda x: x.take([0], mode="clamp"), ArgumentValueError, "mode"),
        (lambda x: ops.take_along_dim(x, Tensor([0]), 1), ShapeError, "as many axes"),
        (lambda x: ops.one_hot(Tensor([0]), -1), ArgumentValueError, "depth"),
        (lambda x: ops.one_hot(Tensor([0.0]), 2), DTypeError, "integers"),
        (lambda x: ops.one_hot(Tensor([0]), 2, axis=2), OutOfRangeError, "axis"),
        (lambda x: ops.embedding(Tensor([0]), x), ShapeError, "two axes"),
        (lambda x: ops.embedding(Tensor([0]), x[0], 5), OutOfRangeError, "padding_idx"),
        (lambda x: ops.slice(x, (0, 0), (1, 1)), ArgumentValueError, "one for each axis"),
        (lambda x: ops.slice(x, (0, 0, 3), (1, 1, 2)), OutOfRangeError, "within its length, 4"),
        (lambda x: ops.narrow(x, 1, 2, 2), OutOfRangeError, "the length 3 of axis 1"),
        (lambda x: ops.narrow(x, 1, 0, -1), OutOfRangeError, "length -1"),
        (lambda x: ops.dynamic_slice(x, [0, 0, 0], [3, 1, 1]), ShapeError, "at most the 2 elements"),
    ],
)  # fmt: skip
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call(Tensor(X))


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_choose(mode):
    index = np.array([[0, 3], [1, -2]])
    choices = [np.array([1.0, 2.0]), np.array([[10.0], [20.0]]), np.float64(100.0)]
    want = np.choose(index, choices, mode=mode)
    same(Tensor(index).choose([Tensor(np.asarray(c)) for c in choices], mode), want)
    same(Tensor([0, 2, 1]).choose(Tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]])), [1, 8, 6])
    with pytest.raises(OutOfRangeError, match="the index 3"):
        Tensor(index).choose(choices, "raise")
    with pytest.raises(ArgumentValueError, match="mode"):
        Tensor(index).choose(choices, "none")
