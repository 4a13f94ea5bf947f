"""Attention and its gradient, block by block, by oneDNN's products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.compiler.passes import attention as written_out
from mycelia.native.libraries import on_cpu, onednn, register
from mycelia.ops.attention import attention_grad_p, attention_p, operands, split_gradient

_SERVED = (jnp.float32, jnp.bfloat16)
_LAYOUTS = {"heads": 0, "tokens": 1, "packed": 2}
#: Fewer scores than this are left to XLA: calling the kernel costs more than it saves.
_LEAST = 4096


class _Call:
    """What a call of the kernel is made of."""

    def __init__(
        self, given: Sequence[Any], scale: float, before: int, after: int, from_end: bool, fill: float,
        layout: str, closed: str, statistic: bool = False,
    ) -> None:  # fmt: skip
        self.whole, bias = operands(given, layout)
        shapes = [x.shape for x in self.whole]
        if layout == "packed":
            shapes = [(s[0], s[1], s[3], s[4]) for s in shapes] * 3
        if layout != "heads":
            shapes = [(s[0], s[2], s[1], s[3]) for s in shapes]
        (batch, heads, rows, features), (_, groups, columns, _), (*_, values) = shapes
        scores = batch, heads, rows, columns
        self.shape = scores[:3]
        self.result = jax.ShapeDtypeStruct(
            (batch, heads, rows, values) if layout == "heads" else (batch, rows, heads, values), self.whole[0].dtype
        )
        self.served = (
            on_cpu() and len(bias) < 2 and rows * columns * batch * heads >= _LEAST and features > 0 and values > 0
            and self.whole[0].dtype in _SERVED and all(x.dtype == self.whole[0].dtype for x in self.whole)
            and all(b.dtype in (*_SERVED, np.dtype(bool)) for b in bias)
        )  # fmt: skip
        self.mask: list[Any] = []
        strides = [0, 0, 0]
        selects = False
        if bias and self.served:
            mask = bias[0].reshape((1,) * (4 - bias[0].ndim) + bias[0].shape)
            selects = mask.dtype == bool
            mask = jnp.where(mask, np.float32(0), np.float32(-np.inf)) if selects else mask.astype(jnp.float32)
            mask = jnp.broadcast_to(mask, (*mask.shape[:3], columns))
            self.mask = [mask]
            strides = [0 if mask.shape[i] == 1 else int(np.prod(mask.shape[i + 1 :])) for i in range(3)]
        far = rows + columns  # no limit of the band
        self.attrs = {
            "scale": np.float32(scale), "fill": np.float32(fill),
            "geometry": np.array(
                [
                    batch, heads, groups, rows, columns, features, values, _LAYOUTS[layout],
                    *(min(max(n, -far), far) for n in (before, after)), from_end, closed == "zeros", selects, *strides,
                    bool(self.mask), statistic,
                ],
                np.int64,
            ),
        }  # fmt: skip


def _attention(*given: Any, **attrs: Any) -> Any:
    call = _Call(given, **attrs)
    if not call.served:
        return NotImplemented
    results = (call.result, jax.ShapeDtypeStruct(call.shape, jnp.float32))
    made = jax.ffi.ffi_call("mycelia_attention", results)(*call.whole, *call.mask, backward=np.int64(0), **call.attrs)
    return tuple(made)


def _attention_grad(*given: Any, statistic: bool, **attrs: Any) -> Any:
    ct, out, log, d_log, rest = split_gradient(given, statistic)
    call = _Call(rest, **attrs, statistic=statistic)
    if not call.served or ct.dtype != call.result.dtype or out.dtype != call.result.dtype:
        return NotImplemented
    results = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in call.whole]
    logs = [x.astype(jnp.float32) for x in (log, d_log) if x is not None]
    arrays = ct, out, *logs, *call.whole, *call.mask
    return tuple(jax.ffi.ffi_call("mycelia_attention", results)(*arrays, backward=np.int64(1), **call.attrs))


def install() -> None:
    """Let the operators use the kernel, and programs that are written without them."""
    assert onednn is not None
    register(onednn, "mycelia_attention")
    attention_p.kernel, attention_grad_p.kernel = _attention, _attention_grad
    written_out.enable(on_cpu)
