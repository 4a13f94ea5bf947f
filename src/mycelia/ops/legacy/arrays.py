"""Class forms of the operators on shapes: made, moved, joined, cut and padded tensors, and what they are like."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, DTypeError, StateError
from mycelia.ops.axes import dyn_shape, expand_dims, rank, shape, size, squeeze
from mycelia.ops.casting import cast
from mycelia.ops.complex_numbers import is_complex
from mycelia.ops.creation import (
    eye,
    fill,
    fills,
    meshgrid,
    ones,
    ones_like,
    scalar_to_tensor,
    tril_indices,
    triu_indices,
    zeros,
    zeros_like,
)  # fmt: skip
from mycelia.ops.diagonals import diag, diagonal, fill_diagonal, matrix_band_part, tril, triu
from mycelia.ops.elementary import conj
from mycelia.ops.interpolation import channel_shuffle
from mycelia.ops.joining import concat, split, stack, tuple_to_array, unstack
from mycelia.ops.legacy.form import form
from mycelia.ops.operands import as_int, as_shape, as_tensor
from mycelia.ops.padding import pad, padded, padding
from mycelia.ops.patches import batch_to_space_nd, depth_to_space, fold, space_to_batch_nd, space_to_depth, unfold
from mycelia.ops.rearrange import reverse, roll, tile
from mycelia.ops.sequences import linspace, logspace, range as range_
from mycelia.ops.shape import broadcast_to, reshape, swapaxes, transpose
from mycelia.ops.slicing import slice as slice_
from mycelia.ops.state import identity
from mycelia.ops.subscript import strided_slice
from mycelia.ops.windows import bartlett_window, blackman_window, hamming_window
from mycelia.tensor import Tensor

__all__ = [
    "BartlettWindow", "BatchToSpace", "BatchToSpaceND", "BatchToSpaceNDV2", "BlackmanWindow", "BroadcastTo", "Cast",
    "ChannelShuffle", "CheckNumerics", "Col2Im", "Concat", "ConjugateTranspose", "DType", "DepthToSpace", "Diag",
    "DiagPart", "DynamicShape", "Expand", "ExpandDims", "Eye", "Fill", "FillDiagonal", "FillV2", "Fills", "Flatten",
    "HammingWindow", "Identity", "IdentityN", "Im2Col", "InvertPermutation", "LinSpace", "LogSpace",
    "MatrixBandPart", "Meshgrid", "MirrorPad", "Ones", "OnesLike", "Pack", "Pad", "PadV3", "Padding",
    "ParallelConcat", "Range", "Rank", "Reshape", "Reusing", "ReverseV2", "Roll", "ScalarCast", "ScalarToArray",
    "ScalarToTensor", "Shape", "Size", "Slice", "SpaceToBatch", "SpaceToBatchND", "SpaceToDepth", "Split", "SplitV",
    "SplitWithSize", "Squeeze", "Stack", "StackExt", "StridedSlice", "TensorShape", "TensorToScalar",
    "TensorToTuple", "Tile", "Transpose", "TransposeExtView", "TransposeView", "Tril", "TrilIndices", "Triu",
    "TriuIndices", "TupleToArray", "Unpack", "UnravelIndex", "Unstack", "Zeros", "ZerosLike",
]  # fmt: skip

# made


def _filled(where: str, dtype: Any, dims: Any, value: Any) -> Tensor:
    """A constant tensor; the order of the arguments is that of ``Fill``."""
    return fill(dt.as_dtype(dtype, where, "dtype"), dims, value)


def _full(shape: Any, value: Any) -> Tensor:
    fill_value = as_tensor(value, "FillV2", "value")
    return broadcast_to(reshape(fill_value, ()), as_shape(shape, "FillV2"))


def _linspace(start: Any, stop: Any, num: Any) -> Tensor:
    return linspace(start, stop, as_int(num.item() if isinstance(num, Tensor) else num, "LinSpace", "num"))


def _with_dtype(make: Any) -> Any:
    def compute(*args: Any) -> Tensor:
        made: Tensor = make(*args[:-1], dtype=args[-1])
        return made

    return compute


def _scalar_to_array(input_x: Any) -> Tensor:
    return scalar_to_tensor(input_x, dt.int32 if isinstance(input_x, int) else dt.float32)


def _scalar_cast(input_x: Any, input_y: Any) -> Any:
    """A Python number as another kind of number."""
    value = input_x.item() if isinstance(input_x, Tensor) else input_x
    return dt.dtype_to_pytype(dt.as_dtype(input_y, "ScalarCast", "input_y"))(value)


BartlettWindow = form(
    "BartlettWindow(periodic=True, dtype=float32)(window_length)",
    lambda window_length, periodic, dtype: bartlett_window(window_length, periodic, dtype=dtype),
)
BlackmanWindow = form(
    "BlackmanWindow(periodic=True, dtype=float32)(window_length)",
    lambda window_length, periodic, dtype: blackman_window(window_length, periodic, dtype=dtype),
)
HammingWindow = form(
    "HammingWindow(periodic=True, alpha=0.54, beta=0.46, dtype=float32)(length)",
    lambda length, periodic, alpha, beta, dtype: hamming_window(length, periodic, alpha, beta, dtype=dtype),
)
Eye = form("Eye()(n, m, dtype)", eye)
Fill = form("Fill()(dtype, dims, x)", partial(_filled, "Fill"))
FillV2 = form("FillV2()(shape, value)", _full)
Fills = form("Fills()(x, value)", fills)
LinSpace = form("LinSpace()(start, stop, num)", _linspace)
LogSpace = form("LogSpace(steps=10, base=10, dtype=float32)(start, end)", _with_dtype(logspace))
Meshgrid = form("Meshgrid(indexing='xy')(inputs)", lambda inputs, indexing: meshgrid(*inputs, indexing=indexing))
Ones = form("Ones()(shape, dtype=None)", ones)
OnesLike = form("OnesLike()(x)", ones_like)
Range = form("Range(maxlen=1000000)(start, end, step)", range_)
ScalarCast = form("ScalarCast()(input_x, input_y)", _scalar_cast)
ScalarToArray = form("ScalarToArray()(input_x)", _scalar_to_array)
ScalarToTensor = form("ScalarToTensor()(x, dtype=float32)", scalar_to_tensor)
TrilIndices = form(
    "TrilIndices(row, col, offset=0, dtype=int32)()",
    lambda row, col, offset, dtype: tril_indices(row, col, offset, dtype=dtype),
)
TriuIndices = form(
    "TriuIndices(row, col, offset=0, dtype=int32)()",
    lambda row, col, offset, dtype: triu_indices(row, col, offset, dtype=dtype),
)
TupleToArray = form("TupleToArray()(input_x)", tuple_to_array)
Zeros = form("Zeros()(size, dtype=None)", zeros)
ZerosLike = form("ZerosLike()(x)", zeros_like)

# what a tensor is like


def _checked_numbers(x: Any) -> Tensor:
    """The tensor, refused if it holds NaN or an infinity."""
    t = as_tensor(x, "CheckNumerics", "x")
    if not t.dtype.is_inexact:
        raise DTypeError("CheckNumerics", "x", got=f"dtype {t.dtype}", takes="a floating dtype")
    values = np.asarray(t._concrete("CheckNumerics"))
    if not np.isfinite(values).all():
        what = "NaN" if np.isnan(values).any() else "infinity"
        raise StateError("CheckNumerics", message=f"argument 'x' holds {what}")
    return t


def _element_type(x: Any) -> dt.DType:
    return as_tensor(x, "DType", "x").dtype


CheckNumerics = form("CheckNumerics()(x)", _checked_numbers)
DType = form("DType()(x)", _element_type)
DynamicShape = form("DynamicShape(dtype=9)(x)", lambda x, dtype: dyn_shape(x))
Rank = form("Rank()(x)", rank)
Shape = form("Shape()(x)", shape)
Size = form("Size()(input_x)", size)
TensorShape = form("TensorShape()(input_x)", dyn_shape)
TensorToScalar = form("TensorToScalar()(x)", lambda x: as_tensor(x, "TensorToScalar", "x").item())
TensorToTuple = form("TensorToTuple()(x)", lambda x: tuple(as_tensor(x, "TensorToTuple", "x").tolist()))

# moved


def _conjugate_transpose(x: Any, perm: Any) -> Tensor:
    moved = transpose(x, perm)
    return conj(moved) if is_complex(moved) else moved


def _inverse_permutation(input_x: Sequence[Any]) -> Any:
    """Where each place goes: ``out[input_x[i]] = i``."""
    where = "InvertPermutation"
    given = input_x.tolist() if isinstance(input_x, Tensor) else input_x
    found = as_shape(given, where, "input_x")
    if sorted(found) != list(range(len(found))):
        raise ArgumentValueError(where, "input_x", got=str(found), takes=f"each number from 0 to {len(found) - 1} once")
    made = tuple(np.argsort(found).tolist())
    return Tensor(list(made), input_x.dtype) if isinstance(input_x, Tensor) else made


def _unraveled(indices: Any, dims: Any) -> Any:
    """The coordinates of flat places: one row for each axis."""
    flat, sizes = as_tensor(indices, "UnravelIndex", "indices"), as_shape(dims, "UnravelIndex", "dims", minimum=1)
    places: Any = flat
    rows = []
    for length in reversed(sizes):
        rows.append(places % length)
        places = places // length
    return stack(rows[::-1], 0)


ChannelShuffle = form("ChannelShuffle(group)(x)", channel_shuffle)
ConjugateTranspose = form("ConjugateTranspose()(x, perm)", _conjugate_transpose)
Diag = form("Diag()(input)", diag)
ExpandDims = form("ExpandDims()(input_x, axis)", expand_dims)
InvertPermutation = form("InvertPermutation()(input_x)", _inverse_permutation)
Reshape = form("Reshape()(input, shape)", reshape)
ReverseV2 = form("ReverseV2(axis)(input)", reverse)
Roll = form("Roll(shifts, dims=None)(input)", roll)
Squeeze = form("Squeeze(axis=())(input)", lambda input, axis: squeeze(input, None if axis == () else axis))
Transpose = form("Transpose()(input, dims)", transpose)
TransposeExtView = form("TransposeExtView()(input, dim0, dim1)", swapaxes)
TransposeView = form("TransposeView()(input, input_perm)", transpose)
UnravelIndex = form("UnravelIndex()(indices, dims)", _unraveled)


def _flat_rows(input_x: Any) -> Tensor:
    t = as_tensor(input_x, "Flatten", "input_x")
    return reshape(t, (t.shape[0] if t.ndim else 1, int(np.prod(t.shape[1:]))))


def _diagonal_part(input_x: Any) -> Tensor:
    """Of a tensor with axes (D1..Dk, D1..Dk), the elements at equal places in both halves."""
    t = as_tensor(input_x, "DiagPart", "input_x")
    half = t.ndim // 2
    if t.ndim % 2 or not t.ndim or t.shape[:half] != t.shape[half:]:
        raise ArgumentValueError(
            "DiagPart", "input_x", got=f"shape {t.shape}", takes="axes that repeat, (D1..Dk, D1..Dk)"
        )
    side = int(np.prod(t.shape[:half]))
    return reshape(diagonal(reshape(t, (side, side))), t.shape[:half])


BroadcastTo = form("BroadcastTo(shape)(input)", broadcast_to)
Cast = form("Cast()(input_x, dtype)", cast)
DiagPart = form("DiagPart()(input_x)", _diagonal_part)
Expand = form("Expand()(x, shape)", broadcast_to)
FillDiagonal = form("FillDiagonal(fill_value, wrap=False)(input_x)", fill_diagonal)
Flatten = form("Flatten()(input_x)", _flat_rows)
Identity = form("Identity()(input_x)", identity)
IdentityN = form("IdentityN()(x)", lambda x: tuple(identity(v) for v in x))
MatrixBandPart = form("MatrixBandPart()(x, lower, upper)", matrix_band_part)
Reusing = form("Reusing()(x)", identity)
Tile = form("Tile()(input, dims)", tile)
Tril = form("Tril(diagonal=0)(x)", tril)
Triu = form("Triu(diagonal=0)(input)", triu)

# joined and cut


def _equal_parts(input_x: Any, axis: int, output_num: int) -> Any:
    t = as_tensor(input_x, "Split", "input_x")
    length = t.shape[axis] if -t.ndim <= axis < t.ndim else 0
    if output_num < 1 or length % output_num:
        raise ArgumentValueError(
            "Split", "output_num", got=str(output_num), takes=f"a divisor of {length}, the length of axis {axis}"
        )
    return split(t, length // output_num, axis)


def _unstacked(input_x: Any, axis: int, num: Any) -> tuple[Tensor, ...]:
    parts = unstack(input_x, axis)
    if num is not None and num != len(parts):
        raise ArgumentValueError("Unstack", "num", got=str(num), takes=f"{len(parts)}, the length of axis {axis}")
    return parts


Concat = form("Concat(axis=0)(tensors)", concat)
Pack = form("Pack(axis=0)(input_x)", stack)
ParallelConcat = form("ParallelConcat()(values)", concat)
Slice = form("Slice()(input, begin, size)", slice_)
Split = form("Split(axis=0, output_num=1)(input_x)", _equal_parts)
SplitV = form(
    "SplitV(size_splits, split_dim, num_split)(input_x)",
    lambda input_x, size_splits, split_dim, num_split: split(input_x, list(size_splits), split_dim),
)
SplitWithSize = form("SplitWithSize()(input, split_size, dim=0)", split)
Stack = form("Stack(axis=0)(input_x)", stack)
StackExt = form("StackExt(dim=0)(tensors)", stack)
StridedSlice = form(
    "StridedSlice(begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0)"
    "(input_x, begin, end, strides)",
    strided_slice,
)
Unpack = form("Unpack(axis=0)(input_x)", unstack)
Unstack = form("Unstack(axis=0, num=None)(input_x)", _unstacked)

# padded, and blocks of images


def _padded(input_x: Any, paddings: Any) -> Tensor:
    """Zeros around a tensor: a pair (before, after) for each axis."""
    t = as_tensor(input_x, "Pad", "input_x")
    return padded(t, _pairs(paddings, t.ndim, "Pad"), "constant", 0, "Pad")


def _pairs(paddings: Any, axes: int, where: str) -> tuple[tuple[int, int], ...]:
    rows = paddings.tolist() if isinstance(paddings, (Tensor, np.ndarray)) else paddings
    pairs = [as_shape(row, where, "paddings") for row in rows]
    if len(pairs) != axes or any(len(p) != 2 for p in pairs):
        raise ArgumentValueError(
            where, "paddings", got=repr(rows), takes=f"a pair (before, after) for each of {axes} axes"
        )
    return tuple([(p[0], p[1]) for p in pairs])


def _mirrored(input_x: Any, paddings: Any, mode: str) -> Tensor:
    """A tensor continued by its mirror image, which begins with the border (SYMMETRIC) or behind it (REFLECT)."""
    t = as_tensor(input_x, "MirrorPad", "input_x")
    return padded(t, _pairs(paddings, t.ndim, "MirrorPad"), mode.lower(), None, "MirrorPad")


def _check_mirror(mode: str) -> None:
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ArgumentValueError("MirrorPad", "mode", got=repr(mode), takes='"REFLECT" or "SYMMETRIC"')


def _pad_by_axis(x: Any, paddings: Any, constant_value: Any, mode: str, contiguous: bool) -> Tensor:
    """Padding from the last axis backwards: (before, after) of each, or all befores and then all afters."""
    flat = list(as_shape(paddings, "PadV3", "paddings", minimum=-(2**62)))
    if not contiguous:
        half = len(flat) // 2
        flat = [n for pair in zip(flat[:half], flat[half:], strict=True) for n in pair]
    value = constant_value.item() if isinstance(constant_value, Tensor) else constant_value
    styles = {"edge": "replicate", "wrap": "circular"}
    return pad(x, flat, styles.get(mode, mode), value if mode == "constant" else None)


def _unfolded(x: Any, ksizes: Any, strides: Any, dilations: Any, pads: Any) -> Tensor:
    """The windows of images: (N, C, elements of the window, windows)."""
    t = as_tensor(x, "Im2Col", "x")
    columns = unfold(t, ksizes, dilations, pads, strides)
    return reshape(columns, (t.shape[0], t.shape[1], -1, columns.shape[2]))


def _folded(x: Any, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    t = as_tensor(x, "Col2Im", "x")
    if t.ndim != 4:
        raise ArgumentValueError("Col2Im", "x", got=f"shape {t.shape}", takes="(N, C, elements of the window, windows)")
    columns = reshape(t, (t.shape[0], t.shape[1] * t.shape[2], t.shape[3]))
    return fold(columns, output_size, kernel_size, dilation, padding, stride)


BatchToSpace = form(
    "BatchToSpace(block_size, crops)(input_x)",
    lambda input_x, block_size, crops: batch_to_space_nd(input_x, (block_size, block_size), crops),
)
BatchToSpaceND = form("BatchToSpaceND(block_shape, crops)(input_x)", batch_to_space_nd)
BatchToSpaceNDV2 = form("BatchToSpaceNDV2()(input_x, block_shape, crops)", batch_to_space_nd)
Col2Im = form("Col2Im(kernel_size, dilation=1, padding=0, stride=1)(x, output_size)", _folded)
DepthToSpace = form("DepthToSpace(block_size)(x)", depth_to_space)
Im2Col = form("Im2Col(ksizes, strides=1, dilations=1, pads=0)(x)", _unfolded)
MirrorPad = form("MirrorPad(mode='REFLECT')(input_x, paddings)", _mirrored, _check_mirror)
Pad = form("Pad(paddings)(input_x)", _padded)
PadV3 = form("PadV3(mode='constant', paddings_contiguous=True)(x, paddings, constant_value=None)", _pad_by_axis)
Padding = form("Padding(pad_dim_size=8)(x)", padding)
SpaceToBatch = form(
    "SpaceToBatch(block_size, paddings)(input_x)",
    lambda input_x, block_size, paddings: space_to_batch_nd(input_x, (block_size, block_size), paddings),
)
SpaceToBatchND = form("SpaceToBatchND(block_shape, paddings)(input_x)", space_to_batch_nd)
SpaceToDepth = form("SpaceToDepth(block_size)(x)", space_to_depth)
