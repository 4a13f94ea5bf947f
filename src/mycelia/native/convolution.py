"""Convolutions and their gradients by oneDNN."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.compiler.passes.library import Fusion, Uses, add_rule
from mycelia.compiler.prepared import Packing, add_packer
from mycelia.core import dtypes as dt
from mycelia.ir.graph import Node, Value
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.native import few_channels
from mycelia.native.libraries import PRODUCT_TYPES, on_cpu, onednn, packed_size, register
from mycelia.ops.batch_normalization import batch_norm_inference_p
from mycelia.ops.convolution import conv_input_grad_p, conv_p, conv_shape, conv_weight_grad_p
from mycelia.ops.rectifiers import relu_p

_FORWARD, _IMAGE, _KERNEL = range(3)
_BIAS, _GAIN, _SUM, _RELU = 1, 2, 4, 8
_SERVED = PRODUCT_TYPES


def _geometry(attrs: dict[str, Any], after: int) -> np.ndarray[Any, Any]:
    """The attributes of a convolution as the kernel reads them; ``after`` is what is done to the result."""
    rows = [
        (stride, low, high, dilation)
        for stride, (low, high), dilation in zip(attrs["strides"], attrs["padding"], attrs["dilation"], strict=True)
    ]
    flags = attrs["groups"], int(attrs["channels_last"]), after
    return np.array([len(rows), *[v for row in rows for v in row], *flags], np.int64)


def _served(*arrays: Any) -> bool:
    """Whether the kernel takes arrays like these: none empty, all of one dtype that it knows."""
    return on_cpu() and all(a.size and a.dtype == arrays[0].dtype and a.dtype in _SERVED for a in arrays)


def _call(
    kind: int, results: Any, arrays: Any, attrs: dict[str, Any], after: int = 0, weight: tuple[int, ...] = ()
) -> Any:
    call = jax.ffi.ffi_call("mycelia_convolution", results)
    return call(
        *arrays, kind=np.int64(kind), geometry=_geometry(attrs, after), weight=np.array(weight, np.int64)
    )  # fmt: skip


def _conv(x: Any, w: Any, bias: Any = None, **attrs: Any) -> Any:
    return _conv_act(x, w, *(() if bias is None else (bias,)), bias=bias is not None, **attrs)


def _input_grad(ct: Any, w: Any, *, input_shape: Any, **attrs: Any) -> Any:
    if not _served(ct, w) or 0 in input_shape:
        return NotImplemented
    if few_channels.serves(few_channels.IMAGE, ct.dtype, input_shape, w.shape, attrs):
        shapes = {"weight_shape": w.shape, "input_shape": input_shape}
        return few_channels.gradients(ct, None, None, w, **shapes, **attrs)[0]
    return _call(_IMAGE, jax.ShapeDtypeStruct(input_shape, ct.dtype), (ct, w), attrs)


def _weight_grad(ct: Any, x: Any, *, weight_shape: Any, dtype: Any = None, **attrs: Any) -> Any:
    if not _served(ct, x) or 0 in weight_shape:
        return NotImplemented
    if few_channels.serves(few_channels.KERNEL, ct.dtype, x.shape, weight_shape, attrs):
        shapes = {"weight_shape": weight_shape, "input_shape": x.shape}
        return few_channels.gradients(ct, None, x, None, **shapes, **attrs)[0].astype(dtype or ct.dtype)
    return _call(_KERNEL, jax.ShapeDtypeStruct(weight_shape, dtype or ct.dtype), (ct, x), attrs)


# What stands behind it ----------------------------------------------------------------------------------------


def _infer_act(
    x: TensorType, w: TensorType, *rest: TensorType, bias: bool, epsilon: float | None, residual: bool, relu: bool,
    **attrs: Any,
) -> TensorType:  # fmt: skip
    found = conv_p.infer(x, w, *rest[:bias], **attrs)
    assert isinstance(found, TensorType)
    return found


def _parts(rest: Any, bias: bool, epsilon: float | None, residual: bool) -> tuple[Any, Any, Any]:
    """The operands behind image and kernel: bias, parameters of the normalization, image that is added."""
    at = bias + 4 * (epsilon is not None)
    return rest[:bias], rest[bias:at], rest[at : at + residual]


def _lower_act(
    x: Any, w: Any, *rest: Any, bias: bool, epsilon: float | None, residual: bool, relu: bool, **attrs: Any
) -> Any:
    biases, norm, others = _parts(rest, bias, epsilon, residual)
    y = conv_p.lower(x, w, *biases, **attrs)
    if norm:
        y = batch_norm_inference_p.lower(y, *norm, axis=y.ndim - 1, epsilon=epsilon)
    for other in others:
        y = y + other
    return relu_p.lower(y) if relu else y


def _conv_act(
    x: Any, w: Any, *rest: Any, bias: bool = False, epsilon: float | None = None, residual: bool = False,
    relu: bool = False, weight_shape: tuple[int, ...] = (), **attrs: Any,
) -> Any:  # fmt: skip
    shape = conv_shape(x.shape, weight_shape or w.shape, **attrs)
    if not (_served(x) if weight_shape else _served(x, w)) or 0 in shape:
        return NotImplemented
    biases, norm, others = _parts(rest, bias, epsilon, residual)
    few = few_channels.FORWARD
    if not (norm or others or weight_shape) and few_channels.serves(few, x.dtype, x.shape, w.shape, attrs):
        return few_channels.forward(x, w, *biases, relu=relu, **attrs)[0]
    channels = [a.astype(jnp.float32) for a in biases]
    if norm:
        scale, shift, mean, variance = [a.astype(jnp.float32) for a in norm]
        gain = scale / jnp.sqrt(variance + epsilon)
        channels += [gain, shift - mean * gain]
    after = _BIAS * bias | _GAIN * bool(norm) | _SUM * residual | _RELU * relu
    made = jax.ShapeDtypeStruct(shape, x.dtype)
    return _call(_FORWARD, made, (x, w, *channels, *others), attrs, after, weight_shape)


#: A convolution, then normalization of its channels by given statistics (if there is an ``epsilon``), the sum with an
#: image, and relu, each if asked for.
conv_act_p = Primitive("conv_act", infer=_infer_act, lower=_lower_act, differentiable=False)


def _fused(node: Node, uses: Uses) -> Fusion | None:
    """A convolution with what stands behind it."""
    if not _takes(node):
        return None
    last_axis = node.attrs["channels_last"]
    covers, last = [node], node.outputs[0]
    norm: tuple[Value, ...] = ()
    residual: tuple[Value, ...] = ()
    epsilon = None
    user = uses.sole(last)
    if (
        user is not None and user.op is batch_norm_inference_p and user.inputs[0] is last
        and last_axis and user.attrs["axis"] == last.type.rank - 1
    ):  # fmt: skip
        norm, epsilon = user.inputs[1:], user.attrs["epsilon"]
        covers.append(user)
        last = user.outputs[0]
        user = uses.sole(last)
    if user is not None and user.op.name == "add" and last_axis:
        other = user.inputs[1] if user.inputs[0] is last else user.inputs[0]
        if other is not last and other.type == last.type and uses.ready(other, node):
            residual = (other,)
            covers.append(user)
            last = user.outputs[0]
            user = uses.sole(last)
    relu = user is not None and user.op is relu_p
    if user is not None and relu:
        covers.append(user)
        last = user.outputs[0]
    if len(covers) == 1:
        return None
    attrs = {
        **node.attrs, "bias": len(node.inputs) > 2, "epsilon": epsilon, "residual": bool(residual), "relu": relu,
    }  # fmt: skip
    return Fusion(conv_act_p, (*node.inputs, *norm, *residual), attrs, (last,), tuple(covers))


# Kernels that stay the same ------------------------------------------------------------------------------------


def _split_act(attrs: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The attributes of the convolution, and what is done to the result."""
    own = dict(attrs)
    bias, epsilon = own.pop("bias"), own.pop("epsilon")
    residual, relu = own.pop("residual"), own.pop("relu")
    return own, _BIAS * bias | _GAIN * (epsilon is not None) | _SUM * residual | _RELU * relu


def _infer_pack(w: TensorType, *, size: int, **_: Any) -> TensorType:
    return TensorType(dt.uint8, (size,))


def _lower_pack(w: Any, *, size: int, image: Any, result: Any, **attrs: Any) -> Any:
    own, after = _split_act(attrs)
    call = jax.ffi.ffi_call("mycelia_convolution_pack", jax.ShapeDtypeStruct((size,), np.uint8))
    return call(w, geometry=_geometry(own, after), image=np.array(image, np.int64), result=np.array(result, np.int64))


def _infer_packed(x: TensorType, w: TensorType, *rest: TensorType, weight_shape: Any, **attrs: Any) -> TensorType:
    return _infer_act(x, TensorType(x.dtype, weight_shape), *rest, **attrs)


#: A kernel in the layout that oneDNN wants, and ``conv_act`` with such a kernel. They are made only where the library
#: is, and have no other lowering.
conv_pack_p = Primitive("conv_pack", infer=_infer_pack, lower=_lower_pack, differentiable=False)
conv_packed_p = Primitive("conv_packed", infer=_infer_packed, lower=_conv_act, differentiable=False)


def _packer(node: Node) -> Packing | None:
    """``conv`` and ``conv_act`` with a kernel that stays the same."""
    assert onednn is not None
    if not _takes(node):
        return None
    attrs = dict(node.attrs)
    if node.op is conv_p:
        attrs |= {"bias": len(node.inputs) > 2, "epsilon": None, "residual": False, "relu": False}
    x, w = node.inputs[0].type, node.inputs[1].type
    alone = attrs["epsilon"] is None and not attrs["residual"]
    if alone and few_channels.serves(few_channels.FORWARD, x.dtype.np, x.shape, w.shape, attrs):
        return None  # kernels of its own read it as it is
    shapes = np.array([*x.shape, *w.shape, *node.outputs[0].shape], np.int64)
    geometry = _geometry(*_split_act(attrs))
    size = packed_size(
        onednn.mycelia_convolution_packed_size, geometry, geometry.size, shapes, x.rank, x.dtype is dt.bfloat16
    )
    if not size:
        return None
    packing = {**attrs, "size": size, "image": x.shape, "result": node.outputs[0].shape}
    return Packing(1, conv_pack_p, packing, conv_packed_p, {**attrs, "weight_shape": w.shape})


def _infer_wide(ct: TensorType, x: TensorType, **attrs: Any) -> TensorType:
    found = conv_weight_grad_p.infer(ct, x, **attrs)
    assert isinstance(found, TensorType)
    return TensorType(dt.float32, found.shape)


#: The gradient of a kernel in float32, of bfloat16 images: what is summed in float32 is not rounded first.
wide_weight_grad_p = Primitive(
    "conv_weight_grad_wide", infer=_infer_wide, differentiable=False,
    lower=lambda *arrays, **attrs: conv_weight_grad_p.lower(*arrays, **attrs).astype(jnp.float32),
)  # fmt: skip


def _fused_weight_grad(node: Node, uses: Uses) -> Fusion | None:
    user = uses.widened(node.outputs[0])
    if user is None or not _takes(node):
        return None
    return Fusion(wide_weight_grad_p, node.inputs, node.attrs, user.outputs, (node, user))


def _takes(node: Node) -> bool:
    types = [v.type for v in (*node.inputs[:2], *node.outputs)]
    return on_cpu() and all(t.size and t.dtype.np in _SERVED and t.dtype is types[0].dtype for t in types)


def install() -> None:
    """Let the operators and the graphs use the kernel."""
    assert onednn is not None
    register(onednn, "mycelia_convolution", "mycelia_convolution_pack")
    few_channels.install()
    conv_p.kernel, conv_input_grad_p.kernel, conv_weight_grad_p.kernel = _conv, _input_grad, _weight_grad
    conv_act_p.kernel = _conv_act
    wide_weight_grad_p.kernel = partial(_weight_grad, dtype=jnp.float32)
    add_rule("conv", _fused)
    add_packer("conv", _packer)
    add_packer("conv_act", _packer)
    add_rule("conv_weight_grad", _fused_weight_grad)
