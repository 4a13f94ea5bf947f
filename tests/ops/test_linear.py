"""Products of matrices and vectors: forms of a call, promotion, half precision, messages."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, DTypeError, ShapeError
from mycelia.ops.linear import batch_matmul

RNG = np.random.default_rng(0)
A, B, C = RNG.standard_normal((2, 3)), RNG.standard_normal((3, 4)), RNG.standard_normal((2, 4))
BATCH, OTHER = RNG.standard_normal((5, 2, 3)), RNG.standard_normal((5, 3, 4))


def close(got, want, rtol=1e-12):
    np.testing.assert_allclose(got.asnumpy(), want, rtol=rtol, atol=1e-12)
    assert got.shape == np.shape(want)


def test_operator_and_methods():
    a, b = Tensor(A), Tensor(B)
    for made in (a @ b, a.matmul(b), a.mm(b), ops.matmul(a, B), A @ b, ops.mm(a, b), ops.dot(a, b), a.dot(b)):
        close(made, A @ B)
    close(ops.bmm(Tensor(BATCH), Tensor(OTHER)), BATCH @ OTHER)
    close(Tensor(BATCH).bmm(Tensor(OTHER)), BATCH @ OTHER)
    close(batch_matmul(Tensor(BATCH), Tensor(OTHER.swapaxes(1, 2)), transpose_b=True), BATCH @ OTHER)
    close(ops.mv(a, Tensor(B[:, 0])), A @ B[:, 0])
    close(ops.outer(Tensor(A[0]), Tensor(B[0])), np.outer(A[0], B[0]))
    close(Tensor(A[0]).ger(Tensor(B[0])), np.outer(A[0], B[0]))


@pytest.mark.parametrize(
    ("x", "y"), [(BATCH, OTHER[0]), (BATCH[0, 0], OTHER), (BATCH, OTHER[0, :, 0]), (BATCH[:, :, :3], OTHER[0])]
)
def test_dot_and_inner_follow_numpy(x, y):
    close(ops.dot(Tensor(x), Tensor(y)), np.dot(x, y))
    if x.shape[-1] == y.T.shape[-1]:
        close(ops.inner(Tensor(x), Tensor(y.T)), np.inner(x, y.T))


def test_inner_with_a_number_and_vdot():
    close(ops.inner(Tensor(A), Tensor(2.0, ms.float64)), A * 2)
    z = np.array([1 + 2j, 3 - 1j])
    close(ops.vdot(Tensor(z), Tensor(z)), np.vdot(z, z))


def test_promotion():
    ints = Tensor([[1, 2], [3, 4]])
    assert (ints @ ints).tolist() == [[7, 10], [15, 22]]
    assert (ints @ Tensor([[1.0], [1.0]])).dtype is ms.float32
    assert (Tensor([[1.0]], ms.float16) @ Tensor([[1.0]], ms.float32)).dtype is ms.float32


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16])
def test_half_products_are_summed_in_float32(dtype):
    ones = ops.ones((1, 4096), dtype)
    assert (ones @ ones.reshape(4096, 1)).item() == 4096  # a float16 sum of ones stops growing at 2048
    assert ops.dense(ones, ones).item() == 4096


def test_dense():
    weight, bias = B.T, RNG.standard_normal(4)
    close(ops.dense(Tensor(A), Tensor(weight), Tensor(bias)), A @ B + bias)
    close(ops.dense(Tensor(BATCH), Tensor(weight)), BATCH @ B)
    close(ops.dense(Tensor(A), Tensor(B[:, 0]), Tensor(np.array(2.0))), A @ B[:, 0] + 2)
    assert ops.dense(Tensor([[1, 2]], ms.float16), Tensor([[1.0, 1.0]], ms.float32)).dtype is ms.float32


def test_add_products():
    y, a, b = Tensor(C), Tensor(A), Tensor(B)
    close(ops.addmm(y, a, b, beta=2, alpha=0.5), 2 * C + 0.5 * (A @ B))
    close(y.addmm(a, b), C + A @ B)
    close(ops.addmm(Tensor(C[:1] * np.nan), a, b, beta=0), A @ B)
    close(ops.baddbmm(Tensor(C[None]), Tensor(BATCH), Tensor(OTHER), 1, 2), C + 2 * (BATCH @ OTHER))
    close(ops.addbmm(y, Tensor(BATCH), Tensor(OTHER)), C + (BATCH @ OTHER).sum(0))
    close(ops.addmv(Tensor(A[:, 0]), a, Tensor(B[:, 0])), A[:, 0] + A @ B[:, 0])
    close(ops.addr(y, Tensor(A[:, 0]), Tensor(B[0]), alpha=3), C + 3 * np.outer(A[:, 0], B[0]))
    close(y.addr(Tensor(A[:, 0]), Tensor(B[0]), 0.5), 0.5 * C + np.outer(A[:, 0], B[0]))


def test_integer_tensors_take_integer_factors():
    x = Tensor([[1, 2], [3, 4]])
    assert ops.addmm(x, x, x, beta=2).tolist() == [[9, 14], [21, 30]]
    with pytest.raises(DTypeError, match=r"beta.*takes an int"):
        ops.addmm(x, x, x, beta=0.5)


def test_gradients_of_a_stack_and_a_matrix():
    w = Tensor(B)
    by_x, by_w = ms.grad(lambda x, w: (x @ w).sum(), (0, 1))(Tensor(BATCH), w)
    close(by_x, np.broadcast_to(B.sum(1), BATCH.shape))
    close(by_w, np.broadcast_to(BATCH.sum((0, 1))[:, None], B.shape))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Tensor(A) @ Tensor(A), ShapeError, r"'other' got shape \(2, 3\).*inner dimension of 3"),
        (lambda: ops.mm(Tensor(BATCH), Tensor(B)), ShapeError, r"'input' got shape \(5, 2, 3\).*2 axes"),
        (lambda: ops.bmm(Tensor(A), Tensor(B)), ShapeError, "batch of matrices"),
        (lambda: ops.addbmm(Tensor(C), Tensor(BATCH), Tensor(OTHER[:2])), ShapeError, "5 matrices"),
        (lambda: ops.dense(Tensor(A), Tensor(B)), ShapeError, "4 features"),
        (lambda: ops.addmm(Tensor(C), Tensor(A), Tensor(B), alpha="x"), ArgumentTypeError, "'alpha' got str"),
        (lambda: Tensor([True]) @ Tensor([True]), DTypeError, "Bool"),
    ],
)
def test_messages_name_the_argument_and_the_line(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "test_linear.py" in str(caught.value)
