"""Sums, means, products and truth over axes: the public functions and methods, precision, gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, OutOfRangeError

X = np.sin(np.arange(24.0)).reshape(2, 3, 4)
AXES = [None, 0, -1, (0, 2), [1], (0, 1, 2)]


def close(got, want, rtol=1e-12):
    np.testing.assert_allclose(got.asnumpy(), want, rtol=rtol, atol=1e-12)
    assert got.shape == np.shape(want)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keep", [False, True])
def test_values_over_axes(axis, keep):
    x, a = Tensor(X), tuple(axis) if isinstance(axis, list) else axis
    close(ops.sum(x, axis, keep), X.sum(a, keepdims=keep))
    close(ops.mean(x, axis, keep), X.mean(a, keepdims=keep))
    close(ops.prod(x, axis, keep), X.prod(a, keepdims=keep))
    positive = X > -0.5
    close(ops.all(Tensor(positive), axis, keep), positive.all(a, keepdims=keep))
    close(ops.any(Tensor(X > 0.99), axis, keep), (X > 0.99).any(a, keepdims=keep))
    close(ops.count_nonzero(Tensor(X > 0), axis, keep), np.sum(X > 0, a, keepdims=keep))
    close(ops.logsumexp(x, axis, keep), np.log(np.exp(X).sum(a, keepdims=keep)))


def test_integers_are_summed_wide():
    many = Tensor(np.full(300, 127, np.int8))
    assert ops.sum(many).dtype is ms.int64
    assert ops.sum(many).item() == 300 * 127
    assert ops.prod(Tensor(np.full(5, 100, np.int16))).item() == 100**5
    assert ops.sum(Tensor(np.array([2**63], np.uint64))).dtype is ms.uint64
    assert ops.reduce_sum(Tensor([1, 2], ms.int32)).dtype is ms.int32
    assert ops.sum(Tensor([1.5, 2.5]), dtype=ms.int32).item() == 3
    assert ops.nansum(Tensor([True, True])).item() == 2


def test_the_mean_of_integers_is_not_cut():
    assert ops.mean(Tensor([1, 2])).item() == 1.5
    assert ops.mean(Tensor([True, False])).dtype is ms.float32
    assert Tensor([1, 2]).mean(dtype=ms.float64).dtype is ms.float64


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16])
def test_short_floats_are_added_in_float32(dtype):
    ones = ops.ones((5000,), dtype)
    assert ops.sum(ones).item() == pytest.approx(5000, rel=4e-3)
    assert ops.mean(ones * 30).item() == pytest.approx(30, rel=4e-3)  # a float16 sum would overflow
    assert ops.cumsum(ones, 0)[-1].item() == pytest.approx(5000, rel=4e-3)
    assert ops.nanmean(ones * 30).item() == pytest.approx(30, rel=4e-3)
    assert ops.sum(ones).dtype is dtype


def test_empty_tensors():
    e = Tensor(np.zeros((0, 3)))
    assert ops.sum(e).item() == 0.0
    assert ops.prod(e, 0).asnumpy().tolist() == [1.0] * 3
    assert np.isnan(ops.mean(e).item())
    assert np.isnan(ops.mean(e, 0).asnumpy()).all()
    assert ops.mean(e, 1).shape == (0,)
    assert ops.all(e).item() is True
    assert ops.any(e).item() is False
    assert ops.count_nonzero(e).item() == 0
    assert ops.logsumexp(e, 0).asnumpy().tolist() == [-np.inf] * 3


def test_nan_and_infinity():
    n = Tensor([1.0, np.nan, np.inf])
    assert np.isnan(ops.sum(n).item())
    assert ops.nansum(n).item() == np.inf
    assert ops.nansum(Tensor([np.nan, np.nan])).item() == 0.0
    assert np.isnan(ops.nanmean(Tensor([np.nan])).item())
    assert ops.nanmean(Tensor([[1.0, np.nan], [3.0, 5.0]]), 0, True).asnumpy().tolist() == [[2.0, 5.0]]
    assert ops.nanmean(Tensor([1.0, 3.0]), dtype=ms.float64).dtype is ms.float64


def test_methods_take_both_vocabularies():
    x = Tensor(X)
    close(x.sum(1), X.sum(1))
    close(x.sum(dim=1, keepdim=True), X.sum(1, keepdims=True))
    close(x.sum(axis=(0, 1), keepdims=True), X.sum((0, 1), keepdims=True))
    close(x.sum(0, True), X.sum(0, keepdims=True))
    close(x.sum(axis=0, initial=2.0), X.sum(0) + 2)
    assert x.sum(0, ms.float32).dtype is ms.float32
    assert x.sum(0, True, dtype=ms.float32).shape == (1, 3, 4)
    close(x.mean(dim=1, keepdim=True), X.mean(1, keepdims=True))
    close(x.mean(1, True), X.mean(1, keepdims=True))
    close(x.prod(dim=1), X.prod(1))
    close(x.all(axis=0, keep_dims=True), X.all(0, keepdims=True))
    close(x.any(dim=0, keepdim=True), X.any(0, keepdims=True))
    assert x.count_nonzero(dim=0).shape == (3, 4)
    close(x.nansum(dim=0), X.sum(0))
    close(x.logsumexp(axis=0), np.log(np.exp(X).sum(0)))


def test_the_gradient_of_a_product_with_zeros():
    for zeros in ([], [1], [1, 2]):
        x = np.array([1.5, -2.0, 0.5, 3.0])
        x[zeros] = 0.0
        got = ms.grad(ops.prod)(Tensor(x)).asnumpy()
        want = [np.prod(np.delete(x, i)) for i in range(4)]
        np.testing.assert_allclose(got, want)
        second = ms.grad(lambda t: (ms.grad(ops.prod)(t) * Tensor([1.0, 2.0, 3.0, 4.0])).sum())(Tensor(x))
        hessian = [[0.0 if i == j else np.prod(np.delete(x, [i, j])) for j in range(4)] for i in range(4)]
        np.testing.assert_allclose(second.asnumpy(), np.array(hessian) @ [1.0, 2.0, 3.0, 4.0])


def test_gradients():
    x = np.array([[1.0, np.nan], [2.0, 3.0]])
    got = ms.grad(lambda t: (ops.nansum(t, 1) * Tensor([2.0, 3.0])).sum())(Tensor(x)).asnumpy()
    np.testing.assert_allclose(got, [[2.0, 0.0], [3.0, 3.0]])
    got = ms.grad(lambda t: ops.nanmean(t, 0).sum())(Tensor(x)).asnumpy()
    np.testing.assert_allclose(got, [[0.5, 0.0], [0.5, 1.0]])
    got = ms.grad(lambda t: ops.mean(t, (0, 1)))(Tensor(X)).asnumpy()
    np.testing.assert_allclose(got, np.full(X.shape, 1 / 6))
    got = ms.grad(lambda t: ops.logsumexp(t, 1).sum())(Tensor([[1000.0, 1000.0], [-1000.0, 0.0]])).asnumpy()
    np.testing.assert_allclose(got, [[0.5, 0.5], [0.0, 1.0]], rtol=1e-4)


def test_in_a_graph():
    total, middle = run_staged(lambda t: (t.sum(0), ops.mean(t, -1, True)), X)
    np.testing.assert_allclose(total, X.sum(0))
    np.testing.assert_allclose(middle, X.mean(-1, keepdims=True))


def test_refusals():
    x = Tensor(X)
    with pytest.raises(OutOfRangeError, match="argument 'dim' got 3; it takes an axis from -3 to 2"):
        ops.sum(x, 3)
    with pytest.raises(ArgumentValueError, match="each axis once"):
        ops.mean(x, (0, -3))
    with pytest.raises(ArgumentTypeError, match="an int"):
        ops.sum(x, 1.5)
    with pytest.raises(DTypeError, match="'input' got dtype Int64"):
        ops.nanmean(Tensor([1, 2]))
    with pytest.raises(ArgumentTypeError, match="only one of the two"):
        x.sum(axis=0, dim=0)
    with pytest.raises(TypeError):
        x.sum(nonsense=1)


def test_sum_of_a_list():
    assert ops.sum([1, 2, 3]).item() == 6
    assert ops.reduce_mean(np.array([1.0, 2.0])).item() == 1.5
    assert ops.reduce_max(Tensor(X), (0, 1)).shape == (4,)
    assert ops.reduce_min(Tensor(X)).item() == X.min()


def test_sum_to_size():
    x = Tensor(X)
    close(x.sum_to_size((3, 1)), X.sum(0).sum(1, keepdims=True))
    close(x.sum_to_size(1, 1, 4), X.sum((0, 1), keepdims=True))
    close(x.sum_to_size(()), X.sum())
    close(x.sum_to_size(2, 3, 4), X)
    for size in ((2, 4), (5, 2, 3, 4), (2, 3, 8)):
        with pytest.raises(ArgumentValueError):
            x.sum_to_size(size)
