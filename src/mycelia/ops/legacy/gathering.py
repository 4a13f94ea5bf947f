"""Class forms of the operators that read and write at indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentValueError
from mycelia.ops.indexing import gather, gather_d, gather_nd, index_select
from mycelia.ops.legacy.form import form
from mycelia.ops.lookup import one_hot
from mycelia.ops.operands import as_int, as_tensor
from mycelia.ops.parameter_updates import (
    index_add,
    inplace_add,
    inplace_index_add,
    inplace_sub,
    inplace_update,
    scatter_add,
    scatter_div,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_nd_add,
    scatter_nd_div,
    scatter_nd_max,
    scatter_nd_min,
    scatter_nd_mul,
    scatter_nd_sub,
    scatter_nd_update,
    scatter_sub,
    scatter_update,
)
from mycelia.ops.segments import unsorted_segment_max, unsorted_segment_min, unsorted_segment_prod, unsorted_segment_sum
from mycelia.ops.selection import masked_fill, where
from mycelia.ops.sequence_lengths import reverse_sequence
from mycelia.ops.shape import broadcast_to, reshape
from mycelia.ops.tensor_updates import (
    index_fill,
    index_put,
    masked_scatter,
    scatter_nd,
    tensor_scatter_add,
    tensor_scatter_div,
    tensor_scatter_elements,
    tensor_scatter_max,
    tensor_scatter_min,
    tensor_scatter_mul,
    tensor_scatter_sub,
    tensor_scatter_update,
)
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant

__all__ = [
    "EmbeddingLookup", "Gather", "GatherD", "GatherNd", "GatherV2", "IndexAdd", "IndexFill", "IndexPut",
    "IndexSelect", "InplaceAdd", "InplaceIndexAdd", "InplaceSub", "InplaceUpdate", "InplaceUpdateV2", "MaskedFill",
    "MaskedScatter", "OneHot", "ReverseSequence", "Scatter", "ScatterAdd", "ScatterDiv", "ScatterMax", "ScatterMin",
    "ScatterMul", "ScatterNd", "ScatterNdAdd", "ScatterNdDiv", "ScatterNdMax", "ScatterNdMin", "ScatterNdMul",
    "ScatterNdSub", "ScatterNdUpdate", "ScatterNonAliasingAdd", "ScatterSub", "ScatterUpdate", "SegmentMax",
    "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum", "SparseGatherV2", "TensorScatterAdd",
    "TensorScatterDiv", "TensorScatterElements", "TensorScatterMax", "TensorScatterMin", "TensorScatterMul",
    "TensorScatterSub", "TensorScatterUpdate", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd",
    "UnsortedSegmentSum",
]  # fmt: skip

# read


def _looked_up(input_params: Any, input_indices: Any, offset: Any) -> Tensor:
    """The rows at ``index - offset``, zeros where there is no such row."""
    table, places = (
        as_tensor(input_params, "EmbeddingLookup", "input_params"),
        as_tensor(input_indices, "EmbeddingLookup"),
    )
    first = as_int(offset.item() if isinstance(offset, Tensor) else offset, "EmbeddingLookup", "offset")
    moved: Any = places
    moved = moved - first
    inside = (moved >= 0) & (moved < table.shape[0])
    rows = gather(table, where(inside, moved, 0), 0)
    known = broadcast_to(reshape(inside, (*places.shape, *(1,) * (table.ndim - 1))), rows.shape)
    return where(known, rows, 0)  # type: ignore[no-any-return]


EmbeddingLookup = form("EmbeddingLookup()(input_params, input_indices, offset)", _looked_up)
Gather = form("Gather(batch_dims=0)(input_params, input_indices, axis)", gather)
GatherD = form("GatherD()(x, dim, index)", gather_d)
GatherNd = form("GatherNd()(input_x, indices)", gather_nd)
GatherV2 = form("GatherV2()(input_params, input_indices, axis)", gather)
IndexSelect = form("IndexSelect()(input, dim, index)", index_select)
OneHot = form(
    "OneHot(axis=-1)(indices, depth, on_value, off_value)",
    one_hot,
)
ReverseSequence = form("ReverseSequence(seq_dim, batch_dim=0)(x, seq_lengths)", reverse_sequence)
SparseGatherV2 = form("SparseGatherV2()(input_params, input_indices, axis)", gather)

# made with changes


def _placed_values(x1: Any, x2: Any, indices: Any, accumulate: int) -> Tensor:
    return index_put(x1, indices, x2, bool(accumulate))


def _at_elements(data: Any, indices: Any, updates: Any, axis: int, reduce: str) -> Tensor:
    return tensor_scatter_elements(data, indices, updates, axis, reduce)


IndexFill = form("IndexFill()(x, dim, index, value)", index_fill)
IndexPut = form("IndexPut(accumulate=0)(x1, x2, indices)", _placed_values)
InplaceAdd = form("InplaceAdd(indices)(x, input_v)", inplace_add)
InplaceSub = form("InplaceSub(indices)(x, input_v)", inplace_sub)
InplaceUpdate = form("InplaceUpdate(indices)(x, v)", inplace_update)
InplaceUpdateV2 = form("InplaceUpdateV2()(x, indices, v)", lambda x, indices, v: inplace_update(x, v, indices))
MaskedFill = form("MaskedFill()(input_x, mask, value)", masked_fill)
MaskedScatter = form("MaskedScatter()(input, mask, source)", masked_scatter)
Scatter = form(
    "Scatter()(input, dim, index, src, reduce='none')",
    lambda input, dim, index, src, reduce: tensor_scatter_elements(
        input, index, src, dim, str({0: "none", 1: "add"}.get(reduce, reduce))
    ),
)
ScatterNd = form("ScatterNd()(indices, updates, shape)", scatter_nd)
TensorScatterAdd = form("TensorScatterAdd()(input_x, indices, updates)", tensor_scatter_add)
TensorScatterDiv = form("TensorScatterDiv()(input_x, indices, updates)", tensor_scatter_div)
TensorScatterElements = form("TensorScatterElements(axis=0, reduction='none')(data, indices, updates)", _at_elements)
TensorScatterMax = form("TensorScatterMax()(input_x, indices, updates)", tensor_scatter_max)
TensorScatterMin = form("TensorScatterMin()(input_x, indices, updates)", tensor_scatter_min)
TensorScatterMul = form("TensorScatterMul()(input_x, indices, updates)", tensor_scatter_mul)
TensorScatterSub = form("TensorScatterSub()(input_x, indices, updates)", tensor_scatter_sub)
TensorScatterUpdate = form("TensorScatterUpdate()(input_x, indices, update)", tensor_scatter_update)

# parameters changed in place

IndexAdd = form("IndexAdd(axis, use_lock=True, check_index_bound=True)(x, indices, y)", index_add)
InplaceIndexAdd = form("InplaceIndexAdd(axis)(var, indices, updates)", inplace_index_add)
ScatterAdd = form("ScatterAdd(use_locking=False)(input_x, indices, updates)", scatter_add)
ScatterDiv = form("ScatterDiv(use_locking=False)(input_x, indices, updates)", scatter_div)
ScatterMax = form("ScatterMax(use_locking=False)(input_x, indices, updates)", scatter_max)
ScatterMin = form("ScatterMin(use_locking=False)(input_x, indices, updates)", scatter_min)
ScatterMul = form("ScatterMul(use_locking=False)(input_x, indices, updates)", scatter_mul)
ScatterNdAdd = form("ScatterNdAdd(use_locking=False)(input_x, indices, updates)", scatter_nd_add)
ScatterNdDiv = form("ScatterNdDiv(use_locking=False)(input_x, indices, updates)", scatter_nd_div)
ScatterNdMax = form("ScatterNdMax(use_locking=False)(input_x, indices, updates)", scatter_nd_max)
ScatterNdMin = form("ScatterNdMin(use_locking=False)(input_x, indices, updates)", scatter_nd_min)
ScatterNdMul = form("ScatterNdMul(use_locking=False)(input_x, indices, updates)", scatter_nd_mul)
ScatterNdSub = form("ScatterNdSub(use_locking=False)(input_x, indices, updates)", scatter_nd_sub)
ScatterNdUpdate = form("ScatterNdUpdate(use_locking=True)(input_x, indices, updates)", scatter_nd_update)
ScatterNonAliasingAdd = form("ScatterNonAliasingAdd()(input_x, indices, updates)", scatter_nd_add)
ScatterSub = form("ScatterSub(use_locking=False)(input_x, indices, updates)", scatter_sub)
ScatterUpdate = form("ScatterUpdate(use_locking=True)(input_x, indices, updates)", scatter_update)

# segments


def _segments(combine: Any, where: str) -> Any:
    """A combination over sorted segments: there are as many as the last identity says."""

    def compute(input_x: Any, segment_ids: Any) -> Tensor:
        t, ids = as_tensor(input_x, where, "input_x"), as_tensor(segment_ids, where, "segment_ids")
        values = np.asarray(ids._concrete(where))
        if values.ndim != 1 or not values.size or (np.diff(values) < 0).any() or values[0] < 0:
            raise ArgumentValueError(where, "segment_ids", got=str(values.tolist()), takes="a sorted vector from 0 on")
        count = int(values[-1]) + 1
        made: Tensor = combine(t, ids, count)
        empty = np.setdiff1d(np.arange(count), values)
        return index_fill(made, 0, constant(empty), 1 if where == "SegmentProd" else 0) if empty.size else made

    return compute


def _segment_mean(x: Tensor, ids: Tensor, count: int) -> Tensor:
    total: Any = unsorted_segment_sum(x, ids, count)
    sizes = np.bincount(np.asarray(ids._concrete("SegmentMean")), minlength=count).clip(1)
    made: Tensor = total / constant(sizes.reshape((-1, *(1,) * (x.ndim - 1))).astype(x.dtype.np))
    return made


SegmentMax = form("SegmentMax()(input_x, segment_ids)", _segments(unsorted_segment_max, "SegmentMax"))
SegmentMean = form("SegmentMean()(input_x, segment_ids)", _segments(_segment_mean, "SegmentMean"))
SegmentMin = form("SegmentMin()(input_x, segment_ids)", _segments(unsorted_segment_min, "SegmentMin"))
SegmentProd = form("SegmentProd()(input_x, segment_ids)", _segments(unsorted_segment_prod, "SegmentProd"))
SegmentSum = form("SegmentSum()(input_x, segment_ids)", _segments(unsorted_segment_sum, "SegmentSum"))
UnsortedSegmentMax = form("UnsortedSegmentMax()(input_x, segment_ids, num_segments)", unsorted_segment_max)
UnsortedSegmentMin = form("UnsortedSegmentMin()(input_x, segment_ids, num_segments)", unsorted_segment_min)
UnsortedSegmentProd = form("UnsortedSegmentProd()(input_x, segment_ids, num_segments)", unsorted_segment_prod)
UnsortedSegmentSum = form("UnsortedSegmentSum()(input_x, segment_ids, num_segments)", unsorted_segment_sum)
