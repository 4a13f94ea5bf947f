"""The reductions under their first names: ``reduce_sum``, ``reduce_mean``, ``reduce_max``, ``reduce_min``.

They keep the dtype of the tensor and take an empty ``axis`` for all axes.
"""

from __future__ import annotations

from typing import Any

from mycelia.ops.operands import as_axes, as_tensor
from mycelia.ops.reduction import mean, reduce_sum as _sum_over
from mycelia.ops.reduction_extrema import amax, amin
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor


@operator()
def reduce_sum(x: Any, axis: Any = ()) -> Tensor:
    """Sum over axes in the tensor's own dtype.

    Args:
        x: a tensor of numbers.
        axis: an axis or a tuple of axes; an empty one means all of them.

    >>> import mycelia as ms
    >>> print(ms.ops.reduce_sum(ms.Tensor([[1, 2], [3, 4]], ms.int32), 0))
    [4 6]
    """
    t = as_tensor(x, "reduce_sum", "x")
    return _sum_over(t, as_axes(axis, t.ndim, "reduce_sum"))


@operator()
def reduce_mean(x: Any, axis: Any = ()) -> Tensor:
    """Mean over axes; see :func:`mean`.

    >>> import mycelia as ms
    >>> print(ms.ops.reduce_mean(ms.Tensor([[1.0, 2.0], [3.0, 4.0]]), 0))
    [2. 3.]
    """
    return mean(x, axis)


@operator()
def reduce_max(x: Any, axis: Any = ()) -> Tensor:
    """The largest element over axes; see :func:`amax`.

    >>> import mycelia as ms
    >>> print(ms.ops.reduce_max(ms.Tensor([[1, 3], [4, 2]]), 0))
    [4 3]
    """
    return amax(x, axis)


@operator()
def reduce_min(x: Any, axis: Any = ()) -> Tensor:
    """The smallest element over axes; see :func:`amin`.

    >>> import mycelia as ms
    >>> print(ms.ops.reduce_min(ms.Tensor([[1, 3], [4, 2]]), 0))
    [1 2]
    """
    return amin(x, axis)
