"""Max pooling over windows of uneven distance (B. Graham, "Fractional max-pooling", 2014).

The windows of an axis start at ``floor((i + u) * a) - floor(u * a)`` with ``a = (size - kernel) / (count - 1)`` and
``u`` from [0, 1) for each sample and channel; the last one ends with the image.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.adaptive_pooling import scatter_places_p
from mycelia.ops.calls import as_float
from mycelia.ops.convolution import per_axis
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.joining import concat
from mycelia.ops.operands import as_tensor, cast
from mycelia.ops.random import draw, random_uniform_p
from mycelia.ops.registry import operator
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

Ints = tuple[int, ...]


def _infer(x: TensorType, shifts: TensorType, *, kernel: Ints, sizes: Ints) -> tuple[TensorType, ...]:
    n = len(kernel)
    where = f"fractional_max_pool{n}d"
    check_dtypes(where, (x,), dt.FLOATS)
    check_dtypes(where, (shifts,), dt.FLOATS, ("_random_samples",))
    if x.rank != n + 2:
        raise ShapeError(where, "input", got=f"shape {x.shape}", takes=f"{n + 2} axes")
    if shifts.rank != 3 or shifts.shape[0] not in (1, x.shape[0]) or shifts.shape[1:] != (x.shape[1], n):
        raise ShapeError(
            where, "_random_samples", got=f"shape {shifts.shape}", takes=f"shape ({x.shape[0]}, {x.shape[1]}, {n})"
        )
    for size, k, count in zip(x.shape[2:], kernel, sizes, strict=True):
        if count + k - 1 > size or count < 1:
            raise ShapeError(
                where,
                "output_size",
                got=f"{sizes} with kernel {kernel}",
                takes=f"at most size - kernel + 1 of {x.shape[2:]}",
            )
    shape = (*x.shape[:2], *sizes)
    return TensorType(x.dtype, shape), TensorType(dt.int64, shape)


def _starts(u: Any, size: int, k: int, count: int) -> Any:
    """Where the windows of one axis start, of shape (batch, channels, count)."""
    if count == 1:
        return jnp.full((*u.shape, 1), size - k, jnp.int64)
    step = (size - k) / (count - 1)
    index = np.arange(count - 1)
    made = jnp.floor((index + u[..., None]) * step).astype(jnp.int64) - jnp.floor(u[..., None] * step).astype(jnp.int64)
    last = jnp.full((*u.shape, 1), size - k, jnp.int64)
    return jnp.concatenate([made, last], -1)


def _lower(x: Any, shifts: Any, *, kernel: Ints, sizes: Ints) -> tuple[Any, ...]:
    n, spatial = len(kernel), x.shape[2:]
    if not x.size:
        return jnp.zeros((*x.shape[:2], *sizes), x.dtype), jnp.zeros((*x.shape[:2], *sizes), jnp.int64)
    u = jnp.broadcast_to(shifts.astype(jnp.float64), (x.shape[0], x.shape[1], n))
    flat = x.reshape(x.shape[0], x.shape[1], -1)
    starts = []
    for axis in range(n):
        begin = _starts(u[..., axis], spatial[axis], kernel[axis], sizes[axis])
        starts.append(begin.reshape(*x.shape[:2], *[-1 if i == axis else 1 for i in range(n)]))
    best: Any = None
    index: Any = None
    for offset in reversed(list(itertools.product(*map(range, kernel)))):
        place: Any = 0
        for begin, o, size in zip(starts, offset, spatial, strict=True):
            place = place * size + begin + o
        place = jnp.broadcast_to(place, (*x.shape[:2], *sizes))
        value = jnp.take_along_axis(flat, place.reshape(*x.shape[:2], -1), 2).reshape(place.shape)
        if best is None:
            best, index = value, place
        else:
            better = (value >= best) | (value != value)
            best, index = jnp.where(better, value, best), jnp.where(better, place, index)
    return best, index


def _vjp(cts: Any, x: Tensor, shifts: Tensor, out: Any, *, kernel: Ints, sizes: Ints) -> list[Any]:
    if cts[0] is None:
        return [None, None]
    return [apply(scatter_places_p, cts[0], out[1], spatial=x.shape[2:], lead=2), None]


def _image(*shape: int) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape))
    return (np.argsort(np.sin(np.arange(count) * 1.7)) / 4.0 - 2.0).reshape(shape)


#: Shifts that no small change moves over a whole number.
_U2, _U3 = np.array([[[0.1, 0.9], [0.5, 0.3]]]), np.array([[[0.1, 0.5, 0.9]]])


def _samples() -> list[Any]:
    cases: list[tuple[Any, Any, Ints, Ints]] = [
        (_image(1, 2, 7, 6), _U2, (2, 3), (3, 4)), (_image(1, 1, 5, 5, 4), _U3, (2, 2, 2), (2, 3, 1)),
        (_image(2, 2, 6, 6), _U2, (1, 1), (2, 6)),
    ]  # fmt: skip
    return [
        *[Sample((x, u), {"kernel": kernel, "sizes": sizes}, dtypes=False) for x, u, kernel, sizes in cases],
        Bad((_image(1, 2, 4, 4), _U2), {"kernel": (3, 3), "sizes": (3, 3)}, ShapeError, "at most size"),
        Bad((_image(1, 2, 7, 6), _U2[:, :1]), {"kernel": (2, 3), "sizes": (3, 4)}, ShapeError, "_random_samples"),
    ]


#: The maxima of windows shifted by ``u`` (batch, channels, axes), and their flat positions.
fractional_max_pool_p = Primitive(
    "fractional_max_pool", infer=_infer, lower=_lower, vjp=_vjp, multi=True, samples=_samples
)


def _pool(n: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, indices: bool, shifts: Any) -> Any:
    where = f"fractional_max_pool{n}d"
    x = as_float(input, where)
    single = x.ndim == n + 1
    if single:
        x = reshape(x, (1, *x.shape))
    if x.ndim != n + 2:
        raise ShapeError(where, "input", got=f"shape {x.shape}", takes=f"{n + 2} axes, or {n + 1} without the batch")
    kernel = per_axis(kernel_size, n, where, "kernel_size")
    if output_size is not None:
        sizes = per_axis(output_size, n, where, "output_size")
    elif output_ratio is not None:
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
        if len(ratios) != n or not all(isinstance(r, float) and 0 < r < 1 for r in ratios):
            raise ArgumentValueError(
                where, "output_ratio", got=str(output_ratio), takes=f"a number from 0 to 1, or {n}"
            )
        sizes = tuple([int(d * r) for d, r in zip(x.shape[2:], ratios, strict=True)])
    else:
        raise ArgumentValueError(where, "output_size", got="None without output_ratio", takes="one of the two")
    if shifts is None:
        shifts = draw(random_uniform_p, where, (x.shape[0], x.shape[1], n), dt.float32, None, None)
    u = as_tensor(shifts, where, "_random_samples")
    if n == 2 and u.ndim == 3 and u.shape[2] == 2:
        # for images the shift of the width comes first
        u = concat((u[..., 1:], u[..., :1]), -1)
    y, index = apply(
        fractional_max_pool_p, x, u if u.dtype in dt.FLOATS else cast(u, dt.float32), kernel=kernel, sizes=sizes
    )
    if single:
        y, index = reshape(y, y.shape[1:]), reshape(index, index.shape[1:])
    return (y, index) if indices else y


@operator()
def fractional_max_pool2d(
    input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:  # fmt: skip
    """Max pooling of images over windows of uneven distance.

    Args:
        input: a float tensor of shape (batch, channels, height, width), or without the batch.
        kernel_size: window, an int or a pair.
        output_size: height and width of the result, an int or a pair; or
        output_ratio: their share of the input's, from 0 to 1.
        return_indices: also give the flat position of each maximum, in int64.
        _random_samples: the shifts along width and height, from [0, 1), of shape (batch, channels, 2); drawn if
            None.

    Raises:
        ArgumentValueError: neither a size nor a ratio.
        ShapeError: windows do not fit into the image.

    >>> import mycelia as ms
    >>> ms.ops.fractional_max_pool2d(ms.ops.ones((1, 2, 7, 7)), 2, output_size=(3, 4)).shape
    (1, 2, 3, 4)
    """
    return _pool(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


@operator()
def fractional_max_pool3d(
    input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:  # fmt: skip
    """Max pooling of volumes over windows of uneven distance; see :func:`fractional_max_pool2d`.

    >>> import mycelia as ms
    >>> ms.ops.fractional_max_pool3d(ms.ops.ones((1, 2, 5, 5, 5)), 2, output_ratio=0.5).shape
    (1, 2, 2, 2, 2)
    """
    return _pool(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
