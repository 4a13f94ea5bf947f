"""Convolutions with few channels on both sides, with relu and max pooling behind them, and their gradients.

oneDNN works on blocks of 16 channels, and is slow where there are one and six. In a graph ``max_pool(relu(conv(x)))``
becomes one operator, and so do its gradients: what pooling and relu do to a cotangent is done where it is read.
"""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.compiler.passes.library import Fusion, Uses, add_rule
from mycelia.core import dtypes as dt
from mycelia.ir.graph import Node, Value
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.native.libraries import on_cpu, onednn, register
from mycelia.ops.convolution import Ints, conv_input_grad_p, conv_p, conv_shape, conv_weight_grad_p
from mycelia.ops.pooling import max_pool_grad_p, max_pool_p, pool_shape
from mycelia.ops.rectifiers import relu_grad_p, relu_p

_SERVED = (jnp.float32, jnp.bfloat16)
_BIAS, _RELU, _KEEP, _POOL, _FIRST, _IMAGE, _KERNEL = (1 << i for i in range(7))
_MOST_IN, _MOST_OUT, _MOST_PLACES = 8, 32, 7
#: Elements of an image (with padding), which a thread holds while its gradient is summed.
_MOST_ELEMENTS = 1 << 17
#: What is asked of a kernel.
FORWARD, IMAGE, KERNEL, POOLED = range(4)
_TO_FIRST = (0, 3, 1, 2)
_CONV = "strides", "padding", "dilation", "groups", "channels_last"


def _pays(kind: int, wide: bool, given: int, made: int, places: int) -> bool:
    """Whether what is asked for is faster than by oneDNN: measured with AVX-512, on channels ``given`` and ``made``."""
    few = given * made <= 96 and (made <= 16 or given == 1)
    if places == 1:
        return False
    if kind == KERNEL:
        return wide and made <= 8
    if kind == IMAGE:
        return given <= 6 and (wide or places >= 25)
    return few and (kind == POOLED or wide or made <= 8 or given == 1)


def serves(kind: int, dtype: Any, image: Ints, kernel: Ints, attrs: Any) -> bool:
    """Whether the kernels take a convolution of such shapes, and are faster than oneDNN.

    Args:
        kind: ``FORWARD``, ``IMAGE`` and ``KERNEL`` (gradients), or ``POOLED``, any of them with pooling in it.
        dtype: of all arrays.
        image: the shape of the image.
        kernel: the shape of the kernel.
        attrs: the attributes of the convolution.
    """
    if not on_cpu() or len(image) != 4 or dtype not in _SERVED or 0 in image or 0 in kernel:
        return False
    plain = attrs["channels_last"] and attrs["groups"] == 1 and attrs["dilation"] == (1, 1)
    few = image[3] <= _MOST_IN and kernel[0] <= _MOST_OUT and max(kernel[2:]) <= _MOST_PLACES
    padding = attrs["padding"]
    if not (plain and few and min(p for pair in padding for p in pair) >= 0):
        return False
    if 0 in conv_shape(image, kernel, **{name: attrs[name] for name in _CONV}):
        return False
    whole = [size + low + high for size, (low, high) in zip(image[1:3], padding, strict=True)]
    small = whole[0] * whole[1] * image[3] <= _MOST_ELEMENTS
    return small and _pays(kind, dtype == jnp.float32, image[3], kernel[0], kernel[2] * kernel[3])


def _call(name: str, results: Any, arrays: Any, attrs: Any, flags: int, window: Ints | None, sizes: Any) -> Any:
    rows = [(s, low) for s, (low, _) in zip(attrs["strides"], attrs["padding"], strict=True)]
    geometry = [*rows[0], *rows[1], flags, *(window or (1, 1)), *sizes]
    return jax.ffi.ffi_call(name, results)(*arrays, geometry=np.array(geometry, np.int64))


def _pooling(window: Ints) -> dict[str, Any]:
    return {
        "kernel": window, "strides": window, "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "channels_last": True,
    }  # fmt: skip


def _turned(shape: Ints) -> Ints:
    return (shape[0], shape[3], shape[1], shape[2])


def forward(
    x: Any, w: Any, bias: Any = None, *, relu: bool = False, window: Ints | None = None, keep: bool = True,
    first: bool = False, **attrs: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """The convolution (if it is to be kept) and what pooling by ``window`` makes of it (if there is one).

    ``first``: what pooling makes has its channels on the second axis.
    """
    made = conv_shape(x.shape, w.shape, **attrs)
    results = [jax.ShapeDtypeStruct(made, x.dtype)] * keep
    if window is not None:
        pooled = pool_shape("max_pool", made, **_pooling(window))
        results.append(jax.ShapeDtypeStruct(_turned(pooled) if first else pooled, x.dtype))
    flags = _BIAS * (bias is not None) | _RELU * relu | _KEEP * keep | _POOL * (window is not None) | _FIRST * first
    biases = () if bias is None else (bias.astype(jnp.float32),)
    return tuple(_call("mycelia_few_channels_forward", results, (x, w, *biases), attrs, flags, window, made[1:3]))


def gradients(
    ct: Any, result: Any, image: Any, kernel: Any, *, bias: bool = False, relu: bool = False,
    window: Ints | None = None, weight_shape: Ints, input_shape: Ints, **attrs: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Gradients of kernel (if an image is given) and bias, both float32, and of the image (if a kernel is given)."""
    flags = _BIAS * bias | _RELU * relu | _POOL * (window is not None)
    flags |= _KERNEL * (image is not None) | _IMAGE * (kernel is not None)
    results = []
    if image is not None:
        results.append(jax.ShapeDtypeStruct(weight_shape, jnp.float32))
    if bias:
        results.append(jax.ShapeDtypeStruct(weight_shape[:1], jnp.float32))
    if kernel is not None:
        results.append(jax.ShapeDtypeStruct(input_shape, ct.dtype))
    arrays = [a for a in (ct, result, image, kernel) if a is not None]
    name = "mycelia_few_channels_gradient"
    return tuple(_call(name, results, arrays, attrs, flags, window, weight_shape[2:]))


# Convolution, relu, pooling -----------------------------------------------------------------------------------


def _infer_pool(
    x: TensorType, w: TensorType, *rest: TensorType, relu: bool, window: Ints, keep: bool, first: bool, **attrs: Any
) -> tuple[TensorType, ...]:
    y = cast("TensorType", conv_p.infer(x, w, *rest, **attrs))
    pooled = cast("TensorType", max_pool_p.infer(y, **_pooling(window)))
    return *[y] * keep, TensorType(pooled.dtype, _turned(pooled.shape)) if first else pooled


def _lower_pool(
    x: Any, w: Any, *rest: Any, relu: bool, window: Ints, keep: bool, first: bool, **attrs: Any
) -> tuple[Any, ...]:
    y = conv_p.lower(x, w, *rest, **attrs)
    y = relu_p.lower(y) if relu else y
    pooled = max_pool_p.lower(y, **_pooling(window))
    return *[y] * keep, jnp.transpose(pooled, _TO_FIRST) if first else pooled


def _conv_pool(x: Any, w: Any, *rest: Any, **attrs: Any) -> Any:
    same = x.dtype == w.dtype
    return (
        forward(x, w, *rest, **attrs) if same and serves(POOLED, x.dtype, x.shape, w.shape, attrs) else NotImplemented
    )


#: A convolution, relu if asked for, and max pooling by windows that do not overlap; gives the image that is pooled too
#: if it is to be kept. ``first``: what pooling makes has its channels on the second axis.
conv_pool_p = Primitive("conv_pool", infer=_infer_pool, lower=_lower_pool, multi=True, differentiable=False)


def _is_plain(node: Node) -> bool:
    """Whether a pooling is by windows that stand side by side, from the first place on."""
    attrs = node.attrs
    return len(attrs["kernel"]) == 2 and {**attrs} == _pooling(attrs["kernel"])


def _fused_forward(node: Node, uses: Uses) -> Fusion | None:
    """A convolution with relu and pooling behind it."""
    x, w = (v.type for v in node.inputs[:2])
    if x.dtype is not w.dtype or not serves(POOLED, x.dtype.np, x.shape, w.shape, node.attrs):
        return None
    covers, last = [node], node.outputs[0]
    user = uses.sole(last)
    relu = user is not None and user.op is relu_p
    if user is not None and relu:
        covers.append(user)
        last = user.outputs[0]
    pools = [user for user in uses.of(last) if user.op is max_pool_p and _is_plain(user)]
    if len(pools) != 1:
        return None
    covers += pools
    keep = uses.sole(last) is not pools[0]
    pooled = pools[0].outputs[0]
    user = uses.sole(pooled)
    first = user is not None and user.op.name == "transpose" and user.attrs["perm"] == _TO_FIRST
    if user is not None and first:
        covers.append(user)
        pooled = user.outputs[0]
    attrs = {**node.attrs, "relu": relu, "window": pools[0].attrs["kernel"], "keep": keep, "first": first}
    return Fusion(conv_pool_p, node.inputs, attrs, (*[last] * keep, pooled), tuple(covers))


# Their gradients ----------------------------------------------------------------------------------------------


def _split(arrays: Any, relu: bool, window: Ints | None, kernel: bool, image: bool) -> tuple[Any, Any, Any, Any]:
    """Cotangent, result, image and kernel; None for what there is not."""
    rest = list(arrays)
    ct = rest.pop(0)
    y = rest.pop(0) if relu or window is not None else None
    return ct, y, rest.pop(0) if kernel else None, rest.pop(0) if image else None


def _infer_grad(
    ct: TensorType, *rest: TensorType, weight_shape: Ints, input_shape: Ints, kernel: Any, bias: Any, image: bool,
    relu: bool, window: Ints | None, **attrs: Any,
) -> tuple[TensorType, ...]:  # fmt: skip
    made = []
    if kernel is not None:
        made.append(TensorType(kernel, weight_shape))
    if bias is not None:
        made.append(TensorType(bias, weight_shape[:1]))
    return *made, *[TensorType(ct.dtype, input_shape)] * image


def _lower_grad(
    *arrays: Any, weight_shape: Ints, input_shape: Ints, kernel: Any, bias: Any, image: bool, relu: bool,
    window: Ints | None, **attrs: Any,
) -> tuple[Any, ...]:  # fmt: skip
    g, y, x, w = _split(arrays, relu, window, kernel is not None, image)
    if window is not None:
        pooling = _pooling(window)
        g = max_pool_grad_p.lower(g, y, max_pool_p.lower(y, **pooling), **pooling)
    g = relu_grad_p.lower(g, y) if relu else g
    made = []
    if kernel is not None:
        made.append(conv_weight_grad_p.lower(g, x, weight_shape=weight_shape, **attrs).astype(kernel.np))
    if bias is not None:
        made.append(jnp.sum(g.astype(jnp.float32), (0, 1, 2)).astype(bias.np))
    if image:
        made.append(conv_input_grad_p.lower(g, w, input_shape=input_shape, **attrs))
    return tuple(made)


def _grad(
    *arrays: Any, weight_shape: Ints, input_shape: Ints, kernel: Any, bias: Any, image: bool, relu: bool,
    window: Ints | None, **attrs: Any,
) -> Any:  # fmt: skip
    if not serves(POOLED, arrays[0].dtype, input_shape, weight_shape, attrs):
        return NotImplemented
    made = gradients(
        *_split(arrays, relu, window, kernel is not None, image), bias=bias is not None, relu=relu, window=window,
        weight_shape=weight_shape, input_shape=input_shape, **attrs,
    )  # fmt: skip
    wanted = [d.np for d in (kernel, bias) if d is not None] + [arrays[0].dtype] * image
    return tuple(a.astype(d) for a, d in zip(made, wanted, strict=True))


#: The gradients of ``conv_pool`` (without a ``window``, of a convolution and relu): of the kernel in the dtype
#: ``kernel``, of the bias in the dtype ``bias`` (None: not asked for), and of the image. Takes the cotangent, the
#: image that is pooled if there is relu or pooling, the image for the gradient of the kernel, the kernel for that of
#: the image.
conv_pool_grad_p = Primitive("conv_pool_grad", infer=_infer_grad, lower=_lower_grad, multi=True, differentiable=False)


def _takers(node: Node, uses: Uses) -> tuple[Node | None, Node | None, Node | None]:
    """Who makes gradients of kernel, bias and image from the cotangent that ``node`` takes, all of one convolution."""
    g = node.inputs[0]
    attrs = {name: node.attrs[name] for name in _CONV}
    found: dict[str, Node] = {node.op.name: node}
    for user in uses.of(g):
        op = user.op
        if op.name in found or user.inputs[0] is not g:
            continue
        if op in (conv_weight_grad_p, conv_input_grad_p):
            if {name: user.attrs[name] for name in _CONV} == attrs:
                found[op.name] = user
        elif op.name == "reduce_sum" and user.attrs == {"axes": (0, 1, 2), "keepdims": False}:
            found[op.name] = user
    kernel, image = found.get(conv_weight_grad_p.name), found.get(conv_input_grad_p.name)
    if kernel is not None and image is not None:
        alike = kernel.attrs["weight_shape"] == image.inputs[1].shape
        if not alike or image.attrs["input_shape"] != kernel.inputs[1].shape:
            return (kernel, found.get("reduce_sum"), None) if node is kernel else (None, found.get("reduce_sum"), image)
    return kernel, found.get("reduce_sum"), image


def _masked(g: Value, covers: list[Node], uses: Uses) -> tuple[Value, Value | None, bool, Ints | None]:
    """What stands between a cotangent and the convolution, if nobody else takes it: relu, and pooling."""
    ct, y, relu, window = g, None, False, None
    if not all(user in covers for user in uses.of(g)) or (len(uses.of(g)) == 1 and uses.sole(g) is None):
        return ct, y, relu, window
    maker = ct.node
    if maker is not None and maker.op is relu_grad_p and maker.inputs[0].type == maker.inputs[1].type:
        ct, y = maker.inputs
        relu = True
        covers.append(maker)
        if uses.sole(ct) is not maker:
            return ct, y, relu, window
        maker = ct.node
    if maker is not None and maker.op is max_pool_grad_p and _is_plain(maker):
        before, image, pooled = maker.inputs
        known = pooled.node is not None and pooled.node.op is max_pool_p and pooled.node.inputs[0] is image
        if y in (None, image) and before.type.dtype is image.type.dtype and known:
            covers.append(maker)
            ct, y, window = before, image, maker.attrs["kernel"]
    return ct, y, relu, window


def _fused_gradients(node: Node, uses: Uses) -> Fusion | None:
    """Gradients that are made from one cotangent, with what makes that."""
    kernel, bias, image = _takers(node, uses)
    weight_shape = kernel.attrs["weight_shape"] if kernel is not None else node.inputs[1].shape
    input_shape = image.attrs["input_shape"] if image is not None else node.inputs[1].shape
    g, dtype = node.inputs[0], node.inputs[0].type.dtype
    if not serves(POOLED, dtype.np, input_shape, weight_shape, node.attrs):
        return None
    covers = [n for n in (kernel, bias, image) if n is not None]
    if any(v.type.dtype is not dtype for n in covers for v in (*n.inputs, *n.outputs)):
        return None
    ct, y, relu, window = _masked(g, covers, uses)
    if window is None and weight_shape[0] > 8 and (image is None or dtype is not dt.float32):
        return None
    results: list[Value] = []
    dtypes: list[Any] = []
    for maker in (kernel, bias):
        if maker is None:
            dtypes.append(None)
            continue
        cast_to = uses.widened(maker.outputs[0])
        if cast_to is not None:
            covers.append(cast_to)
        dtypes.append(dtype if cast_to is None else dt.float32)
        results.append(maker.outputs[0] if cast_to is None else cast_to.outputs[0])
    if image is not None:
        results.append(image.outputs[0])
    if len(covers) == 1:
        return None
    inputs = [ct, *([] if y is None else [y])]
    inputs += [n.inputs[1] for n in (kernel, image) if n is not None]
    attrs = {
        **{name: node.attrs[name] for name in _CONV}, "weight_shape": weight_shape, "input_shape": input_shape,
        "kernel": dtypes[0], "bias": dtypes[1], "image": image is not None, "relu": relu, "window": window,
    }  # fmt: skip
    return Fusion(conv_pool_grad_p, tuple(inputs), attrs, tuple(results), tuple(covers))


def install() -> None:
    """Let the graphs use the kernels; single operators come to them through ``convolution``."""
    assert onednn is not None
    register(onednn, "mycelia_few_channels_forward", "mycelia_few_channels_gradient")
    conv_pool_p.kernel, conv_pool_grad_p.kernel = _conv_pool, _grad
    add_rule("conv", _fused_forward)
    add_rule("conv_weight_grad", _fused_gradients)
    add_rule("conv_input_grad", _fused_gradients)
