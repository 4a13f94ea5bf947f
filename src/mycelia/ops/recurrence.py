"""A layer of a long short-term memory over a whole sequence as one operator, and its gradients as another.

With the gates ``i, f, g, o`` of a step, ``c' = sigmoid(f) * c + sigmoid(i) * tanh(g)`` and
``h' = sigmoid(o) * tanh(c')`` (S. Hochreiter and J. Schmidhuber, "Long short-term memory", 1997; the forget gate of
F. Gers et al., 2000). What the inputs contribute to the gates is one product over all steps, and so is each gradient
of a weight; only the product with the state is formed step by step. The gradients use the activations and cells of
all steps, which the layer gives as well (``keep``). Sums, and the cell from step to step, are in float32 where the
inputs are of half precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.linear import accumulator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply


def wide_type(dtype: dt.DType) -> dt.DType:
    """The dtype in which sums are formed."""
    return dt.float32 if dtype in (dt.float16, dt.bfloat16) else dtype


def check_layer(
    where: str, gates: int, batch_first: bool, x: TensorType, states: Mapping[str, TensorType], w_ih: TensorType,
    w_hh: TensorType, biases: Sequence[TensorType],
) -> None:  # fmt: skip
    """Refuse operands of a recurrent layer that do not fit, with ``gates`` rows of weights for each unit of the state.

    Raises:
        ShapeError: a shape does not fit.
        DTypeError: dtypes differ, or are not floating ones.
    """
    check_dtypes(
        where, (x, *states.values(), w_ih, w_hh, *biases), dt.FLOATS,
        ("x", *states, "weight_ih", "weight_hh", *["bias"] * len(biases)),
    )  # fmt: skip
    if x.rank != 3:
        takes = "(batch, length, features)" if batch_first else "(length, batch, features)"
        raise ShapeError(where, "x", got=f"shape {x.shape}", takes=f"shape {takes}")
    if w_hh.rank != 2 or w_hh.shape[0] != gates * w_hh.shape[1]:
        takes = "(size, size)" if gates == 1 else f"({gates} * size, size)"
        raise ShapeError(where, "weight_hh", got=f"shape {w_hh.shape}", takes=f"shape {takes}")
    rows, size = w_hh.shape
    batch = x.shape[0 if batch_first else 1]
    wanted: list[tuple[str, TensorType, tuple[int, ...]]]
    wanted = [(name, state, (batch, size)) for name, state in states.items()]
    wanted += [("weight_ih", w_ih, (rows, x.shape[2])), *[("bias", b, (rows,)) for b in biases]]
    for name, t, shape in wanted:
        if t.shape != shape:
            raise ShapeError(where, name, got=f"shape {t.shape}", takes=f"shape {shape}")


def _infer(
    x: TensorType, h0: TensorType, c0: TensorType, w_ih: TensorType, w_hh: TensorType, *bias: TensorType,
    batch_first: bool, reverse: bool, keep: bool,
) -> tuple[TensorType, ...]:  # fmt: skip
    check_layer("lstm_layer", 4, batch_first, x, {"h0": h0, "c0": c0}, w_ih, w_hh, bias)
    y = TensorType(x.dtype, (*x.shape[:2], h0.shape[1]))
    outs = (y, h0, c0)
    if not keep:
        return outs
    return (*outs, TensorType(x.dtype, (*x.shape[:2], w_hh.shape[0])), TensorType(wide_type(x.dtype), y.shape))


def _lower(
    x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, *bias: Any, batch_first: bool, reverse: bool, keep: bool
) -> tuple[Any, ...]:
    wide = accumulator(x.dtype) or x.dtype
    steps = jnp.swapaxes(x, 0, 1) if batch_first else x
    from_input = jnp.matmul(steps, w_ih.T, preferred_element_type=wide)
    for b in bias:
        from_input = from_input + b.astype(wide)

    def step(carried: Any, row: Any) -> Any:
        h, c = carried
        i, f, g, o = jnp.split(row + jnp.matmul(h, w_hh.T, preferred_element_type=wide), 4, -1)
        i, f, g, o = jax.nn.sigmoid(i), jax.nn.sigmoid(f), jnp.tanh(g), jax.nn.sigmoid(o)
        c = f * c + i * g
        h = (o * jnp.tanh(c)).astype(x.dtype)
        kept = (jnp.concatenate([i, f, g, o], -1).astype(x.dtype), c) if keep else ()
        return (h, c), (h, *kept)

    (h, c), rows = lax.scan(step, (h0, c0.astype(wide)), from_input, reverse=reverse)
    y, *kept = (jnp.swapaxes(r, 0, 1) if batch_first else r for r in rows)
    return (y, h, c.astype(x.dtype), *kept)


def _vjp(
    cts: tuple[Tensor | None, ...], *inputs: Tensor, out: tuple[Tensor, ...], batch_first: bool, reverse: bool,
    keep: bool,
) -> list[Any]:  # fmt: skip
    attrs = {"batch_first": batch_first, "reverse": reverse}
    known = out if keep else apply(lstm_layer_p, *inputs, keep=True, **attrs)
    cts = (*cts, *[None] * (5 - len(cts)))
    has_bias = len(inputs) == 6
    made: dict[bool, Any] = {}

    def gradient(i: int) -> Tensor:
        # asked in the order of the inputs: the first question says whether the gradient of x is wanted at all
        if not made:
            made[i == 0] = apply(
                lstm_layer_grad_p, *inputs[:5], known[0], *known[3:], *[ct for ct in cts if ct is not None],
                given=tuple([ct is not None for ct in cts]), has_bias=has_bias, wants_x=i == 0, **attrs,
            )  # fmt: skip
        ((with_x, found),) = made.items()
        return found[i if with_x else i - 1]  # type: ignore[no-any-return]

    return [lambda i=i: gradient(i) for i in range(len(inputs))]


def wave(*shape: int, phase: float = 0.0) -> np.ndarray[Any, Any]:
    """Numbers from -1 to 1 for samples."""
    return np.sin(np.arange(float(np.prod(shape))) * 1.3 + phase).reshape(shape)


def _inputs(length: int = 3, batch: int = 2, features: int = 2, size: int = 2) -> tuple[Any, ...]:
    return (
        wave(length, batch, features), wave(batch, size, phase=1.0), wave(batch, size, phase=2.0),
        wave(4 * size, features, phase=3.0), wave(4 * size, size, phase=4.0), wave(4 * size, phase=5.0),
    )  # fmt: skip


def _attrs(**given: bool) -> dict[str, Any]:
    return {"batch_first": False, "reverse": False, "keep": True, **given}


def _cases() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    return [
        (_inputs(), {}), (_inputs(2, 2, 3, 1)[:5], {"batch_first": True, "reverse": True}), (_inputs(0), {}),
    ]  # fmt: skip


def _samples() -> list[Any]:
    x, h, c, w, u, b = _inputs()
    plain = (x, h, c, w, u)
    return [
        Sample(_inputs(), _attrs(keep=False)), *[Sample(given, _attrs(**attrs)) for given, attrs in _cases()],
        Bad((x[0], h, c, w, u), _attrs(), ShapeError, "'x'"),
        Bad((x, h[:1], c, w, u), _attrs(), ShapeError, "'h0'"),
        Bad((x, h, c[:, :1], w, u), _attrs(), ShapeError, "'c0'"),
        Bad((x, h, c, w[:4], u), _attrs(), ShapeError, "'weight_ih'"),
        Bad((x, h, c, w, u[:4]), _attrs(), ShapeError, "'weight_hh'"),
        Bad((*plain, b[:3]), _attrs(), ShapeError, "'bias'"),
    ]  # fmt: skip


#: From x, the first states and weights to the outputs and the last states; with ``keep`` also the activations of the
#: gates and the cells of all steps, the latter in float32 or float64. ``batch_first`` says how x, outputs and what is
#: kept are laid out; ``reverse`` that steps go from the last to the first. Several biases are added up before.
lstm_layer_p = Primitive("lstm_layer", infer=_infer, lower=_lower, vjp=_vjp, multi=True, samples=_samples)


# Gradients ----------------------------------------------------------------------------------------------


def _infer_grad(
    x: TensorType, h0: TensorType, c0: TensorType, w_ih: TensorType, w_hh: TensorType, y: TensorType,
    gates: TensorType, cells: TensorType, *cts: TensorType, given: tuple[bool, ...], batch_first: bool, reverse: bool,
    has_bias: bool, wants_x: bool,
) -> tuple[TensorType, ...]:  # fmt: skip
    outs = _infer(x, h0, c0, w_ih, w_hh, batch_first=batch_first, reverse=reverse, keep=True)
    made = (y, gates, cells, *cts)
    wanted = (outs[0], *outs[3:], *[o for o, there in zip(outs, given, strict=True) if there])
    for t, o, name in zip(made, wanted, ("y", "gates", "cells", *["cotangent"] * len(cts)), strict=True):
        if t != o:
            raise ShapeError("lstm_layer_grad", name, got=f"{t.dtype} of shape {t.shape}", takes=f"{o.dtype}{o.shape}")
    bias = (TensorType(x.dtype, w_hh.shape[:1]),) if has_bias else ()
    return (*((x,) if wants_x else ()), h0, c0, w_ih, w_hh, *bias)


def _lower_grad(
    x: Any, h0: Any, c0: Any, w_ih: Any, w_hh: Any, y: Any, gates: Any, cells: Any, *cts: Any,
    given: tuple[bool, ...], batch_first: bool, reverse: bool, has_bias: bool, wants_x: bool,
) -> tuple[Any, ...]:  # fmt: skip
    wide, dtype = cells.dtype, x.dtype
    waiting = list(cts)
    dy, dh, dc, dgates, dcells = (waiting.pop(0).astype(wide) if there else None for there in given)
    if batch_first:
        x, y, gates, cells = (jnp.swapaxes(a, 0, 1) for a in (x, y, gates, cells))
        dy, dgates, dcells = (None if a is None else jnp.swapaxes(a, 0, 1) for a in (dy, dgates, dcells))

    def before(first: Any, rows: Any) -> Any:
        if not rows.shape[0]:
            return rows
        first = first[None].astype(rows.dtype)
        return jnp.concatenate([rows[1:], first] if reverse else [first, rows[:-1]])

    def step(carried: Any, row: Any) -> Any:
        dh, dc = carried
        gates, cell, cell_before, dy, dgates, dcell = row
        i, f, g, o = jnp.split(gates.astype(wide), 4, -1)
        t = jnp.tanh(cell)
        dh = dh if dy is None else dh + dy
        dc = dc + dh * o * (1 - t * t)
        dc = dc if dcell is None else dc + dcell
        made = jnp.concatenate([dc * g, dc * cell_before, dc * i, dh * t], -1)
        made = made if dgates is None else made + dgates
        slope = jnp.concatenate([i * (1 - i), f * (1 - f), 1 - g * g, o * (1 - o)], -1)
        made = made * slope
        back = jnp.matmul(made.astype(dtype), w_hh, preferred_element_type=wide)
        return (back, dc * f), made

    start = tuple([jnp.zeros(h0.shape, wide) if d is None else d for d in (dh, dc)])
    rows = (gates, cells, before(c0, cells), dy, dgates, dcells)
    (dh0, dc0), made = lax.scan(step, start, rows, reverse=not reverse)
    rounded = made.astype(dtype)
    dw_ih = jnp.einsum("tng,tni->gi", rounded, x, preferred_element_type=wide)
    dw_hh = jnp.einsum("tng,tnh->gh", rounded, before(h0, y), preferred_element_type=wide)
    found = [dh0, dc0, dw_ih, dw_hh, *([made.sum((0, 1))] if has_bias else [])]
    if wants_x:
        dx = jnp.matmul(rounded, w_ih, preferred_element_type=wide)
        found.insert(0, jnp.swapaxes(dx, 0, 1) if batch_first else dx)
    return tuple([d.astype(dtype) for d in found])


def _grad_samples() -> list[Any]:
    made = []
    choices = ((True,) * 5, (False, True, False, False, False), (True,) * 5)
    for (inputs, attrs), given in zip(_cases(), choices, strict=True):
        full = _attrs(**attrs)
        outs = [np.asarray(o) for o in _lower(*[jnp.asarray(a) for a in inputs], **full)]
        cts = [wave(*o.shape, phase=6.0 + k) for k, o in enumerate(outs)]
        del full["keep"]
        there = [ct for ct, wanted in zip(cts, given, strict=True) if wanted]
        chosen = {"given": given, "has_bias": len(inputs) == 6, "wants_x": given[0]}
        made.append(Sample((*inputs[:5], outs[0], *outs[3:], *there), {**full, **chosen}, dtypes=False))
    wrong = (*made[0].inputs[:5], made[0].inputs[5][:1], *made[0].inputs[6:])
    return [*made, Bad(wrong, made[0].attrs, ShapeError, "'y'")]


#: From the first inputs of a layer, its outputs, activations and cells, and the cotangents that are ``given`` (of the
#: five outputs) to the gradients of x (``wants_x``), the first states, the weights and the bias (``has_bias``).
lstm_layer_grad_p: Primitive = Primitive(
    "lstm_layer_grad", infer=_infer_grad, lower=_lower_grad, multi=True, derived_vjp=True, samples=_grad_samples
)  # fmt: skip
