"""Slices folded together by the number of their segment: unsorted_segment_sum, _max, _min, _prod.

A slice whose number is outside ``[0, num_segments)`` belongs to no segment. An empty segment gives 0 for the
sum, 1 for the product, and the lowest (highest) number of the dtype for the largest (smallest).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ops.extremum import maximum
from mycelia.ops.indexing import add_at_p, as_index, gather
from mycelia.ops.operands import as_int, as_tensor
from mycelia.ops.outputs import one
from mycelia.ops.registry import operator
from mycelia.ops.scatter import scatter_nd_p
from mycelia.ops.shape import filled, reshaped
from mycelia.tensor import Tensor


def _operands(input_x: Any, segment_ids: Any, num_segments: Any, where: str, name: str) -> tuple[Tensor, Tensor, int]:
    from mycelia.ops.selection import where as choose

    x, ids = as_tensor(input_x, where, name), as_index(segment_ids, where, "segment_ids")
    count = as_int(num_segments, where, "num_segments")
    if count < 1:
        raise ArgumentValueError(where, "num_segments", got=str(count), takes="an int of at least 1")
    if x.shape[: ids.ndim] != ids.shape:
        raise ShapeError(where, "segment_ids", got=f"shape {ids.shape}", takes=f"the first lengths of {x.shape}")
    if ids.dtype.is_signed:
        negative: Any = ids
        ids = choose(negative < 0, count, ids)
    return x, ids, count


@operator()
def unsorted_segment_sum(input_x: Any, segment_ids: Any, num_segments: int) -> Tensor:
    """Sum of the slices of each segment.

    Args:
        input_x: a tensor.
        segment_ids: integers, of the first axes of ``input_x``: the segment of each slice.
        num_segments: how many segments there are.

    Returns:
        A tensor of shape ``(num_segments,) + input_x.shape[segment_ids.ndim:]``.

    Raises:
        ShapeError: ``segment_ids`` does not fit.
        ArgumentValueError: ``num_segments`` is less than 1.

    >>> import mycelia as ms
    >>> print(ms.ops.unsorted_segment_sum(ms.Tensor([1, 2, 3]), ms.Tensor([1, 0, 1]), 2))
    [2 4]
    """
    x, ids, count = _operands(input_x, segment_ids, num_segments, "unsorted_segment_sum", "input_x")
    return one(add_at_p, x, ids, length=count, axis=0, batch_dims=0)


def _combined(x: Any, segment_ids: Any, num_segments: Any, mode: str, empty: Any, where: str) -> Tensor:
    t, ids, count = _operands(x, segment_ids, num_segments, where, "x")
    start = filled(empty(t.dtype), t.dtype, (count, *t.shape[ids.ndim :]))
    return one(scatter_nd_p, start, reshaped(ids, (*ids.shape, 1)), t, mode=mode)


def _limit(dtype: dt.DType, lowest: bool) -> Any:
    info: Any = np.iinfo(dtype.np) if dtype.is_integer else _finfo(dtype)
    return info.min if lowest else info.max


def _finfo(dtype: dt.DType) -> Any:
    finfo: Any = ml_dtypes.finfo
    return finfo(dtype.np)


@operator(methods=True)
def unsorted_segment_max(x: Any, segment_ids: Any, num_segments: int) -> Tensor:
    """Largest element of each segment, element by element of the slices; see :func:`unsorted_segment_sum`.

    >>> import mycelia as ms
    >>> print(ms.ops.unsorted_segment_max(ms.Tensor([1, 2, 3]), ms.Tensor([1, 0, 1]), 2))
    [2 3]
    """
    return _combined(x, segment_ids, num_segments, "max", lambda d: _limit(d, True), "unsorted_segment_max")


@operator(methods=True)
def unsorted_segment_min(x: Any, segment_ids: Any, num_segments: int) -> Tensor:
    """Smallest element of each segment, element by element of the slices; see :func:`unsorted_segment_sum`.

    >>> import mycelia as ms
    >>> print(ms.ops.unsorted_segment_min(ms.Tensor([1, 2, 3]), ms.Tensor([1, 0, 1]), 2))
    [2 1]
    """
    return _combined(x, segment_ids, num_segments, "min", lambda d: _limit(d, False), "unsorted_segment_min")


@operator(methods=True)
def unsorted_segment_prod(x: Any, segment_ids: Any, num_segments: int) -> Tensor:
    """Product of the slices of each segment; see :func:`unsorted_segment_sum`.

    >>> import mycelia as ms
    >>> print(ms.ops.unsorted_segment_prod(ms.Tensor([1, 2, 3]), ms.Tensor([1, 0, 1]), 2))
    [2 3]
    """
    return _combined(x, segment_ids, num_segments, "mul", lambda d: 1, "unsorted_segment_prod")


@operator()
def sparse_segment_mean(x: Any, indices: Any, segment_ids: Any) -> Tensor:
    """Mean of the slices ``x[indices]`` of each segment; zeros for one without slices.

    Args:
        x: a floating tensor.
        indices: a vector of integers: which slices.
        segment_ids: the segment of each of them, in ascending order; the last one sets the number of segments.

    Returns:
        A tensor of shape ``(segment_ids[-1] + 1,) + x.shape[1:]``.

    Raises:
        ShapeError: ``segment_ids`` does not fit ``indices``.
        GraphError: in a graph: the shape depends on values.

    >>> import mycelia as ms
    >>> print(ms.ops.sparse_segment_mean(ms.Tensor([1.0, 2.0, 4.0]), ms.Tensor([0, 1, 2]), ms.Tensor([0, 0, 2])))
    [1.5 0.  4. ]
    """
    where = "sparse_segment_mean"
    t, places, ids = (
        as_tensor(x, where, "x"),
        as_index(indices, where, "indices"),
        as_index(segment_ids, where, "segment_ids"),
    )
    if places.ndim != 1 or ids.shape != places.shape or not ids.size:
        raise ShapeError(
            where, "segment_ids", got=f"shape {ids.shape}", takes="a vector with one segment for each of 'indices'"
        )
    count = int(np.max(np.asarray(ids._concrete(where)))) + 1
    total: Any = unsorted_segment_sum(gather(t, places, 0), ids, count)
    number: Any = unsorted_segment_sum(filled(1, t.dtype, ids.shape), ids, count)
    return total / reshaped(maximum(number, 1), (count,) + (1,) * (t.ndim - 1))  # type: ignore[no-any-return]
