"""Windows of images as columns, and blocks of images moved between axes.

``im2col`` lays each window of an (N, C, H, W) image out as a column; ``col2im`` adds columns back where
their windows were. Each is the other's gradient. Both are one strided slice (or one dilated pad) for each
place of the kernel.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.operands import as_int, as_shape, as_tensor
from mycelia.ops.outputs import one
from mycelia.ops.padding import pad_zeros
from mycelia.ops.registry import operator
from mycelia.ops.shape import permuted, reshaped
from mycelia.tensor import Tensor

_IMAGE = np.linspace(-1.0, 1.0, 40).reshape(1, 2, 4, 5)

Pair = tuple[int, int]
Window = dict[str, Pair]


def _windows(where: str, size: Pair, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Pair:
    """How many windows fit along height and width."""
    found = []
    for d, k, s, p, g in zip(size, kernel, stride, padding, dilation, strict=True):
        room = d + 2 * p - g * (k - 1) - 1
        if room < 0:
            raise ShapeError(
                where,
                "kernel_size",
                got=f"{k} with dilation {g}",
                takes=f"a window within the padded length {d + 2 * p}",
            )
        found.append(room // s + 1)
    return found[0], found[1]


def _infer_im2col(x: TensorType, *, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair) -> TensorType:
    check_dtypes("unfold", (x,), dt.NUMBERS)
    if x.rank != 4:
        raise ShapeError("unfold", "input", got=f"shape {x.shape}", takes="four axes (N, C, H, W)")
    n, c, h, w = x.shape
    rows, columns = _windows("unfold", (h, w), kernel, stride, padding, dilation)
    return TensorType(x.dtype, (n, c * kernel[0] * kernel[1], rows * columns))


def _lower_im2col(x: Any, *, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Any:
    n, c, h, w = x.shape
    rows, columns = _windows("unfold", (h, w), kernel, stride, padding, dilation)
    x = jnp.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    parts = []
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            top, left = i * dilation[0], j * dilation[1]
            bottom, right = top + (rows - 1) * stride[0] + 1, left + (columns - 1) * stride[1] + 1
            parts.append(lax.slice(x, (0, 0, top, left), (n, c, bottom, right), (1, 1, *stride)))
    return jnp.stack(parts, 2).reshape(n, c * kernel[0] * kernel[1], rows * columns)


def _infer_col2im(
    x: TensorType, *, size: Pair, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> TensorType:
    check_dtypes("fold", (x,), dt.NUMBERS)
    rows, columns = _windows("fold", size, kernel, stride, padding, dilation)
    area = kernel[0] * kernel[1]
    if x.rank != 3 or x.shape[1] % area or x.shape[2] != rows * columns:
        raise ShapeError(
            "fold",
            "input",
            got=f"shape {x.shape}",
            takes=f"(N, C * {area}, {rows * columns}) for this kernel and output size",
        )
    return TensorType(x.dtype, (x.shape[0], x.shape[1] // area, *size))


def _lower_col2im(x: Any, *, size: Pair, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Any:
    rows, columns = _windows("fold", size, kernel, stride, padding, dilation)
    wide = np.dtype(np.float32) if x.dtype in (dt.float16.np, dt.bfloat16.np) else x.dtype
    n, c = x.shape[0], x.shape[1] // (kernel[0] * kernel[1])
    parts = x.reshape(n, c, kernel[0] * kernel[1], rows, columns).astype(wide)
    zero = np.zeros((), wide)
    height, width = size[0] + 2 * padding[0], size[1] + 2 * padding[1]
    total = jnp.zeros((n, c, height, width), wide)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            top, left = i * dilation[0], j * dilation[1]
            below = height - top - ((rows - 1) * stride[0] + 1)
            right = width - left - ((columns - 1) * stride[1] + 1)
            config = ((0, 0, 0), (0, 0, 0), (top, below, stride[0] - 1), (left, right, stride[1] - 1))
            total = total + lax.pad(parts[:, :, i * kernel[1] + j], zero, config)
    return total[:, :, padding[0] : height - padding[0], padding[1] : width - padding[1]].astype(x.dtype)


def _window(kernel: Pair, stride: Pair = (1, 1), padding: Pair = (0, 0), dilation: Pair = (1, 1)) -> Window:
    return {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}


im2col_p: Primitive = Primitive(
    "im2col", infer=_infer_im2col, lower=_lower_im2col,
    vjp=lambda ct, x, out, **window: [one(col2im_p, ct, size=x.shape[2:], **window)],
    samples=lambda: [
        Sample((_IMAGE,), _window((2, 3))), Sample((_IMAGE,), _window((2, 2), (2, 1), (1, 2), (2, 1))),
        Sample((np.zeros((0, 2, 4, 4)),), _window((2, 2))),
        Bad((_IMAGE[0],), _window((2, 2)), ShapeError, "four axes"),
        Bad((_IMAGE,), _window((7, 1)), ShapeError, "padded length 4"),
    ],
)  # fmt: skip
col2im_p: Primitive = Primitive(
    "col2im", infer=_infer_col2im, lower=_lower_col2im,
    vjp=lambda ct, x, out, *, size, **window: [one(im2col_p, ct, **window)],
    samples=lambda: [
        Sample((np.linspace(-1, 1, 72).reshape(1, 12, 6),), {"size": (3, 5), **_window((2, 3))}),
        Sample((np.linspace(-1, 1, 72).reshape(1, 8, 9),), {"size": (4, 4), **_window((2, 2), (2, 2), (1, 1))}),
        Bad((np.zeros((1, 8, 5)),), {"size": (4, 4), **_window((2, 2))}, ShapeError, "C \\* 4, 9"),
    ],
)  # fmt: skip


def _pair(value: Any, where: str, argument: str, minimum: int) -> Pair:
    given = as_shape(value, where, argument, minimum=minimum)
    if len(given) not in (1, 2):
        raise ArgumentValueError(where, argument, got=str(given), takes="one int, or two for height and width")
    return given[0], given[-1]


def _options(where: str, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Window:
    return {
        "kernel": _pair(kernel_size, where, "kernel_size", 1), "stride": _pair(stride, where, "stride", 1),
        "padding": _pair(padding, where, "padding", 0), "dilation": _pair(dilation, where, "dilation", 1),
    }  # fmt: skip


@operator(methods=True)
def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of images as columns (im2col).

    Args:
        input: images of shape (N, C, H, W).
        kernel_size: height and width of a window, an int or two.
        dilation: distance between the elements of a window.
        padding: zeros put around the image first.
        stride: distance between windows.

    Returns:
        A tensor of shape (N, C * kernel height * kernel width, number of windows).

    Raises:
        ShapeError: not four axes, or no window fits.

    >>> import mycelia as ms
    >>> ms.ops.unfold(ms.ops.ones((1, 1, 3, 3)), 2).shape
    (1, 4, 4)
    """
    x = as_tensor(input, "unfold")
    return one(im2col_p, x, **_options("unfold", kernel_size, dilation, padding, stride))


@operator(methods=True)
def fold(
    input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Add columns back to images where their windows were (col2im).

    Args:
        input: columns of shape (N, C * kernel height * kernel width, number of windows).
        output_size: height and width of the images; two ints or a tensor of them.
        kernel_size: height and width of a window, an int or two.
        dilation: distance between the elements of a window.
        padding: how much of the border of the images was padding.
        stride: distance between windows.

    Returns:
        Images of shape (N, C, height, width).

    Raises:
        ShapeError: the columns do not fit the sizes.

    >>> import mycelia as ms
    >>> print(ms.ops.fold(ms.ops.ones((1, 4, 4)), (3, 3), 2)[0, 0])
    [[1. 2. 1.]
     [2. 4. 2.]
     [1. 2. 1.]]
    """
    x = as_tensor(input, "fold")
    size = _pair(output_size, "fold", "output_size", 1)
    return one(col2im_p, x, size=size, **_options("fold", kernel_size, dilation, padding, stride))


@operator(methods=True)
def col2im(input_x: Any, output_size: Any, kernel_size: Any, dilation: Any, padding_value: Any, stride: Any) -> Tensor:
    """Add columns back to images where their windows were; :func:`fold` with an axis for the kernel.

    Args:
        input_x: columns of shape (N, C, kernel height * kernel width, number of windows).
        output_size: height and width of the images.
        kernel_size: height and width of a window.
        dilation: distance between the elements of a window.
        padding_value: how much of the border of the images was padding.
        stride: distance between windows.

    Raises:
        ShapeError: the columns do not fit the sizes.

    >>> import mycelia as ms
    >>> ms.ops.col2im(ms.ops.ones((1, 1, 4, 4)), (3, 3), [2, 2], [1, 1], [0, 0], [1, 1]).shape
    (1, 1, 3, 3)
    """
    x = as_tensor(input_x, "col2im", "input_x")
    if x.ndim != 4:
        raise ShapeError("col2im", "input_x", got=f"shape {x.shape}", takes="(N, C, kernel size, number of windows)")
    n, c, area, count = x.shape
    return fold(reshaped(x, (n, c * area, count)), output_size, kernel_size, dilation, padding_value, stride)


# blocks


def _blocks(value: Any, where: str, argument: str, count: int) -> tuple[int, ...]:
    block = as_shape(value, where, argument, minimum=1)
    return block * count if len(block) == 1 and not isinstance(value, (tuple, list)) else block


def _borders(value: Any, where: str, argument: str, count: int) -> tuple[tuple[int, int], ...]:
    rows = value.tolist() if isinstance(value, (Tensor, np.ndarray)) else value
    pairs = tuple([as_shape(p, where, argument) for p in rows])
    if len(pairs) != count or any(len(p) != 2 for p in pairs):
        raise ArgumentValueError(
            where, argument, got=str(rows), takes=f"{count} pairs (before, after), one for each block axis"
        )
    return tuple([(p[0], p[1]) for p in pairs])


@operator()
def space_to_batch_nd(input_x: Any, block_size: Any, paddings: Any) -> Tensor:
    """Cut the last axes into blocks and move the place within a block to the batch axis.

    Args:
        input_x: a tensor of at least two axes, batch first.
        block_size: lengths of a block along the last axes; one int stands for the last two.
        paddings: zeros put before and after each of these axes first.

    Returns:
        A tensor whose batch axis is the block's number of elements times as long.

    Raises:
        ShapeError: a padded length is not a multiple of the block's.

    >>> import mycelia as ms
    >>> ms.ops.space_to_batch_nd(ms.ops.ones((1, 1, 4, 4)), [2, 2], [[0, 0], [0, 0]]).shape
    (4, 1, 2, 2)
    """
    where = "space_to_batch_nd"
    x = as_tensor(input_x, where, "input_x")
    block = _blocks(block_size, where, "block_size", 2)
    lead = x.ndim - len(block)
    if lead < 1:
        raise ShapeError(
            where, "input_x", got=f"shape {x.shape}", takes=f"a batch axis and {len(block)} axes of blocks"
        )
    x = pad_zeros(x, ((0, 0),) * lead + _borders(paddings, where, "paddings", len(block)))
    spatial = x.shape[lead:]
    if any(d % b for d, b in zip(spatial, block, strict=True)):
        raise ShapeError(where, "block_size", got=str(block), takes=f"divisors of the padded lengths {spatial}")
    inner = tuple([n for d, b in zip(spatial, block, strict=True) for n in (d // b, b)])
    y = reshaped(x, (*x.shape[:lead], *inner))
    places = tuple(range(lead + 1, lead + 1 + 2 * len(block), 2))
    y = permuted(y, (*places, *range(lead), *[p - 1 for p in places]))
    batch = x.shape[0] * int(np.prod(block))
    return reshaped(y, (batch, *x.shape[1:lead], *[d // b for d, b in zip(spatial, block, strict=True)]))


@operator()
def batch_to_space_nd(input_x: Any, block_shape: Any, crops: Any) -> Tensor:
    """Move parts of the batch axis back to the places within blocks; the reverse of :func:`space_to_batch_nd`.

    Args:
        input_x: a tensor of at least two axes, batch first.
        block_shape: lengths of a block along the last axes; one int stands for the last two.
        crops: how much to cut before and after each of these axes at the end.

    Raises:
        ShapeError: the batch axis is not a multiple of the block's number of elements.

    >>> import mycelia as ms
    >>> ms.ops.batch_to_space_nd(ms.ops.ones((4, 1, 2, 2)), [2, 2], [[0, 0], [0, 0]]).shape
    (1, 1, 4, 4)
    """
    where = "batch_to_space_nd"
    x = as_tensor(input_x, where, "input_x")
    block = _blocks(block_shape, where, "block_shape", 2)
    count, area = len(block), int(np.prod(block))
    lead = x.ndim - count
    if lead < 1 or x.shape[0] % area:
        raise ShapeError(
            where,
            "input_x",
            got=f"shape {x.shape}",
            takes=f"a batch axis whose length is a multiple of {area}, and {count} more",
        )
    y = reshaped(x, (*block, x.shape[0] // area, *x.shape[1:]))
    perm = [*range(count, count + lead)]
    for i in range(count):
        perm += [count + lead + i, i]
    y = permuted(y, tuple(perm))
    spatial = [d * b for d, b in zip(x.shape[lead:], block, strict=True)]
    y = reshaped(y, (x.shape[0] // area, *x.shape[1:lead], *spatial))
    borders = _borders(crops, where, "crops", count)
    return pad_zeros(y, ((0, 0),) * lead + tuple([(-low, -high) for low, high in borders]))


def _image(input: Any, where: str, block_size: Any) -> tuple[Tensor, int]:
    x, b = as_tensor(input, where), as_int(block_size, where, "block_size")
    if x.ndim != 4:
        raise ShapeError(where, "input", got=f"shape {x.shape}", takes="four axes (N, C, H, W)")
    if b < 1:
        raise ArgumentValueError(where, "block_size", got=str(b), takes="an int of at least 1")
    return x, b


@operator()
def space_to_depth(input: Any, block_size: int) -> Tensor:
    """Move the place within square blocks of images to the channel axis, places outermost.

    Args:
        input: images of shape (N, C, H, W).
        block_size: the side of a block, a divisor of H and W.

    Returns:
        A tensor of shape (N, C * block_size², H / block_size, W / block_size).

    >>> import mycelia as ms
    >>> ms.ops.space_to_depth(ms.ops.ones((1, 2, 4, 4)), 2).shape
    (1, 8, 2, 2)
    """
    x, b = _image(input, "space_to_depth", block_size)
    n, c, h, w = x.shape
    if h % b or w % b:
        raise ShapeError("space_to_depth", "block_size", got=str(b), takes=f"a divisor of height {h} and width {w}")
    y = permuted(reshaped(x, (n, c, h // b, b, w // b, b)), (0, 3, 5, 1, 2, 4))
    return reshaped(y, (n, c * b * b, h // b, w // b))


@operator()
def depth_to_space(input: Any, block_size: int) -> Tensor:
    """Move channels to places within square blocks of images; the reverse of :func:`space_to_depth`.

    Args:
        input: images of shape (N, C, H, W).
        block_size: the side of a block; its square divides C.

    Returns:
        A tensor of shape (N, C / block_size², H * block_size, W * block_size).

    >>> import mycelia as ms
    >>> ms.ops.depth_to_space(ms.ops.ones((1, 8, 2, 2)), 2).shape
    (1, 2, 4, 4)
    """
    x, b = _image(input, "depth_to_space", block_size)
    n, c, h, w = x.shape
    if c % (b * b):
        raise ShapeError(
            "depth_to_space", "block_size", got=str(b), takes=f"a number whose square divides the {c} channels"
        )
    y = permuted(reshaped(x, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2))
    return reshaped(y, (n, c // (b * b), h * b, w * b))
