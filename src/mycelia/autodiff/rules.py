"""Applying one operator's vjp: what the tape and the graph transformation share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from mycelia.core.errors import UnsupportedError
from mycelia.ir.primitive import PRIMITIVES, Primitive
from mycelia.ir.rewriter import known_array
from mycelia.ir.types import TensorType
from mycelia.ops.operands import cast
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, scalar
from mycelia.tensor.tensor import wrap


def zeros_like(x: Tensor) -> Tensor:
    """Zeros of a tensor's type."""
    return zeros(TensorType(x.dtype, x.shape))


def zeros(type_: TensorType) -> Tensor:
    """Zeros of a type, broadcast from one element so that none is stored in a graph."""
    from mycelia.ops.shape import broadcast_to

    return broadcast_to(scalar(0, type_.dtype), type_.shape)


def ones_like(x: Tensor) -> Tensor:
    """Ones of a tensor's type."""
    from mycelia.ops.shape import broadcast_to

    return broadcast_to(scalar(1, x.dtype), x.shape)


def accumulated(total: Tensor, ct: Tensor) -> Tensor:
    """``total + ct``, in a graph.

    The cotangent of a part of a tensor is zero but there. Such a one is added in its place, so that a loop
    over ``x[i]`` does not go through all of ``x`` in each round.
    """
    from mycelia.ops.scatter import index_put_p
    from mycelia.ops.slicing import dynamic_slice_p, dynamic_update_p

    node = ct._value.node
    if node is not None and node.op.name == "add" and all(v.type == ct._value.type for v in node.inputs):
        first, second = node.inputs
        if _is_part(first) or _is_part(second):
            return accumulated(accumulated(total, wrap(first)), wrap(second))
    if not _is_part(ct._value):
        return total + ct
    _, update, *places = [wrap(v) for v in node.inputs]
    if node.op is index_put_p:
        return apply(index_put_p, total, update, *places, **node.attrs)  # type: ignore[no-any-return]
    before = apply(dynamic_slice_p, total, *places, **node.attrs)
    return apply(dynamic_update_p, total, before + update, *places, **node.attrs)  # type: ignore[no-any-return]


def _is_part(value: Any) -> bool:
    """Whether a value is zero but for a part of it that was put there."""
    node = value.node
    if node is None:
        return False
    if node.op.name == "dynamic_update" or (node.op.name == "index_put" and node.attrs["mode"] == "add"):
        filled = node.inputs[0].node
        if filled is not None and filled.op.name == "broadcast_to":
            array = known_array(filled.inputs[0])
            return array is not None and not array.any()
    return False


def pull_back(
    op: Primitive,
    attrs: dict[str, Any],
    inputs: Sequence[Tensor],
    outs: Sequence[Tensor],
    cts: Sequence[Tensor | None],
    needs: Sequence[bool],
) -> list[Tensor | None]:
    """One cotangent for each input that ``needs`` one, by the operator's rule.

    Raises:
        UnsupportedError: the operator has no rule.
    """
    if op.derived_vjp:
        return _derived(op, attrs, inputs, outs, cts, needs)
    if op.vjp is None:
        raise UnsupportedError(op.name, message="the operator has no gradient", hint="stop_gradient() its input")
    if op.multi:
        found = op.vjp(tuple(cts), *inputs, out=tuple(outs), **attrs)
    else:
        found = op.vjp(cts[0], *inputs, out=outs[0], **attrs)
    if len(found) != len(inputs):
        raise AssertionError(f"vjp of {op.name} gave {len(found)} cotangents for {len(inputs)} inputs")
    result: list[Tensor | None] = []
    for ct, x, needed in zip(found, inputs, needs, strict=True):
        if ct is not None and needed:
            made = ct if isinstance(ct, Tensor) else ct()
            if made is not None and made.shape != x.shape:
                raise AssertionError(f"vjp of {op.name} gave shape {made.shape} for an input of shape {x.shape}")
            result.append(None if made is None else cast(made, x.dtype))
        else:
            result.append(None)
    return result


def _derived(
    op: Primitive,
    attrs: dict[str, Any],
    inputs: Sequence[Tensor],
    outs: Sequence[Tensor],
    cts: Sequence[Tensor | None],
    needs: Sequence[bool],
) -> list[Tensor | None]:
    filled = [zeros_like(o) if ct is None else ct for ct, o in zip(cts, outs, strict=True)]
    inexact = [o.dtype.is_inexact for o in outs]
    wanted = tuple([i for i, x in enumerate(inputs) if x.dtype.is_inexact])
    given = [ct for ct, ok in zip(filled, inexact, strict=True) if ok]
    found = apply(_vjp_primitive(op), *given, *inputs, n_ct=len(given), wanted=wanted, attrs=tuple(attrs.items()))
    result: list[Tensor | None] = [None] * len(inputs)
    for i, ct in zip(wanted, found, strict=True):
        if needs[i]:
            result[i] = ct
    return result


def _vjp_primitive(op: Primitive) -> Primitive:
    """The primitive that ``jax.vjp`` of the lowering makes, itself differentiable the same way."""
    name = f"{op.name}_vjp"
    if name in PRIMITIVES:
        return PRIMITIVES[name]

    def infer(*types: TensorType, n_ct: int, wanted: tuple[int, ...], attrs: Any) -> tuple[TensorType, ...]:
        inputs = types[n_ct:]
        return tuple(inputs[i] for i in wanted)

    def lower(*arrays: Any, n_ct: int, wanted: tuple[int, ...], attrs: Any) -> tuple[Any, ...]:
        cts, inputs = list(arrays[:n_ct]), arrays[n_ct:]
        out, pull = jax.vjp(lambda *a: op.lower(*a, **dict(attrs)), *inputs)
        outs = out if op.multi else (out,)
        full = tuple(
            cts.pop(0).conj()
            if np.issubdtype(o.dtype, np.inexact) or o.dtype.kind == "V"
            else np.zeros(o.shape, jax.dtypes.float0)
            for o in outs
        )  # fmt: skip
        found = pull(full if op.multi else full[0])
        # jax.vjp gives the transpose; ours is the conjugate transpose
        return tuple(found[i].conj() if np.iscomplexobj(found[i]) else found[i] for i in wanted)

    return Primitive(name, infer=infer, lower=lower, multi=True, derived_vjp=True)
