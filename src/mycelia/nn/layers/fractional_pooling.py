"""Fractional max pooling: B. Graham, "Fractional max-pooling", 2014.

Windows overlap and their places are drawn. On an axis of n elements with a window of k and m results, the
windows start at ``floor((i + u) * a) - floor(u * a)`` with ``a = (n - k) / (m - 1)`` and one number u from 0 to 1
for each channel, the last one at ``n - k``. The elements of all windows are gathered and the largest taken.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.nn.cell import Cell
from mycelia.nn.layers import arguments as arg
from mycelia.nn.layers.adaptive_pooling import size_of
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant


def _positions(u: Any, size: int, count: int, window: int) -> Any:
    """Places of the elements of each window, of shape (batch, channels, count, window)."""
    steps = np.arange(count - 1, dtype=np.float32)
    step = np.float32((size - window) / max(count - 1, 1))
    first = ops.expand_dims(ops.cast(u, dt.float32), -1)
    starts = ops.floor((first + constant(steps)) * float(step)) - ops.floor(first * float(step))
    last = ops.full_like(first, float(size - window))
    places = ops.cast(ops.concat((starts, last), -1), dt.int64)
    return ops.expand_dims(places, -1) + constant(np.arange(window))


class _FractionalPool(Cell):
    """Windows whose places are drawn."""

    n: int
    #: Which of the drawn numbers belongs to which axis.
    order: tuple[int, ...]

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        where = type(self).__name__
        self.kernel_size = arg.per_axis(where, "kernel_size", kernel_size, self.n)
        if output_size is None and output_ratio is None:
            raise ArgumentValueError(where, "output_size", got="None", takes="a size, or else 'output_ratio'")
        self.output_size = None if output_size is None else size_of(where, output_size, self.n, free=False)
        self.output_ratio = None
        if output_size is None:
            ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * self.n
            if len(ratios) != self.n:
                takes = f"a number or {self.n} of them"
                raise ArgumentValueError(where, "output_ratio", got=str(output_ratio), takes=takes)
            self.output_ratio = tuple(arg.fraction(where, "output_ratio", r, one=False) for r in ratios)
        arg.flag(where, "return_indices", return_indices)
        self.return_indices = return_indices
        if _random_samples is not None and not isinstance(_random_samples, Tensor):
            raise ArgumentTypeError(where, "_random_samples", got=type(_random_samples).__name__, takes="a Tensor")
        self._random_samples = _random_samples

    def _counts(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        counts: tuple[int, ...]
        if self.output_ratio is not None:
            counts = tuple(int(size * r) for size, r in zip(sizes, self.output_ratio, strict=True))
        else:
            counts = arg.per_axis(type(self).__name__, "output_size", self.output_size, self.n)
        for size, count, k in zip(sizes, counts, self.kernel_size, strict=True):
            if count < 1 or k + count - 1 > size:
                raise ShapeError(
                    type(self).__name__, "input", got=f"{size} elements on an axis",
                    takes=f"at least {k + max(count, 1) - 1} for {count} windows of {k}",
                )  # fmt: skip
        return counts

    def construct(self, input: Any) -> Any:
        where, n = type(self).__name__, self.n
        t: Any = arg.axes_of_input(where, "input", input, (n + 1, n + 2), "(batch,) channels and the spatial axes")
        single = t.ndim == n + 1
        x = ops.expand_dims(t, 0) if single else t
        batch, channels, *sizes = x.shape
        counts = self._counts(tuple(sizes))
        u = self._random_samples
        if u is None:
            u = ops.rand(batch, channels, n)
        elif u.shape not in ((batch, channels, n), (1, channels, n)):
            takes = f"shape {(batch, channels, n)}"
            raise ShapeError(where, "_random_samples", got=f"shape {u.shape}", takes=takes)
        flat: Any = constant(np.zeros((), np.int64))
        for i in range(n):
            places = _positions(u[:, :, self.order[i]], sizes[i], counts[i], self.kernel_size[i])
            shape = [1] * (2 * n)
            shape[i], shape[n + i] = counts[i], self.kernel_size[i]
            flat = flat * sizes[i] + ops.reshape(places, (*places.shape[:2], *shape))
        window = math.prod(self.kernel_size)
        flat = ops.broadcast_to(flat, (batch, channels, *flat.shape[2:]))
        rows = ops.gather_elements(
            ops.reshape(x, (batch, channels, math.prod(sizes))), 2, ops.reshape(flat, (batch, channels, -1))
        )
        rows = ops.reshape(rows, (batch, channels, *counts, window))
        best = ops.expand_dims(ops.argmax(ops.stop_gradient(rows), -1), -1)
        y = ops.squeeze(ops.gather_elements(rows, -1, best), -1)
        y = ops.squeeze(y, 0) if single else y
        if not self.return_indices:
            return y
        index = ops.squeeze(ops.gather_elements(ops.reshape(flat, rows.shape), -1, best), -1)
        return y, (ops.squeeze(index, 0) if single else index)


class FractionalMaxPool2d(_FractionalPool):
    """Maxima over windows of images at random places, to a given size.

    Args:
        kernel_size: window, an int or a pair.
        output_size: size of the result, an int or a pair; or
        output_ratio: the fraction of the size that is kept, a number below 1 or a pair.
        return_indices: also give the flat positions of the maxima.
        _random_samples: numbers from 0 to 1 of shape (batch, channels, 2), for width and height, in place of
            drawn ones.

    Inputs:
        input: a tensor of shape (batch, channels, height, width), or without the batch.

    Raises:
        ShapeError: the windows do not fit the input.

    >>> import mycelia as ms
    >>> ms.nn.FractionalMaxPool2d(2, output_size=3)(ms.ops.ones((1, 2, 7, 7))).shape
    (1, 2, 3, 3)
    """

    n = 2
    order = (1, 0)


class FractionalMaxPool3d(_FractionalPool):
    """Maxima over windows of volumes at random places; see :class:`FractionalMaxPool2d`.

    The drawn numbers are for depth, height and width.

    >>> import mycelia as ms
    >>> ms.nn.FractionalMaxPool3d(2, output_size=2)(ms.ops.ones((1, 2, 5, 5, 5))).shape
    (1, 2, 2, 2, 2)
    """

    n = 3
    order = (0, 1, 2)
