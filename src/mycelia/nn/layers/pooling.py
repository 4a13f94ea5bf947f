"""Maximum and average over windows that slide over one, two or three axes."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.nn.cell import Cell
from mycelia.nn.layers import arguments as arg
from mycelia.ops.convolution import same_pads
from mycelia.ops.max_avg_pooling import avg_pooling, max_pooling
from mycelia.tensor import Tensor

_LAYOUT = {1: "(batch,) channels, length", 2: "(batch,) channels, height, width",
           3: "(batch,) channels, depth, height, width"}  # fmt: skip


class _Pool(Cell):
    """Window, step and padding."""

    n: int

    def __init__(
        self, kernel_size: Any, stride: Any, pad_mode: str, padding: Any, ceil_mode: bool, data_format: str = "NCHW"
    ) -> None:
        super().__init__()
        where, n = type(self).__name__, self.n
        self._kernel = arg.per_axis(where, "kernel_size", kernel_size, n)
        self._stride = arg.per_axis(where, "stride", stride, n)
        mode = pad_mode.lower() if isinstance(pad_mode, str) else pad_mode
        self._mode = arg.choice(where, "pad_mode", mode, ("valid", "same", "pad"))
        self._padding = arg.per_axis(where, "padding", _unwrapped(padding), n, 0)
        arg.flag(where, "ceil_mode", ceil_mode)
        self.ceil_mode = ceil_mode
        self.data_format = data_format
        single = n == 1
        self.kernel_size = (1, *self._kernel) if single else kernel_size
        self.stride = (1, *self._stride) if single else stride
        self.pad_mode = self._mode.upper()
        self.padding = padding
        if self._mode != "pad":
            self._only_with_pad("padding", any(self._padding))
        for p, k in zip(self._padding, self._kernel, strict=True):
            if 2 * p > k:
                raise ArgumentValueError(
                    where, "padding", got=str(padding), takes=f"at most half of the kernel, {kernel_size}"
                )

    def _only_with_pad(self, argument: str, given: bool) -> None:
        if given and self._mode != "pad":
            raise ArgumentValueError(
                type(self).__name__,
                argument,
                got=f"a value with pad_mode={self._mode!r}",
                takes="its default, or pad_mode='pad'",
            )

    def _input(self, x: Any) -> Tensor:
        where, n = type(self).__name__, self.n
        t = arg.axes_of_input(where, "x", x, (n + 1, n + 2), _LAYOUT[n])
        if self.data_format == "NHWC":
            t = ops.transpose(t, (0, 3, 1, 2))
        if self._mode == "valid":
            for size, k in zip(t.shape[-n:], self._kernel, strict=True):
                if k > size:
                    raise ShapeError(
                        where, "x", got=f"shape {t.shape}", takes=f"axes at least as long as the kernel, {self._kernel}"
                    )
        return t

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}"


def _unwrapped(value: Any) -> Any:
    return value[0] if isinstance(value, (tuple, list)) and len(value) == 1 else value


class _MaxPool(_Pool):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any,
        pad_mode: str,
        padding: Any,
        dilation: Any,
        return_indices: bool,
        ceil_mode: bool,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, data_format)
        where = type(self).__name__
        self._dilation = arg.per_axis(where, "dilation", _unwrapped(dilation), self.n)
        arg.flag(where, "return_indices", return_indices)
        self.dilation, self.return_indices = dilation, return_indices
        self._only_with_pad("dilation", any(d != 1 for d in self._dilation))
        self._only_with_pad("return_indices", return_indices)
        self._only_with_pad("ceil_mode", ceil_mode)

    def construct(self, x: Any) -> Any:
        y = max_pooling(
            type(self).__name__, self.n, self._input(x), self._kernel, self._stride, self._mode,
            self._padding if self._mode == "pad" else 0, self._dilation, self.ceil_mode, self.return_indices,
        )  # fmt: skip
        return ops.transpose(y, (0, 2, 3, 1)) if self.data_format == "NHWC" else y


class MaxPool1d(_MaxPool):
    """Largest elements of windows along one axis.

    Args:
        kernel_size: length of the window.
        stride: step of the window.
        pad_mode: ``"valid"``, ``"same"`` (the result has ``ceil(length / stride)`` elements) or ``"pad"``.
        padding: minus infinities on both sides with ``"pad"``; at most half of the kernel.
        dilation: distance of elements within the window, with ``"pad"``.
        return_indices: also give the positions of the maxima, with ``"pad"``.
        ceil_mode: keep a last window that is not full, with ``"pad"``.

    Inputs:
        x: a tensor of shape (batch, channels, length), or (channels, length).

    Raises:
        ShapeError: the input has other axes or is shorter than the window.
        ArgumentValueError: an option that ``pad_mode`` does not take.

    >>> import mycelia as ms
    >>> print(ms.nn.MaxPool1d(2, 2)(ms.Tensor([[1.0, 3.0, 2.0, 4.0]])))
    [[3. 4.]]
    """

    n = 1

    def __init__(
        self,
        kernel_size: int = 1,
        stride: int = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode)


class MaxPool2d(_MaxPool):
    """Largest elements of windows that slide over images.

    Args:
        kernel_size: window, an int or a pair (height, width).
        stride: step, an int or a pair.
        pad_mode: ``"valid"``, ``"same"`` (the result is ``ceil(size / stride)`` large) or ``"pad"``.
        padding: minus infinities on each side with ``"pad"``, an int or a pair; at most half of the kernel.
        dilation: distance of elements within the window, with ``"pad"``.
        return_indices: also give the flat positions of the maxima, with ``"pad"``.
        ceil_mode: keep a last window that is not full, with ``"pad"``.
        data_format: ``"NCHW"``, or ``"NHWC"`` for channels last.

    Inputs:
        x: a tensor of shape (batch, channels, height, width), or without the batch.

    Raises:
        ShapeError: the input has other axes or is smaller than the window.
        ArgumentValueError: an option that ``pad_mode`` does not take.

    >>> import mycelia as ms
    >>> ms.nn.MaxPool2d(3, 2, pad_mode="same")(ms.ops.ones((1, 2, 9, 8))).shape
    (1, 2, 5, 4)
    """

    n = 2

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
    ) -> None:
        layout = arg.choice("MaxPool2d", "data_format", data_format, ("NCHW", "NHWC"))
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode, layout)


class MaxPool3d(_MaxPool):
    """Largest elements of windows that slide over volumes; see :class:`MaxPool2d`.

    Args:
        kernel_size: window, an int or three (depth, height, width).
        stride: step, an int or three.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``.
        padding: minus infinities on each side with ``"pad"``, an int or three.
        dilation: distance of elements within the window, with ``"pad"``.
        return_indices: also give the flat positions of the maxima, with ``"pad"``.
        ceil_mode: keep a last window that is not full, with ``"pad"``.

    Inputs:
        x: a tensor of shape (batch, channels, depth, height, width), or without the batch.

    >>> import mycelia as ms
    >>> ms.nn.MaxPool3d(2, 2)(ms.ops.ones((1, 2, 4, 4, 6))).shape
    (1, 2, 2, 2, 3)
    """

    n = 3

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode)


class _AvgPool(_Pool):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any,
        pad_mode: str,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, data_format)
        where = type(self).__name__
        arg.flag(where, "count_include_pad", count_include_pad)
        self.count_include_pad = count_include_pad
        if divisor_override is not None:
            arg.positive(where, "divisor_override", divisor_override)
        self.divisor_override = divisor_override

    def _pads(self, t: Tensor) -> tuple[str, Any]:
        """Mode and padding; with ``"same"``, only volumes count the padding."""
        if self._mode == "same" and self.n == 3:
            pairs = same_pads(t.shape[-3:], self._kernel, self._stride, (1, 1, 1))
            return "pad", [p for pair in pairs for p in pair]
        return self._mode, self._padding if self._mode == "pad" else 0

    def construct(self, x: Any) -> Any:
        t = self._input(x)
        mode, padding = self._pads(t)
        y = avg_pooling(
            type(self).__name__, self.n, t, self._kernel, self._stride, mode, padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip
        return ops.transpose(y, (0, 2, 3, 1)) if self.data_format == "NHWC" else y


class AvgPool1d(_AvgPool):
    """Means of windows along one axis.

    Args:
        kernel_size: length of the window.
        stride: step of the window.
        pad_mode: ``"valid"``, ``"same"`` (the result has ``ceil(length / stride)`` elements) or ``"pad"``.
        padding: zeros on both sides with ``"pad"``; at most half of the kernel.
        ceil_mode: keep a last window that is not full.
        count_include_pad: divide by the whole window, zeros of ``padding`` included.

    Inputs:
        x: a tensor of shape (batch, channels, length), or (channels, length).

    Raises:
        ShapeError: the input has other axes or is shorter than the window.

    >>> import mycelia as ms
    >>> print(ms.nn.AvgPool1d(2, 2)(ms.Tensor([[1.0, 3.0, 2.0, 4.0]])))
    [[2. 3.]]
    """

    n = 1

    def __init__(
        self,
        kernel_size: int = 1,
        stride: int = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad)


class AvgPool2d(_AvgPool):
    """Means of windows that slide over images.

    Args:
        kernel_size: window, an int or a pair (height, width).
        stride: step, an int or a pair.
        pad_mode: ``"valid"``, ``"same"`` (the result is ``ceil(size / stride)`` large) or ``"pad"``.
        padding: zeros on each side with ``"pad"``, an int or a pair; at most half of the kernel.
        ceil_mode: keep a last window that is not full.
        count_include_pad: divide by the whole window, zeros of ``padding`` included.
        divisor_override: divide by this number instead.
        data_format: ``"NCHW"``, or ``"NHWC"`` for channels last.

    Inputs:
        x: a tensor of shape (batch, channels, height, width), or without the batch.

    Raises:
        ShapeError: the input has other axes or is smaller than the window.

    >>> import mycelia as ms
    >>> print(ms.nn.AvgPool2d(2)(ms.Tensor([[[1.0, 3.0], [5.0, 7.0]]])))
    [[[4.]]]
    """

    n = 2

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        data_format: str = "NCHW",
    ) -> None:
        layout = arg.choice("AvgPool2d", "data_format", data_format, ("NCHW", "NHWC"))
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad, divisor_override, layout)


class AvgPool3d(_AvgPool):
    """Means of windows that slide over volumes; see :class:`AvgPool2d`.

    Args:
        kernel_size: window, an int or three (depth, height, width).
        stride: step, an int or three.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``.
        padding: zeros on each side with ``"pad"``, an int or three.
        ceil_mode: keep a last window that is not full.
        count_include_pad: divide by the whole window, zeros of ``padding`` included.
        divisor_override: divide by this number instead.

    Inputs:
        x: a tensor of shape (batch, channels, depth, height, width), or without the batch.

    >>> import mycelia as ms
    >>> ms.nn.AvgPool3d(2, 2)(ms.ops.ones((1, 2, 4, 4, 6))).shape
    (1, 2, 2, 2, 3)
    """

    n = 3

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad, divisor_override)


class MaxPool2dExt(Cell):
    """:class:`MaxPool2d` under the keywords of ``ops.max_pool2d``; the step is the window by default.

    >>> import mycelia as ms
    >>> print(ms.nn.MaxPool2dExt(2)(ms.Tensor([[[1.0, 3.0], [5.0, 7.0]]])))
    [[[7.]]]
    """

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.dilation, self.return_indices, self.ceil_mode = dilation, return_indices, ceil_mode

    def construct(self, input: Any) -> Any:
        return ops.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.return_indices, self.ceil_mode
        )  # fmt: skip

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPoolExt(Cell):
    n: int

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def construct(self, input: Any) -> Any:
        return avg_pooling(
            type(self).__name__, self.n, input, self.kernel_size, self.stride, "pad", self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1dExt(_AvgPoolExt):
    """:class:`AvgPool1d` whose step is the window by default.

    >>> import mycelia as ms
    >>> print(ms.nn.AvgPool1dExt(2)(ms.Tensor([[1.0, 3.0, 2.0, 4.0]])))
    [[2. 3.]]
    """

    n = 1

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)


class AvgPool2dExt(_AvgPoolExt):
    """:class:`AvgPool2d` whose step is the window by default.

    >>> import mycelia as ms
    >>> print(ms.nn.AvgPool2dExt(2)(ms.Tensor([[[1.0, 3.0], [5.0, 7.0]]])))
    [[[4.]]]
    """

    n = 2


class AvgPool3dExt(_AvgPoolExt):
    """:class:`AvgPool3d` whose step is the window by default.

    >>> import mycelia as ms
    >>> ms.nn.AvgPool3dExt(2)(ms.ops.ones((1, 2, 4, 4, 6))).shape
    (1, 2, 2, 2, 3)
    """

    n = 3
