"""Triangles and diagonals: arguments, methods, errors."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentValueError, ShapeError

M = np.arange(1, 13).reshape(3, 4)
CUBE = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize("k", [-5, -1, 0, 1, 5])
def test_triangles(k):
    np.testing.assert_array_equal(ops.tril(Tensor(CUBE), k).asnumpy(), np.tril(CUBE, k))
    np.testing.assert_array_equal(Tensor(CUBE).triu(diagonal=k).asnumpy(), np.triu(CUBE, k))
    with pytest.raises(ShapeError, match="at least two axes"):
        ops.tril(Tensor([1, 2]), k)


@pytest.mark.parametrize("offset", [-3, -1, 0, 2, 4])
def test_diagonal(offset):
    np.testing.assert_array_equal(ops.diagonal(Tensor(M), offset).asnumpy(), np.diagonal(M, offset))
    np.testing.assert_array_equal(ops.diagonal(Tensor(CUBE), offset, -1, 0).asnumpy(), np.diagonal(CUBE, offset, -1, 0))
    np.testing.assert_array_equal(
        Tensor(CUBE).diagonal(offset, axis1=1, axis2=2).asnumpy(), np.diagonal(CUBE, offset, 1, 2)
    )


@pytest.mark.parametrize(("offset", "dim1", "dim2"), [(0, -2, -1), (1, -2, -1), (-2, 0, 2), (0, 2, 0)])
@pytest.mark.torch
def test_diag_embed_against_torch(offset, dim1, dim2):
    torch = pytest.importorskip("torch")
    got = ops.diag_embed(Tensor(M), offset, dim1, dim2)
    np.testing.assert_array_equal(got.asnumpy(), torch.diag_embed(torch.tensor(M), offset, dim1, dim2).numpy())


def test_diag():
    v = np.array([1, 2])
    assert ops.diag(Tensor(v)).tolist() == np.diag(v).tolist()
    four = ops.diag(Tensor([[1, 2], [3, 4]])).asnumpy()
    assert four.shape == (2, 2, 2, 2)
    assert [four[i, j, i, j] for i in (0, 1) for j in (0, 1)] == [1, 2, 3, 4]
    assert four.sum() == 10
    assert ops.diag_ext(Tensor(v), -1).tolist() == np.diag(v, -1).tolist()
    assert Tensor(M).diag(1).tolist() == np.diag(M, 1).tolist()
    assert Tensor(v).diag().tolist() == np.diag(v).tolist()
    assert ops.diagflat(Tensor([[1, 2]]), 1).tolist() == np.diagflat([[1, 2]], 1).tolist()


def test_errors():
    with pytest.raises(ShapeError, match=r"diagonal: argument 'input' got shape \(3,\)"):
        ops.diagonal(Tensor([1, 2, 3]))
    with pytest.raises(
        ArgumentValueError, match="diagonal: argument 'dim2' got 0; it takes an axis other than dim1, 0"
    ):
        ops.diagonal(Tensor(M), 0, 0, 0)
    with pytest.raises(ShapeError, match="diag_embed: argument 'input' got shape"):
        ops.diag_embed(Tensor(1))
    with pytest.raises(ShapeError, match="one or two axes"):
        ops.diag_ext(Tensor(CUBE))


@pytest.mark.parametrize(("offset", "dim1", "dim2"), [(0, 0, 1), (1, 0, 1), (-1, 1, 0), (0, 2, 0)])
@pytest.mark.torch
def test_diagonal_scatter_against_torch(offset, dim1, dim2):
    torch = pytest.importorskip("torch")
    src = -1 - np.arange(np.diagonal(CUBE, offset, dim1, dim2).size).reshape(
        np.diagonal(CUBE, offset, dim1, dim2).shape
    )
    got = ops.diagonal_scatter(Tensor(CUBE), Tensor(src), offset, dim1, dim2)
    want = torch.diagonal_scatter(torch.tensor(CUBE), torch.tensor(src), offset, dim1, dim2)
    np.testing.assert_array_equal(got.asnumpy(), want.numpy())


def test_diagonal_scatter_gradients_and_errors():
    x, s = ms.grad(lambda x, s: (ops.diagonal_scatter(x, s) * Tensor([[1.0, 2.0], [3.0, 4.0]])).sum(), (0, 1))(
        Tensor(np.zeros((2, 2), np.float32)), Tensor([5.0, 6.0])
    )
    assert x.tolist() == [[0.0, 2.0], [3.0, 0.0]]
    assert s.tolist() == [1.0, 4.0]
    with pytest.raises(ShapeError, match=r"'src' got shape \(2,\); it takes shape \(3,\)"):
        ops.diagonal_scatter(Tensor(M), Tensor([1, 2]))


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (7, 3), (2, 2, 2)])
def test_fill_diagonal(shape, wrap):
    x = np.zeros(shape)
    np.fill_diagonal(x, 5.0, wrap=wrap)
    t = Tensor(np.zeros(shape))
    np.testing.assert_array_equal(t.fill_diagonal(5.0, wrap).asnumpy(), x)
    assert t.fill_diagonal_(5, wrap) is t
    np.testing.assert_array_equal(t.asnumpy(), x)


def test_fill_diagonal_errors():
    with pytest.raises(ShapeError, match="axes of one length"):
        ops.fill_diagonal(Tensor(CUBE), 1)


@pytest.mark.parametrize(("lower", "upper"), [(0, 0), (1, 0), (-1, 1), (0, -1), (-1, -1), (5, 1)])
def test_matrix_band_part(lower, upper):
    i, j = np.indices((3, 4))
    kept = ((lower < 0) | (i - j <= lower)) & ((upper < 0) | (j - i <= upper))
    np.testing.assert_array_equal(ops.matrix_band_part(Tensor(M), lower, Tensor(upper)).asnumpy(), np.where(kept, M, 0))
