"""Rows taken from a table and added to one, beside XLA's."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from tests.native.kernels import assert_agrees, refuses

import mycelia as ms
from mycelia import Tensor, native, ops
from mycelia.ops.indexing import add_at_p, gather_p
from mycelia.ops.lookup import embedding_p

pytestmark = pytest.mark.skipif(not native.onednn_available, reason="the kernels made of oneDNN are not built here")
TYPES = pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["float32", "bfloat16"])
ALONG = {"axis": 0, "batch_dims": 0}


def drawn(shape, dtype=jnp.float32, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def places(shape, rows, seed=2):
    """Places with duplicates, some below zero and some outside."""
    return jnp.asarray(np.random.default_rng(seed).integers(-rows - 3, rows + 3, shape), jnp.int32)


@TYPES
@pytest.mark.parametrize(("rows", "features", "shape"), [(50, (100,), (60,)), (3, (7, 5), (20, 9)), (9, (1,), (5000,))])
def test_rows_taken(rows, features, shape, dtype):
    table, at = drawn((rows, *features), dtype), places(shape, rows)
    assert_agrees(gather_p, (table, at), **ALONG)
    if len(features) == 1:
        attrs = {"padding_idx": None, "by_frequency": False}
        got, wanted = embedding_p.kernel(at, table, **attrs), embedding_p.lower(at, table, **attrs)
        np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))


@TYPES
@pytest.mark.parametrize(
    ("rows", "features", "shape"),
    [(50, (100,), (60,)), (3, (7, 5), (20, 9)), (9, (1,), (5000,)), (2, (300,), (30,)), (500, (20,), (1000,)),
     (1, (129,), (40,))],
)  # fmt: skip
def test_rows_added(rows, features, shape, dtype):
    updates, at = drawn((*shape, *features), dtype), places(shape, rows)
    assert_agrees(add_at_p, (updates, at), length=rows, **ALONG)


def test_nan_stays_in_its_row():
    updates = np.array(drawn((60, 100)))
    updates[3, 4], updates[5, 6], updates[7] = np.nan, np.inf, np.nan
    at = np.arange(60)
    at[7] = 1000
    assert_agrees(add_at_p, (jnp.asarray(updates), jnp.asarray(at)), length=60, **ALONG)


def test_what_is_left_to_xla():
    assert refuses(gather_p, (drawn((100, 100)), places((100,), 100)), axis=1, batch_dims=0)
    assert refuses(gather_p, (drawn((5000,)), places((5000,), 100)), **ALONG)
    assert refuses(gather_p, (drawn((0, 100)), places((100,), 3)), **ALONG)
    assert refuses(gather_p, (drawn((100, 100)).astype(jnp.float64), places((100,), 3)), **ALONG)
    assert refuses(add_at_p, (drawn((100, 100)).astype(jnp.float16), places((100,), 3)), length=9, **ALONG)
    assert refuses(add_at_p, (drawn((100, 100)), places((100,), 3)), length=0, **ALONG)


@pytest.mark.parametrize("staged", [False, True])
def test_gradient_of_an_embedding(staged):
    table, at = np.asarray(drawn((40, 120))), np.random.default_rng(3).integers(0, 40, (6, 10))
    weights = np.asarray(drawn((6, 10, 120), seed=4))

    def loss(w):
        return (ops.embedding(Tensor(at), w, padding_idx=7) * Tensor(weights)).sum()

    grad = ms.grad(loss)
    got = (ms.jit(grad) if staged else grad)(Tensor(table)).asnumpy()
    wanted = np.zeros_like(table)
    np.add.at(wanted, at, weights)
    wanted[7] = 0
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
