"""Maxima and minima: NaN rules, dtypes, and how a tie shares its gradient."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import DTypeError

A = np.array([1.0, np.nan, 3.0, np.nan, 2.0], np.float32)
B = np.array([np.nan, 1.0, 2.0, np.nan, 2.0], np.float32)


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_like_numpy(name):
    np.testing.assert_array_equal(getattr(ops, name)(Tensor(A), Tensor(B)).asnumpy(), getattr(np, name)(A, B))
    np.testing.assert_array_equal(getattr(Tensor(A), name)(Tensor(B)).asnumpy(), getattr(np, name)(A, B))


def test_numbers_and_dtypes():
    assert ops.maximum(Tensor([1, 2]), 1.5).tolist() == [1.5, 2.0]
    assert ops.minimum(3, Tensor([1, 5])).tolist() == [1, 3]
    assert ops.maximum(Tensor([True, False]), True).dtype is ms.bool_
    with pytest.raises(DTypeError, match="maximum: argument 'input' got dtype Complex128"):
        ops.maximum(Tensor([1j]), Tensor([1j]))


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
@pytest.mark.torch
def test_gradients_at_ties_and_nan_against_torch(name):
    torch = pytest.importorskip("torch")
    a, b = A.astype(np.float64), B.astype(np.float64)
    ta, tb = torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
    weights = np.arange(1.0, 6.0)
    (getattr(torch, name)(ta, tb) * torch.tensor(weights)).nansum().backward()
    ga, gb = ms.grad(getattr(ops, name), (0, 1))(Tensor(a), Tensor(b))
    clean = ~(np.isnan(a) | np.isnan(b)) if name in ("maximum", "minimum") else ~(np.isnan(a) & np.isnan(b))
    np.testing.assert_array_equal((ga.asnumpy() * weights)[clean], ta.grad.numpy()[clean])
    np.testing.assert_array_equal((gb.asnumpy() * weights)[clean], tb.grad.numpy()[clean])


def test_a_tie_of_maximum_is_shared_half_and_half():
    a, b = ms.grad(ops.maximum, (0, 1))(Tensor([1.0, 2.0]), Tensor([1.0, 3.0]))
    assert a.tolist() == [0.5, 0.0]
    assert b.tolist() == [0.5, 1.0]
