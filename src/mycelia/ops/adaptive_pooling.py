"""Pooling to a given size, and the way back from pooled elements to their places.

Window ``i`` of ``n`` over ``size`` elements goes from ``floor(i * size / n)`` to ``ceil((i + 1) * size / n)``, so
windows overlap by at most one element. Axes are folded one after the other for averages (a mean over a box is a
mean of means) and gathered into boxes for maxima. ``scatter_places`` adds values at flat positions of the spatial
axes, ``gather_places`` reads them; the two are each other's transposes.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.linear import accumulator
from mycelia.ops.operands import as_int, as_tensor
from mycelia.ops.registry import operator
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

Ints = tuple[int, ...]


def _windows(size: int, count: int) -> tuple[Any, Any]:
    """For each window its places, as many for all, and which of them count."""
    index = np.arange(count)
    start, stop = index * size // count, -(-(index + 1) * size // count)
    width = int((stop - start).max()) if count else 0
    places = start[:, None] + np.arange(width)
    return np.minimum(places, max(size - 1, 0)), places < stop[:, None]


def _check_sizes(where: str, x: TensorType, sizes: Ints) -> None:
    check_dtypes(where, (x,), dt.FLOATS)
    if x.rank < len(sizes) + 1:
        raise ShapeError(where, "input", got=f"shape {x.shape}", takes=f"channels and {len(sizes)} spatial axes")
    for size, wanted in zip(x.shape[x.rank - len(sizes) :], sizes, strict=True):
        if size < 1 and wanted:
            raise ShapeError(where, "input", got=f"shape {x.shape}", takes="spatial axes that are not empty")


def _infer_avg(x: TensorType, *, sizes: Ints) -> TensorType:
    _check_sizes("adaptive_avg_pool", x, sizes)
    return TensorType(x.dtype, x.shape[: x.rank - len(sizes)] + sizes)


def _lower_avg(x: Any, *, sizes: Ints) -> Any:
    wide = x.astype(accumulator(x.dtype) or x.dtype)
    first = x.ndim - len(sizes)
    for axis, count in enumerate(sizes, first):
        size = wide.shape[axis]
        if count == size:
            continue
        if count == 1:
            wide = wide.mean(axis, keepdims=True)
            continue
        if count and size % count == 0:
            split = wide.reshape(*wide.shape[:axis], count, size // count, *wide.shape[axis + 1 :])
            wide = split.mean(axis + 1)
            continue
        places, counted = _windows(size, count)
        mask = counted.reshape(*counted.shape, *(1,) * (x.ndim - axis - 1))
        total = jnp.where(mask, jnp.take(wide, places, axis=axis), 0).sum(axis + 1)
        wide = total / counted.sum(1).astype(wide.dtype).reshape(-1, *(1,) * (x.ndim - axis - 1))
    return wide.astype(x.dtype)


def _infer_avg_grad(ct: TensorType, *, input_shape: Ints, sizes: Ints) -> TensorType:
    check_dtypes("adaptive_avg_pool_grad", (ct,), dt.FLOATS)
    return TensorType(ct.dtype, input_shape)


def _lower_avg_grad(ct: Any, *, input_shape: Ints, sizes: Ints) -> Any:
    wide = ct.astype(accumulator(ct.dtype) or ct.dtype)
    image = jax.ShapeDtypeStruct(input_shape, wide.dtype)
    return jax.linear_transpose(lambda x: _lower_avg(x, sizes=sizes), image)(wide)[0].astype(ct.dtype)


def _image(*shape: int) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape))
    return (np.argsort(np.sin(np.arange(count) * 1.7)) / 4.0 - 2.0).reshape(shape)


_CASES: list[tuple[Any, Ints]] = [
    (_image(2, 2, 5, 7), (3, 3)), (_image(1, 2, 6, 4), (3, 1)), (_image(2, 7), (7,)), (_image(1, 3, 5), (2,)),
    (_image(1, 1, 4, 3, 5), (2, 2, 3)), (_image(1, 2, 3, 3), (5, 4)), (np.zeros((0, 2, 5, 5)), (2, 3)),
]  # fmt: skip

adaptive_avg_pool_p = Primitive(
    "adaptive_avg_pool", infer=_infer_avg, lower=_lower_avg,
    vjp=lambda ct, x, out, *, sizes: [apply(adaptive_avg_pool_grad_p, ct, input_shape=x.shape, sizes=sizes)],
    samples=lambda: [
        *[Sample((x,), {"sizes": sizes}) for x, sizes in _CASES],
        Bad((_image(3),), {"sizes": (2,)}, ShapeError, "spatial"),
    ],
)  # fmt: skip

#: ``ct`` spread evenly over the windows of an adaptive average pooling: its transpose.
adaptive_avg_pool_grad_p: Primitive = Primitive(
    "adaptive_avg_pool_grad", infer=_infer_avg_grad, lower=_lower_avg_grad,
    vjp=lambda c, ct, out, *, input_shape, sizes: [apply(adaptive_avg_pool_p, c, sizes=sizes)],
    samples=lambda: [
        Sample((_image(*x.shape[: x.ndim - len(sizes)], *sizes),), {"input_shape": x.shape, "sizes": sizes})
        for x, sizes in _CASES
    ],
)  # fmt: skip


# Maxima -------------------------------------------------------------------------------------------------


def _infer_max(x: TensorType, *, sizes: Ints) -> tuple[TensorType, ...]:
    _check_sizes("adaptive_max_pool", x, sizes)
    shape = x.shape[: x.rank - len(sizes)] + sizes
    return TensorType(x.dtype, shape), TensorType(dt.int64, shape)


def _lower_max(x: Any, *, sizes: Ints) -> tuple[Any, ...]:
    n = len(sizes)
    lead, spatial = x.shape[: x.ndim - n], x.shape[x.ndim - n :]
    if not x.size or not int(np.prod(sizes)):
        return jnp.zeros((*lead, *sizes), x.dtype), jnp.zeros((*lead, *sizes), jnp.int64)
    position: Any = np.zeros((1,) * (2 * n), np.int64)
    inside: Any = np.ones((1,) * (2 * n), bool)
    for i, (size, count) in enumerate(zip(spatial, sizes, strict=True)):
        places, counted = _windows(size, count)
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = places.shape
        position = position * size + places.reshape(shape)
        inside = inside & counted.reshape(shape)
    position = position.reshape(*sizes, -1)
    inside = np.broadcast_to(inside, (*sizes, *inside.shape[n:])).reshape(*sizes, -1)
    boxes = jnp.where(inside, jnp.take(x.reshape(*lead, -1), position, axis=-1), np.asarray(-np.inf, x.dtype))
    best = jnp.argmax(boxes, -1)
    index = jnp.take_along_axis(jnp.asarray(position).reshape((1,) * len(lead) + position.shape), best[..., None], -1)
    return jnp.take_along_axis(boxes, best[..., None], -1)[..., 0], index[..., 0]


#: The maxima, and where they are: flat positions within the spatial axes.
adaptive_max_pool_p = Primitive(
    "adaptive_max_pool", infer=_infer_max, lower=_lower_max, multi=True,
    vjp=lambda cts, x, out, *, sizes: [
        None if cts[0] is None else apply(
            scatter_places_p, cts[0], out[1],
            spatial=x.shape[len(x.shape) - len(sizes) :], lead=len(x.shape) - len(sizes),
        )
    ],
    samples=lambda: [
        *[Sample((x,), {"sizes": sizes}) for x, sizes in _CASES],
        Bad((_image(3),), {"sizes": (2,)}, ShapeError, "spatial"),
    ],
)  # fmt: skip


def _infer_scatter(g: TensorType, index: TensorType, *, spatial: Ints, lead: int) -> TensorType:
    check_dtypes("max_unpool", (g,), dt.REALS)
    if index.shape != g.shape:
        raise ShapeError("max_unpool", "indices", got=f"shape {index.shape}", takes=f"shape {g.shape} of the values")
    if not index.dtype.is_integer:
        raise DTypeError("max_unpool", "indices", got=f"dtype {index.dtype}", takes="integers")
    return TensorType(g.dtype, g.shape[:lead] + spatial)


def _rows(x: Any, lead: int) -> Any:
    return x.reshape(int(np.prod(x.shape[:lead])), int(np.prod(x.shape[lead:])))


def _lower_scatter(g: Any, index: Any, *, spatial: Ints, lead: int) -> Any:
    values, places = _rows(g, lead), _rows(index, lead)
    flat = jnp.zeros((values.shape[0], int(np.prod(spatial))), g.dtype)
    rows = jnp.arange(values.shape[0])[:, None]
    return flat.at[rows, places].add(values, mode="drop").reshape(*g.shape[:lead], *spatial)


def _infer_gather(x: TensorType, index: TensorType, *, lead: int) -> TensorType:
    check_dtypes("gather_places", (x,), dt.REALS)
    return TensorType(x.dtype, index.shape)


def _lower_gather(x: Any, index: Any, *, lead: int) -> Any:
    picked = jnp.take_along_axis(_rows(x, lead), _rows(index, lead).astype(jnp.int64), 1, mode="fill", fill_value=0)
    return picked.reshape(index.shape)


_INDEX = np.array([[[3, 0], [5, 5]], [[1, 2], [4, 0]]])

#: Values added at flat positions of the spatial axes, zero elsewhere.
scatter_places_p: Primitive = Primitive(
    "scatter_places", infer=_infer_scatter, lower=_lower_scatter,
    vjp=lambda c, g, index, out, *, spatial, lead: [apply(gather_places_p, c, index, lead=lead), None],
    samples=lambda: [
        Sample((_image(2, 2, 2), _INDEX), {"spatial": (2, 3), "lead": 1}),
        Sample((_image(1, 2, 2, 2), _INDEX[None]), {"spatial": (6,), "lead": 2}),
        Bad((_image(2, 2, 2), _INDEX[:1]), {"spatial": (2, 3), "lead": 1}, ShapeError, "of the values"),
    ],
)  # fmt: skip

#: The elements at flat positions of the spatial axes.
gather_places_p: Primitive = Primitive(
    "gather_places", infer=_infer_gather, lower=_lower_gather,
    vjp=lambda ct, x, index, out, *, lead: [
        apply(scatter_places_p, ct, index, spatial=x.shape[lead:], lead=lead), None
    ],
    samples=lambda: [
        Sample((_image(2, 2, 3), _INDEX), {"lead": 1}), Sample((_image(1, 2, 6), _INDEX[None]), {"lead": 2}),
    ],
)  # fmt: skip


# Public operators ---------------------------------------------------------------------------------------


def _sizes(where: str, x: Tensor, output_size: Any, n: int) -> Ints:
    """The wanted length of each spatial axis; None keeps it."""
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * n
    if len(given) != n:
        raise ArgumentValueError(where, "output_size", got=str(output_size), takes=f"an int or {n} of them")
    if x.ndim not in (n + 1, n + 2):
        raise ShapeError(where, "input", got=f"shape {x.shape}", takes=f"{n + 2} axes, or {n + 1} without the batch")
    made = []
    for wanted, size in zip(given, x.shape[x.ndim - n :], strict=True):
        value = size if wanted is None or wanted == -1 else as_int(wanted, where, "output_size")
        if value < 0:
            raise ArgumentValueError(
                where, "output_size", got=str(output_size), takes="ints that are not negative, or None"
            )
        made.append(value)
    return tuple(made)


def _avg(where: str, input: Any, output_size: Any, n: int) -> Tensor:
    x = as_float(input, where)
    return apply(adaptive_avg_pool_p, x, sizes=_sizes(where, x, output_size, n))  # type: ignore[no-any-return]


def _max(where: str, input: Any, output_size: Any, n: int, return_indices: bool) -> Any:
    x = as_float(input, where)
    y, index = apply(adaptive_max_pool_p, x, sizes=_sizes(where, x, output_size, n))
    return (y, index) if return_indices else y


@operator()
def adaptive_avg_pool1d(input: Any, output_size: Any) -> Tensor:
    """Averages of as many windows as asked for, along one axis; see :func:`adaptive_avg_pool2d`.

    >>> import mycelia as ms
    >>> print(ms.ops.adaptive_avg_pool1d(ms.Tensor([[[1.0, 2.0, 3.0]]]), 2))
    [[[1.5 2.5]]]
    """
    return _avg("adaptive_avg_pool1d", input, output_size, 1)


@operator()
def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """Averages of as many windows as asked for, over images.

    Args:
        input: a float tensor of shape (batch, channels, height, width), or without the batch.
        output_size: height and width of the result, an int for both or a pair; None keeps a length.

    Raises:
        ArgumentValueError: a negative size.

    >>> import mycelia as ms
    >>> ms.ops.adaptive_avg_pool2d(ms.ops.ones((1, 2, 7, 5)), (3, None)).shape
    (1, 2, 3, 5)
    """
    return _avg("adaptive_avg_pool2d", input, output_size, 2)


@operator()
def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """Averages of as many windows as asked for, over volumes; see :func:`adaptive_avg_pool2d`.

    >>> import mycelia as ms
    >>> ms.ops.adaptive_avg_pool3d(ms.ops.ones((1, 2, 7, 5, 4)), 2).shape
    (1, 2, 2, 2, 2)
    """
    return _avg("adaptive_avg_pool3d", input, output_size, 3)


@operator()
def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of as many windows as asked for, along one axis; see :func:`adaptive_max_pool2d`.

    >>> import mycelia as ms
    >>> print(ms.ops.adaptive_max_pool1d(ms.Tensor([[[1.0, 2.0, 3.0]]]), 2))
    [[[2. 3.]]]
    """
    return _max("adaptive_max_pool1d", input, output_size, 1, return_indices)


@operator()
def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of as many windows as asked for, over images.

    Args:
        input: a float tensor of shape (batch, channels, height, width), or without the batch.
        output_size: height and width of the result, an int for both or a pair; None keeps a length.
        return_indices: also give the flat position of each maximum within height and width, in int64.

    >>> import mycelia as ms
    >>> y, index = ms.ops.adaptive_max_pool2d(ms.ops.arange(4.0).reshape(1, 1, 2, 2), 1, True)
    >>> y.item(), index.item()
    (3.0, 3)
    """
    return _max("adaptive_max_pool2d", input, output_size, 2, return_indices)


@operator()
def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of as many windows as asked for, over volumes; see :func:`adaptive_max_pool2d`.

    >>> import mycelia as ms
    >>> ms.ops.adaptive_max_pool3d(ms.ops.ones((1, 2, 7, 5, 4)), 2).shape
    (1, 2, 2, 2, 2)
    """
    return _max("adaptive_max_pool3d", input, output_size, 3, return_indices)


def _unpool(
    where: str, n: int, x: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> Tensor:
    from mycelia.ops.convolution import per_axis

    values, index = as_tensor(x, where, "x"), as_tensor(indices, where, "indices")
    if values.ndim not in (n + 1, n + 2):
        raise ShapeError(where, "x", got=f"shape {values.shape}", takes=f"{n + 2} axes, or {n + 1} without the batch")
    kernel = per_axis(kernel_size, n, where, "kernel_size")
    strides = kernel if stride is None or stride == 0 else per_axis(stride, n, where, "stride")
    pads = per_axis(padding, n, where, "padding", 0)
    lead = values.ndim - n
    default = tuple(
        [(d - 1) * s - 2 * p + k for d, s, p, k in zip(values.shape[lead:], strides, pads, kernel, strict=True)]
    )
    sizes = default
    if output_size is not None and tuple(output_size):
        sizes = tuple([as_int(d, where, "output_size") for d in output_size])[-n:]
        for wanted, usual, s in zip(sizes, default, strides, strict=True):
            if not usual - s < wanted < usual + s:
                raise ArgumentValueError(
                    where, "output_size", got=str(tuple(output_size)), takes=f"within a stride of {default}"
                )
    if index.shape != values.shape:
        raise ShapeError(where, "indices", got=f"shape {index.shape}", takes=f"shape {values.shape} of 'x'")
    made: Tensor = apply(scatter_places_p, values, index, spatial=sizes, lead=lead)
    return reshape(made, (*values.shape[:lead], *sizes))


@operator()
def max_unpool1d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """The way back of max pooling along one axis; see :func:`max_unpool2d`.

    >>> import mycelia as ms
    >>> print(ms.ops.max_unpool1d(ms.Tensor([[[2.0, 4.0]]]), ms.Tensor([[[1, 3]]]), 2))
    [[[0. 2. 0. 4.]]]
    """
    return _unpool("max_unpool1d", 1, x, indices, kernel_size, stride, padding, output_size)


@operator()
def max_unpool2d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """The way back of max pooling over images: maxima at their places, zero elsewhere.

    Args:
        x: a tensor of shape (batch, channels, height, width), or without the batch.
        indices: flat positions of the values within height and width of the result, of the same shape. A
            position that occurs twice gets the sum.
        kernel_size: window of the pooling, an int or a pair.
        stride: step of the pooling; the window by default.
        padding: padding of the pooling.
        output_size: the shape of the result where the pooling left it open, or None.

    Raises:
        ShapeError: indices of another shape.
        ArgumentValueError: an ``output_size`` that the pooling cannot have come from.

    >>> import mycelia as ms
    >>> x = ms.ops.arange(16.0).reshape(1, 1, 4, 4)
    >>> y, index = ms.ops.max_pool2d(x, 2, return_indices=True)
    >>> print(ms.ops.max_unpool2d(y, index, 2)[0, 0, 1])
    [0. 5. 0. 7.]
    """
    return _unpool("max_unpool2d", 2, x, indices, kernel_size, stride, padding, output_size)


@operator()
def max_unpool3d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """The way back of max pooling over volumes; see :func:`max_unpool2d`.

    >>> import mycelia as ms
    >>> y, index = ms.ops.max_pool3d(ms.ops.arange(8.0).reshape(1, 1, 2, 2, 2), 2, return_indices=True)
    >>> ms.ops.max_unpool3d(y, index, 2).shape
    (1, 1, 2, 2, 2)
    """
    return _unpool("max_unpool3d", 3, x, indices, kernel_size, stride, padding, output_size)
