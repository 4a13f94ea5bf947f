"""einsum and its kin: notation, broadcasting, malformed equations; products in the cheapest order."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, OutOfRangeError, ShapeError

RNG = np.random.default_rng(1)
A, B, S = RNG.standard_normal((2, 3)), RNG.standard_normal((3, 4)), RNG.standard_normal((3, 3))
T = RNG.standard_normal((5, 2, 3))


def close(got, want):
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-11, atol=1e-11)
    assert got.shape == np.shape(want)


@pytest.mark.parametrize(
    ("equation", "arrays"),
    [
        ("ij,jk", (A, B)), ("ij,jk->ki", (A, B)), ("ji", (A,)), ("ii", (S,)), ("ii->i", (S,)),
        ("i,j->ij", (A[0], A[1])),
        ("...ij,jk->...ik", (T, B)), ("...ij->...ji", (T,)), ("b...,b...->b...", (T, T)), ("i...->...", (T,)),
        (" i j , j k -> i k ", (A, B)), ("...ij", (T,)), ("ij,...jk->...ik", (A, T.swapaxes(1, 2))),
        ("ab,bc,cd,de->ae", (A, B, B.T, B)), ("ij,ij,ij->", (A, A, A)), ("ijj->i", (RNG.standard_normal((2, 3, 3)),)),
        ("...,...", (T, A)), ("zA,Ab->zb", (A, B)), ("ij,jk", (np.ones((2, 1)), B)), (",ij->ij", (np.array(2.0), A)),
    ],
)  # fmt: skip
def test_notation(equation, arrays):
    close(ops.einsum(equation, *map(Tensor, arrays)), np.einsum(equation, *arrays))
    close(ops.einsum(equation, list(map(Tensor, arrays))), np.einsum(equation, *arrays))


def test_sublists_and_promotion():
    close(ops.einsum(Tensor(A), [0, 1], Tensor(B), [1, 2], [0, 2]), A @ B)
    close(ops.einsum(Tensor(T), [..., 0], [..., 0]), T)
    close(ops.einsum("b...,b...->b", Tensor(T), Tensor(T)), (T * T).sum((1, 2)))
    assert ops.einsum("i,i", Tensor([1, 2]), Tensor([0.5, 0.5])).item() == 1.5


@pytest.mark.parametrize(
    ("equation", "arrays", "words"),
    [
        ("ij,jk->ik", (A,), "2 terms"), ("ij->ij->i", (A,), "arrow"), ("i1", (A,), "'1'"), ("ij->ii", (A,), "twice"),
        ("ij->k", (A,), "'k' in the result only"), ("i.j", (A,), r"'\.'"),
        ("ij>i", (A,), "arrow"), ("", (A,), "0 axes"),
    ],
)  # fmt: skip
def test_malformed_equations(equation, arrays, words):
    with pytest.raises(ArgumentValueError, match=words) as caught:
        ops.einsum(equation, *map(Tensor, arrays))
    assert "test_contraction.py" in str(caught.value)


def test_sizes_that_differ():
    with pytest.raises(ShapeError, match=r"operands\[1\].*length 3 for axis"):
        ops.einsum("ij,jk->ik", Tensor(A), Tensor(A))
    with pytest.raises(ArgumentTypeError, match="sublists"):
        ops.einsum(Tensor(A), Tensor(B))


@pytest.mark.parametrize("axes", [0, 1, 2, ((0, 1), (1, 0)), (1, 0), ([-1], [0])])
def test_tensor_dot(axes):
    a = A if axes != ((0, 1), (1, 0)) else A.T.copy()
    b = {2: A, ((0, 1), (1, 0)): A}.get(axes if not isinstance(axes, tuple) or axes == ((0, 1), (1, 0)) else 0, B)
    close(ops.tensor_dot(Tensor(a), Tensor(b), axes), np.tensordot(a, b, axes))


def test_tensor_dot_messages():
    with pytest.raises(ShapeError, match="length 3"):
        ops.tensor_dot(Tensor(A), Tensor(A), 1)
    with pytest.raises(ArgumentValueError, match="0 to 2"):
        ops.tensor_dot(Tensor(A), Tensor(A), 3)
    with pytest.raises(OutOfRangeError, match="axis from"):
        ops.tensor_dot(Tensor(A), Tensor(A), ((5,), (0,)))


def test_batch_dot():
    x, y = T, RNG.standard_normal((5, 3, 4))
    close(ops.batch_dot(Tensor(x), Tensor(y)), x @ y)
    close(ops.batch_dot(Tensor(x), Tensor(y), (-1, 1)), x @ y)
    close(ops.batch_dot(Tensor(x[:, 0]), Tensor(x[:, 1])), (x[:, 0] * x[:, 1]).sum(1, keepdims=True))
    with pytest.raises(ShapeError, match="batch 5"):
        ops.batch_dot(Tensor(x), Tensor(y[:2]))
    with pytest.raises(ArgumentValueError, match="after the batch"):
        ops.batch_dot(Tensor(x), Tensor(y), (0, 1))


@pytest.mark.parametrize(("x", "y"), [(A, B), (A[0], B), (T, A), (np.array(2.0), A), (np.zeros((0, 2)), A)])
def test_kron(x, y):
    close(ops.kron(Tensor(x), Tensor(y)), np.kron(x, y))


def test_cross():
    close(ops.cross(Tensor(A), Tensor(A[::-1].copy())), np.cross(A, A[::-1]))
    close(Tensor(S).cross(Tensor(S[0]), 1), np.cross(S, S[0]))
    close(ops.cross(Tensor(S), Tensor(B[:, :3]), 0), np.cross(S, B[:, :3], axis=0))
    with pytest.raises(ShapeError, match="axis of length 3"):
        ops.cross(Tensor(np.ones((2, 4))), Tensor(np.ones((2, 4))))


def test_multi_dot_takes_the_cheapest_order():
    arrays = [RNG.standard_normal(s) for s in ((10, 100), (100, 5), (5, 50), (50,))]
    close(ops.multi_dot(*map(Tensor, arrays)), np.linalg.multi_dot(arrays))
    close(ops.multi_dot([Tensor(A)]), A)
    with pytest.raises(ShapeError, match=r"arrays\[1\]"):
        ops.multi_dot(Tensor(A), Tensor(B[0]), Tensor(B))


def test_vecdot_and_bidense():
    z = np.array([[1 + 1j, 2.0], [3.0, 4j]])
    close(ops.vecdot(Tensor(z), Tensor(z)), np.vecdot(z, z))
    close(ops.vecdot(Tensor(T), Tensor(A), axis=1), (T * A).sum(1))
    w, bias = RNG.standard_normal((4, 2, 3)), RNG.standard_normal(4)
    x, y = RNG.standard_normal((6, 2)), RNG.standard_normal((6, 3))
    close(ops.bidense(Tensor(x), Tensor(y), Tensor(w), Tensor(bias)), np.einsum("ni,oij,nj->no", x, w, y) + bias)
    with pytest.raises(ShapeError, match="3 features"):
        ops.bidense(Tensor(x), Tensor(x), Tensor(w))


def test_distances():
    close(ops.cdist(Tensor(A), Tensor(S), 1), np.abs(A[:, None] - S).sum(-1))
    assert ops.cdist(Tensor(A.astype(np.float16)), Tensor(S.astype(np.float16))).dtype is ms.float16
    same = ms.grad(lambda x: ops.cdist(x, x).sum())(Tensor(A))
    assert np.isfinite(same.asnumpy()).all()
    assert ops.pdist(Tensor(S)).shape == (3,)
    with pytest.raises(ArgumentValueError, match="0 to infinity"):
        ops.cdist(Tensor(A), Tensor(S), -1)
