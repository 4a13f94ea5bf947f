"""Largest and smallest elements and their places: forms, NaN, ties, gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, DTypeError, OutOfRangeError, ShapeError

X = np.sin(np.arange(24.0)).reshape(2, 3, 4)


def same(got, want):
    np.testing.assert_array_equal(got.asnumpy(), want)
    assert got.shape == np.shape(want)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("keep", [False, True])
def test_values_and_places(axis, keep):
    x = Tensor(X)
    values, places = ops.max(x, axis, keep)
    same(values, X.max(axis, keepdims=keep))
    same(places, X.argmax(axis, keepdims=keep))
    values, places = x.min(axis, keep)
    same(values, X.min(axis, keepdims=keep))
    same(places, X.argmin(axis, keepdims=keep))
    same(x.max(axis=axis, keepdims=keep), X.max(axis, keepdims=keep))
    same(ops.amin(x, axis, keep), X.min(axis, keepdims=keep))
    same(ops.argmax(x, axis, keep), X.argmax(axis, keepdims=keep))
    same(x.argmin(axis=axis, keepdims=keep), X.argmin(axis, keepdims=keep))
    same(x.ptp(axis, keep), np.ptp(X, axis, keepdims=keep))


def test_over_everything():
    x = Tensor(X)
    value, place = ops.max(x)
    assert (value.item(), place.item()) == (X.max(), 0)
    assert x.max().item() == X.max()
    assert x.min().item() == X.min()
    assert x.argmax().item() == X.argmax()
    assert x.amax((0, 2)).shape == (3,)
    assert [t.item() for t in ops.aminmax(x, axis=None)] == [X.min(), X.max()]


def test_the_forms_of_the_method():
    x = Tensor(X)
    assert isinstance(x.max(0), tuple)
    assert isinstance(x.max(dim=0, keepdim=True), tuple)
    assert isinstance(x.max(axis=0), Tensor)
    assert isinstance(x.max((0, 1)), Tensor)
    assert isinstance(x.max(axis=0, return_indices=True), tuple)
    same(x.max(Tensor(np.zeros_like(X))), np.maximum(X, 0))
    same(x.min(Tensor(np.zeros_like(X))), np.minimum(X, 0))
    same(x.argmax_with_value(1)[1], X.argmax(1))
    same(x.argmin_with_value(1)[0], X.min(1))
    with pytest.raises(ArgumentTypeError, match="at most two"):
        x.max(0, False, 1)


def test_nan_is_the_result():
    n = Tensor([[1.0, np.nan, 3.0], [np.nan, 2.0, np.nan]])
    assert np.isnan(n.max().item())
    values, places = ops.max(n, 1)
    assert np.isnan(values.asnumpy()).all()
    assert places.asnumpy().tolist() == [1, 0]
    assert ops.argmin(n, 1).asnumpy().tolist() == [1, 0]
    assert ops.argmax(n).item() == 1


def test_integers_and_bools():
    assert ops.max(Tensor([3, 7], ms.int8), 0)[0].dtype is ms.int8
    assert ops.amax(Tensor([False, True])).item() is True
    assert ops.amin(Tensor([False, True])).item() is False
    assert ops.argmax(Tensor([False, True])).item() == 1
    assert ops.argmax(Tensor([1, 2])).dtype is ms.int64
    assert ops.argmin(Tensor([1, 2])).dtype is ms.int32


def test_initial_and_where():
    x, mask = np.array([[1.0, 5.0], [3.0, -2.0]]), np.array([[True, False], [True, True]])
    same(ops.amax(Tensor(x), 1, initial=2.0), np.max(x, 1, initial=2.0))
    same(ops.amax(Tensor(x), 1, initial=0.0, where=Tensor(mask)), np.max(x, 1, initial=0.0, where=mask))
    same(ops.amin(Tensor(x), initial=0.0, where=mask), np.min(x, initial=0.0, where=mask))
    same(ops.amax(Tensor(x), 0, where=Tensor(mask)), [3.0, -2.0])
    assert ops.amax(Tensor([1, 2]), where=Tensor([False, False])).item() == np.iinfo(np.int64).min
    with pytest.raises(ArgumentTypeError, match="initial"):
        ops.amax(Tensor(x), initial="a")


def test_gradients_of_ties():
    t = Tensor([[2.0, 2.0, 1.0]])
    same(ms.grad(lambda x: ops.amax(x, 1).sum())(t), [[0.5, 0.5, 0.0]])
    same(ms.grad(lambda x: ops.max(x, 1)[0].sum())(t), [[1.0, 0.0, 0.0]])
    same(ms.grad(lambda x: ops.min(x, 1, keepdims=True)[0].sum())(t), [[0.0, 0.0, 1.0]])
    same(ms.grad(lambda x: x.max())(Tensor([np.nan, 1.0, np.nan])), [0.5, 0.0, 0.5])
    same(ms.grad(lambda x: ops.amax(x, initial=1.5))(Tensor([1.0, 2.0])), [0.0, 1.0])


def test_zero_dimensional():
    s = Tensor(2.5)
    assert [t.item() for t in ops.max(s, 0)] == [2.5, 0]
    assert ops.argmax(s).item() == 0
    assert ops.argmin(s, 0, True).item() == 0
    assert ms.grad(lambda x: ops.max(x, 0)[0])(s).item() == 1.0


def test_empty_axes_are_refused_by_name():
    e = Tensor(np.zeros((0, 3)))
    for call in (
        lambda: ops.max(e, 0),
        lambda: ops.amin(e),
        lambda: ops.argmax(e, 0),
        e.argmin,
        e.max,
    ):
        with pytest.raises(ShapeError, match="at least one element along axis 0"):
            call()
    assert ops.amax(e, 1).shape == (0,)
    assert ops.argmax(e, 1).shape == (0,)


def test_refusals():
    with pytest.raises(DTypeError, match="Complex128"):
        ops.amax(Tensor([1j]))
    with pytest.raises(OutOfRangeError, match="axis"):
        ops.max(Tensor(X), 3)
    with pytest.raises(ArgumentTypeError, match="an int"):
        ops.max(Tensor(X), (0, 1))


def test_in_a_graph():
    value, place, every = run_staged(lambda x: (*ops.max(x, 1), ops.amin(x)), X)
    np.testing.assert_array_equal(value, X.max(1))
    np.testing.assert_array_equal(place, X.argmax(1))
    assert every == X.min()
