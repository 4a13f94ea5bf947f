"""Convolutions over one, two and three axes, and their transposes.

Kernels have the layout (out, in / group, ...), those of transposed layers (in, out / group, ...). The one
of :class:`Conv1d` keeps an axis of length 1 before its own, as checkpoints have it.
"""

from __future__ import annotations

import math
from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, UnsupportedError
from mycelia.nn.cell import Cell
from mycelia.nn.initializer import HeUniform, Uniform
from mycelia.nn.layers import arguments as arg
from mycelia.ops.convolution import conv_p, per_axis, same_pads, transposed_convolution
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_LAYOUT = {1: "(batch, channels, width)", 2: "(batch, channels, height, width)",
           3: "(batch, channels, depth, height, width)"}  # fmt: skip


class _Convolution(Cell):
    """What all convolutions are made of."""

    rank: int
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        pad_mode: str,
        padding: Any,
        dilation: Any,
        group: int,
        has_bias: bool,
        weight_init: Any,
        bias_init: Any,
        data_format: str,
        dtype: Any,
    ) -> None:
        super().__init__()
        where, n = type(self).__name__, self.rank
        self.in_channels = arg.positive(where, "in_channels", in_channels)
        self.out_channels = arg.positive(where, "out_channels", out_channels)
        self.kernel_size = arg.per_axis(where, "kernel_size", kernel_size, n)
        self.stride = arg.per_axis(where, "stride", stride, n)
        self.dilation = arg.per_axis(where, "dilation", dilation, n)
        self.pad_mode = arg.choice(where, "pad_mode", pad_mode, ("same", "valid", "pad"))
        self.padding = padding
        self._pads = _pads(where, padding, n, pad_mode)
        self.group = arg.positive(where, "group", group)
        for name, value in (("in_channels", in_channels), ("out_channels", out_channels)):
            if value % group:
                raise ArgumentValueError(
                    where, name, got=f"{value} with group={group}", takes="a multiple of the groups"
                )
        arg.flag(where, "has_bias", has_bias)
        self.has_bias = has_bias
        self.data_format = data_format
        kind = arg.floating_dtype(where, dtype)
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = self._weight_shape(first, second // group)
        self.weight_init = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = arg.parameter(where, "weight_init", self.weight_init, shape, kind, "weight")
        self.bias_init = bias_init
        self.bias = None
        if has_bias:
            if bias_init is None:
                self.bias_init = Uniform(1 / math.sqrt(second // group * math.prod(self.kernel_size)))
            self.bias = arg.parameter(where, "bias_init", self.bias_init, (out_channels,), kind, "bias")

    def _weight_shape(self, first: int, second: int) -> tuple[int, ...]:
        return (first, second, *self.kernel_size)

    def _input(self, x: Any) -> Tensor:
        """The input, if its axes and channels fit."""
        where, n = type(self).__name__, self.rank
        t = arg.axes_of_input(where, "x", x, (n + 2,), _LAYOUT[n])
        return arg.channels_of(where, "x", t, -1 if self.data_format[-1] == "C" else 1, self.in_channels)

    def _convolved(self, t: Tensor, weight: Tensor) -> Any:
        last = self.data_format[-1] == "C"
        pads = self._pads
        if self.pad_mode == "same":
            sizes = t.shape[1:-1] if last else t.shape[2:]
            pads = same_pads(sizes, weight.shape[2:], self._strides, self._dilations)
        operands = (t, weight) if self.bias is None else (t, weight, self.bias)
        return apply(
            conv_p, *operands, strides=self._strides, padding=pads, dilation=self._dilations, groups=self.group,
            channels_last=last,
        )  # fmt: skip

    @property
    def _strides(self) -> tuple[int, ...]:
        return self.stride

    @property
    def _dilations(self) -> tuple[int, ...]:
        return self.dilation

    def extend_repr(self) -> str:
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}, "
            f"padding={self.padding}, dilation={self.dilation}, group={self.group}, has_bias={self.has_bias}, "
            f"weight_init={self.weight_init}, bias_init={self.bias_init}, format={self.data_format}"
        )


def _pads(where: str, padding: Any, n: int, pad_mode: str) -> tuple[tuple[int, int], ...]:
    """Padding before and after each axis, of an int or of twice as many ints as axes."""
    flat = per_axis(padding, 2 * n, where, "padding", 0)
    if pad_mode != "pad" and any(flat):
        raise ArgumentValueError(
            where, "padding", got=f"{padding} with pad_mode={pad_mode!r}", takes="0, or any with pad_mode='pad'"
        )
    return tuple((flat[2 * i], flat[2 * i + 1]) for i in range(n))


def _data_format(where: str, value: Any, allowed: tuple[str, ...]) -> str:
    chosen = arg.choice(where, "data_format", value, ("NCHW", "NHWC") if "NCHW" in allowed else ("NCDHW", "NDHWC"))
    if chosen not in allowed:
        raise UnsupportedError(where, "data_format", got=repr(chosen), takes=", ".join(map(repr, allowed)))
    return chosen


class Conv2d(_Convolution):
    """Convolution of images.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: an int or a pair (height, width).
        stride: an int or a pair.
        pad_mode: ``"same"``: the output is ``ceil(input / stride)`` large; ``"valid"``: nothing is padded;
            ``"pad"``: zeros as ``padding`` says.
        padding: an int, or four ints (top, bottom, left, right); 0 unless ``pad_mode`` is ``"pad"``.
        dilation: distance of kernel elements, an int or a pair.
        group: groups that the channels are divided into; both numbers of channels are multiples of it.
        has_bias: whether there is a bias.
        weight_init: initial kernel of shape (out, in / group, height, width): a name, an Initializer, a
            number or a Tensor; by default uniform within ``1 / sqrt(in / group * height * width)``.
        bias_init: initial bias of shape (out,); by default likewise.
        data_format: ``"NCHW"``, or ``"NHWC"``: channels last, and the kernel (out, height, width, in / group).
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, in_channels, height, width).

    Outputs:
        A tensor of shape (batch, out_channels, height', width').

    Raises:
        ShapeError: the input has other channels or axes, or is smaller than the kernel.
        ArgumentValueError: a size that is not positive, channels that are no multiple of ``group``, or a
            padding that ``pad_mode`` does not take.

    >>> import mycelia as ms
    >>> ms.nn.Conv2d(3, 8, 3, stride=2)(ms.ops.ones((1, 3, 9, 8))).shape
    (1, 8, 5, 4)
    """

    rank = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCHW",
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, _data_format("Conv2d", data_format, ("NCHW", "NHWC")), dtype,
        )  # fmt: skip

    def _weight_shape(self, first: int, second: int) -> tuple[int, ...]:
        kernel = self.kernel_size
        return (first, *kernel, second) if self.data_format == "NHWC" else (first, second, *kernel)

    def construct(self, x: Any) -> Any:
        weight = self.weight
        if self.data_format == "NHWC":
            weight = ops.transpose(weight, (0, 3, 1, 2))
        return self._convolved(self._input(x), weight)


class Conv1d(_Convolution):
    """Convolution of sequences.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: width of the kernel.
        stride: an int.
        pad_mode: ``"same"``, ``"valid"`` or ``"pad"``; see :class:`Conv2d`.
        padding: an int, zeros on both sides with ``pad_mode="pad"``.
        dilation: distance of kernel elements.
        group: groups that the channels are divided into.
        has_bias: whether there is a bias.
        weight_init: initial kernel of shape (out, in / group, 1, width).
        bias_init: initial bias of shape (out,).
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, in_channels, width).

    Raises:
        ShapeError: the input has other channels or axes, or is smaller than the kernel.

    >>> import mycelia as ms
    >>> ms.nn.Conv1d(3, 8, 3, pad_mode="valid")(ms.ops.ones((1, 3, 9))).shape
    (1, 8, 7)
    """

    rank = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        pad_mode: str = "same",
        padding: int = 0,
        dilation: int = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = dt.float32,
    ) -> None:
        _single(type(self).__name__, kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, "NCHW", dtype,
        )  # fmt: skip
        _as_images(self)

    def _weight_shape(self, first: int, second: int) -> tuple[int, ...]:
        return (first, second, 1, *self.kernel_size)

    @property
    def _strides(self) -> tuple[int, ...]:
        return self.stride[1:]

    @property
    def _dilations(self) -> tuple[int, ...]:
        return self.dilation[1:]

    def construct(self, x: Any) -> Any:
        return self._convolved(self._input(x), ops.squeeze(self.weight, 2))


def _single(where: str, **values: Any) -> None:
    for name, value in values.items():
        arg.positive(where, name, value, 0 if name == "padding" else 1)


def _as_images(layer: _Convolution) -> None:
    """Sizes of a layer over one axis as attributes show them: those of an image of height 1."""
    layer.kernel_size = (1, *layer.kernel_size)
    layer.stride = (1, *layer.stride)
    layer.dilation = (1, *layer.dilation)
    layer.padding = (0, 0, layer.padding, layer.padding)


class Conv3d(_Convolution):
    """Convolution of volumes.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: an int or three (depth, height, width).
        stride: an int or three.
        pad_mode: ``"same"``, ``"valid"`` or ``"pad"``; see :class:`Conv2d`.
        padding: an int, or six ints (front, back, top, bottom, left, right), with ``pad_mode="pad"``.
        dilation: an int or three.
        group: groups that the channels are divided into.
        has_bias: whether there is a bias.
        weight_init: initial kernel of shape (out, in / group, depth, height, width).
        bias_init: initial bias of shape (out,).
        data_format: ``"NCDHW"``.
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, in_channels, depth, height, width).

    Raises:
        ShapeError: the input has other channels or axes, or is smaller than the kernel.

    >>> import mycelia as ms
    >>> ms.nn.Conv3d(2, 4, 3, stride=2)(ms.ops.ones((1, 2, 4, 6, 8))).shape
    (1, 4, 2, 3, 4)
    """

    rank = 3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCDHW",
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, _data_format("Conv3d", data_format, ("NCDHW",)), dtype,
        )  # fmt: skip

    def construct(self, x: Any) -> Any:
        return self._convolved(self._input(x), self.weight)


class _Transposed(_Convolution):
    """Gradient of a convolution with respect to its input, as a layer of its own."""

    transposed = True
    output_padding: Any = 0

    def construct(self, x: Any) -> Any:
        weight = self.weight if self.rank > 1 else ops.squeeze(self.weight, 2)
        flat = [p for pair in self._pads for p in pair]
        return transposed_convolution(
            type(self).__name__, self.rank, self._input(x), weight, self.bias, self._strides, self.pad_mode,
            flat if any(flat) else 0, self.output_padding, self.group, self._dilations,
        )  # fmt: skip

    def _check_output_padding(self, value: Any) -> Any:
        where = type(self).__name__
        extra = arg.per_axis(where, "output_padding", value, self.rank, 0)
        if any(extra) and self.pad_mode != "pad":
            raise ArgumentValueError(
                where, "output_padding", got=f"{value} with pad_mode={self.pad_mode!r}", takes="0, or any with 'pad'"
            )
        for e, s, d in zip(extra, self._strides, self._dilations, strict=True):
            if e and e >= max(s, d):
                raise ArgumentValueError(where, "output_padding", got=str(value), takes="less than stride or dilation")
        return value


class Conv1dTranspose(_Transposed):
    """Transposed convolution of sequences.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: width of the kernel.
        stride: an int.
        pad_mode: ``"same"``: ``width * stride`` elements; ``"valid"``: ``(width - 1) * stride +
            max(kernel, stride)``; ``"pad"``: ``(width - 1) * stride + kernel - 2 * padding``.
        padding: an int; taken off both sides with ``pad_mode="pad"``.
        dilation: distance of kernel elements.
        group: groups that the channels are divided into.
        has_bias: whether there is a bias.
        weight_init: initial kernel of shape (in, out / group, 1, width).
        bias_init: initial bias of shape (out,).
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, in_channels, width).

    Raises:
        ShapeError: the input has other channels or axes.

    >>> import mycelia as ms
    >>> ms.nn.Conv1dTranspose(3, 8, 3, stride=2)(ms.ops.ones((1, 3, 9))).shape
    (1, 8, 18)
    """

    rank = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        pad_mode: str = "same",
        padding: int = 0,
        dilation: int = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = dt.float32,
    ) -> None:
        _single(type(self).__name__, kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, "NCHW", dtype,
        )  # fmt: skip
        _as_images(self)

    def _weight_shape(self, first: int, second: int) -> tuple[int, ...]:
        return (first, second, 1, *self.kernel_size)

    @property
    def _strides(self) -> tuple[int, ...]:
        return self.stride[1:]

    @property
    def _dilations(self) -> tuple[int, ...]:
        return self.dilation[1:]


class Conv2dTranspose(_Transposed):
    """Transposed convolution of images.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: an int or a pair (height, width).
        stride: an int or a pair.
        pad_mode: ``"same"``: ``size * stride`` elements on an axis; ``"valid"``: ``(size - 1) * stride +
            max(kernel, stride)``; ``"pad"``: ``(size - 1) * stride + kernel - padding + output_padding``.
        padding: an int, or four ints (top, bottom, left, right), taken off with ``pad_mode="pad"``.
        output_padding: an int or a pair, added at the end with ``pad_mode="pad"``; less than stride or dilation.
        dilation: distance of kernel elements, an int or a pair.
        group: groups that the channels are divided into.
        has_bias: whether there is a bias.
        weight_init: initial kernel of shape (in, out / group, height, width).
        bias_init: initial bias of shape (out,).
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, in_channels, height, width).

    Raises:
        ShapeError: the input has other channels or axes.

    >>> import mycelia as ms
    >>> ms.nn.Conv2dTranspose(3, 8, 3, stride=2)(ms.ops.ones((1, 3, 9, 8))).shape
    (1, 8, 18, 16)
    """

    rank = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, "NCHW", dtype,
        )  # fmt: skip
        self.output_padding = self._check_output_padding(output_padding)


class Conv3dTranspose(_Transposed):
    """Transposed convolution of volumes.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: an int or three (depth, height, width).
        stride: an int or three.
        pad_mode: ``"same"``, ``"valid"`` or ``"pad"``; see :class:`Conv2dTranspose`.
        padding: an int, or six ints (front, back, top, bottom, left, right), with ``pad_mode="pad"``.
        dilation: an int or three.
        group: groups that the channels are divided into.
        output_padding: an int or three, added at the end with ``pad_mode="pad"``.
        has_bias: whether there is a bias.
        weight_init: initial kernel of shape (in, out / group, depth, height, width).
        bias_init: initial bias of shape (out,).
        data_format: ``"NCDHW"``.
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, in_channels, depth, height, width).

    Raises:
        ShapeError: the input has other channels or axes.

    >>> import mycelia as ms
    >>> ms.nn.Conv3dTranspose(2, 4, 3, stride=2)(ms.ops.ones((1, 2, 2, 3, 4))).shape
    (1, 4, 4, 6, 8)
    """

    rank = 3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        output_padding: Any = 0,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCDHW",
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init, _data_format("Conv3dTranspose", data_format, ("NCDHW",)), dtype,
        )  # fmt: skip
        self.output_padding = arg.per_axis(
            "Conv3dTranspose", "output_padding", self._check_output_padding(output_padding), 3, 0
        )
