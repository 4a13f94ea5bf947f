"""Results whose size depends on values: nonzero, masked_select, unique, and the refusal inside a graph."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import DTypeError, GraphError

X = np.array([[0, 3, 0], [4, 0, 5]])


def test_nonzero():
    assert ops.nonzero(Tensor(X)).tolist() == np.argwhere(X).tolist()
    assert [i.tolist() for i in Tensor(X).nonzero(as_tuple=True)] == [i.tolist() for i in np.nonzero(X)]
    assert ops.nonzero(Tensor(3)).shape == (1, 0)
    assert [i.tolist() for i in ops.nonzero(Tensor(3), as_tuple=True)] == [[0]]
    assert ops.nonzero(Tensor(np.zeros((0, 2)))).shape == (0, 2)
    assert Tensor(X).argwhere().dtype is ms.int64


def test_masked_select():
    x = np.arange(6.0).reshape(2, 3)
    assert ops.masked_select(Tensor(x), Tensor(x > 2)).tolist() == [3.0, 4.0, 5.0]
    assert Tensor([1.0, 2.0]).masked_select(Tensor([[True], [False]])).tolist() == [1.0, 2.0]
    assert ops.masked_select(Tensor(x), Tensor(x > 9)).shape == (0,)
    with pytest.raises(DTypeError, match="argument 'mask' got dtype Float64; it takes Bool"):
        ops.masked_select(Tensor(x), Tensor(x))


def test_gradient_of_masked_select():
    x = np.arange(6.0).reshape(2, 3)
    weights = Tensor(np.array([1.0, 2.0, 3.0]))
    g = ms.grad(lambda t: (ops.masked_select(t, Tensor(x > 2)) * weights).sum())(Tensor(x))
    assert g.tolist() == [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]


def test_unique_in_order_of_appearance():
    values, index = ops.unique(Tensor([[3, 1], [3, 2]]))
    assert (values.tolist(), index.tolist()) == ([3, 1, 2], [[0, 1], [0, 2]])


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
def test_unique_against_numpy(dim):
    x = np.array([[3, 1, 3], [3, 1, 3], [0, 2, 0]])
    got = ops.unique_ext(Tensor(x), return_inverse=True, return_counts=True, dim=dim)
    want = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g.asnumpy().ravel(), w.ravel())
    assert got[1].shape == (x.shape if dim is None else (3,))
    assert Tensor([3, 1, 3]).unique().tolist() == [1, 3]
    values, inverse, counts = Tensor([3, 1, 3]).unique(False, True, True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([3, 1], [0, 1, 0], [2, 1])


@pytest.mark.parametrize("dim", [None, 0, 1])
@pytest.mark.torch
def test_unique_consecutive_against_torch(dim):
    torch = pytest.importorskip("torch")
    x = np.array([[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 2, 1]])
    got = ops.unique_consecutive(Tensor(x), True, True, dim)
    want = torch.unique_consecutive(torch.tensor(x), return_inverse=True, return_counts=True, dim=dim)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g.asnumpy(), w.numpy())


def test_unique_consecutive_alone():
    assert Tensor([1, 1, 2, 1]).unique_consecutive().tolist() == [1, 2, 1]
    assert ops.unique_consecutive(Tensor(np.zeros(0))).shape == (0,)


def test_unique_with_pad_works_in_a_graph():
    x = np.array([3, 1, 3, 2])
    values, index = run_staged(lambda t: ops.unique_with_pad(t, -1), x)
    assert (values.tolist(), index.tolist()) == ([3, 1, 2, -1], [0, 1, 0, 2])


@pytest.mark.parametrize(
    "fn",
    [
        ops.nonzero,
        ops.argwhere,
        ops.unique,
        ops.unique_ext,
        ops.unique_consecutive,
        lambda t: ops.masked_select(t, t > 0),
        ops.where,
    ],
)
def test_a_graph_refuses_what_has_no_shape(fn):
    with pytest.raises(GraphError, match="the shape of the result depends on the values of") as e:
        run_staged(fn, X)
    assert "ops.where" in str(e.value)


def test_constants_of_a_graph_are_known():
    (got,) = run_staged(lambda t: t + ops.nonzero(Tensor([0, 1, 1])).sum(), np.array([1]))
    assert got.tolist() == [4]
