"""Running sums, products and extremes, and differences."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentValueError, DTypeError, OutOfRangeError, ShapeError
from mycelia.ops.cumulative import linear_recurrence_p
from mycelia.tensor.dispatch import apply

X = np.sin(np.arange(12.0)).reshape(3, 4)


def close(got, want):
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-12, atol=1e-12)
    assert got.shape == np.shape(want)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_values(axis):
    x = Tensor(X)
    close(ops.cumsum(x, axis), X.cumsum(axis))
    close(ops.cumsum(x, dim=axis), X.cumsum(axis))
    close(x.cumsum(axis=axis), X.cumsum(axis))
    close(x.cumsum(dim=axis), X.cumsum(axis))
    close(ops.cumprod(x, axis), X.cumprod(axis))
    close(x.cummax(axis)[0], np.maximum.accumulate(X, axis))
    close(ops.cummin(x, dim=axis)[0], np.minimum.accumulate(X, axis))
    close(x.logcumsumexp(axis), np.log(np.exp(X).cumsum(axis)))
    for n in (0, 1, 2, 3, 9):
        close(ops.diff(x, n, axis), np.diff(X, n, axis))


def test_without_an_axis_the_method_flattens():
    close(Tensor(X).cumsum(), X.cumsum())


def test_dtypes():
    assert ops.cumsum(Tensor([True, True]), 0).asnumpy().tolist() == [1, 2]
    assert ops.cumsum(Tensor([1, 2], ms.int8), 0).dtype is ms.int8
    assert ops.cumprod(Tensor([1, 2], ms.int8), 0).dtype is ms.int64
    assert ops.cumsum(Tensor([1, 2]), 0, ms.float32).dtype is ms.float32
    assert ops.cummax(Tensor([1, 2]), 0)[1].dtype is ms.int64
    assert ops.cummin(Tensor([1, 2]), 0)[1].dtype is ms.int32
    assert ops.diff(Tensor([True, False])).dtype is ms.bool_


def test_places_of_extremes():
    _, places = ops.cummax(Tensor([1.0, 1.0, 0.0, np.nan, 5.0, np.nan]), 0)
    assert places.asnumpy().tolist() == [0, 1, 1, 3, 3, 3]
    values, places = ops.cummin(Tensor([3, 1, 1, 2]), 0)
    assert values.asnumpy().tolist() == [3, 1, 1, 1]
    assert places.asnumpy().tolist() == [0, 1, 2, 2]


def test_diff_with_neighbours():
    x = Tensor(X)
    close(ops.diff(x, 1, 1, prepend=Tensor(X[:, :1]), append=Tensor(X[:, -1:])), np.diff(X, 1, 1, X[:, :1], X[:, -1:]))
    close(ops.diff(x, prepend=0.0), np.diff(X, prepend=0.0))
    close(x.diff(dim=0), np.diff(X, axis=0))
    assert ops.diff(Tensor([2.0])).shape == (0,)


def test_the_gradient_of_cumprod_with_zeros():
    x = np.array([2.0, 0.0, 3.0, 0.0, -1.0])
    weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0])

    def f(t):
        return (ops.cumprod(t, 0) * Tensor(weights)).sum()

    want = np.zeros(5)
    for i in range(5):
        for k in range(i + 1):
            want[k] += weights[i] * np.prod(np.delete(x[: i + 1], k))
    close(ms.grad(f)(Tensor(x)), want)
    h = 1e-6
    for k in range(5):
        step = np.eye(5)[k] * h
        slope = (ms.grad(f)(Tensor(x + step)) - ms.grad(f)(Tensor(x - step))).asnumpy() / (2 * h)
        second = ms.grad(lambda t, k=k: ms.grad(f)(t)[k])(Tensor(x)).asnumpy()
        np.testing.assert_allclose(second, slope, atol=1e-7)


def test_the_gradient_of_logcumsumexp_does_not_overflow():
    got = ms.grad(lambda t: ops.logcumsumexp(t, 0).sum())(Tensor([1000.0, -1000.0, 1000.0], ms.float64)).asnumpy()
    np.testing.assert_allclose(got, [2.5, 0.0, 0.5])
    got = ms.grad(lambda t: ops.logcumsumexp(t, 0).sum())(Tensor([-np.inf, 0.0, 0.0], ms.float64)).asnumpy()
    np.testing.assert_allclose(got, [0.0, 1.5, 0.5])


def test_linear_recurrence_is_what_it_says():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(7, 2)), rng.normal(size=(7, 2))
    held, want = np.zeros(2), []
    for i in range(7):
        held = a[i] * held + b[i]
        want.append(held)
    close(apply(linear_recurrence_p, Tensor(a), Tensor(b), axis=0, reverse=False), want)


def test_in_a_graph():
    (got,) = run_staged(lambda x: ops.diff(ops.cumsum(x, 1), axis=1, prepend=0.0), X)
    np.testing.assert_allclose(got, X)


def test_refusals():
    with pytest.raises(ShapeError, match="zero-dimensional"):
        ops.cumsum(Tensor(1.0), 0)
    with pytest.raises(OutOfRangeError, match="'dim' got 2"):
        ops.cumprod(Tensor(X), 2)
    with pytest.raises(ArgumentValueError, match="'n' got -1"):
        ops.diff(Tensor(X), -1)
    with pytest.raises(DTypeError, match="Complex128"):
        ops.cummax(Tensor([1j]), 0)
    with pytest.raises(ShapeError):
        ops.diff(Tensor(X), prepend=Tensor(np.zeros((2, 1))))
