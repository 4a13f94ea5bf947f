"""Matrix products by oneDNN beside XLA's."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from tests.native.kernels import assert_agrees, needs_bfloat16, refuses

import mycelia as ms
from mycelia import native, ops
from mycelia.compiler import executable
from mycelia.native.products import dense_relu_p, wide_matmul_p
from mycelia.ops.linear import dense_p, matmul_p

pytestmark = pytest.mark.skipif(not native.onednn_available, reason="the kernels made of oneDNN are not built here")
TYPES = pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["float32", "bfloat16"])


def drawn(shape, dtype=jnp.float32, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def turned(shape, transposed):
    return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape


@TYPES
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(
    ("a", "b"),
    [((127, 130), (130, 65)), ((2, 1030), (1030, 600)), ((4, 3, 64, 48), (4, 3, 48, 130)), ((5, 60, 70), (70, 66)),
     ((70, 66), (5, 66, 60)), ((3, 90, 80), (1, 80, 70))],
)  # fmt: skip
def test_products(a, b, transpose_a, transpose_b, dtype):
    arrays = drawn(turned(a, transpose_a), dtype), drawn(turned(b, transpose_b), dtype, 1)
    attrs = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    assert_agrees(matmul_p, arrays, **attrs)


@TYPES
@pytest.mark.parametrize("shape", [(64, 300), (3, 50, 300), (2, 2, 17, 300)])
def test_dense(shape, dtype):
    x, w, b = drawn(shape, dtype), drawn((129, 300), dtype, 1), drawn((129,), dtype, 2)
    for op in (dense_p, dense_relu_p):
        assert_agrees(op, (x, w))
        assert_agrees(op, (x, w, b))


@needs_bfloat16
def test_a_float32_result_of_bfloat16_matrices_is_not_rounded():
    a, b = drawn((200, 96), jnp.bfloat16), drawn((200, 80), jnp.bfloat16, 1)
    got = np.asarray(wide_matmul_p.kernel(a, b, transpose_a=True, transpose_b=False))
    wanted = np.asarray(a, np.float64).T @ np.asarray(b, np.float64)
    np.testing.assert_allclose(got, wanted, atol=1e-4)


def test_nan_and_infinity():
    a, b = drawn((128, 128)).at[3, 5].set(jnp.nan).at[7, 1].set(jnp.inf), drawn((128, 128), seed=1)
    assert_agrees(matmul_p, (a, b), transpose_a=False, transpose_b=False)
    w = jnp.where(jnp.arange(128)[:, None] == 3, jnp.nan, b)
    assert_agrees(dense_relu_p, (drawn((128, 128)), w))


@pytest.mark.parametrize(
    ("a", "b"),
    [(drawn((128, 128), jnp.float64), drawn((128, 128), jnp.float64)), (drawn((4, 4)), drawn((4, 4))),
     (drawn((2000, 600)), drawn((600,))), (drawn((0, 600)), drawn((600, 2000))),
     (drawn((4, 1, 64, 64)), drawn((1, 4, 64, 64)))],
    ids=["float64", "small", "vector", "empty", "crossed batches"],
)  # fmt: skip
def test_the_rest_is_left_to_xla(a, b):
    assert refuses(matmul_p, (a, b), transpose_a=False, transpose_b=False)


def test_relu_goes_into_the_product_in_a_graph():
    x, w, b = (ms.Tensor(drawn(s, seed=i)) for i, s in enumerate([(64, 200), (150, 200), (150,)]))

    def f(x, w, b):
        return ops.relu(ops.dense(x, w, b)).sum()

    before = set(executable._by_structure.values())
    got = ms.jit(ms.value_and_grad(f, (0, 1, 2)))(x, w, b)
    wanted = ms.value_and_grad(f, (0, 1, 2))(x, w, b)
    for g, e in zip([got[0], *got[1]], [wanted[0], *wanted[1]], strict=True):
        np.testing.assert_allclose(g.asnumpy(), e.asnumpy(), rtol=1e-4, atol=1e-3)
    names = [n.op.name for e in set(executable._by_structure.values()) - before for n in e.graph.nodes]
    assert "dense_relu" in names
    assert "relu" not in names
