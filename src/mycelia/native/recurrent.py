"""Layers of LSTMs, GRUs and Elman networks over sequences, forward and backward."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.compiler.passes.library import Fusion, Uses, add_rule
from mycelia.ir.graph import Node
from mycelia.native.libraries import PRODUCT_TYPES, on_cpu, onednn, register
from mycelia.ops.recurrence import lstm_layer_grad_p, lstm_layer_p
from mycelia.ops.simple_recurrence import recurrent_layer_grad_p, recurrent_layer_p

_SERVED = PRODUCT_TYPES

#: The kinds of layers as the kernel numbers them.
_KINDS = {"gru": 0, "tanh": 1, "relu": 2}


def _served(*arrays: Any) -> bool:
    return on_cpu() and arrays[0].dtype in _SERVED and all(a.size for a in arrays)


def _called(name: str, results: list[Any], arrays: tuple[Any, ...], *flags: Any) -> Any:
    call = jax.ffi.ffi_call(name, [jax.ShapeDtypeStruct(shape, dtype) for dtype, shape in results])
    return tuple(call(*arrays, flags=np.array([int(f) for f in flags], np.int64)))


def _lstm(
    x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, *bias: Any, batch_first: bool, reverse: bool, keep: bool
) -> Any:
    if not _served(x, h0, w_ih):
        return NotImplemented
    size = h0.shape[1]
    results = [(x.dtype, (*x.shape[:2], size)), (x.dtype, h0.shape), (x.dtype, h0.shape)]
    if keep:
        results += [(x.dtype, (*x.shape[:2], 4 * size)), (np.float32, (*x.shape[:2], size))]
    given = [b.astype(np.float32) for b in bias]
    return _called("mycelia_lstm_layer", results, (x, h0, c0, w_ih, w_hh, *given), batch_first, reverse)


def _lstm_grad(
    x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, *rest: Any, given: tuple[bool, ...], batch_first: bool,
    reverse: bool, has_bias: bool, wants_x: bool,
) -> Any:  # fmt: skip
    if not _served(x, h0, w_ih) or any(given[3:]):
        return NotImplemented
    shapes = [*([x.shape] if wants_x else []), h0.shape, c0.shape, w_ih.shape, w_hh.shape]
    if has_bias:
        shapes.append(w_hh.shape[:1])
    return _called(
        "mycelia_lstm_layer_grad", [(x.dtype, s) for s in shapes], (x, h0, c0, w_ih, w_hh, *rest), batch_first, reverse,
        *given[:3], wants_x, has_bias,
    )  # fmt: skip


def _layer(
    x: Any, h0: Any, w_ih: Any, w_hh: Any, *bias: Any, kind: str, batch_first: bool, reverse: bool, keep: bool
) -> Any:
    if not _served(x, h0, w_ih):
        return NotImplemented
    size, gru = h0.shape[1], kind == "gru"
    results = [(x.dtype, (*x.shape[:2], size)), (x.dtype, h0.shape)]
    if keep and gru:
        results += [(x.dtype, (*x.shape[:2], 3 * size)), (np.float32, (*x.shape[:2], size))]
    given = [b.astype(np.float32) for b in bias]
    if gru and given:  # what is added to the same sums is added up before; the candidate's parts are apart
        added = jnp.concatenate([given[1][: 2 * size], jnp.zeros(size, np.float32)])
        given = [given[0] + added, given[1][2 * size :]]
    return _called(
        "mycelia_recurrent_layer", results, (x, h0, w_ih, w_hh, *given), _KINDS[kind], batch_first, reverse
    )  # fmt: skip


def _layer_grad(
    x: Any, h0: Any, w_ih: Any, w_hh: Any, *rest: Any, kind: str, given: tuple[bool, ...], batch_first: bool,
    reverse: bool, has_bias: bool, wants_x: bool,
) -> Any:  # fmt: skip
    if not _served(x, h0, w_ih) or any(given[2:]):
        return NotImplemented
    shapes = [*([x.shape] if wants_x else []), h0.shape, w_ih.shape, w_hh.shape]
    if has_bias:
        shapes += [w_hh.shape[:1]] * (2 if kind == "gru" else 1)
    return _called(
        "mycelia_recurrent_layer_grad", [(x.dtype, s) for s in shapes], (x, h0, w_ih, w_hh, *rest), _KINDS[kind],
        batch_first, reverse, *given[:2], wants_x, has_bias,
    )  # fmt: skip


def _only_outputs(node: Node, uses: Uses) -> Fusion | None:
    """A layer whose activations nobody asks for (the pass sees to that) does not write them."""
    if not node.attrs["keep"]:
        return None
    outputs = node.outputs[: 3 if node.op is lstm_layer_p else 2]
    return Fusion(node.op, node.inputs, {**node.attrs, "keep": False}, outputs, (node,))


def install() -> None:
    """Let the operators use the kernels."""
    assert onednn is not None
    register(
        onednn, "mycelia_lstm_layer", "mycelia_lstm_layer_grad", "mycelia_recurrent_layer",
        "mycelia_recurrent_layer_grad",
    )  # fmt: skip
    lstm_layer_p.kernel, lstm_layer_grad_p.kernel = _lstm, _lstm_grad
    recurrent_layer_p.kernel, recurrent_layer_grad_p.kernel = _layer, _layer_grad
    add_rule("lstm_layer", _only_outputs)
    add_rule("recurrent_layer", _only_outputs)
