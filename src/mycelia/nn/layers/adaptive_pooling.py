"""Pooling to a given size, power-average pooling, and the partial inverse of max pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia import ops
from mycelia.core.errors import ArgumentValueError
from mycelia.nn.cell import Cell
from mycelia.nn.layers import arguments as arg


def size_of(where: str, value: Any, n: int, *, free: bool) -> Any:
    """An int or ``n`` of them; with ``free`` None keeps the length of an axis."""
    if isinstance(value, (tuple, list)):
        if len(value) != n:
            raise ArgumentValueError(where, "output_size", got=str(value), takes=f"an int or {n} of them")
        return tuple(None if v is None and free else arg.positive(where, "output_size", v) for v in value)
    if value is None and free:
        return (None,) * n
    return arg.positive(where, "output_size", value)


class AdaptiveAvgPool1d(Cell):
    """Means over windows that divide an axis evenly.

    Args:
        output_size: length of the result.

    Inputs:
        input: a tensor of shape (batch, channels, length), or (channels, length).

    >>> import mycelia as ms
    >>> print(ms.nn.AdaptiveAvgPool1d(2)(ms.Tensor([[[1.0, 3.0, 2.0, 4.0]]])))
    [[[2. 3.]]]
    """

    def __init__(self, output_size: int) -> None:
        super().__init__()
        self.output_size = arg.positive("AdaptiveAvgPool1d", "output_size", output_size)

    def construct(self, input: Any) -> Any:
        t = arg.axes_of_input("AdaptiveAvgPool1d", "input", input, (2, 3), "(batch,) channels, length")
        return ops.adaptive_avg_pool1d(t, self.output_size)


class AdaptiveAvgPool2d(Cell):
    """Means over windows that divide images evenly.

    Args:
        output_size: size of the result, an int or a pair; None keeps the length of an axis.

    Inputs:
        input: a tensor of shape (batch, channels, height, width), or without the batch.

    >>> import mycelia as ms
    >>> ms.nn.AdaptiveAvgPool2d((2, None))(ms.ops.ones((1, 3, 5, 6))).shape
    (1, 3, 2, 6)
    """

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = size_of("AdaptiveAvgPool2d", output_size, 2, free=True)

    def construct(self, input: Any) -> Any:
        t = arg.axes_of_input("AdaptiveAvgPool2d", "input", input, (3, 4), "(batch,) channels, height, width")
        return ops.adaptive_avg_pool2d(t, self.output_size)


class AdaptiveAvgPool3d(Cell):
    """Means over windows that divide volumes evenly.

    Args:
        output_size: size of the result, an int or three; None keeps the length of an axis.

    Inputs:
        input: a tensor of shape (batch, channels, depth, height, width), or without the batch.

    >>> import mycelia as ms
    >>> ms.nn.AdaptiveAvgPool3d(2)(ms.ops.ones((1, 3, 4, 5, 6))).shape
    (1, 3, 2, 2, 2)
    """

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = size_of("AdaptiveAvgPool3d", output_size, 3, free=True)

    def construct(self, input: Any) -> Any:
        t = arg.axes_of_input("AdaptiveAvgPool3d", "input", input, (4, 5), "(batch,) channels, depth, height, width")
        return ops.adaptive_avg_pool3d(t, self.output_size)


class AdaptiveMaxPool1d(Cell):
    """Maxima over windows that divide an axis evenly.

    Args:
        output_size: length of the result.

    Inputs:
        x: a tensor of shape (batch, channels, length), or (channels, length).

    >>> import mycelia as ms
    >>> print(ms.nn.AdaptiveMaxPool1d(2)(ms.Tensor([[[1.0, 3.0, 2.0, 4.0]]])))
    [[[3. 4.]]]
    """

    def __init__(self, output_size: int) -> None:
        super().__init__()
        self.output_size = arg.positive("AdaptiveMaxPool1d", "output_size", output_size)

    def construct(self, x: Any) -> Any:
        t = arg.axes_of_input("AdaptiveMaxPool1d", "x", x, (2, 3), "(batch,) channels, length")
        return ops.adaptive_max_pool1d(t, self.output_size)


class AdaptiveMaxPool2d(Cell):
    """Maxima over windows that divide images evenly.

    Args:
        output_size: size of the result, an int or a pair; None keeps the length of an axis.
        return_indices: also give the flat positions of the maxima.

    Inputs:
        input: a tensor of shape (batch, channels, height, width), or without the batch.

    >>> import mycelia as ms
    >>> ms.nn.AdaptiveMaxPool2d((2, None))(ms.ops.ones((1, 3, 5, 6))).shape
    (1, 3, 2, 6)
    """

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = size_of("AdaptiveMaxPool2d", output_size, 2, free=True)
        arg.flag("AdaptiveMaxPool2d", "return_indices", return_indices)
        self.return_indices = return_indices

    def construct(self, input: Any) -> Any:
        t = arg.axes_of_input("AdaptiveMaxPool2d", "input", input, (3, 4), "(batch,) channels, height, width")
        return ops.adaptive_max_pool2d(t, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(Cell):
    """Maxima over windows that divide volumes evenly.

    Args:
        output_size: size of the result, an int or three; None keeps the length of an axis.
        return_indices: also give the flat positions of the maxima.

    Inputs:
        input: a tensor of shape (batch, channels, depth, height, width), or without the batch.

    >>> import mycelia as ms
    >>> ms.nn.AdaptiveMaxPool3d(2)(ms.ops.ones((1, 3, 4, 5, 6))).shape
    (1, 3, 2, 2, 2)
    """

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = size_of("AdaptiveMaxPool3d", output_size, 3, free=True)
        arg.flag("AdaptiveMaxPool3d", "return_indices", return_indices)
        self.return_indices = return_indices

    def construct(self, input: Any) -> Any:
        t = arg.axes_of_input("AdaptiveMaxPool3d", "input", input, (4, 5), "(batch,) channels, depth, height, width")
        return ops.adaptive_max_pool3d(t, self.output_size, self.return_indices)


class _PowerPool(Cell):
    """Windows of power averages."""

    n: int

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        where = type(self).__name__
        self.norm_type = arg.nonzero(where, "norm_type", norm_type)
        self.kernel_size = arg.per_axis(where, "kernel_size", kernel_size, self.n)
        self.stride = None if stride is None else arg.per_axis(where, "stride", stride, self.n)
        arg.flag(where, "ceil_mode", ceil_mode)
        self.ceil_mode = ceil_mode


class LPPool1d(_PowerPool):
    """``(sum of x ** p) ** (1 / p)`` over windows along one axis.

    Args:
        norm_type: p, a number other than 0.
        kernel_size: length of the window.
        stride: step of the window; the window by default.
        ceil_mode: keep a last window that is not full.

    Inputs:
        x: a tensor of shape (batch, channels, length), or (channels, length).

    >>> import mycelia as ms
    >>> print(ms.nn.LPPool1d(1.0, 2)(ms.Tensor([[[1.0, 3.0, 2.0, 4.0]]])))
    [[[4. 6.]]]
    """

    n = 1

    def construct(self, x: Any) -> Any:
        t = arg.axes_of_input("LPPool1d", "x", x, (2, 3), "(batch,) channels, length")
        stride = None if self.stride is None else self.stride[0]
        return ops.lp_pool1d(t, self.norm_type, self.kernel_size[0], stride, self.ceil_mode)


class LPPool2d(_PowerPool):
    """``(sum of x ** p) ** (1 / p)`` over windows that slide over images; see :class:`LPPool1d`.

    >>> import mycelia as ms
    >>> print(ms.nn.LPPool2d(1.0, 2)(ms.ops.ones((1, 2, 2))))
    [[[4.]]]
    """

    n = 2

    def construct(self, x: Any) -> Any:
        t = arg.axes_of_input("LPPool2d", "x", x, (3, 4), "(batch,) channels, height, width")
        return ops.lp_pool2d(t, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class _MaxUnpool(Cell):
    """Values put back to the places their maxima came from."""

    n: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        where = type(self).__name__
        self.kernel_size = arg.per_axis(where, "kernel_size", kernel_size, self.n)
        # a stride of 0 means the window, as None does
        chosen = kernel_size if stride is None or stride == 0 else stride
        self.stride = arg.per_axis(where, "stride", chosen, self.n)
        self.padding = arg.per_axis(where, "padding", padding, self.n, 0)

    def construct(self, x: Any, indices: Any, output_size: Any = None) -> Any:
        run: Callable[..., Any] = {1: ops.max_unpool1d, 2: ops.max_unpool2d, 3: ops.max_unpool3d}[self.n]
        single = self.n == 1
        options = [v[0] if single else v for v in (self.kernel_size, self.stride, self.padding)]
        return run(x, indices, *options, output_size)


class MaxUnpool1d(_MaxUnpool):
    """The maxima of :class:`MaxPool1d` at the places they came from, zeros elsewhere.

    Args:
        kernel_size: length of the window.
        stride: step of the window; the window by default.
        padding: padding of the pooling.

    Inputs:
        x: the maxima, of shape (batch, channels, length), or (channels, length).
        indices: their places, integers of that shape.
        output_size: shape of the result, None for the usual one.

    >>> import mycelia as ms
    >>> print(ms.nn.MaxUnpool1d(2)(ms.Tensor([[3.0, 4.0]]), ms.Tensor([[1, 3]])))
    [[0. 3. 0. 4.]]
    """

    n = 1


class MaxUnpool2d(_MaxUnpool):
    """The maxima of :class:`MaxPool2d` at the places they came from; see :class:`MaxUnpool1d`.

    >>> import mycelia as ms
    >>> print(ms.nn.MaxUnpool2d(2)(ms.Tensor([[[7.0]]]), ms.Tensor([[[3]]])))
    [[[0. 0.]
      [0. 7.]]]
    """

    n = 2


class MaxUnpool3d(_MaxUnpool):
    """The maxima of :class:`MaxPool3d` at the places they came from; see :class:`MaxUnpool1d`.

    >>> import mycelia as ms
    >>> ms.nn.MaxUnpool3d(2)(ms.ops.ones((1, 1, 1, 1)), ms.Tensor([[[[7]]]])).shape
    (1, 2, 2, 2)
    """

    n = 3
