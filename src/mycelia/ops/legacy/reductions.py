"""Class forms of reductions, running results, sorting and searching."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ops.cumulative import cummax, cummin, cumprod_p, cumsum, cumsum_p, logcumsumexp
from mycelia.ops.extremum import minimum
from mycelia.ops.legacy.form import form
from mycelia.ops.matrix_norms import renorm
from mycelia.ops.norms import vector_norm
from mycelia.ops.operands import as_axes, as_axis, as_int, as_tensor, cast
from mycelia.ops.outputs import one
from mycelia.ops.padding import pad
from mycelia.ops.power import square
from mycelia.ops.rearrange import flip
from mycelia.ops.reduction import (
    all as all_,
    any as any_,
    count_nonzero,
    mean,
    reduce_prod_p,
    reduce_sum,
    sum as sum_,
)
from mycelia.ops.reduction_extrema import amax, amin, argmax, argmin, max as max_, min as min_
from mycelia.ops.rounding import floor
from mycelia.ops.searching import masked_select, nonzero, unique, unique_consecutive, unique_with_pad
from mycelia.ops.segments import unsorted_segment_sum
from mycelia.ops.selection import clamp
from mycelia.ops.shape import filled, moveaxis, reshape
from mycelia.ops.slicing import narrow
from mycelia.ops.sorting import bucketize, intopk, kthvalue, searchsorted, sort, top_k, topk
from mycelia.ops.statistics import histc, median, nanmedian, nanquantile, quantile, std_mean
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant

__all__ = [
    "ArgMaxWithValue", "ArgMinWithValue", "Argmax", "Argmin", "Bincount", "Bucketize", "CountNonZero", "CumProd",
    "CumSum", "Cummax", "Cummin", "CumsumExt", "CumulativeLogsumexp", "EuclideanNorm", "Histogram",
    "HistogramFixedWidth", "InTopK", "L2Loss", "L2Normalize", "ListDiff", "LowerBound", "LpNorm", "MaskedSelect",
    "MeanExt", "Median", "NonZero", "NthElement", "Quantile", "ReduceAll", "ReduceAny", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceStd", "ReduceSum", "Renorm", "SearchSorted", "Sort", "SortExt",
    "SquareSumAll", "SumExt", "TopK", "TopkExt", "Unique", "UniqueConsecutive", "UniqueWithPad", "UpperBound",
]  # fmt: skip


# reductions


def _reduced(reduce: Any) -> Any:
    """A reduction whose axes are an input and whose ``keep_dims`` is given before."""

    def compute(x: Any, axis: Any, keep_dims: bool) -> Tensor:
        made: Tensor = reduce(x, axis, keep_dims)
        return made

    return compute


def _sum(x: Any, axis: Any, keep_dims: bool, skip_mode: bool) -> Tensor:
    """A sum in the tensor's own dtype; of nothing at all if it skips and the axes are empty."""
    t = as_tensor(x, "ReduceSum", "x")
    if skip_mode and isinstance(axis, (tuple, list)) and not axis:
        return t
    if t.dtype is dt.bool_:
        return any_(t, axis, bool(keep_dims))
    return reduce_sum(t, as_axes(axis, t.ndim, "ReduceSum"), bool(keep_dims))


def _mean(x: Any, axis: Any, keep_dims: bool) -> Tensor:
    t = as_tensor(x, "ReduceMean", "x")
    return cast(mean(t, axis, bool(keep_dims)), t.dtype)


def _prod(x: Any, axis: Any, keep_dims: bool) -> Tensor:
    t = as_tensor(x, "ReduceProd", "x")
    return one(reduce_prod_p, t, axes=as_axes(axis, t.ndim, "ReduceProd"), keepdims=bool(keep_dims))


def _std(x: Any, axis: Any, unbiased: bool, keep_dims: bool) -> tuple[Tensor, Tensor]:
    return std_mean(x, axis if axis != () else None, int(unbiased), bool(keep_dims))


def _placed(find: Any) -> Any:
    """The place of an extreme element, and the element."""

    def compute(input: Any, axis: int, keep_dims: bool) -> tuple[Tensor, Tensor]:
        values, places = find(input, axis, bool(keep_dims))
        return places, values

    return compute


def _place(find: Any) -> Any:
    def compute(x: Any, axis: Any, output_type: dt.DType) -> Tensor:
        return cast(find(x, axis), output_type)

    return compute


def _norm_over(input: Any, axis: Any, p: float, keep_dims: bool, epsilon: float) -> Tensor:
    return vector_norm(input, p, axis, bool(keep_dims))


def _check_norm(axis: Any, p: float, keep_dims: bool, epsilon: float) -> None:
    if p < 0:
        raise ArgumentValueError("LpNorm", "p", got=str(p), takes="an order of at least 0")


def _euclidean(x: Any, axes: Any, keep_dims: bool) -> Tensor:
    return vector_norm(x, 2, tuple(as_axes(axes, as_tensor(x, "EuclideanNorm", "x").ndim, "EuclideanNorm")), keep_dims)


def _unit_vectors(x: Any, axis: Any, epsilon: float) -> Tensor:
    """``x`` divided by the root of its squares' sum along the axes, which is taken to be at least ``epsilon``."""
    from mycelia.ops.elementary import rsqrt
    from mycelia.ops.extremum import maximum

    t = as_tensor(x, "L2Normalize", "x")
    total = reduce_sum(square(t), as_axes(axis, t.ndim, "L2Normalize"), True)
    scaled: Any = t
    made: Tensor = scaled * rsqrt(maximum(total, epsilon))
    return made


def _half_square_sum(input_x: Any) -> Tensor:
    total: Any = _sum(square(input_x), None, False, False)
    made: Tensor = total / 2
    return made


def _square_sums(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    return _sum(square(x), None, False, False), _sum(square(y), None, False, False)


def _middle(x: Any, global_median: bool, axis: int, keep_dims: bool, ignore_nan: bool) -> tuple[Tensor, ...]:
    find = nanmedian if ignore_nan else median
    if not global_median:
        return find(x, axis, bool(keep_dims))
    t = as_tensor(x, "Median", "x")
    values, _ = find(reshape(t, (-1,)), 0)
    return values, constant(np.zeros((), np.int64))


def _quantile(input: Any, q: Any, dim: Any, keep_dims: bool, ignore_nan: bool) -> Tensor:
    return (nanquantile if ignore_nan else quantile)(input, q, dim, bool(keep_dims))


EuclideanNorm = form("EuclideanNorm(keep_dims=False)(x, axes)", _euclidean)
ArgMaxWithValue = form("ArgMaxWithValue(axis=0, keep_dims=False)(input)", _placed(max_))
ArgMinWithValue = form("ArgMinWithValue(axis=0, keep_dims=False)(input)", _placed(min_))
Argmax = form("Argmax(axis=-1, output_type=int32)(input_x)", _place(argmax))
Argmin = form("Argmin(axis=-1, output_type=int32)(x)", _place(argmin))
CountNonZero = form("CountNonZero(dims=None)(x)", lambda x, dims: count_nonzero(x, dims, False, dt.int64))
L2Loss = form("L2Loss()(input_x)", _half_square_sum)
L2Normalize = form("L2Normalize(axis=0, epsilon=0.0001)(x)", _unit_vectors)
LpNorm = form("LpNorm(axis, p=2, keep_dims=False, epsilon=1e-12)(input)", _norm_over, _check_norm)
Median = form("Median(global_median=False, axis=0, keep_dims=False, ignore_nan=False)(x)", _middle)
Quantile = form("Quantile(dim=None, keep_dims=False, ignore_nan=False)(input, q)", _quantile)
ReduceAll = form("ReduceAll(keep_dims=False)(input, axis=None)", _reduced(all_))
ReduceAny = form("ReduceAny(keep_dims=False)(x, axis=())", _reduced(any_))
ReduceMax = form("ReduceMax(keep_dims=False)(x, axis=())", _reduced(amax))
ReduceMean = form("ReduceMean(keep_dims=False)(x, axis=())", _mean)
ReduceMin = form("ReduceMin(keep_dims=False)(x, axis=())", _reduced(amin))
ReduceProd = form("ReduceProd(keep_dims=False)(x, axis=())", _prod)
ReduceStd = form("ReduceStd(axis=(), unbiased=True, keep_dims=False)(x)", _std)
ReduceSum = form("ReduceSum(keep_dims=False, skip_mode=False)(x, axis=())", _sum)
Renorm = form("Renorm(p, dim, maxnorm)(x)", renorm)
SquareSumAll = form("SquareSumAll()(x, y)", _square_sums)
MeanExt = form(
    "MeanExt()(input, dim=None, keepdim=False, dtype=None)",
    lambda input, dim, keepdim, dtype: mean(input if dtype is None else cast(input, dtype), dim, keepdim),
)
SumExt = form(
    "SumExt()(input, dim=None, keepdim=False, dtype=None)",
    lambda input, dim, keepdim, dtype: sum_(input, dim, keepdim, dtype=dtype),
)

# running results


def _running(primitive: Any, where: str) -> Any:
    def compute(x: Any, axis: Any, exclusive: bool, reverse: bool) -> Tensor:
        t = as_tensor(x, where, "x")
        along = as_axis(axis.item() if isinstance(axis, Tensor) else axis, t.ndim, where)
        return one(primitive, t, axis=along, exclusive=bool(exclusive), reverse=bool(reverse))

    return compute


CumProd = form("CumProd(exclusive=False, reverse=False)(x, axis)", _running(cumprod_p, "CumProd"))
CumSum = form("CumSum(exclusive=False, reverse=False)(input, axis)", _running(cumsum_p, "CumSum"))
Cummax = form("Cummax(axis)(input)", cummax)
Cummin = form("Cummin(axis)(input)", cummin)


def _running_logsumexp(x: Any, axis: Any, exclusive: bool, reverse: bool) -> Tensor:
    t = as_tensor(x, "CumulativeLogsumexp", "x")
    along = as_axis(axis.item() if isinstance(axis, Tensor) else axis, t.ndim, "CumulativeLogsumexp")
    turned = flip(t, (along,)) if reverse else t
    if exclusive:
        turned = moveaxis(pad(moveaxis(turned, along, -1), (1, -1), value=float("-inf")), -1, along)
    made = logcumsumexp(turned, along)
    return flip(made, (along,)) if reverse else made


CumulativeLogsumexp = form("CumulativeLogsumexp(exclusive=False, reverse=False)(x, axis)", _running_logsumexp)
CumsumExt = form("CumsumExt()(input, dim, dtype=None)", cumsum)

# sorting and searching


def _counts(array: Any, size: Any, weights: Any) -> Any:
    """How often each number below ``size`` occurs, or the sums of its weights; larger ones are left out."""
    t = reshape(as_tensor(array, "Bincount", "array"), (-1,))
    w = reshape(as_tensor(weights, "Bincount", "weights"), (-1,))
    length = as_int(size.item() if isinstance(size, Tensor) else size, "Bincount", "size")
    summed = unsorted_segment_sum(w, minimum(t, length), length + 1)
    return narrow(summed, 0, 0, length)


def _fixed_width(x: Any, range_: Any, nbins: int, dtype: Any) -> Tensor:
    """How many numbers fall into each of ``nbins`` equal intervals; those outside fall into the last ones."""
    t, ends = as_tensor(x, "HistogramFixedWidth", "x"), as_tensor(range_, "HistogramFixedWidth", "range")
    if ends.shape != (2,):
        raise ShapeError("HistogramFixedWidth", "range", got=f"shape {ends.shape}", takes="two numbers")
    low: Any = cast(ends[0], dt.float64)
    width: Any = (cast(ends[1], dt.float64) - low) / nbins
    flat: Any = cast(reshape(t, (-1,)), dt.float64)
    places = cast(clamp(floor((flat - low) / width), 0, nbins - 1), dt.int64)
    ones = filled(1, dt.as_dtype(dtype, "HistogramFixedWidth"), places.shape)
    return unsorted_segment_sum(ones, places, nbins)


def _bounded(right: bool, where: str) -> Any:
    def compute(sorted_x: Any, values: Any, out_type: dt.DType) -> Tensor:
        return cast(searchsorted(sorted_x, values, right=right), out_type)

    return compute


def _without(x: Any, y: Any, out_idx: dt.DType) -> tuple[Tensor, Tensor]:
    """The elements of ``x`` that are not in ``y``, and where they stand in ``x``."""
    a, b = as_tensor(x, "ListDiff", "x"), as_tensor(y, "ListDiff", "y")
    kept = ~np.isin(np.asarray(a._concrete("ListDiff")), np.asarray(b._concrete("ListDiff")))
    places = np.flatnonzero(kept)
    return masked_select(a, constant(kept)), constant(places.astype(out_idx.np))


def _nth(input: Any, n: Any, reverse: bool) -> Tensor:
    t = as_tensor(input, "NthElement")
    rank = as_int(n.item() if isinstance(n, Tensor) else n, "NthElement", "n")
    length = t.shape[-1]
    return kthvalue(t, length - rank if reverse else rank + 1, -1)[0]


def _search(sequence: Any, values: Any, sorter: Any, dtype: dt.DType, right: bool) -> Tensor:
    return cast(searchsorted(sequence, values, right=bool(right), sorter=sorter), dtype)


def _distinct(input_x: Any) -> tuple[Tensor, Tensor]:
    """The different elements, and where each element is among them: as int64 of int64, else as int32."""
    t = as_tensor(input_x, "Unique", "input_x")
    values, places = unique(t)
    return values, cast(places, dt.int64 if t.dtype is dt.int64 else dt.int32)


Bincount = form("Bincount()(array, size, weights)", _counts)
Bucketize = form("Bucketize(boundaries)(input)", lambda input, boundaries: bucketize(input, boundaries, right=True))
Histogram = form("Histogram(bins=100, min=0.0, max=0.0)(x)", histc)
HistogramFixedWidth = form("HistogramFixedWidth(nbins, dtype='int32')(x, range)", _fixed_width)
InTopK = form("InTopK(k)(x1, x2)", intopk)
ListDiff = form("ListDiff(out_idx=int32)(x, y)", _without)
LowerBound = form("LowerBound(out_type=int32)(sorted_x, values)", _bounded(False, "LowerBound"))
MaskedSelect = form("MaskedSelect()(input, mask)", masked_select)
NonZero = form("NonZero()(input)", nonzero)
NthElement = form("NthElement(reverse=False)(input, n)", _nth)
SearchSorted = form("SearchSorted(dtype=int64, right=False)(sorted_sequence, values, sorter=None)", _search)
Sort = form("Sort(axis=-1, descending=False)(x)", sort)
SortExt = form(
    "SortExt()(input, dim=-1, descending=False, stable=False)",
    lambda input, dim, descending, stable: _long_places(sort(input, dim, descending)),
)
TopK = form("TopK(sorted=True)(input_x, k)", top_k)
TopkExt = form(
    "TopkExt()(input, k, dim=-1, largest=True, sorted=True)",
    lambda input, k, dim, largest, sorted: _long_places(topk(input, k, dim, largest, sorted)),
)
Unique = form("Unique()(input_x)", _distinct)
UniqueConsecutive = form(
    "UniqueConsecutive(return_inverse=False, return_counts=False, dim=None)(input)", unique_consecutive
)
UniqueWithPad = form("UniqueWithPad()(x, pad_num)", unique_with_pad)
UpperBound = form("UpperBound(out_type=int32)(sorted_x, values)", _bounded(True, "UpperBound"))


def _long_places(pair: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    return pair[0], cast(pair[1], dt.int64)
