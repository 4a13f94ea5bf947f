"""The attention kernel beside XLA's."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.native.kernels import assert_agrees, refuses

import mycelia as ms
from mycelia import Tensor, native, ops
from mycelia.ops.attention import attention_attrs, attention_grad_p, attention_p, scaled_dot_product_attention

pytestmark = pytest.mark.skipif(not native.onednn_available, reason="the kernels made of oneDNN are not built here")
TYPES = pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["float32", "bfloat16"])
RNG = np.random.default_rng(1)
CHOICE = RNG.random((2, 1, 37, 50)) > 0.5
CHOICE[:, :, 3] = False
TRIANGLE = np.triu(np.full((90, 90), -1e9, np.float32), 1)


def drawn(*shape, dtype=jnp.float32, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def three(dtype=jnp.float32):
    return (
        drawn(2, 4, 37, 16, dtype=dtype),
        drawn(2, 2, 50, 16, dtype=dtype, seed=1),
        drawn(2, 2, 50, 24, dtype=dtype, seed=2),
    )


def agrees(op, arrays, **attrs):
    """The kernel agrees with the lowering; the attributes have a scale of their own."""
    bound = SimpleNamespace(
        name=op.name, multi=op.multi, lower=partial(op.lower, **attrs), kernel=partial(op.kernel, **attrs)
    )
    assert_agrees(bound, arrays)


def assert_all_agrees(arrays, **attrs):
    """The kernel and that of the gradient agree with their lowerings."""
    attrs = attention_attrs(**attrs)
    agrees(attention_p, arrays, **attrs)
    out, log = jax.jit(lambda *a: attention_p.lower(*a, **attrs))(*arrays)
    statistic = (drawn(*log.shape, seed=5),) if out.dtype == jnp.float32 else ()
    given = (drawn(*out.shape, dtype=out.dtype, seed=4), out, log, *statistic, *arrays)
    agrees(attention_grad_p, given, statistic=bool(statistic), **attrs)


@pytest.mark.parametrize(
    "attrs",
    [{}, {"after": 0}, {"after": 0, "from_end": True}, {"before": 3, "after": 2}, {"after": -40}, {"scale": -2.0}],
)
def test_bands_of_fewer_key_heads(attrs):
    assert_all_agrees(three(), **attrs)


@pytest.mark.parametrize(
    ("mask", "attrs"),
    [(RNG.standard_normal((2, 1, 37, 50)), {}), (RNG.standard_normal((4, 37, 50)), {"closed": "nan"}),
     (RNG.standard_normal((2, 4, 1, 50)), {}), (RNG.standard_normal((37, 1)), {}), (CHOICE, {}),
     (CHOICE[:1], {"after": 0}), (CHOICE, {"fill": -1e9}), (CHOICE, {"fill": -3.0, "closed": "nan"}),
     (np.tri(37, 50, 3, bool), {"fill": -1e9}), (np.tri(50, dtype=bool)[:37] ^ True, {})],
)  # fmt: skip
def test_masks(mask, attrs):
    given = jnp.asarray(mask) if mask.dtype == bool else jnp.asarray(mask, jnp.float32)
    assert_all_agrees((*three(), given), **attrs)


@pytest.mark.parametrize("mask", [RNG.standard_normal((4, 37, 50)).astype(jnp.bfloat16), CHOICE])
def test_masks_of_bfloat16(mask):
    assert_all_agrees((*three(jnp.bfloat16), jnp.asarray(mask)), after=5)


@TYPES
@pytest.mark.parametrize("attrs", [{"layout": "tokens"}, {"layout": "packed"}, {"layout": "packed", "after": 0}])
def test_layouts(attrs, dtype):
    if attrs["layout"] == "packed":
        arrays = (drawn(2, 90, 3, 2, 16, dtype=dtype), jnp.asarray(TRIANGLE))
    else:
        arrays = tuple(x.swapaxes(1, 2) for x in three(dtype))
    assert_all_agrees(arrays, **attrs)


def test_sizes():
    assert_all_agrees((drawn(1, 1, 2048, 1), drawn(1, 1, 2, 1, seed=1), drawn(1, 1, 2, 1, seed=2)))
    assert_all_agrees((drawn(1, 3, 70, 8), drawn(1, 3, 2700, 8, seed=1), drawn(1, 3, 2700, 8, seed=2)), after=0)


@pytest.mark.parametrize("mask", [TRIANGLE, -TRIANGLE, TRIANGLE / 1e7, TRIANGLE[::-1].copy(), TRIANGLE * 0 - 1e9])
def test_masks_that_leave_out_blocks(mask):
    """What is left out has no weight at all: large scores bring it back."""
    for size in (1.0, 30.0):
        arrays = (size * drawn(1, 2, 90, 16), size * drawn(1, 2, 90, 16, seed=1), drawn(1, 2, 90, 16, seed=2))
        attrs = attention_attrs(closed="nan")
        want = attention_p.lower(*[a.astype(jnp.float64) for a in arrays], jnp.asarray(mask), **attrs)
        got = attention_p.kernel(*arrays, jnp.asarray(mask), **attrs)
        if np.abs(mask).max() < 1e6 or mask is TRIANGLE:  # else sums of 1e9 and a score are rounded to 64
            np.testing.assert_allclose(got[0], want[0], atol=3e-4)
        assert np.isfinite(np.asarray(got[0])).all()


@pytest.mark.parametrize("closed", ["zeros", "nan"])
@pytest.mark.parametrize("where", ["query", "key", "value"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_finite(number, where, closed):
    arrays = [np.array(x) for x in three()]
    arrays[("query", "key", "value").index(where)][1, 1, 30, 3] = number
    given = tuple(jnp.asarray(x) for x in arrays)
    for attrs in ({}, {"after": 0}):
        agrees(attention_p, given, **attention_attrs(**attrs, closed=closed))
    agrees(attention_p, (*given, jnp.asarray(CHOICE)), **attention_attrs(closed=closed))


def test_closed_rows():
    mask = np.zeros((37, 50), np.float32)
    mask[4] = -np.inf
    for closed, number in (("zeros", 0), ("nan", np.nan)):
        attrs = attention_attrs(closed=closed)
        agrees(attention_p, (*three(), jnp.asarray(mask)), **attrs)
        out, _ = attention_p.kernel(*three(), jnp.asarray(mask), **attrs)
        np.testing.assert_array_equal(out[:, :, 4], number)


def test_what_is_left_to_xla():
    attrs = attention_attrs()
    assert refuses(attention_p, [x.astype(jnp.float64) for x in three()], **attrs)
    assert refuses(attention_p, [x.astype(jnp.float16) for x in three()], **attrs)
    assert refuses(attention_p, [x[:0] for x in three()], **attrs)
    assert refuses(attention_p, (*three(), jnp.asarray(CHOICE), jnp.asarray(CHOICE)), **attrs)


@pytest.mark.parametrize("staged", [False, True])
def test_gradients_of_a_program(staged):
    arrays = [np.asarray(x) for x in (drawn(2, 2, 40, 8), drawn(2, 2, 60, 8, seed=1), drawn(2, 2, 60, 8, seed=2))]
    bias = np.asarray(drawn(2, 40, 60, seed=3))

    def loss(q, k, v, bias):
        return (scaled_dot_product_attention(q, k, v, bias) * ops.sin(q)).sum()

    grad = ms.grad(loss, (0, 1, 2, 3))
    got = (ms.jit(grad) if staged else grad)(*map(Tensor, (*arrays, bias)))
    wanted = grad(*[Tensor(x.astype(np.float64)) for x in (*arrays, bias)])  # float64 has no kernel
    for g, w in zip(got, wanted, strict=True):
        np.testing.assert_allclose(g.asnumpy(), w.asnumpy(), atol=1e-5)
