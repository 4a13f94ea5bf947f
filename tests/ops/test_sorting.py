"""Orders: sort, argsort, topk, kthvalue, searchsorted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as npst
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentValueError, DTypeError, OutOfRangeError, ShapeError

X = np.random.default_rng(5).permutation(24).reshape(2, 3, 4) / 4.0


def same(got, want):
    np.testing.assert_array_equal(got.asnumpy(), want)
    assert got.shape == np.shape(want)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_values_and_places(axis):
    values, places = ops.sort(Tensor(X), axis)
    same(values, np.sort(X, axis))
    same(places, np.argsort(X, axis))
    values, places = Tensor(X).sort(dim=axis, descending=True)
    same(values, -np.sort(-X, axis))
    same(places, np.argsort(-X, axis))
    same(ops.argsort(Tensor(X), axis, True), np.argsort(-X, axis))
    same(Tensor(X).argsort(axis=axis), np.argsort(X, axis))
    values, places = ops.topk(Tensor(X), 2, axis)
    same(values, np.take(-np.sort(-X, axis), [0, 1], axis))
    same(places, np.take(np.argsort(-X, axis), [0, 1], axis))
    values, _ = ops.kthvalue(Tensor(X), 2, axis)
    same(values, np.take(np.sort(X, axis), 1, axis))


@given(npst.arrays(np.float32, 7, elements=st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 2.0, np.inf, np.nan])))
@settings(max_examples=25)
def test_stable_with_ties_and_nan(x):
    values, places = ops.sort(Tensor(x))
    same(places, np.argsort(x, kind="stable"))
    same(values, np.sort(x, kind="stable"))
    _, places = ops.sort(Tensor(x), descending=True)
    rank = {v: i for i, v in enumerate([-np.inf, -1.0, 0.0, 2.0, np.inf])}
    keys = [5 if np.isnan(v) else rank[float(v) + 0.0] for v in x]
    want = sorted(range(len(x)), key=lambda i: -keys[i])
    assert places.asnumpy().tolist() == want
    for k in (3, 7):
        assert ops.topk(Tensor(x), k)[1].asnumpy().tolist() == want[:k]
        smallest = np.argsort(x, kind="stable")[:k]
        assert ops.topk(Tensor(x), k, largest=False)[1].asnumpy().tolist() == smallest.tolist()


def test_a_nan_of_either_sign_is_the_largest():
    x = np.array([1.0, np.nan, -np.nan, 2.0])
    x[2] = np.copysign(np.nan, -1.0)
    assert ops.topk(Tensor(x), 2)[1].asnumpy().tolist() == [1, 2]
    assert ops.topk(Tensor(x), 2, largest=False)[1].asnumpy().tolist() == [0, 3]
    assert ops.sort(Tensor(x))[1].asnumpy().tolist() == [0, 3, 1, 2]


@pytest.mark.parametrize("dtype", [ms.int8, ms.uint8, ms.int64, ms.float16, ms.bfloat16, ms.bool_])
def test_dtypes(dtype):
    x = Tensor([1, 0, 1, 0], dtype)
    values, places = ops.sort(x, descending=True)
    assert values.dtype is dtype
    assert places.dtype is ms.int32
    assert places.asnumpy().tolist() == [0, 2, 1, 3]
    assert ops.topk(x, 2)[1].asnumpy().tolist() == [0, 2]
    assert ops.topk(x, 2, largest=False)[1].asnumpy().tolist() == [1, 3]


def test_the_least_integer():
    x = Tensor([5, -128, 127], ms.int8)
    assert ops.topk(x, 1, largest=False)[0].item() == -128
    assert ops.sort(x, descending=True)[0].asnumpy().tolist() == [127, 5, -128]


def test_gradients_go_back():
    x = Tensor([3.0, 1.0, 2.0])
    weights = Tensor([1.0, 10.0, 100.0])
    same(ms.grad(lambda t: (ops.sort(t)[0] * weights).sum())(x), [100.0, 1.0, 10.0])
    same(ms.grad(lambda t: (ops.topk(t, 2)[0] * weights[:2]).sum())(x), [1.0, 0.0, 10.0])
    same(ms.grad(lambda t: ops.kthvalue(t, 2)[0])(x), [0.0, 0.0, 1.0])
    same(ms.grad(lambda t: (ops.msort(t) ** 2).sum())(x), [6.0, 2.0, 4.0])


def test_small_tensors():
    assert [t.item() for t in ops.sort(Tensor(2.0))] == [2.0, 0]
    assert [t.item() for t in ops.kthvalue(Tensor(2.0), 1)] == [2.0, 0]
    assert ops.sort(Tensor(np.zeros((0, 3))), 0)[0].shape == (0, 3)
    assert ops.topk(Tensor([1.0]), 0)[0].shape == (0,)
    assert Tensor([3, 1]).top_k(1)[0].item() == 3


def test_searchsorted():
    steps, wanted = np.array([1.0, 2.0, 2.0, 5.0]), np.array([[0.0, 2.0], [5.0, 9.0]])
    for side in ("left", "right"):
        same(ops.searchsorted(Tensor(steps), Tensor(wanted), side=side), np.searchsorted(steps, wanted, side))
    assert ops.searchsorted(Tensor(steps), 2.0).item() == 1
    assert ops.searchsorted(Tensor(steps), 2, right=True).item() == 3
    assert ops.searchsorted(Tensor(steps), 2, out_int32=True).dtype is ms.int32
    same(ops.searchsorted(Tensor([5.0, 1.0, 2.0]), Tensor([1.5]), sorter=Tensor([1, 2, 0])), [1])
    same(ops.searchsorted(Tensor([[1, 3], [5, 7]]), Tensor([[2], [8]])), [[1], [2]])
    same(Tensor(steps).searchsorted(Tensor([2.0]), side="right"), [3])
    same(ops.searchsorted(Tensor([1, 3]), Tensor([2.5])), [1])


def test_in_a_graph():
    values, places = run_staged(lambda x: ops.topk(x, 3, 1, False), X)
    np.testing.assert_array_equal(values, np.sort(X, 1)[:, :3])
    np.testing.assert_array_equal(places, np.argsort(X, 1)[:, :3])


def test_refusals():
    x = Tensor(X)
    with pytest.raises(OutOfRangeError, match="'k' got 5; it takes from 0 to 4"):
        ops.topk(x, 5)
    with pytest.raises(OutOfRangeError, match="from 1 to 4"):
        ops.kthvalue(x, 0)
    with pytest.raises(DTypeError, match="Complex128"):
        ops.sort(Tensor([1j]))
    with pytest.raises(ShapeError, match="zero-dimensional"):
        ops.topk(Tensor(1.0), 1)
    with pytest.raises(ArgumentValueError, match="side"):
        ops.searchsorted(x, 1.0, side="middle")
    with pytest.raises(ArgumentValueError, match="right=True"):
        ops.searchsorted(x, 1.0, side="left", right=True)
    with pytest.raises(ShapeError, match="leading lengths"):
        ops.searchsorted(Tensor(np.zeros((2, 3))), Tensor(np.zeros((3, 1))))


def test_bucketize():
    edges = [1.0, 3.0, 5.0]
    x = np.array([[0.0, 1.0], [3.5, 9.0]])
    same(ops.bucketize(Tensor(x), edges), np.digitize(x, edges, right=True))
    same(ops.bucketize(Tensor(x), Tensor(edges), right=True), np.digitize(x, edges))
    assert ops.bucketize(Tensor(x), edges).dtype is ms.int32
    with pytest.raises(ShapeError, match="boundaries"):
        ops.bucketize(Tensor(x), [[1.0]])


def test_intopk():
    scores = np.array([[0.1, 0.5, 0.4], [0.3, 0.3, 0.2], [np.nan, 1.0, 2.0], [np.inf, 1.0, 2.0]])
    for k, want in ((1, [False, True, False, False]), (2, [True, True, False, False])):
        assert ops.intopk(Tensor(scores), Tensor([2, 1, 0, 0]), k).asnumpy().tolist() == want
    with pytest.raises(ShapeError, match="one target for each row"):
        ops.intopk(Tensor(scores), Tensor([1]), 1)
