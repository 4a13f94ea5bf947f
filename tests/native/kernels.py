"""How a kernel is compared with the lowering that it replaces."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mycelia.ir.primitive import Primitive
from mycelia.native.libraries import PRODUCT_TYPES

#: For tests of products of bfloat16 that do not go through ``both``.
needs_bfloat16 = pytest.mark.skipif(
    jnp.bfloat16 not in PRODUCT_TYPES, reason="oneDNN does not compute with bfloat16 on this processor"
)

#: Largest difference beside the largest value: products of a few hundred terms, rounded in another order.
CLOSE = {np.dtype(np.float32): 2e-5, np.dtype(jnp.bfloat16): 2e-2}


def both(op: Primitive, arrays, **attrs):
    """What the lowering and the kernel make of arrays, as two lists."""
    wanted = jax.jit(lambda *a: op.lower(*a, **attrs))(*arrays)
    assert op.kernel is not None
    refused = []

    def run(*a):
        made = op.kernel(*a, **attrs)
        if made is NotImplemented:
            refused.append(True)
            return a
        return made

    got = jax.jit(run)(*arrays)
    if refused and arrays[0].dtype not in PRODUCT_TYPES:
        pytest.skip("oneDNN does not compute with this dtype on this processor")
    assert not refused, f"the kernel of {op.name} does not serve these arrays"
    return (list(wanted), list(got)) if op.multi else ([wanted], [got])


def assert_agrees(op: Primitive, arrays, scale: float = 1.0, **attrs) -> None:
    """The kernel gives what the lowering gives: types, NaNs and infinities alike, numbers to rounding."""
    wanted, got = both(op, arrays, **attrs)
    assert len(wanted) == len(got)
    for w, g in zip(wanted, got, strict=True):
        assert (w.shape, w.dtype) == (g.shape, g.dtype)
        w, g, tolerance = np.asarray(w), np.asarray(g), CLOSE[np.dtype(arrays[0].dtype)] * scale
        w, g = w.astype(np.float64), g.astype(np.float64)
        finite = np.isfinite(w)
        np.testing.assert_array_equal(g[~finite], w[~finite])
        if finite.any():
            np.testing.assert_allclose(
                g[finite], w[finite], rtol=0, atol=tolerance * max(np.abs(w[finite]).max(), 1e-6)
            )


def refuses(op: Primitive, arrays, **attrs) -> bool:
    """Whether the kernel leaves arrays like these to the lowering."""
    assert op.kernel is not None
    return jax.eval_shape(lambda *a: None if op.kernel(*a, **attrs) is NotImplemented else a, *arrays) is None
