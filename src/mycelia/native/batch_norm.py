"""Batch normalization of channels-last images in training, with the sum and the relu that follow it.

In a graph ``relu(batch_norm(x) + residual)`` becomes one operator, and so does its gradient: what relu and the sum of
two cotangents do to a cotangent is done where the normalization's gradient reads it.
"""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.compiler.passes.library import Fusion, Uses, add_rule
from mycelia.ir.graph import Node, Value
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.native.libraries import on_cpu, onednn, register
from mycelia.ops.batch_normalization import batch_norm_grad_p, batch_norm_p
from mycelia.ops.rectifiers import relu_grad_p, relu_p

_SERVED = (jnp.float32, jnp.bfloat16)


def _serves(image: Any, params: Any, axis: int) -> bool:
    """Whether the kernel takes images and parameters like these (arrays or types)."""
    rank = len(image.shape)
    several = 0 not in image.shape and np.prod(image.shape) > image.shape[axis]
    return (
        on_cpu() and axis in (1, rank - 1) and len(params) == 2 and several
        and jnp.dtype(getattr(image.dtype, "np", image.dtype)) in _SERVED
    )  # fmt: skip


def _statistics(x: Any) -> Any:
    return jax.ShapeDtypeStruct((x.shape[-1],), jnp.float32)


def _forward(x: Any, scale: Any, shift: Any, *residual: Any, epsilon: float, relu: bool) -> Any:
    call = jax.ffi.ffi_call("mycelia_batch_norm", [jax.ShapeDtypeStruct(x.shape, x.dtype), *[_statistics(x)] * 2])
    wide = scale.astype(jnp.float32), shift.astype(jnp.float32)
    return tuple(call(x, *wide, *residual, relu=relu, epsilon=np.float32(epsilon)))


def _backward(
    cts: Any, y: Any, x: Any, mean: Any, variance: Any, scale: Any, *, epsilon: float, keep: bool
) -> tuple[Any, ...]:
    image = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = jax.ffi.ffi_call("mycelia_batch_norm_grad", [image, *[_statistics(x)] * 2, *[image] * keep])
    wide = [a.astype(jnp.float32) for a in (mean, variance, scale)]
    dx, dscale, dshift, *kept = call(
        *cts, *y, x, *wide, second=len(cts) > 1, mask=len(y) > 0,
        epsilon=np.float32(epsilon),
    )  # fmt: skip
    return (dx, dscale.astype(scale.dtype), dshift.astype(scale.dtype), *kept)


def _first(arrays: Any, *, backward: bool, epsilon: float) -> tuple[Any, ...]:
    """Channels-first images: the operator alone, for PyNative, which keeps images as they are given."""
    x = arrays[0]
    statistics = jax.ShapeDtypeStruct((x.shape[1],), jnp.float32)
    call = jax.ffi.ffi_call("mycelia_batch_norm_first", [jax.ShapeDtypeStruct(x.shape, x.dtype), *[statistics] * 2])
    return tuple(call(*arrays, backward=backward, epsilon=np.float32(epsilon)))


def _batch_norm(x: Any, *params: Any, axis: int, epsilon: float) -> Any:
    if not _serves(x, params, axis):
        return NotImplemented
    if axis == 1 and x.ndim > 2:
        wide = [p.astype(jnp.float32) for p in params]
        return _first((x, *wide), backward=False, epsilon=epsilon)
    return _forward(x, *params, epsilon=epsilon, relu=False)


def _batch_norm_grad(ct: Any, x: Any, mean: Any, variance: Any, *scale: Any, axis: int, epsilon: float) -> Any:
    if not _serves(x, (*scale, *scale), axis) or ct.dtype != x.dtype:
        return NotImplemented
    if axis == 1 and x.ndim > 2:
        arrays = (ct, x, *[a.astype(jnp.float32) for a in (mean, variance, scale[0])])
        dx, dscale, dshift = _first(arrays, backward=True, epsilon=epsilon)
        return dx, dscale.astype(scale[0].dtype), dshift.astype(scale[0].dtype)
    return _backward((ct,), (), x, mean, variance, *scale, epsilon=epsilon, keep=False)


# What stands around it ----------------------------------------------------------------------------------------


def _infer_act(
    x: TensorType, scale: TensorType, shift: TensorType, *residual: TensorType, epsilon: float, relu: bool
) -> tuple[TensorType, ...]:
    return cast("tuple[TensorType, ...]", batch_norm_p.infer(x, scale, shift, axis=x.rank - 1, epsilon=epsilon))


def _lower_act(x: Any, scale: Any, shift: Any, *residual: Any, epsilon: float, relu: bool) -> tuple[Any, ...]:
    y, mean, variance = batch_norm_p.lower(x, scale, shift, axis=x.ndim - 1, epsilon=epsilon)
    for other in residual:
        y = y + other
    return relu_p.lower(y) if relu else y, mean, variance


#: ``batch_norm`` over the last axis, plus a residual if there is one, then relu if asked for.
batch_norm_act_p = Primitive(
    "batch_norm_act", infer=_infer_act, lower=_lower_act, multi=True, differentiable=False,
)  # fmt: skip


def _infer_act_grad(*types: TensorType, second: bool, mask: bool, epsilon: float, keep: bool) -> tuple[TensorType, ...]:
    x, scale = types[-4], types[-1]
    return x, scale, scale, *([x] if keep else [])


def _split(arrays: Any, second: bool, mask: bool) -> tuple[Any, Any, Any]:
    cts, rest = arrays[: 1 + second], arrays[1 + second :]
    return cts, rest[:mask], rest[mask:]


def _lower_act_grad(*arrays: Any, second: bool, mask: bool, epsilon: float, keep: bool) -> tuple[Any, ...]:
    cts, y, (x, mean, variance, scale) = _split(arrays, second, mask)
    g = cts[0] + cts[1] if second else cts[0]
    g = relu_grad_p.lower(g, *y) if mask else g
    made = batch_norm_grad_p.lower(g, x, mean, variance, scale, axis=x.ndim - 1, epsilon=epsilon)
    return (*made, g) if keep else tuple(made)


def _act_grad(*arrays: Any, second: bool, mask: bool, epsilon: float, keep: bool) -> tuple[Any, ...]:
    cts, y, rest = _split(arrays, second, mask)
    return _backward(cts, y, *rest, epsilon=epsilon, keep=keep)


#: Its gradients: cotangents (two are added), the output if relu follows, x, mean, variance, scale; the cotangent behind
#: the relu is given back too if it is to be kept.
batch_norm_act_grad_p = Primitive(
    "batch_norm_act_grad", infer=_infer_act_grad, lower=_lower_act_grad, multi=True, differentiable=False,
)  # fmt: skip


def _fused_forward(node: Node, uses: Uses) -> Fusion | None:
    x, *params = node.inputs
    if not _serves(x.type, params, node.attrs["axis"]) or node.attrs["axis"] != x.type.rank - 1:
        return None
    y, mean, variance = node.outputs
    covers = [node]
    residual: tuple[Value, ...] = ()
    last = y
    user = uses.sole(y)
    if user is not None and user.op.name == "add":
        other = user.inputs[1] if user.inputs[0] is y else user.inputs[0]
        if other is y or other.type != y.type or not uses.ready(other, node):
            return None
        residual, last = (other,), user.outputs[0]
        covers.append(user)
        user = uses.sole(last)
    relu = user is not None and user.op is relu_p
    if relu:
        assert user is not None
        covers.append(user)
        last = user.outputs[0]
    if len(covers) == 1:
        return None
    attrs = {"epsilon": node.attrs["epsilon"], "relu": relu}
    return Fusion(batch_norm_act_p, (x, *params, *residual), attrs, (last, mean, variance), tuple(covers))


def _fused_backward(node: Node, uses: Uses) -> Fusion | None:
    """Looks at the mask: what makes its cotangent, and the normalization that takes its result."""
    ct, y = node.inputs
    (g,) = node.outputs
    takers = [user for user in uses.of(g) if user.op is batch_norm_grad_p and user.inputs[0] is g]
    for taker in takers:
        _, x, mean, variance, *scale = taker.inputs
        if x.type != ct.type or not _serves(x.type, (*scale, *scale), taker.attrs["axis"]):
            continue
        if taker.attrs["axis"] != x.type.rank - 1:
            continue
        total = ct.node
        cts: tuple[Value, ...] = (ct,)
        covers = [node, taker]
        if total is not None and total.op.name == "add" and uses.sole(ct) is node and _alike(total):
            cts = total.inputs
            covers.append(total)
        keep = uses.sole(g) is None or len(cts) > 1
        attrs = {"second": len(cts) > 1, "mask": True, "epsilon": taker.attrs["epsilon"], "keep": keep}
        results = (*taker.outputs, *[g] * keep)
        return Fusion(
            batch_norm_act_grad_p, (*cts, y, x, mean, variance, *scale), attrs, results, tuple(covers)
        )  # fmt: skip
    return None


def _alike(node: Node) -> bool:
    return all(v.type == node.outputs[0].type for v in node.inputs) and node.inputs[0] is not node.inputs[1]


def install() -> None:
    """Let the operators and the graphs use the kernel."""
    assert onednn is not None
    register(onednn, "mycelia_batch_norm", "mycelia_batch_norm_grad", "mycelia_batch_norm_first")
    batch_norm_p.kernel, batch_norm_grad_p.kernel = _batch_norm, _batch_norm_grad
    batch_norm_act_p.kernel = _forward
    batch_norm_act_grad_p.kernel = _act_grad
    add_rule("batch_norm", _fused_forward)
    add_rule("relu_grad", _fused_backward)
