"""Integrals of sampled functions by the trapezoidal rule."""

from __future__ import annotations

from typing import Any

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ShapeError
from mycelia.ops.operands import as_axis, as_tensor, cast
from mycelia.ops.reduction import reduce_sum
from mycelia.ops.registry import operator
from mycelia.ops.shape import reshaped
from mycelia.ops.slicing import narrowed
from mycelia.tensor import Tensor


@operator()
def trapz(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """Integral of samples along an axis by the trapezoidal rule.

    Args:
        y: the samples; integers become float32.
        x: where they were taken: a vector, or a tensor of the shape of ``y``.
        dx: the distance between samples if ``x`` is not given.
        dim: the axis.

    Returns:
        A tensor without the axis.

    Raises:
        ShapeError: ``x`` does not fit, or ``y`` has no axis.

    >>> import mycelia as ms
    >>> print(ms.ops.trapz(ms.Tensor([1.0, 2.0, 3.0])))
    4.0
    """
    samples = as_tensor(y, "trapz", "y")
    if samples.ndim == 0:
        raise ShapeError("trapz", "y", got="a zero-dimensional tensor", takes="at least one axis")
    if not isinstance(dx, (int, float)) or isinstance(dx, bool):
        raise ArgumentTypeError("trapz", "dx", got=repr(dx), takes="a number")
    axis = as_axis(dim, samples.ndim, "trapz", "dim")
    t: Any = samples if samples.dtype.is_inexact else cast(samples, dt.float32)
    length = max(t.shape[axis] - 1, 0)
    ends: Any = narrowed(t, axis, 0, length)
    ends = ends + narrowed(t, axis, t.shape[axis] - length, length)
    if x is None:
        return reduce_sum(ends * (dx / 2), (axis,))
    places = cast(as_tensor(x, "trapz", "x"), t.dtype)
    if places.ndim == 1 and t.ndim > 1:
        places = reshaped(places, tuple([places.shape[0] if i == axis else 1 for i in range(t.ndim)]))
    if places.ndim != t.ndim or places.shape[axis] != t.shape[axis]:
        raise ShapeError(
            "trapz",
            "x",
            got=f"shape {places.shape}",
            takes=f"a vector of {t.shape[axis]} places or the shape {t.shape}",
        )
    steps: Any = narrowed(places, axis, places.shape[axis] - length, length)
    steps = steps - narrowed(places, axis, 0, length)
    return reduce_sum(ends * steps / 2, (axis,))
