"""Linear algebra as users call it: batches, vectors, decompositions put together again, messages."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ops.decompositions import eigh, lu, lu_factor
from mycelia.ops.linalg import solve_triangular
from mycelia.ops.matrix_norms import norm_ext

RNG = np.random.default_rng(8)
A, TALL = RNG.standard_normal((2, 3, 3)), RNG.standard_normal((2, 5, 3))
SPD = A @ A.swapaxes(1, 2) + np.eye(3)
B, VECTORS = RNG.standard_normal((2, 3, 4)), RNG.standard_normal((2, 3))


def close(got, want, rtol=1e-9):
    np.testing.assert_allclose(got.asnumpy(), want, rtol=rtol, atol=1e-10)
    assert got.shape == np.shape(want)


def t(x):
    return np.swapaxes(x, -1, -2)


def test_equations():
    close(ops.solve(Tensor(A), Tensor(B)), np.linalg.solve(A, B))
    close(ops.solve(Tensor(A), Tensor(VECTORS)), np.linalg.solve(A, VECTORS[..., None])[..., 0])
    close(ops.solve(Tensor(A), Tensor(B[0])), np.linalg.solve(A, B[0]))
    close(ops.solve(Tensor(A), Tensor(VECTORS[0])), np.linalg.solve(A, VECTORS[0]))
    close(ops.matrix_solve(Tensor(A), Tensor(B), True), np.linalg.solve(t(A), B))
    close(ops.inverse(Tensor(A)), np.linalg.inv(A))
    close(solve_triangular(Tensor(A[0]), Tensor(B[0]), lower=True), linalg.solve_triangular(A[0], B[0], lower=True))
    x, same = ops.triangular_solve(Tensor(B[0]), Tensor(A[0]), transpose=True)
    close(x, linalg.solve_triangular(A[0], B[0], trans=1))
    close(same, A[0])


def test_determinants_and_traces():
    for made in (ops.det(Tensor(A)), ops.matrix_determinant(Tensor(A)), Tensor(A).det()):
        close(made, np.linalg.det(A))
    sign, log = ops.log_matrix_determinant(Tensor(A))
    close(sign, np.linalg.slogdet(A)[0])
    close(log, np.linalg.slogdet(A)[1])
    close(ops.logdet(Tensor(SPD)), np.log(np.linalg.det(SPD)))
    assert np.isnan(ops.logdet(Tensor(-np.eye(3))).item())
    close(ops.trace(Tensor(TALL[0])), np.trace(TALL[0]))
    close(Tensor(A).trace(1, 1, 2), np.trace(A, 1, 1, 2))


def test_powers_and_exponentials():
    for n in (-3, -1, 0, 1, 2, 7):
        close(ops.matrix_power(Tensor(A), n), np.linalg.matrix_power(A, n), 1e-7)
    assert ops.matrix_power(Tensor([[1, 1], [0, 1]]), 5).tolist() == [[1, 5], [0, 1]]
    close(ops.matrix_exp(Tensor(A)), np.stack([linalg.expm(a) for a in A]))


def test_cholesky():
    factor = np.linalg.cholesky(SPD)
    close(ops.cholesky(Tensor(SPD)), factor)
    close(Tensor(SPD).cholesky(True), t(factor))
    close(ops.cholesky_solve(Tensor(B), Tensor(factor)), np.linalg.solve(SPD, B))
    close(ops.cholesky_solve(Tensor(B), Tensor(t(factor).copy()), True), np.linalg.solve(SPD, B))
    close(ops.cholesky_inverse(Tensor(factor)), np.linalg.inv(SPD))
    assert np.isnan(ops.cholesky(Tensor(-np.eye(2))).asnumpy()).any()


def test_decompositions_come_together_again():
    q, r = ops.qr(Tensor(TALL))
    close(q @ r, TALL)
    assert ops.qr(Tensor(TALL), "complete")[0].shape == (2, 5, 5)
    s, u, v = ops.svd(Tensor(TALL))
    close((u * s.reshape(2, 1, 3)) @ v.swapaxes(1, 2), TALL)
    assert [x.shape for x in ops.svd(Tensor(TALL), True)] == [(2, 3), (2, 5, 5), (2, 3, 3)]
    close(ops.svd(Tensor(TALL), compute_uv=False), s.asnumpy())
    values, vectors = eigh(Tensor(SPD))
    close((vectors * values.reshape(2, 1, 3)) @ vectors.swapaxes(1, 2), SPD)
    values, vectors = ops.eig(Tensor(A))
    np.testing.assert_allclose(A @ vectors.asnumpy(), vectors.asnumpy() * values.asnumpy()[:, None], atol=1e-10)
    close(ops.eigvals(Tensor(A)), np.linalg.eigvals(A))
    p, low, up = lu(Tensor(TALL))
    close(p @ low @ up, TALL)


def test_lu_of_mindspore_counts_from_one():
    packed, pivots = lu_factor(Tensor(A))
    p, low, up = ops.lu_unpack(packed, pivots + 1)
    close(p @ low @ up, A)
    close(ops.lu_solve(Tensor(B), packed, pivots + 1), np.linalg.solve(A, B))
    assert ops.lu_unpack(packed, pivots + 1, unpack_data=False)[1:] == (None, None)
    with pytest.raises(ArgumentTypeError, match="LU_pivots"):
        ops.lu_unpack(packed, Tensor([1.0]))


def test_reflectors():
    packed, tau = ops.geqrf(Tensor(TALL[0]))
    q, r = np.linalg.qr(TALL[0])
    close(ops.orgqr(packed, tau), q)
    np.testing.assert_allclose(np.triu(packed.asnumpy()[:3]), r, atol=1e-10)
    full = np.linalg.qr(TALL[0], "complete")[0]
    other = RNG.standard_normal((5, 2))
    close(ops.ormqr(packed, tau, Tensor(other)), full @ other)
    close(ops.ormqr(packed, tau, Tensor(other.T.copy()), left=False, transpose=True), other.T @ full.T)


def test_pseudo_inverse_and_least_squares():
    close(ops.pinv(Tensor(TALL)), np.linalg.pinv(TALL))
    close(ops.pinv(Tensor(SPD), hermitian=True), np.linalg.pinv(SPD))
    low_rank = TALL[0][:, :1] @ TALL[0][:1]
    close(ops.pinv(Tensor(low_rank)), np.linalg.pinv(low_rank), 1e-6)
    close(ops.pinv(Tensor(np.diag([2.0, 0.5])), atol=1.0), np.diag([0.5, 0.0]))
    b = RNG.standard_normal((5, 2))
    close(ops.lstsq(Tensor(TALL[0]), Tensor(b)), np.linalg.lstsq(TALL[0], b)[0])
    close(ops.lstsq(Tensor(TALL[0]), Tensor(b[:, 0])), np.linalg.lstsq(TALL[0], b[:, :1])[0])
    close(ops.lstsq(Tensor(TALL[0].T.copy()), Tensor(b[:3])), np.linalg.lstsq(TALL[0].T, b[:3])[0])


@pytest.mark.parametrize("ord", ["fro", "nuc", np.inf, -np.inf, 1, -1, 2, -2])
def test_matrix_norms(ord):
    want = np.linalg.norm(TALL, ord, (1, 2))
    close(ops.matrix_norm(Tensor(TALL), ord), want)
    close(ops.norm(Tensor(TALL), ord, (1, 2)), want)
    close(ops.matrix_norm(Tensor(TALL), ord, (2, 1), True), np.linalg.norm(TALL, ord, (2, 1), keepdims=True))
    if ord in (2, -2, "fro"):
        close(ops.norm(Tensor(TALL[0]), ord), np.linalg.norm(TALL[0], ord))


@pytest.mark.parametrize("ord", [0, 1, 2, 3, -1, np.inf, -np.inf, 0.5])
def test_vector_norms(ord):
    close(ops.vector_norm(Tensor(VECTORS), ord, 1), np.linalg.norm(VECTORS, ord, 1))
    close(Tensor(VECTORS[0]).norm(ord), np.linalg.norm(VECTORS[0], ord))
    close(norm_ext(Tensor(VECTORS), ord), np.linalg.norm(VECTORS.ravel(), ord))


def test_what_is_made_of_norms():
    close(ops.norm(Tensor(TALL)), np.linalg.norm(TALL.ravel()))
    close(ops.dist(Tensor(A), Tensor(A + 1), 1), 18.0)
    close(ops.cond(Tensor(A)), np.linalg.cond(A))
    close(ops.cond(Tensor(A), "fro"), np.linalg.cond(A, "fro"))
    close(norm_ext(Tensor(A[0]), "nuc"), np.linalg.norm(A[0], "nuc"))
    rows = ops.renorm(Tensor(VECTORS * 9), 2, 0, 1.0)
    close(ops.vector_norm(rows, 2, 1), np.ones(2))
    same = ms.grad(ops.norm)(ops.zeros((3,)))
    assert same.tolist() == [0.0, 0.0, 0.0]
    cos = (VECTORS[0] @ VECTORS[1]) / np.linalg.norm(VECTORS[0]) / np.linalg.norm(VECTORS[1])
    close(ops.cosine_similarity(Tensor(VECTORS[0]), Tensor(VECTORS[1]), 0), cos)


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float32])
def test_dtypes(dtype):
    x = Tensor(SPD).astype(dtype)
    for made in (ops.inverse(x), ops.cholesky(x), ops.det(x), *ops.qr(x), *ops.svd(x), ops.norm(x)):
        assert made.dtype is dtype
    assert ops.det(Tensor([[1, 2], [3, 4]])).item() == pytest.approx(-2)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ops.det(Tensor(TALL)), ShapeError, "square"),
        (lambda: ops.solve(Tensor(A), Tensor(B[:, :2])), ShapeError, "rows as 'A'"),
        (lambda: ops.qr(Tensor(A), "r"), ArgumentValueError, '"reduced" or "complete"'),
        (lambda: ops.matrix_norm(Tensor(A), 3), ArgumentValueError, "'fro', 'nuc'"),
        (lambda: ops.norm(Tensor(A), 2), ShapeError, "'dim' is not given"),
        (lambda: ops.norm(Tensor(VECTORS[0]), "fro"), ArgumentValueError, "a number for vectors"),
        (lambda: ops.lstsq(Tensor(TALL[0]), Tensor(B[0])), ShapeError, "5 rows"),
        (lambda: ops.matrix_power(Tensor(TALL), 2), ShapeError, "square"),
        (lambda: ops.trace(Tensor(A)), ShapeError, "a matrix"),
        (lambda: ops.vector_norm(ops.zeros((0,)), np.inf), ShapeError, "at least one element"),
    ],
)
def test_messages(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "test_linalg.py" in str(caught.value)
