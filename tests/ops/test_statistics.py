"""Variance, median, quantiles, frequencies and covariance."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    GraphError,
    OutOfRangeError,
    ShapeError,
)

X = np.sin(np.arange(24.0)).reshape(2, 3, 4)


def close(got, want, rtol=1e-10):
    np.testing.assert_allclose(got.asnumpy(), want, rtol=rtol, atol=1e-12)
    assert got.shape == np.shape(want)


@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
@pytest.mark.parametrize("ddof", [0, 1, 0.5])
def test_variance(axis, ddof):
    x = Tensor(X)
    close(ops.var(x, axis, ddof), X.var(axis, ddof=ddof))
    close(ops.std(x, axis, ddof, True), X.std(axis, ddof=ddof, keepdims=True))
    spread, middle = ops.var_mean(x, axis, ddof)
    close(spread, X.var(axis, ddof=ddof))
    close(middle, X.mean(axis))
    close(ops.std_mean(x, axis, ddof)[0], X.std(axis, ddof=ddof))


def test_the_methods_and_their_defaults():
    x = Tensor(X)
    close(x.var(), X.var())
    close(x.var(0), X.var(0))
    close(x.std(axis=1, ddof=1, keepdims=True), X.std(1, ddof=1, keepdims=True))
    close(x.std(dim=1), X.std(1, ddof=1))
    close(x.var(dim=1, correction=0, keepdim=True), X.var(1, keepdims=True))
    close(ops.var(x, 0, True), X.var(0, ddof=1))


def test_degrees_of_freedom_run_out():
    assert np.isnan(ops.var(Tensor(2.0), ddof=1).item())
    assert np.isnan(ops.std(Tensor(np.zeros((0,)))).item())
    assert ops.var(Tensor([1.0, 2.0]), ddof=3).item() == np.inf


def test_short_floats_and_integers():
    big = Tensor(np.array([250.0, -250.0] * 50, np.float16))
    assert ops.std(big).item() == 250.0
    assert ops.var(Tensor([1, 2, 3])).dtype is ms.float32
    far = Tensor(np.array([1e4 + 1, 1e4 + 2, 1e4 + 3], np.float32))
    assert ops.var(far).item() == pytest.approx(2 / 3, rel=1e-5)


def test_gradients_of_variance():
    x = X[0]
    got = ms.grad(lambda t: ops.var(t, 1, 1).sum())(Tensor(x)).asnumpy()
    np.testing.assert_allclose(got, 2 * (x - x.mean(1, keepdims=True)) / 3)
    got = ms.grad(ops.std)(Tensor(np.ones(3))).asnumpy()
    np.testing.assert_array_equal(got, np.zeros(3))


def test_median():
    values, places = ops.median(Tensor([[4.0, 1.0, 3.0, 2.0], [1.0, 1.0, 1.0, 0.0]]))
    assert values.asnumpy().tolist() == [2.0, 1.0]
    assert places.asnumpy().tolist() == [3, 0]
    assert places.dtype is ms.int64
    values, places = Tensor(X).median(dim=1, keepdim=True)
    close(values, np.sort(X, 1)[:, 1:2])
    n = Tensor([3.0, np.nan, 1.0, np.nan])
    assert np.isnan(ops.median(n)[0].item())
    assert ops.median(n)[1].item() == 1
    assert [t.item() for t in ops.nanmedian(n)] == [1.0, 2]
    assert np.isnan(ops.nanmedian(Tensor([np.nan, np.nan]))[0].item())
    assert [t.item() for t in ops.median(Tensor(7))] == [7, 0]
    got = ms.grad(lambda t: ops.median(t, 0)[0].sum())(Tensor([[3.0], [1.0], [2.0]])).asnumpy()
    assert got.tolist() == [[0.0], [0.0], [1.0]]


@pytest.mark.parametrize("q", [0.0, 0.3, 1.0, [0.1, 0.5, 0.9]])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_quantile(q, axis):
    close(ops.quantile(Tensor(X), Tensor(q, ms.float64), axis), np.quantile(X, q, axis))
    close(Tensor(X).quantile(q, axis, True), np.quantile(X, q, axis, keepdims=True))


def test_quantile_with_nan():
    x = np.array([1.0, np.nan, 3.0, 2.0])
    assert np.isnan(ops.quantile(Tensor(x), 0.5).item())
    close(ops.nanquantile(Tensor(x), [0.25, 0.5]), np.nanquantile(x, [0.25, 0.5]))
    got = ms.grad(lambda t: ops.quantile(t, 0.25))(Tensor([4.0, 0.0, 2.0])).asnumpy()
    assert got.tolist() == [0.0, 0.5, 0.5]


def test_histc():
    x = np.array([0.0, 1.0, 1.0, 2.5, 4.0, 9.0, np.nan])
    close(ops.histc(Tensor(x), 4, 0, 4), np.histogram(x[:-1], 4, (0, 4))[0])
    close(ops.histc(Tensor(x[:-1]), 3), np.histogram(x[:-1], 3)[0])
    assert ops.histc(Tensor([1, 2, 2], ms.int32), 2).asnumpy().tolist() == [1, 2]
    assert ops.histc(Tensor([1, 2, 2], ms.int32), 2).dtype is ms.int32
    assert ops.histc(Tensor([3.0, 3.0]), 2).asnumpy().sum() == 2


def test_bincount():
    x = np.array([0, 1, 1, 5])
    close(ops.bincount(Tensor(x)), np.bincount(x))
    close(ops.bincount(Tensor(x), minlength=8), np.bincount(x, minlength=8))
    weights = np.array([1.0, 0.5, 0.5, 2.0])
    close(Tensor(x).bincount(Tensor(weights)), np.bincount(x, weights))
    assert ops.bincount(Tensor(x)).dtype is ms.int64
    assert ops.bincount(Tensor(np.zeros(0, np.int32))).shape == (0,)
    got = ms.grad(lambda w: (ops.bincount(Tensor(x), w) ** 2).sum())(Tensor(weights)).asnumpy()
    np.testing.assert_allclose(got, [2.0, 2.0, 2.0, 4.0])
    with pytest.raises(GraphError, match="bincount"):
        run_staged(ops.bincount, x)


def test_covariance():
    table = X[0]
    close(ops.cov(Tensor(table)), np.cov(table))
    close(ops.cov(Tensor(table), correction=0), np.cov(table, ddof=0))
    f, a = np.array([1, 2, 1, 3]), np.array([0.5, 1.0, 2.0, 1.0])
    close(ops.cov(Tensor(table), fweights=Tensor(f)), np.cov(table, fweights=f))
    close(ops.cov(Tensor(table), aweights=Tensor(a)), np.cov(table, aweights=a))
    close(
        ops.cov(Tensor(table), fweights=Tensor(f), aweights=Tensor(a), correction=0),
        np.cov(table, fweights=f, aweights=a, ddof=0),
    )
    close(Tensor(table[0]).cov(), np.cov(table[0]))
    close(ops.corrcoef(Tensor(table)), np.corrcoef(table))
    close(ops.corrcoef(Tensor(table[0])), np.corrcoef(table[0]))


def test_refusals():
    x = Tensor(X)
    with pytest.raises(ArgumentTypeError, match="ddof"):
        ops.var(x, 0, "1")
    with pytest.raises(OutOfRangeError, match="axis"):
        ops.std(x, 5)
    with pytest.raises(ShapeError, match="at least one element along axis 0"):
        ops.median(Tensor(np.zeros((0, 2))), 0)
    with pytest.raises(ArgumentValueError, match="from 0 to 1"):
        ops.quantile(x, 1.5)
    with pytest.raises(DTypeError, match="Int64"):
        ops.quantile(Tensor([1, 2]), 0.5)
    with pytest.raises(ShapeError, match="one axis"):
        ops.quantile(x, Tensor([[0.5]]))
    with pytest.raises(ArgumentValueError, match="bins"):
        ops.histc(x, 0)
    with pytest.raises(ArgumentValueError, match="'max' got 0"):
        ops.histc(x, 2, 1, 0)
    with pytest.raises(ArgumentValueError, match="the number -1"):
        ops.bincount(Tensor([-1]))
    with pytest.raises(ShapeError, match="weights"):
        ops.bincount(Tensor([1]), Tensor([1.0, 2.0]))
    with pytest.raises(ShapeError, match="two axes"):
        ops.cov(x)
