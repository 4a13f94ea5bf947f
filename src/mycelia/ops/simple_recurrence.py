"""A layer of gated recurrent units, or of an Elman network, over a whole sequence as one operator, and its gradients.

A GRU with the gates ``r, z, n`` of a step: ``p = W_hn h + b_hn``, ``n = tanh(x_n + sigmoid(r) * p)`` and
``h' = n + sigmoid(z) * (h - n)`` (K. Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014,
with the reset gate behind the product). An Elman network (1990): ``h' = tanh(x' + W h)``, or relu. As for an LSTM
(:mod:`mycelia.ops.recurrence`) what the inputs contribute is one product over all steps, and so is each gradient of a
weight. The gradients of a GRU use the activations and ``p`` of all steps, which the layer gives as well (``keep``);
those of an Elman network need the outputs alone. Sums are in float32 where the inputs are of half precision.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core.errors import ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample
from mycelia.ops.linear import accumulator
from mycelia.ops.recurrence import check_layer, wave, wide_type
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

#: Products for each unit of the state.
_GATES = {"gru": 3, "tanh": 1, "relu": 1}


def _infer(
    x: TensorType, h0: TensorType, w_ih: TensorType, w_hh: TensorType, *bias: TensorType,
    kind: str, batch_first: bool, reverse: bool, keep: bool,
) -> tuple[TensorType, ...]:  # fmt: skip
    check_layer("recurrent_layer", _GATES[kind], batch_first, x, {"h0": h0}, w_ih, w_hh, bias)
    y = TensorType(x.dtype, (*x.shape[:2], h0.shape[1]))
    if not keep or kind != "gru":
        return y, h0
    return y, h0, TensorType(x.dtype, (*x.shape[:2], w_hh.shape[0])), TensorType(wide_type(x.dtype), y.shape)


def _lower(
    x: Any, h0: Any, w_ih: Any, w_hh: Any, *bias: Any, kind: str, batch_first: bool, reverse: bool, keep: bool
) -> tuple[Any, ...]:
    wide = accumulator(x.dtype) or x.dtype
    steps = jnp.swapaxes(x, 0, 1) if batch_first else x
    from_input = jnp.matmul(steps, w_ih.T, preferred_element_type=wide)
    if bias:
        from_input = from_input + bias[0].astype(wide)

    def gru(h: Any, row: Any) -> Any:
        from_state = jnp.matmul(h, w_hh.T, preferred_element_type=wide)
        if bias:
            from_state = from_state + bias[1].astype(wide)
        r, z, n = jnp.split(row, 3, -1)
        hr, hz, p = jnp.split(from_state, 3, -1)
        r, z = jax.nn.sigmoid(r + hr), jax.nn.sigmoid(z + hz)
        n = jnp.tanh(n + r * p)
        h = (n + z * (h.astype(wide) - n)).astype(x.dtype)
        return h, (h, *((jnp.concatenate([r, z, n], -1).astype(x.dtype), p) if keep else ()))

    def plain(h: Any, row: Any) -> Any:
        made = row + jnp.matmul(h, w_hh.T, preferred_element_type=wide)
        h = (jnp.tanh(made) if kind == "tanh" else jnp.maximum(made, 0)).astype(x.dtype)
        return h, (h,)

    h, rows = lax.scan(gru if kind == "gru" else plain, h0, from_input, reverse=reverse)
    y, *kept = (jnp.swapaxes(r, 0, 1) if batch_first else r for r in rows)
    return (y, h, *kept)


def _vjp(
    cts: tuple[Tensor | None, ...], *inputs: Tensor, out: tuple[Tensor, ...], kind: str, batch_first: bool,
    reverse: bool, keep: bool,
) -> list[Any]:  # fmt: skip
    attrs = {"kind": kind, "batch_first": batch_first, "reverse": reverse}
    known = out if keep or kind != "gru" else apply(recurrent_layer_p, *inputs, keep=True, **attrs)
    cts = (*cts, *[None] * (len(known) - len(cts)))
    made: dict[bool, Any] = {}

    def gradient(i: int) -> Tensor:
        # asked in the order of the inputs: the first question says whether the gradient of x is wanted at all
        if not made:
            made[i == 0] = apply(
                recurrent_layer_grad_p, *inputs[:4], known[0], *known[2:], *[ct for ct in cts if ct is not None],
                given=tuple([ct is not None for ct in cts]), has_bias=len(inputs) > 4, wants_x=i == 0, **attrs,
            )  # fmt: skip
        ((with_x, found),) = made.items()
        return found[i if with_x else i - 1]  # type: ignore[no-any-return]

    return [lambda i=i: gradient(i) for i in range(len(inputs))]


def _inputs(kind: str, length: int = 3, batch: int = 2, features: int = 2, size: int = 2) -> tuple[Any, ...]:
    rows = _GATES[kind] * size
    biases = (wave(rows, phase=5.0), wave(rows, phase=6.0))[: 2 if kind == "gru" else 1]
    return (
        wave(length, batch, features), wave(batch, size, phase=1.0), wave(rows, features, phase=3.0),
        wave(rows, size, phase=4.0), *biases,
    )  # fmt: skip


def _attrs(kind: str, **given: bool) -> dict[str, Any]:
    return {"kind": kind, "batch_first": False, "reverse": False, "keep": kind == "gru", **given}


def _cases() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    made: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    for kind in _GATES:
        made += [
            (_inputs(kind), _attrs(kind)), (_inputs(kind, 0), _attrs(kind)),
            (_inputs(kind, 2, 2, 3, 1)[:4], _attrs(kind, batch_first=True, reverse=True)),
        ]  # fmt: skip
    return made


def _samples() -> list[Any]:
    x, h, w, u, b, c = _inputs("gru")
    attrs = _attrs("gru")
    return [
        Sample(_inputs("gru"), _attrs("gru", keep=False)), *[Sample(given, attrs) for given, attrs in _cases()],
        Bad((x[0], h, w, u), attrs, ShapeError, "'x'"), Bad((x, h[:1], w, u), attrs, ShapeError, "'h0'"),
        Bad((x, h, w[:4], u), attrs, ShapeError, "'weight_ih'"),
        Bad((x, h, w, u[:4]), attrs, ShapeError, "'weight_hh'"),
        Bad((x, h, w, u, b, c[:3]), attrs, ShapeError, "'bias'"),
    ]  # fmt: skip


#: From x, the first states and weights to the outputs and the last states; a GRU with ``keep`` also gives the
#: activations of its gates and what the state contributed to the candidate, the latter in float32 or float64. ``kind``
#: is ``"gru"`` (two biases or none, as there are two weights), ``"tanh"`` or ``"relu"`` (one or none). ``batch_first``
#: and ``reverse`` as for an LSTM.
recurrent_layer_p = Primitive("recurrent_layer", infer=_infer, lower=_lower, vjp=_vjp, multi=True, samples=_samples)


# Gradients ----------------------------------------------------------------------------------------------


def _infer_grad(
    x: TensorType, h0: TensorType, w_ih: TensorType, w_hh: TensorType, y: TensorType, *rest: TensorType,
    kind: str, given: tuple[bool, ...], batch_first: bool, reverse: bool, has_bias: bool, wants_x: bool,
) -> tuple[TensorType, ...]:  # fmt: skip
    outs = _infer(x, h0, w_ih, w_hh, kind=kind, batch_first=batch_first, reverse=reverse, keep=True)
    wanted = (outs[0], *outs[2:], *[o for o, there in zip(outs, given, strict=True) if there])
    names = ("y", "gates", "part")[: len(outs) - 1]
    for t, o, name in zip((y, *rest), wanted, (*names, *["cotangent"] * sum(given)), strict=True):
        if t != o:
            raise ShapeError(
                "recurrent_layer_grad", name, got=f"{t.dtype} of shape {t.shape}", takes=f"{o.dtype}{o.shape}"
            )
    bias = (TensorType(x.dtype, w_hh.shape[:1]),) * ((2 if kind == "gru" else 1) if has_bias else 0)
    return (*((x,) if wants_x else ()), h0, w_ih, w_hh, *bias)


def _lower_grad(
    x: Any, h0: Any, w_ih: Any, w_hh: Any, y: Any, *rest: Any, kind: str, given: tuple[bool, ...], batch_first: bool,
    reverse: bool, has_bias: bool, wants_x: bool,
) -> tuple[Any, ...]:  # fmt: skip
    wide, dtype = accumulator(x.dtype) or x.dtype, x.dtype
    kept, waiting = list(rest[: len(given) - 2]), list(rest[len(given) - 2 :])
    dy, dh, *dkept = (waiting.pop(0).astype(wide) if there else None for there in given)
    if batch_first:
        x, y, *kept = (jnp.swapaxes(a, 0, 1) for a in (x, y, *kept))
        dy, *dkept = (None if a is None else jnp.swapaxes(a, 0, 1) for a in (dy, *dkept))
    before = y
    if y.shape[0]:
        before = jnp.concatenate([y[1:], h0[None]] if reverse else [h0[None], y[:-1]])

    def gru(dh: Any, row: Any) -> Any:
        before, gates, p, dy, dgates, dp = row
        r, z, n = jnp.split(gates.astype(wide), 3, -1)
        dr, dz, dn = (0, 0, 0) if dgates is None else jnp.split(dgates, 3, -1)
        dh = dh if dy is None else dh + dy
        dn = (dn + dh * (1 - z)) * (1 - n * n)
        dz = (dz + dh * (before.astype(wide) - n)) * z * (1 - z)
        dr = (dr + dn * p) * r * (1 - r)
        dp = dn * r if dp is None else dn * r + dp
        of_state = jnp.concatenate([dr, dz, dp], -1)
        back = jnp.matmul(of_state.astype(dtype), w_hh, preferred_element_type=wide)
        return dh * z + back, (jnp.concatenate([dr, dz, dn], -1), of_state)

    def plain(dh: Any, row: Any) -> Any:
        y, dy = row
        dh = dh if dy is None else dh + dy
        y = y.astype(wide)
        made = dh * (1 - y * y) if kind == "tanh" else jnp.where(y > 0, dh, 0)
        return jnp.matmul(made.astype(dtype), w_hh, preferred_element_type=wide), (made, made)

    start = jnp.zeros(h0.shape, wide) if dh is None else dh
    step, rows = (gru, (before, *kept, dy, *dkept)) if kind == "gru" else (plain, (y, dy))
    dh0, (of_input, of_state) = lax.scan(step, start, rows, reverse=not reverse)
    rounded = of_input.astype(dtype)
    dw_ih = jnp.einsum("tng,tni->gi", rounded, x, preferred_element_type=wide)
    dw_hh = jnp.einsum("tng,tnh->gh", of_state.astype(dtype), before, preferred_element_type=wide)
    found = [dh0, dw_ih, dw_hh]
    if has_bias:
        found += [made.sum((0, 1)) for made in (of_input, of_state)[: 2 if kind == "gru" else 1]]
    if wants_x:
        dx = jnp.matmul(rounded, w_ih, preferred_element_type=wide)
        found.insert(0, jnp.swapaxes(dx, 0, 1) if batch_first else dx)
    return tuple([d.astype(dtype) for d in found])


def _grad_samples() -> list[Any]:
    made = []
    for number, (inputs, attrs) in enumerate(_cases()):
        outs = [np.asarray(o) for o in _lower(*[jnp.asarray(a) for a in inputs], **attrs)]
        cts = [wave(*o.shape, phase=6.0 + k) for k, o in enumerate(outs)]
        given = (True,) * len(outs) if number % 3 != 2 else (False, True, *[False] * (len(outs) - 2))
        rest = {name: value for name, value in attrs.items() if name != "keep"}
        there = [ct for ct, wanted in zip(cts, given, strict=True) if wanted]
        chosen = {"given": given, "has_bias": len(inputs) > 4, "wants_x": given[0]}
        made.append(Sample((*inputs[:4], outs[0], *outs[2:], *there), {**rest, **chosen}, dtypes=False))
    wrong = (*made[0].inputs[:4], made[0].inputs[4][:1], *made[0].inputs[5:])
    return [*made, Bad(wrong, made[0].attrs, ShapeError, "'y'")]


#: From the first inputs of a layer, its outputs and what it kept, and the cotangents that are ``given`` (of all
#: outputs) to the gradients of x (``wants_x``), the first states, the weights and the biases (``has_bias``).
recurrent_layer_grad_p: Primitive = Primitive(
    "recurrent_layer_grad", infer=_infer_grad, lower=_lower_grad, multi=True, derived_vjp=True, samples=_grad_samples
)  # fmt: skip
