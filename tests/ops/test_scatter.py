"""Writes at given places: functions of tensors, Parameters changed in place, segments, gradients."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Parameter, Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, OutOfRangeError, ShapeError

X = np.arange(12.0).reshape(3, 4)
ROWS = np.array([[0, 1], [2, -1]])


def same(got, want):
    np.testing.assert_array_equal(got.asnumpy(), want)
    assert got.shape == np.shape(want)


def put(mode, x, index, values):
    """NumPy's unbuffered update at an index tuple."""
    out = x.copy()
    if mode == "update":
        out[index] = values
    else:
        {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum}[
            mode
        ].at(out, index, values)
    return out


@pytest.mark.parametrize("mode", ["update", "add", "sub", "mul", "div", "max", "min"])
def test_rows_of_indices(mode):
    values = np.array([5.0, -2.0])
    got = getattr(ops, f"tensor_scatter_{mode}")(Tensor(X), Tensor(ROWS), Tensor(values))
    np.testing.assert_allclose(got.asnumpy(), put(mode, X, (ROWS[:, 0], ROWS[:, 1]), values))
    got = getattr(ops, f"tensor_scatter_{mode}")(Tensor(X), Tensor([[1], [0]]), Tensor(X[:2] * 2 + 1))
    np.testing.assert_allclose(got.asnumpy(), put(mode, X, ([1, 0],), X[:2] * 2 + 1))
    got = getattr(ops, f"tensor_scatter_{mode}")(Tensor(X), Tensor([[1], [0]]), 2.0)
    np.testing.assert_allclose(got.asnumpy(), put(mode, X, ([1, 0],), 2.0))
    if mode != "update":
        twice = np.array([1, 1])
        got = getattr(ops, f"tensor_scatter_{mode}")(Tensor(X), Tensor(twice[:, None]), Tensor(X[:2] + 1))
        np.testing.assert_allclose(got.asnumpy(), put(mode, X, (twice,), X[:2] + 1))


@pytest.mark.parametrize("mode", ["update", "add", "sub", "mul", "div", "max", "min"])
def test_parameters(mode):
    p = Parameter(Tensor(X), name="p")
    out = getattr(ops, f"scatter_{mode}")(p, Tensor([[0, 2]]), Tensor(X[None, :2] + 3))
    assert out is p
    np.testing.assert_allclose(p.asnumpy(), put(mode, X, ([0, 2],), X[:2] + 3))
    p = Parameter(Tensor(X), name="p")
    assert getattr(ops, f"scatter_nd_{mode}")(p, Tensor(ROWS), Tensor([5.0, -2.0])) is p
    np.testing.assert_allclose(p.asnumpy(), put(mode, X, (ROWS[:, 0], ROWS[:, 1]), np.array([5.0, -2.0])))


def test_integers_divide_towards_zero():
    got = ops.tensor_scatter_div(Tensor([7, -7, 9]), Tensor([[0], [1]]), Tensor([2, 2]))
    assert got.asnumpy().tolist() == [3, -3, 9]


def test_one_index_for_each_element():
    x, index, src = Tensor(X), Tensor([[0, 3], [1, -1]]), Tensor([[20.0, 21.0], [22.0, 23.0]])
    want = X.copy()
    np.put_along_axis(want[:2], np.array([[0, 3], [1, 3]]), src.asnumpy(), 1)
    same(ops.scatter(x, 1, index, src), want)
    same(x.scatter(axis=1, index=index, src=src), want)
    same(x.scatter(dim=1, index=index, src=Tensor(np.pad(src.asnumpy(), 1))[1:, 1:]), want)
    same(ops.tensor_scatter_elements(x, index, src, 1), want)
    added = X.copy()
    np.add.at(added, ([0, 0, 1, 1], [0, 3, 1, 3]), [20.0, 21.0, 22.0, 23.0])
    same(ops.tensor_scatter_elements(x, index, src, 1, "add"), added)
    same(x.scatter_add(1, index, src), added)
    same(x.scatter_add(dim=1, index=index, src=src), added)
    same(x.scatter_add(Tensor([[0]]), Tensor(np.ones((1, 4)))), put("add", X, ([0],), 1.0))
    same(ops.scatter(x, 0, Tensor([[2, 1]]), 9.0), put("update", X, ([2, 1], [0, 1]), 9.0))
    same(ops.scatter(Tensor(3.0), 0, Tensor(0), Tensor(4.0)), 4.0)
    same(x.scatter_sub(Tensor(ROWS), Tensor([1.0, 2.0])), put("sub", X, (ROWS[:, 0], ROWS[:, 1]), [1.0, 2.0]))


def test_in_place_methods():
    x = Tensor(X)
    assert x.scatter_(1, Tensor([[0]]), Tensor([[50.0]])) is x
    x.scatter_(1, Tensor([[0]]), 2.0, reduce="multiply")
    x.scatter_(dim=0, index=Tensor([[1]]), value=7.0, reduce="add")
    x.scatter_add_(0, Tensor([[2]]), Tensor([[1.0]]))
    x.index_add_(0, Tensor([1]), Tensor(np.ones((1, 4))), alpha=3)
    x.index_fill_(1, Tensor([3]), -1.0)
    x.index_copy_(0, Tensor([2]), Tensor(np.zeros((1, 4))))
    want = X.copy()
    want[0, 0] = 100.0
    want[1, 0] += 7.0
    want[1] += 3.0
    want[:, 3] = -1.0
    want[2] = 0.0
    same(x, want)
    x.index_put_((Tensor([0]), Tensor([1])), Tensor([5.0]), accumulate=True)
    x.put_(Tensor([2, -1]), Tensor([8.0, 9.0]))
    x.masked_scatter_(Tensor([True, False, False, False]), Tensor([1.0, 2.0, 3.0]))
    want[0, 1] += 5.0
    want.ravel()[[2, -1]] = [8.0, 9.0]
    want[:, 0] = [1.0, 2.0, 3.0]
    same(x, want)


def test_zeros_with_updates():
    same(ops.scatter_nd(Tensor([[0], [2], [0]]), Tensor([1, 2, 3]), (4,)), [4, 0, 2, 0])
    same(ops.scatter_nd(Tensor([[1]]), Tensor([[1.0, 2.0]]), (2, 2)), [[0.0, 0.0], [1.0, 2.0]])


def test_slices_by_index():
    p = Parameter(Tensor(X), name="p")
    assert ops.index_add(p, Tensor([0, 0], ms.int32), Tensor(np.ones((2, 4))), 0) is p
    same(p, put("add", X, ([0, 0],), 1.0))
    ops.inplace_index_add(p, Tensor([1]), Tensor(np.ones((3, 1))), 1)
    assert p.asnumpy()[0, 1] == 4.0
    x = Tensor(X)
    same(x.index_add(0, Tensor([2]), Tensor(np.ones((1, 4))), alpha=-2), put("sub", X, ([2],), 2.0))
    same(x.index_add(Tensor([2]), Tensor(np.ones((1, 4))), 0), put("add", X, ([2],), 1.0))
    same(ops.index_fill(x, 1, Tensor([0, -1]), 5), put("update", X, (slice(None), [0, 3]), 5.0))
    same(x.index_fill(0, 1, Tensor(2.0)), put("update", X, ([1],), 2.0))
    same(ops.index_copy(x, 1, Tensor([3, 0]), Tensor(X[:, 1:3])), put("update", X, (slice(None), [3, 0]), X[:, 1:3]))
    same(ops.inplace_add(x, Tensor(np.ones((2, 4))), (0, 2)), put("add", X, ([0, 2],), 1.0))
    same(ops.inplace_sub(x, Tensor(np.ones((1, 4))), 1), put("sub", X, ([1],), 1.0))
    same(x.inplace_update(Tensor(np.ones((1, 4))), Tensor([1])), put("update", X, ([1],), 1.0))
    same(x, X)


def test_index_tensors():
    x = Tensor(X)
    same(
        ops.index_put(x, (Tensor([0, 1]), Tensor([[1], [2]])), Tensor([7.0, 8.0])),
        put("update", X, ([0, 1], [[1], [2]]), [7.0, 8.0]),
    )
    same(x.index_put([Tensor([0, 0])], Tensor(1.0), True), put("add", X, ([0, 0],), 1.0))
    same(x.index_put((x > 9,), Tensor([0.0])), np.where(X > 9, 0.0, X))
    same(x.index_put((Tensor([True, False, True]), Tensor([1])), Tensor(0.0)), put("update", X, ([0, 2], [1]), 0.0))


def test_by_a_mask():
    mask = X % 2 == 0
    want = X.copy()
    want[mask] = np.arange(6.0) * 10
    same(Tensor(X).masked_scatter(Tensor(mask), Tensor(np.arange(8.0) * 10)), want)
    same(
        ops.masked_scatter(Tensor(np.zeros((2, 3))), Tensor([True, False, True]), Tensor(np.arange(1.0, 5.0))),
        [[1, 0, 2], [3, 0, 4]],
    )
    (got,) = run_staged(ops.masked_scatter, X, mask, np.arange(8.0) * 10)
    np.testing.assert_array_equal(got, want)
    got = ms.grad(lambda s: (ops.masked_scatter(Tensor(X), Tensor(mask), s) * Tensor(X)).sum())(Tensor(np.zeros(8)))
    same(got, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 0.0, 0.0])
    assert ops.masked_scatter(Tensor(X), Tensor(np.zeros((3, 4), bool)), Tensor(np.zeros(0))).shape == (3, 4)


def test_slices_replaced():
    x = Tensor(X)
    same(ops.select_scatter(x, Tensor(np.zeros(3)), 1, -1), put("update", X, (slice(None), 3), 0.0))
    same(
        ops.slice_scatter(x, Tensor(np.zeros((3, 2))), 1, 0, 4, 2), put("update", X, (slice(None), slice(0, 4, 2)), 0.0)
    )
    same(x.slice_scatter(Tensor(np.zeros((1, 4))), start=-1), put("update", X, (slice(2, 3),), 0.0))
    same(x.slice_scatter(0.0, 0, 1, 2), put("update", X, (slice(1, 2),), 0.0))


@pytest.mark.parametrize("ids", [np.array([1, 0, 1]), np.array([0, -1, 5])])
def test_segments(ids):
    x, t = Tensor(X), Tensor(ids)
    inside = [(i, k) for i, k in enumerate(ids) if 0 <= k < 2]
    low, high = np.finfo(np.float64).min, np.finfo(np.float64).max
    for name, start, fold in (
        ("sum", 0.0, np.add),
        ("prod", 1.0, np.multiply),
        ("max", low, np.maximum),
        ("min", high, np.minimum),
    ):
        want = np.full((2, 4), start)
        for i, k in inside:
            want[k] = fold(want[k], X[i])
        same(getattr(ops, f"unsorted_segment_{name}")(x, t, 2), want)


def test_segments_of_several_axes():
    got = ops.unsorted_segment_sum(Tensor(X), Tensor(np.array([[0, 1, 0, 1]] * 3)), 2)
    same(got, [X[:, ::2].sum(), X[:, 1::2].sum()])
    assert ops.unsorted_segment_max(Tensor([1, 2], ms.int8), Tensor([0, 0]), 2).asnumpy().tolist() == [2, -128]


def test_gradients_of_repeated_places():
    x, u = Tensor([2.0, 3.0, 4.0]), Tensor([5.0, 7.0])
    index = Tensor([[1], [1]])
    weights = Tensor([1.0, 10.0, 100.0])

    def both(fn):
        return [g.asnumpy().tolist() for g in ms.grad(lambda a, b: (fn(a, index, b) * weights).sum(), (0, 1))(x, u)]

    assert both(ops.tensor_scatter_add) == [[1.0, 10.0, 100.0], [10.0, 10.0]]
    assert both(ops.tensor_scatter_update) == [[1.0, 0.0, 100.0], [0.0, 10.0]]
    assert both(ops.tensor_scatter_mul) == [[1.0, 350.0, 100.0], [210.0, 150.0]]
    assert both(ops.tensor_scatter_max) == [[1.0, 0.0, 100.0], [0.0, 10.0]]
    assert both(ops.tensor_scatter_sub) == [[1.0, 10.0, 100.0], [-10.0, -10.0]]
    np.testing.assert_allclose(both(ops.tensor_scatter_div)[0], [1.0, 10 / 35, 100.0], rtol=1e-6)


def test_the_last_update_stays():
    same(ops.tensor_scatter_update(Tensor([0, 0]), Tensor([[1], [1], [1]]), Tensor([3, 4, 5])), [0, 5])


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: ops.tensor_scatter_update(x, Tensor([[3]]), 1.0), OutOfRangeError, r"0\]' got the index 3"),
        (lambda x: ops.tensor_scatter_add(x, Tensor([[0]]), Tensor([1.0])), ShapeError, r"updates' got shape \(1,\)"),
        (lambda x: ops.tensor_scatter_add(x, Tensor([[0, 0, 0]]), Tensor([1.0])), ShapeError, "at most 2"),
        (lambda x: ops.tensor_scatter_add(x, Tensor([[0.5]]), x), DTypeError, "integers"),
        (lambda x: ops.scatter(x, 0, Tensor([0]), x), ShapeError, "as many axes"),
        (lambda x: ops.scatter(x, 1, Tensor([[4]]), 1.0), OutOfRangeError, "the index 4"),
        (lambda x: ops.scatter(x, 1, Tensor([[0, 1]]), Tensor([[1.0]])), ShapeError, "at least the lengths"),
        (lambda x: ops.tensor_scatter_elements(x, Tensor([[0]]), x, 1, "avg"), ArgumentValueError, "reduction"),
        (lambda x: ops.scatter_update([1.0], Tensor([0]), 1.0), ArgumentTypeError, "a Parameter"),
        (lambda x: ops.scatter_update(x, Tensor([5]), 1.0), OutOfRangeError, "the index 5"),
        (lambda x: ops.index_add(x, Tensor([0]), x, 0), ShapeError, r"shape \(1, 4\)"),
        (lambda x: ops.index_fill(x, 0, Tensor([[0]]), 1.0), ShapeError, "one axis"),
        (lambda x: ops.index_fill(x, 0, Tensor([0]), Tensor([1.0])), ShapeError, "one number"),
        (lambda x: ops.index_put(x, (), 1.0), ShapeError, "from 1 to 2"),
        (lambda x: ops.index_put(x, (Tensor([9]),), 1.0), OutOfRangeError, r"indices\[0\]"),
        (lambda x: ops.masked_scatter(x, x > 5, Tensor([1.0])), ShapeError, "at least 6"),
        (lambda x: ops.masked_scatter(x, x, x), ArgumentTypeError, "Bool"),
        (lambda x: ops.select_scatter(x, Tensor(np.zeros(4)), 0, 3), OutOfRangeError, "index"),
        (lambda x: ops.select_scatter(x, Tensor(np.zeros(3)), 0, 0), ShapeError, r"the shape of the slice, \(4,\)"),
        (lambda x: ops.slice_scatter(x, 0.0, 0, 0, 2, 0), ArgumentValueError, "step"),
        (lambda x: ops.scatter_nd(Tensor([[4]]), Tensor([1.0]), (4,)), OutOfRangeError, "the index 4"),
        (lambda x: ops.unsorted_segment_sum(x, Tensor([0, 1]), 2), ShapeError, "segment_ids"),
        (lambda x: ops.unsorted_segment_sum(x, Tensor([0, 1, 1]), 0), ArgumentValueError, "num_segments"),
        (lambda x: x.put_(Tensor([0]), Tensor([1.0, 2.0])), ShapeError, "as many as 'index'"),
        (lambda x: x.scatter(1, Tensor([[0]])), ArgumentTypeError, "src"),
    ],
)  # fmt: skip
def test_refusals_change_nothing(call, error, match):
    x = Tensor(X)
    with pytest.raises(error, match=match):
        call(x)
    same(x, X)


def test_the_mean_of_segments():
    got = ops.sparse_segment_mean(Tensor(X), Tensor([0, 2, 1]), Tensor([0, 0, 3]))
    same(got, [X[[0, 2]].mean(0), np.zeros(4), np.zeros(4), X[1]])
    with pytest.raises(ShapeError, match="segment_ids"):
        ops.sparse_segment_mean(Tensor(X), Tensor([0]), Tensor([0, 1]))
    same(Tensor(X).unsorted_segment_max(Tensor([0, 0, 0]), 1), X[2:])
