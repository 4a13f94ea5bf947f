"""Class forms of the operators networks are made of: products, convolutions, pooling, normalization, dropout."""

from __future__ import annotations

from typing import Any

from mycelia.core.dtypes import int32
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ops.adaptive_pooling import (
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    max_unpool2d,
    max_unpool3d,
)
from mycelia.ops.arithmetic import add
from mycelia.ops.attention import flash_attention_score
from mycelia.ops.batch_normalization import batch_norm_inference_p, batch_norm_p, running_statistics_p
from mycelia.ops.calls import as_float
from mycelia.ops.contraction import einsum
from mycelia.ops.convolution import conv2d, conv3d, conv3d_transpose, conv_input_grad_p, mode_pads, per_axis
from mycelia.ops.dropout import dropout_p
from mycelia.ops.legacy.form import form
from mycelia.ops.linear import dense, matmul, outer
from mycelia.ops.local_normalization import lrn
from mycelia.ops.max_avg_pooling import avg_pooling, max_pooling
from mycelia.ops.normalization import layer_norm_p, rms_norm
from mycelia.ops.operands import as_axis, as_shape, as_tensor, cast, same_dtype
from mycelia.ops.outputs import one, several
from mycelia.ops.random import next_key
from mycelia.ops.shape import broadcast_to, reshape, swapaxes, transpose
from mycelia.ops.softmax import log_softmax, softmax
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import set_value

__all__ = [
    "LRN", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "AdaptiveMaxPool2D", "AdaptiveMaxPool3D", "AvgPool",
    "AvgPool3D", "BatchMatMul", "BatchMatMulExt", "BatchNorm", "BiasAdd", "Conv2D", "Conv2DBackpropInput",
    "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Dense", "DepthwiseConv2dNative", "Dropout", "Dropout2D",
    "Dropout3D", "Einsum", "FlashAttentionScore", "Ger", "LayerNorm", "LogSoftmax", "LogSoftmaxExt", "MatMul",
    "MatMulExt", "MaxPool", "MaxPool3D", "MaxPool3DWithArgmax", "MaxPoolWithArgmax", "MaxPoolWithArgmaxV2",
    "MaxUnpool2D", "MaxUnpool3D", "Outer", "RmsNorm", "Softmax", "bias_add",
]  # fmt: skip

# products


def _product(where: str) -> Any:
    def compute(x: Any, y: Any, transpose_a: bool, transpose_b: bool) -> Tensor:
        a, b = as_tensor(x, where, "x"), as_tensor(y, where, "y")
        if a.ndim < 2 or b.ndim < 2:
            name, shape = ("x", a.shape) if a.ndim < 2 else ("y", b.shape)
            raise ShapeError(where, name, got=f"shape {shape}", takes="at least two axes")
        return matmul(swapaxes(a, -1, -2) if transpose_a else a, swapaxes(b, -1, -2) if transpose_b else b)

    return compute


BatchMatMul = form("BatchMatMul(transpose_a=False, transpose_b=False)(x, y)", _product("BatchMatMul"))
BatchMatMulExt = form("BatchMatMulExt()(input, mat2)", matmul)
Dense = form("Dense()(input, weight, bias=None)", dense)
Einsum = form("Einsum(equation)(x)", lambda x, equation: einsum(equation, *x))
Ger = form("Ger()(x1, x2)", outer)
MatMul = form("MatMul(transpose_a=False, transpose_b=False)(input, mat2)", _product("MatMul"))
MatMulExt = form("MatMulExt()(input, other)", matmul)
Outer = form("Outer()(input, vec2)", outer)

# convolution


def _choice(where: str, argument: str, value: Any, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value.lower() not in [c.lower() for c in choices]:
        raise ArgumentValueError(where, argument, got=repr(value), takes=" or ".join(f'"{c}"' for c in choices))


def _check_convolution(where: str, last: str) -> Any:
    def check(*, pad_mode: Any, data_format: Any, **given: Any) -> None:
        _choice(where, "pad_mode", pad_mode, ("valid", "same", "pad"))
        _choice(where, "data_format", data_format, ("NCHW", "NHWC") if last == "HW" else ("NCDHW",))
        for name in ("out_channel", "group"):
            if name in given and (not isinstance(given[name], int) or given[name] < 1):
                raise ArgumentValueError(where, name, got=repr(given[name]), takes="an int of at least 1")
        n = len(last)
        for name in ("kernel_size", "stride", "dilation"):
            per_axis(given[name], n, where, name)

    return check


def _channels_first(x: Tensor, data_format: str) -> Tensor:
    return transpose(x, (0, 3, 1, 2)) if data_format == "NHWC" else x


def _channels_back(x: Tensor, data_format: str) -> Tensor:
    return transpose(x, (0, 2, 3, 1)) if data_format == "NHWC" else x


def _fitting(where: str, weight: Any, kernel_size: Any, out_channel: int, n: int) -> Tensor:
    """The weight, refused if it is not what the constructor was told."""
    w = as_tensor(weight, where, "weight")
    kernel = per_axis(kernel_size, n, where, "kernel_size")
    if w.ndim != n + 2 or w.shape[2:] != kernel or w.shape[0] != out_channel:
        raise ShapeError(
            where, "weight", got=f"shape {w.shape}", takes=f"({out_channel}, channels of a group, *{kernel})"
        )
    return w


def _convolved(
    x: Any, weight: Any, out_channel: int, kernel_size: Any, mode: int, pad_mode: str, pad: Any, stride: Any,
    dilation: Any, group: int, data_format: str,
) -> Tensor:  # fmt: skip
    image = _channels_first(as_tensor(x, "Conv2D", "x"), data_format)
    kernel = as_tensor(weight, "Conv2D", "weight")
    w = _fitting("Conv2D", _channels_first(kernel, data_format), kernel_size, out_channel, 2)
    return _channels_back(conv2d(image, w, None, stride, pad_mode, pad, dilation, group), data_format)


def _input_gradient(
    where: str, dout: Any, weight: Any, input_size: Any, pad_mode: str, pad: Any, pad_list: Any, stride: Any,
    dilation: Any, group: int, data_format: str,
) -> Tensor:  # fmt: skip
    ct, kernel = as_tensor(dout, where, "dout"), as_tensor(weight, where, "weight")
    ct, w = (_channels_first(t, data_format) for t in same_dtype(where, ct, kernel, names=("dout", "weight")))
    size = as_shape(input_size, where, "input_size", minimum=1)
    size = (size[0], size[3], size[1], size[2]) if data_format == "NHWC" else size
    strides, steps = per_axis(stride, 2, where, "stride"), per_axis(dilation, 2, where, "dilation")
    pads = mode_pads(pad_mode, pad_list or pad, size[2:], w.shape[2:], strides, steps, where)
    made = one(
        conv_input_grad_p, ct, w, input_shape=size, strides=strides, padding=pads, dilation=steps, groups=group,
        channels_last=False,
    )  # fmt: skip
    return _channels_back(made, data_format)


def _transposed(where: str) -> Any:
    def compute(
        dout: Any, weight: Any, input_size: Any, out_channel: int, kernel_size: Any, pad_mode: str, pad: Any,
        pad_list: Any, mode: int, stride: Any, dilation: Any, group: int, data_format: str,
    ) -> Tensor:  # fmt: skip
        return _input_gradient(
            where, dout, weight, input_size, pad_mode, pad, pad_list, stride, dilation, group, data_format
        )

    return compute


def _by_channel(
    x: Any, weight: Any, channel_multiplier: int, kernel_size: Any, mode: int, pad_mode: str, pad: Any, stride: Any,
    dilation: Any, group: int,
) -> Tensor:  # fmt: skip
    """Each channel convolved with kernels of its own; the weight is (multiplier, channels, height, width)."""
    where = "DepthwiseConv2dNative"
    t, w = as_tensor(x, where, "x"), as_tensor(weight, where, "weight")
    if w.ndim != 4 or t.ndim != 4 or w.shape[:2] != (channel_multiplier, t.shape[1]):
        raise ShapeError(
            where, "weight", got=f"shape {w.shape}", takes=f"({channel_multiplier}, channels, height, width)"
        )
    kernels = reshape(swapaxes(w, 0, 1), (t.shape[1] * channel_multiplier, 1, *w.shape[2:]))
    return conv2d(t, kernels, None, stride, pad_mode, pad, dilation, t.shape[1])


def _convolved_3d(
    x: Any, weight: Any, bias: Any, out_channel: int, kernel_size: Any, mode: int, pad_mode: str, pad: Any,
    stride: Any, dilation: Any, group: int, data_format: str,
) -> Tensor:  # fmt: skip
    w = _fitting("Conv3D", weight, kernel_size, out_channel, 3)
    return conv3d(x, w, bias, stride, pad_mode, pad, dilation, group)


def _transposed_3d(
    dout: Any, weight: Any, bias: Any, in_channel: int, out_channel: int, kernel_size: Any, mode: int, pad_mode: str,
    pad: Any, stride: Any, dilation: Any, group: int, output_padding: Any, data_format: str,
) -> Tensor:  # fmt: skip
    made: Any = conv3d_transpose(dout, weight, pad_mode, pad, stride, dilation, group, output_padding)
    made = made if bias is None else made + reshape(as_tensor(bias, "Conv3DTranspose", "bias"), (1, -1, 1, 1, 1))
    return made  # type: ignore[no-any-return]


_CONV2D = "pad_mode='valid', pad=0, stride=1, dilation=1, group=1, data_format='NCHW'"
_CONV3D = "pad_mode='valid', pad=0, stride=1, dilation=1, group=1"
_GRADIENT = (
    "(out_channel, kernel_size, pad_mode='valid', pad=0, pad_list=None, mode=1, stride=1, dilation=1, group=1, "
    "data_format='NCHW')(dout, weight, input_size)"
)
Conv2D = form(
    f"Conv2D(out_channel, kernel_size, mode=1, {_CONV2D})(x, weight)",
    _convolved,
    _check_convolution("Conv2D", "HW"),
)
Conv2DBackpropInput = form(
    f"Conv2DBackpropInput{_GRADIENT}",
    _transposed("Conv2DBackpropInput"),
    _check_convolution("Conv2DBackpropInput", "HW"),
)
Conv2DTranspose = form(
    f"Conv2DTranspose{_GRADIENT}", _transposed("Conv2DTranspose"), _check_convolution("Conv2DTranspose", "HW")
)
Conv3D = form(
    f"Conv3D(out_channel, kernel_size, mode=1, {_CONV3D}, data_format='NCDHW')(x, weight, bias=None)",
    _convolved_3d,
    _check_convolution("Conv3D", "DHW"),
)
Conv3DTranspose = form(
    f"Conv3DTranspose(in_channel, out_channel, kernel_size, mode=1, {_CONV3D}, output_padding=0, "
    "data_format='NCDHW')(dout, weight, bias=None)",
    _transposed_3d,
    _check_convolution("Conv3DTranspose", "DHW"),
)
DepthwiseConv2dNative = form(
    f"DepthwiseConv2dNative(channel_multiplier, kernel_size, mode=3, {_CONV3D})(x, weight)", _by_channel
)

# pooling


def _check_pool(where: str, formats: tuple[str, ...], modes: tuple[str, ...] = ("valid", "same")) -> Any:
    def check(*, kernel_size: Any, strides: Any, pad_mode: Any, data_format: Any, **given: Any) -> None:
        _choice(where, "pad_mode", pad_mode, modes)
        _choice(where, "data_format", data_format, formats)
        n = len(formats[0]) - 2
        for name, value in (("kernel_size", kernel_size), ("strides", strides)):
            per_axis(value, n, where, name)

    return check


def _pooled(where: str, pool: Any) -> Any:
    def compute(x: Any, kernel_size: Any, strides: Any, pad_mode: str, data_format: str) -> Tensor:
        image = _channels_first(as_tensor(x, where, "x"), data_format)
        return _channels_back(pool(where, 2, image, kernel_size, strides, pad_mode), data_format)

    return compute


def _average_3d(
    x: Any, kernel_size: Any, strides: Any, pad_mode: str, pad: Any, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int, data_format: str,
) -> Tensor:  # fmt: skip
    padding = pad if pad_mode.lower() == "pad" else 0
    divisor = divisor_override or None
    return avg_pooling(
        "AvgPool3D", 3, x, kernel_size, strides, pad_mode, padding, ceil_mode, count_include_pad, divisor
    )


def _largest_3d(
    x: Any, kernel_size: Any, strides: Any, pad_mode: str, pad_list: Any, ceil_mode: Any, data_format: str
) -> Any:
    padding = pad_list if pad_mode.lower() == "pad" else 0
    return max_pooling("MaxPool3D", 3, x, kernel_size, strides, pad_mode, padding, 1, bool(ceil_mode))


def _largest_with_place(x: Any, kernel_size: Any, strides: Any, pad_mode: str, data_format: str) -> Any:
    """The largest elements, and their places within height and width, as int32."""
    image = _channels_first(as_tensor(x, "MaxPoolWithArgmax", "x"), data_format)
    made, places = max_pooling("MaxPoolWithArgmax", 2, image, kernel_size, strides, pad_mode, return_indices=True)
    return _channels_back(made, data_format), cast(_channels_back(places, data_format), int32)


def _with_place(where: str, n: int) -> Any:
    def compute(x: Any, kernel: Any, strides: Any, pads: Any, dilation: Any, ceil_mode: bool, *further: Any) -> Any:
        made, places = max_pooling(where, n, x, kernel, strides, "pad", pads, dilation, ceil_mode, True)
        return made, cast(places, further[-1])

    return compute


def _unpooled(unpool: Any) -> Any:
    def compute(x: Any, argmax: Any, ksize: Any, strides: Any, pads: Any, output_shape: Any, data_format: str) -> Any:
        strides = None if strides == 0 else strides
        return unpool(x, argmax, ksize, strides, pads, tuple(output_shape) or None)

    return compute


AdaptiveAvgPool2D = form("AdaptiveAvgPool2D(output_size)(input_x)", adaptive_avg_pool2d)
AdaptiveAvgPool3D = form("AdaptiveAvgPool3D(output_size)(x)", adaptive_avg_pool3d)
AdaptiveMaxPool2D = form(
    "AdaptiveMaxPool2D(output_size)(input)", lambda input, output_size: adaptive_max_pool2d(input, output_size, True)
)
AdaptiveMaxPool3D = form(
    "AdaptiveMaxPool3D()(x, output_size)", lambda x, output_size: adaptive_max_pool3d(x, output_size, True)
)
AvgPool = form(
    "AvgPool(kernel_size=1, strides=1, pad_mode='VALID', data_format='NCHW')(x)",
    _pooled("AvgPool", avg_pooling),
    _check_pool("AvgPool", ("NCHW", "NHWC")),
)
AvgPool3D = form(
    "AvgPool3D(kernel_size=1, strides=1, pad_mode='valid', pad=0, ceil_mode=False, count_include_pad=True, "
    "divisor_override=0, data_format='NCDHW')(x)",
    _average_3d,
    _check_pool("AvgPool3D", ("NCDHW",), ("valid", "same", "pad")),
)
MaxPool = form(
    "MaxPool(kernel_size=1, strides=1, pad_mode='valid', data_format='NCHW')(x)",
    _pooled("MaxPool", max_pooling),
    _check_pool("MaxPool", ("NCHW", "NHWC")),
)
MaxPool3D = form(
    "MaxPool3D(kernel_size=1, strides=1, pad_mode='VALID', pad_list=0, ceil_mode=None, data_format='NCDHW')(x)",
    _largest_3d,
    _check_pool("MaxPool3D", ("NCDHW",), ("valid", "same", "pad")),
)
MaxPool3DWithArgmax = form(
    "MaxPool3DWithArgmax(ksize, strides, pads, dilation=(1, 1, 1), ceil_mode=False, data_format='NCDHW', "
    "argmax_type=int64)(x)",
    _with_place("MaxPool3DWithArgmax", 3),
)
MaxPoolWithArgmax = form(
    "MaxPoolWithArgmax(kernel_size=1, strides=1, pad_mode='valid', data_format='NCHW')(x)",
    _largest_with_place,
    _check_pool("MaxPoolWithArgmax", ("NCHW", "NHWC")),
)
MaxPoolWithArgmaxV2 = form(
    "MaxPoolWithArgmaxV2(kernel_size, strides=None, pads=0, dilation=(1, 1), ceil_mode=False, argmax_type=int64)(x)",
    _with_place("MaxPoolWithArgmaxV2", 2),
)
MaxUnpool2D = form(
    "MaxUnpool2D(ksize, strides=0, pads=0, output_shape=(), data_format='NCHW')(x, argmax)", _unpooled(max_unpool2d)
)
MaxUnpool3D = form(
    "MaxUnpool3D(ksize, strides=0, pads=0, output_shape=(), data_format='NCDHW')(x, argmax)", _unpooled(max_unpool3d)
)

# normalization


def _batch_norm(
    x: Any, scale: Any, bias: Any, mean: Any, variance: Any, is_training: bool, epsilon: float, momentum: float,
    data_format: str,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The result, the mean and variance it was normalized with, and both once more.

    In training these are the batch's, and ``mean`` and ``variance``, if they are Parameters, are updated.
    """
    t = as_float(x, "BatchNorm", "input_x")
    if t.ndim < 2:
        raise ShapeError("BatchNorm", "input_x", got=f"shape {t.shape}", takes="shape (batch, channels, ...)")
    axis = t.ndim - 1 if data_format == "NHWC" else 1
    names = ("scale", "bias", "mean", "variance")
    params = [as_tensor(v, "BatchNorm", n) for v, n in zip((scale, bias, mean, variance), names, strict=True)]
    for p, name in zip(params, names, strict=True):
        if p.shape != (t.shape[axis],):
            raise ShapeError(
                "BatchNorm", name, got=f"shape {p.shape}", takes=f"({t.shape[axis]},), one for each channel"
            )
    if not is_training:
        made = one(batch_norm_inference_p, t, *params, axis=axis, epsilon=epsilon)
        return made, params[2], params[3], params[2], params[3]
    made, of_mean, of_variance = several(batch_norm_p, t, params[0], params[1], axis=axis, epsilon=epsilon)
    if isinstance(mean, Parameter) and isinstance(variance, Parameter):
        count = t.size // max(t.shape[axis], 1)
        new = several(running_statistics_p, mean, variance, of_mean, of_variance, momentum=float(momentum), count=count)
        set_value(mean, new[0])
        set_value(variance, new[1])
    return made, of_mean, of_variance, of_mean, of_variance


def _check_batch_norm(is_training: bool, epsilon: float, momentum: float, data_format: str) -> None:
    if not 0 < epsilon <= 1:
        raise ArgumentValueError("BatchNorm", "epsilon", got=str(epsilon), takes="a number above 0, at most 1")
    if not 0 <= momentum <= 1:
        raise ArgumentValueError("BatchNorm", "momentum", got=str(momentum), takes="a number from 0 to 1")
    _choice("BatchNorm", "data_format", data_format, ("NCHW", "NHWC", "NCDHW"))


def _layer_norm(
    input_x: Any, gamma: Any, beta: Any, begin_norm_axis: int, begin_params_axis: int, epsilon: float
) -> tuple[Tensor, ...]:
    """The result, and the mean and variance it was normalized with."""
    x = as_float(input_x, "LayerNorm", "input_x")
    begin = as_axis(begin_norm_axis, x.ndim, "LayerNorm", "begin_norm_axis")
    first = as_axis(begin_params_axis, x.ndim, "LayerNorm", "begin_params_axis")
    params = [as_tensor(p, "LayerNorm", n) for p, n in ((gamma, "gamma"), (beta, "beta"))]
    for p, name in zip(params, ("gamma", "beta"), strict=True):
        if p.shape != x.shape[first:]:
            raise ShapeError("LayerNorm", name, got=f"shape {p.shape}", takes=f"{x.shape[first:]}, of the last axes")
    if first == begin:
        made, mean, rstd = several(layer_norm_p, x, *params, begin=begin, epsilon=float(epsilon))
    else:
        made, mean, rstd = several(layer_norm_p, x, begin=begin, epsilon=float(epsilon))
        scaled: Any = made
        made = scaled * params[0] + params[1]
    inverse: Any = rstd
    return made, mean, 1 / (inverse * inverse) - float(epsilon)


def _biased(input_x: Any, bias: Any, data_format: str) -> Tensor:
    t, b = as_tensor(input_x, "BiasAdd", "input_x"), as_tensor(bias, "BiasAdd", "bias")
    axis = t.ndim - 1 if data_format == "NHWC" else 1
    if t.ndim < 2 or b.shape != (t.shape[axis],):
        raise ShapeError("BiasAdd", "bias", got=f"shape {b.shape}", takes=f"one for each channel of {t.shape}")
    return add(t, reshape(b, (-1, *(1,) * (t.ndim - 1 - axis))))


def bias_add(input_x: Any, bias: Any) -> Tensor:
    """Add a bias to each channel.

    Args:
        input_x: a tensor of shape (batch, channels, ...).
        bias: a tensor of shape (channels,).

    Raises:
        ShapeError: the bias does not fit.

    >>> import mycelia as ms
    >>> print(ms.ops.bias_add(ms.Tensor([[1.0, 2.0]]), ms.Tensor([10.0, 20.0])))
    [[11. 22.]]
    """
    return _biased(input_x, bias, "NCHW")


def _softmax_over(fold: Any, where: str) -> Any:
    def compute(x: Any, axis: Any) -> Tensor:
        axes = axis if isinstance(axis, tuple) else (axis,)
        if len(axes) == 1:
            made: Tensor = fold(x, axes[0])
            return made
        t = as_tensor(x, where, "x")
        taken = [as_axis(a, t.ndim, where) for a in axes]
        order = [i for i in range(t.ndim) if i not in taken] + taken
        moved = transpose(t, tuple(order))
        lead = len(order) - len(taken)
        flat = fold(reshape(moved, (*moved.shape[:lead], -1)), -1)
        made = transpose(reshape(flat, moved.shape), tuple(sorted(range(t.ndim), key=order.__getitem__)))
        return made

    return compute


BatchNorm = form(
    "BatchNorm(is_training=False, epsilon=1e-05, momentum=0.1, data_format='NCHW')"
    "(input_x, scale, bias, mean, variance)",
    _batch_norm,
    _check_batch_norm,
)
BiasAdd = form(
    "BiasAdd(data_format='NCHW')(input_x, bias)",
    _biased,
    lambda data_format: _choice("BiasAdd", "data_format", data_format, ("NCHW", "NHWC", "NCDHW")),
)
LRN = form("LRN(depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region='ACROSS_CHANNELS')(x)", lrn)
LayerNorm = form("LayerNorm(begin_norm_axis=1, begin_params_axis=1, epsilon=1e-07)(input_x, gamma, beta)", _layer_norm)
LogSoftmax = form("LogSoftmax(axis=-1)(logits)", _softmax_over(log_softmax, "LogSoftmax"))
LogSoftmaxExt = form(
    "LogSoftmaxExt()(input, dim=None, dtype=None)",
    lambda input, dim, dtype: log_softmax(input, -1 if dim is None else dim, dtype=dtype),
)
RmsNorm = form("RmsNorm(epsilon=1e-06)(x, gamma)", rms_norm)
Softmax = form("Softmax(axis=-1)(input)", _softmax_over(softmax, "Softmax"))

# attention


def _attention(query: Any, key: Any, value: Any, *rest: Any) -> tuple[None, None, None, Tensor]:
    """Attention as the last of four; what the first three hold for an accelerator's backward pass is not kept."""
    masks, heads, options = rest[:7], rest[7], rest[8:]
    return None, None, None, flash_attention_score(query, key, value, heads, *masks, *options)


FlashAttentionScore = form(
    "FlashAttentionScore(head_num, keep_prob=1.0, scale_value=1.0, pre_tokens=2147483647, next_tokens=2147483647, "
    "inner_precise=0, input_layout='BSH', sparse_mode=0)(query, key, value, real_shift=None, drop_mask=None, "
    "padding_mask=None, attn_mask=None, prefix=None, actual_seq_qlen=None, actual_seq_kvlen=None)",
    _attention,
)

# dropout


def _check_keep(where: str) -> Any:
    def check(keep_prob: float, **seeds: Any) -> None:
        if not 0 <= keep_prob <= 1 or (where == "Dropout" and not keep_prob):
            least = "a probability above 0" if where == "Dropout" else "a probability from 0"
            raise ArgumentValueError(where, "keep_prob", got=str(keep_prob), takes=f"{least}, at most 1")

    return check


def _dropped(x: Any, keep_prob: float, seed0: int, seed1: int) -> tuple[Tensor, Tensor]:
    """The kept elements divided by ``keep_prob``, and the mask in the dtype of ``x``."""
    t = as_float(x, "Dropout", "x")
    key = next_key(seed0 or seed1 or None, None, "Dropout")
    made, mask = several(dropout_p, key, t, p=1.0 - float(keep_prob), mask_shape=t.shape)
    return made, cast(mask, t.dtype)


def _dropped_channels(where: str, n: int) -> Any:
    def compute(x: Any, keep_prob: float) -> tuple[Tensor, Tensor]:
        t = as_float(x, where, "x")
        if t.ndim != n + 2:
            raise ShapeError(
                where, "x", got=f"shape {t.shape}", takes=f"{n + 2} axes: batch, channels and the spatial ones"
            )
        shape = (*t.shape[:2], *(1,) * n)
        made, mask = several(dropout_p, next_key(where=where), t, p=1.0 - float(keep_prob), mask_shape=shape)
        return made, broadcast_to(mask, t.shape)

    return compute


Dropout = form("Dropout(keep_prob=0.5, Seed0=0, Seed1=0)(x)", _dropped, _check_keep("Dropout"))
Dropout2D = form("Dropout2D(keep_prob=0.5)(x)", _dropped_channels("Dropout2D", 2), _check_keep("Dropout2D"))
Dropout3D = form("Dropout3D(keep_prob=0.5)(x)", _dropped_channels("Dropout3D", 3), _check_keep("Dropout3D"))
