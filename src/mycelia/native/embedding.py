"""Rows of a table at places that are data, and their gradient, which adds rows up at places."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from mycelia.native.libraries import on_cpu, onednn, register
from mycelia.ops.indexing import add_at_p, gather_p
from mycelia.ops.lookup import embedding_p

_SERVED = (jnp.float32, jnp.bfloat16)
#: Fewer elements than this are left to XLA: calling the kernel costs more than it saves.
_LEAST = 4096


def _take(table: Any, places: Any, *, axis: int, batch_dims: int) -> Any:
    shape = (*places.shape, *table.shape[1:])
    out = jax.ShapeDtypeStruct(shape, table.dtype)
    if axis or batch_dims or not on_cpu() or table.dtype not in _SERVED or not table.size or out.size < _LEAST:
        return NotImplemented
    if table.ndim == 1:
        return NotImplemented
    return jax.ffi.ffi_call("mycelia_take", out)(table, places.astype(jnp.int64))


def _embedding(places: Any, table: Any, *, padding_idx: int | None, by_frequency: bool) -> Any:
    return _take(table, places, axis=0, batch_dims=0)


def _add_at(updates: Any, places: Any, *, length: int, axis: int, batch_dims: int) -> Any:
    if axis or batch_dims or not on_cpu() or updates.dtype not in _SERVED or updates.ndim == places.ndim:
        return NotImplemented
    out = jax.ShapeDtypeStruct((length, *updates.shape[places.ndim :]), jnp.float32)
    if updates.size < _LEAST or not out.size:
        return NotImplemented
    return jax.ffi.ffi_call("mycelia_add_at", out)(updates, places.astype(jnp.int64)).astype(updates.dtype)


def install() -> None:
    """Let the operators use the kernels."""
    assert onednn is not None
    register(onednn, "mycelia_take", "mycelia_add_at")
    gather_p.kernel, embedding_p.kernel, add_at_p.kernel = _take, _embedding, _add_at
