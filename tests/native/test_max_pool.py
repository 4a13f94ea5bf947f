"""Max pooling beside its lowering."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from tests.native.kernels import assert_agrees, refuses

from mycelia import native
from mycelia.ops.pooling import max_pool_grad_p, max_pool_p

pytestmark = pytest.mark.skipif(not native.onednn_available, reason="the kernels made of oneDNN are not built here")

CASES = {
    "2x2": ((3, 8, 6, 16), (2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    "overlap": ((2, 9, 11, 64), (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)),
    "uneven": ((1, 7, 10, 70), (2, 3), (1, 2), ((0, 1), (1, 0)), (1, 1)),
    "dilation": ((2, 9, 9, 33), (3, 2), (2, 1), ((1, 1), (0, 0)), (2, 3)),
    "one place": ((1, 4, 4, 17), (4, 4), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    "gaps": ((2, 10, 10, 130), (3, 2), (2, 4), ((0, 0), (0, 0)), (1, 1)),
}


def attributes(case):
    shape, kernel, strides, padding, dilation = CASES[case]
    return shape, {
        "kernel": kernel, "strides": strides, "padding": padding, "dilation": dilation, "channels_last": True
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_agrees(case, dtype):
    shape, attrs = attributes(case)
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.integers(-4, 5, shape), dtype)  # many ties
    y = max_pool_p.lower(x, **attrs)
    assert_agrees(max_pool_p, (x,), **attrs)
    assert_agrees(max_pool_grad_p, (jnp.asarray(rng.standard_normal(y.shape), dtype), x, y), **attrs)


def test_nan_and_infinity():
    shape, attrs = attributes("overlap")
    x = jnp.asarray(np.random.default_rng(0).standard_normal(shape), jnp.float32)
    x = x.at[0, 4, 4, 7].set(jnp.nan).at[0, 5, 5, 7].set(jnp.inf).at[1, 0, 0].set(-jnp.inf).at[1, 0, 1].set(-jnp.inf)
    y = max_pool_p.lower(x, **attrs)
    assert_agrees(max_pool_p, (x,), **attrs)
    assert_agrees(max_pool_grad_p, (jnp.ones_like(y), x, y), **attrs)


def test_the_rest_is_left_to_xla():
    shape, attrs = attributes("2x2")
    assert refuses(max_pool_p, (jnp.zeros(shape, jnp.int32),), **attrs)
    assert refuses(max_pool_p, (jnp.zeros(shape),), **{**attrs, "channels_last": False})
    assert refuses(max_pool_p, (jnp.zeros((0, *shape[1:])),), **attrs)
    assert refuses(max_pool_p, (jnp.zeros((*shape[:-1], 5)),), **attrs)
    assert refuses(max_pool_p, (jnp.zeros(shape),), **{**attrs, "strides": (2, 2)})
