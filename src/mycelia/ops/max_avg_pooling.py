"""Max, average and power-average pooling as users call them; the primitives are in :mod:`mycelia.ops.pooling`."""

from __future__ import annotations

from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ops.calls import as_float
from mycelia.ops.convolution import Ints, Pairs, mode_pads, per_axis
from mycelia.ops.operands import as_int, as_tensor
from mycelia.ops.pooling import avg_pool_p, max_pool_p, max_pool_with_index_p
from mycelia.ops.registry import operator
from mycelia.ops.shape import reshape, transpose
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply


def _image(where: str, n: int, x: Tensor) -> tuple[Tensor, bool]:
    """The tensor with a batch axis, and whether that was added."""
    if x.ndim == n + 2:
        return x, False
    if x.ndim == n + 1:
        return reshape(x, (1, *x.shape)), True
    raise ShapeError(where, "input", got=f"shape {x.shape}", takes=f"{n + 2} axes, or {n + 1} without the batch")


def _ceiled(sizes: Ints, kernel: Ints, strides: Ints, padding: Pairs, dilation: Ints) -> tuple[Pairs, Ints]:
    """Padding with which a window that starts inside the image or its padding is not cut off, and how much more."""
    made, excess = [], []
    for size, k, s, (lo, hi), d in zip(sizes, kernel, strides, padding, dilation, strict=True):
        reach = (k - 1) * d + 1
        count = max(-(-(size + lo + hi - reach) // s), 0) + 1
        if (count - 1) * s >= size + lo:
            count -= 1
        extra = max((count - 1) * s + reach - (size + lo + hi), 0)
        made.append((lo, hi + extra))
        excess.append(extra)
    return tuple(made), tuple(excess)


def max_pooling(
    where: str, n: int, x: Any, kernel_size: Any, stride: Any = None, pad_mode: str = "pad", padding: Any = 0,
    dilation: Any = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """Max pooling over ``n`` spatial axes with every form of padding; see :func:`max_pool2d`."""
    tensor, single = _image(where, n, x if isinstance(x, Tensor) else as_tensor(x, where))
    kernel = per_axis(kernel_size, n, where, "kernel_size")
    strides = kernel if stride is None else per_axis(stride, n, where, "stride")
    steps = per_axis(dilation, n, where, "dilation")
    pads = mode_pads(pad_mode, padding, tensor.shape[2:], kernel, strides, steps, where)
    if ceil_mode:
        pads, _ = _ceiled(tensor.shape[2:], kernel, strides, pads, steps)
    attrs = {"kernel": kernel, "strides": strides, "padding": pads, "dilation": steps, "channels_last": False}
    if return_indices:
        y, index = apply(max_pool_with_index_p, tensor, **attrs)
        return (reshape(y, y.shape[1:]), reshape(index, y.shape[1:])) if single else (y, index)
    y = apply(max_pool_p, tensor, **attrs)
    return reshape(y, y.shape[1:]) if single else y


def avg_pooling(
    where: str, n: int, x: Any, kernel_size: Any, stride: Any = None, pad_mode: str = "pad", padding: Any = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: Any = None,
) -> Tensor:  # fmt: skip
    """Average pooling over ``n`` spatial axes with every form of padding; see :func:`avg_pool2d`."""
    tensor, single = _image(where, n, as_float(x, where))
    kernel = per_axis(kernel_size, n, where, "kernel_size")
    strides = kernel if stride is None else per_axis(stride, n, where, "stride")
    ones = (1,) * n
    pads = mode_pads(pad_mode, padding, tensor.shape[2:], kernel, strides, ones, where)
    excess = (0,) * n
    if ceil_mode:
        pads, excess = _ceiled(tensor.shape[2:], kernel, strides, pads, ones)
    divisor = 0 if divisor_override is None else as_int(divisor_override, where, "divisor_override")
    if divisor < 0:
        raise ArgumentValueError(where, "divisor_override", got=str(divisor), takes="a positive int, or None")
    include = bool(count_include_pad) and pad_mode.lower() == "pad"
    y: Tensor = apply(
        avg_pool_p, tensor, kernel=kernel, strides=strides, padding=pads, excess=excess, include_pad=include,
        divisor=divisor, channels_last=False,
    )  # fmt: skip
    return reshape(y, y.shape[1:]) if single else y


@operator()
def max_pool1d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """Largest elements of windows along one axis; arguments as :func:`max_pool2d`.

    >>> import mycelia as ms
    >>> print(ms.ops.max_pool1d(ms.Tensor([[[1.0, 3.0, 2.0, 4.0]]]), 2))
    [[[3. 4.]]]
    """
    return max_pooling("max_pool1d", 1, x, kernel_size, stride, "pad", padding, dilation, ceil_mode, return_indices)


@operator()
def max_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """Largest elements of windows that slide over images.

    Args:
        x: a tensor of shape (batch, channels, height, width), or without the batch.
        kernel_size: window, an int or a pair.
        stride: step, an int or a pair; the window by default.
        padding: ``-inf`` added on each side, an int or a pair, less than the window.
        dilation: distance of elements within a window, an int or a pair.
        return_indices: also give the flat position of each maximum within height and width, in int64.
        ceil_mode: keep a last window that is not full.

    Returns:
        A tensor of shape (batch, channels, height', width'), or a pair of them.

    Raises:
        ShapeError: the window is larger than the padded image.
        ArgumentValueError: a padding that is not less than the window.

    >>> import mycelia as ms
    >>> print(ms.ops.max_pool2d(ms.ops.arange(16.0).reshape(1, 1, 4, 4), 2))
    [[[[ 5.  7.]
       [13. 15.]]]]
    """
    return max_pooling("max_pool2d", 2, x, kernel_size, stride, "pad", padding, dilation, ceil_mode, return_indices)


@operator()
def max_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """Largest elements of windows along three axes; arguments as :func:`max_pool2d`.

    >>> import mycelia as ms
    >>> ms.ops.max_pool3d(ms.ops.ones((1, 2, 4, 4, 4)), 2).shape
    (1, 2, 2, 2, 2)
    """
    return max_pooling("max_pool3d", 3, x, kernel_size, stride, "pad", padding, dilation, ceil_mode, return_indices)


@operator()
def avg_pool1d(
    input_x: Any, kernel_size: Any = 1, stride: Any = 1, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """Averages of windows along one axis; arguments as :func:`avg_pool2d`.

    >>> import mycelia as ms
    >>> print(ms.ops.avg_pool1d(ms.Tensor([[[1.0, 3.0, 2.0, 4.0]]]), 2, 2))
    [[[2. 3.]]]
    """
    return avg_pooling("avg_pool1d", 1, input_x, kernel_size, stride, "pad", padding, ceil_mode, count_include_pad)


@operator()
def avg_pool2d(
    input_x: Any, kernel_size: Any = 1, stride: Any = 1, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = 0,
) -> Tensor:  # fmt: skip
    """Averages of windows that slide over images.

    Args:
        input_x: a float tensor of shape (batch, channels, height, width), or without the batch.
        kernel_size: window, an int or a pair.
        stride: step, an int or a pair; None for the window.
        padding: zeros added on each side: an int, (height, width), or (top, bottom, left, right).
        ceil_mode: keep a last window that is not full; its average is over what it covers.
        count_include_pad: whether padding counts as elements.
        divisor_override: divide every sum by this number instead; 0 or None for the number of elements.

    Returns:
        A tensor of shape (batch, channels, height', width').

    Raises:
        ShapeError: the window is larger than the padded image.

    >>> import mycelia as ms
    >>> print(ms.ops.avg_pool2d(ms.ops.arange(16.0).reshape(1, 1, 4, 4), 2, 2))
    [[[[ 2.5  4.5]
       [10.5 12.5]]]]
    """
    return avg_pooling(
        "avg_pool2d", 2, input_x, kernel_size, stride, "pad", padding, ceil_mode, count_include_pad, divisor_override
    )


@operator()
def avg_pool3d(
    input_x: Any, kernel_size: Any = 1, stride: Any = 1, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = 0,
) -> Tensor:  # fmt: skip
    """Averages of windows along three axes; arguments as :func:`avg_pool2d`.

    >>> import mycelia as ms
    >>> ms.ops.avg_pool3d(ms.ops.ones((1, 2, 4, 4, 4)), 2, 2).shape
    (1, 2, 2, 2, 2)
    """
    return avg_pooling(
        "avg_pool3d", 3, input_x, kernel_size, stride, "pad", padding, ceil_mode, count_include_pad, divisor_override
    )


def _lp_pool(where: str, n: int, x: Any, norm_type: Any, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    from mycelia.ops.power import pow as power
    from mycelia.ops.rounding import abs as absolute, sign
    from mycelia.ops.selection import where as choose

    if isinstance(norm_type, bool) or not isinstance(norm_type, (int, float)):
        raise ArgumentTypeError(where, "norm_type", got=type(norm_type).__name__, takes="a number other than 0")
    if norm_type == 0:
        raise ArgumentValueError(where, "norm_type", got="0", takes="a number other than 0")
    kernel = per_axis(kernel_size, n, where, "kernel_size")
    count = 1
    for k in kernel:
        count *= k
    powers = power(as_float(x, where, "x"), float(norm_type))
    total: Any = avg_pooling(where, n, powers, kernel, stride, ceil_mode=ceil_mode)
    total = total * float(count)
    empty = total == 0
    magnitude = choose(empty, 1.0, absolute(total))
    root: Any = magnitude if norm_type == 1 else power(magnitude, 1 / float(norm_type))
    made: Tensor = choose(empty, 0.0, sign(total) * root)
    return made


@operator()
def lp_pool1d(x: Any, norm_type: Any, kernel_size: int, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Power averages of windows along one axis; arguments as :func:`lp_pool2d`.

    >>> import mycelia as ms
    >>> print(ms.ops.lp_pool1d(ms.Tensor([[[3.0, 4.0]]]), 2, 2))
    [[[5.]]]
    """
    return _lp_pool("lp_pool1d", 1, x, norm_type, kernel_size, stride, ceil_mode)


@operator()
def lp_pool2d(x: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Power averages of windows that slide over images: ``(sum of x ** p) ** (1 / p)``.

    Args:
        x: a float tensor of shape (batch, channels, height, width), or without the batch.
        norm_type: the power p; 1 gives sums, infinity would give maxima. A negative sum gives the negative of
            the root of its size; the gradient at a sum of zero is zero.
        kernel_size: window, an int or a pair.
        stride: step; the window by default.
        ceil_mode: keep a last window that is not full.

    >>> import mycelia as ms
    >>> print(ms.ops.lp_pool2d(ms.Tensor([[[[3.0, 4.0], [0.0, 0.0]]]]), 2, 2))
    [[[[5.]]]]
    """
    return _lp_pool("lp_pool2d", 2, x, norm_type, kernel_size, stride, ceil_mode)


def pool_by_mode(
    kind: str, x: Any, kernel_size: Any = 1, strides: Any = 1, pad_mode: str = "valid", data_format: str = "NCHW"
) -> Tensor:
    """The pooling of the operator classes: ``"max"`` or ``"avg"`` over images, padded as ``pad_mode`` says.

    Args:
        kind: ``"max"`` or ``"avg"``.
        x: a tensor of shape (batch, channels, height, width), or channels last with ``"NHWC"``.
        kernel_size: window, an int, a pair, or four ints that start with 1, 1.
        strides: step, likewise.
        pad_mode: ``"valid"`` or ``"same"``; padding does not count in averages.
        data_format: ``"NCHW"`` or ``"NHWC"``.

    >>> import mycelia as ms
    >>> pool_by_mode("max", ms.ops.ones((1, 2, 5, 5)), 2, 2, "same").shape
    (1, 2, 3, 3)
    """
    where = f"{kind}_pool"
    if kind not in ("max", "avg"):
        raise ArgumentValueError("pool_by_mode", "kind", got=repr(kind), takes='"max" or "avg"')
    if data_format not in ("NCHW", "NHWC"):
        raise ArgumentValueError(where, "data_format", got=repr(data_format), takes='"NCHW" or "NHWC"')
    if not isinstance(pad_mode, str) or pad_mode.lower() not in ("same", "valid"):
        raise ArgumentValueError(where, "pad_mode", got=repr(pad_mode), takes='"same" or "valid"')
    last = data_format == "NHWC"
    tensor = as_tensor(x, where) if kind == "max" else as_float(x, where)
    if tensor.ndim != 4:
        raise ShapeError(where, "input", got=f"shape {tensor.shape}", takes="4 axes")
    image = transpose(tensor, (0, 3, 1, 2)) if last else tensor
    run = max_pooling if kind == "max" else avg_pooling
    y = run(where, 2, image, kernel_size, strides, pad_mode)
    return transpose(y, (0, 2, 3, 1)) if last else y
