"""Max pooling of channels-last images with two spatial axes, and its gradient."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.native.libraries import on_cpu, onednn, register
from mycelia.ops.pooling import max_pool_grad_p, max_pool_p, pool_shape

_SERVED = (jnp.float32, jnp.bfloat16)

#: Loops run over the channels of a place, so fewer of them are not worth it.
FEWEST_CHANNELS = 16


def _geometry(attrs: dict[str, Any]) -> np.ndarray[Any, Any]:
    rows = zip(attrs["kernel"], attrs["strides"], attrs["padding"], attrs["dilation"], strict=True)
    return np.array(
        [v for window, stride, (low, _), dilation in rows for v in (window, stride, low, dilation)], np.int64
    )


def _serves(x: Any, attrs: dict[str, Any]) -> bool:
    """Only windows that overlap and images of many channels: XLA is faster with the others."""
    overlap = any(w > s for w, s in zip(attrs["kernel"], attrs["strides"], strict=True))
    known = x.ndim == 4 and attrs["channels_last"] and x.size > 0 and x.dtype in _SERVED
    return on_cpu() and known and overlap and x.shape[-1] >= FEWEST_CHANNELS


def _max_pool(x: Any, **attrs: Any) -> Any:
    if not _serves(x, attrs):
        return NotImplemented
    made = jax.ShapeDtypeStruct(pool_shape("max_pool", x.shape, **attrs), x.dtype)
    return jax.ffi.ffi_call("mycelia_max_pool", made)(x, geometry=_geometry(attrs))


def _max_pool_grad(ct: Any, x: Any, y: Any, **attrs: Any) -> Any:
    if not _serves(x, attrs) or ct.dtype != x.dtype:
        return NotImplemented
    # sums over windows that overlap are formed in float32
    call = jax.ffi.ffi_call("mycelia_max_pool_grad", jax.ShapeDtypeStruct(x.shape, jnp.float32))
    wide = [a.astype(jnp.float32) for a in (ct, x, y)]
    return call(*wide, geometry=_geometry(attrs)).astype(ct.dtype)


def install() -> None:
    """Let the operators use the kernel."""
    assert onednn is not None
    register(onednn, "mycelia_max_pool", "mycelia_max_pool_grad")
    max_pool_p.kernel, max_pool_grad_p.kernel = _max_pool, _max_pool_grad
