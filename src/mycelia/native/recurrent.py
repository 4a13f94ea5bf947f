"""Layers of long short-term memories over sequences, forward and backward."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from mycelia.compiler.passes.library import Fusion, Uses, add_rule
from mycelia.ir.graph import Node
from mycelia.native.libraries import PRODUCT_TYPES, on_cpu, onednn, register
from mycelia.ops.recurrence import lstm_layer_grad_p, lstm_layer_p

_SERVED = PRODUCT_TYPES


def _served(*arrays: Any) -> bool:
    return on_cpu() and arrays[0].dtype in _SERVED and all(a.size for a in arrays)


def _flags(*values: Any) -> np.ndarray[Any, Any]:
    return np.array([int(v) for v in values], np.int64)


def _layer(
    x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, *bias: Any, batch_first: bool, reverse: bool, keep: bool
) -> Any:
    if not _served(x, h0, w_ih):
        return NotImplemented
    size = h0.shape[1]
    results = [(x.dtype, (*x.shape[:2], size)), (x.dtype, h0.shape), (x.dtype, h0.shape)]
    if keep:
        results += [(x.dtype, (*x.shape[:2], 4 * size)), (np.float32, (*x.shape[:2], size))]
    call = jax.ffi.ffi_call("mycelia_lstm_layer", [jax.ShapeDtypeStruct(shape, dtype) for dtype, shape in results])
    given = [b.astype(np.float32) for b in bias]
    return tuple(call(x, h0, c0, w_ih, w_hh, *given, flags=_flags(batch_first, reverse)))


def _layer_grad(
    x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, *rest: Any, given: tuple[bool, ...], batch_first: bool,
    reverse: bool, has_bias: bool, wants_x: bool,
) -> Any:  # fmt: skip
    if not _served(x, h0, w_ih) or any(given[3:]):
        return NotImplemented
    results = [*([x.shape] if wants_x else []), h0.shape, c0.shape, w_ih.shape, w_hh.shape]
    if has_bias:
        results.append(w_hh.shape[:1])
    call = jax.ffi.ffi_call("mycelia_lstm_layer_grad", [jax.ShapeDtypeStruct(shape, x.dtype) for shape in results])
    flags = _flags(batch_first, reverse, *given[:3], wants_x, has_bias)
    return tuple(call(x, h0, c0, w_ih, w_hh, *rest, flags=flags))


def _only_outputs(node: Node, uses: Uses) -> Fusion | None:
    """A layer whose activations nobody asks for (the pass sees to that) does not write them."""
    if not node.attrs["keep"]:
        return None
    return Fusion(lstm_layer_p, node.inputs, {**node.attrs, "keep": False}, node.outputs[:3], (node,))


def install() -> None:
    """Let the operators use the kernels."""
    assert onednn is not None
    register(onednn, "mycelia_lstm_layer", "mycelia_lstm_layer_grad")
    lstm_layer_p.kernel, lstm_layer_grad_p.kernel = _layer, _layer_grad
    add_rule("lstm_layer", _only_outputs)
