"""Elements put in order: sort, argsort, topk, msort, kthvalue, searchsorted.

Sorting is stable in both directions. NaN counts as larger than every number: last in ascending, first in
descending order and among the largest of ``topk``. -0.0 and 0.0 are equal. A sorted value's gradient goes
back to the place it came from.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, OutOfRangeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.keywords import renaming
from mycelia.ops.operands import as_axis, as_int, as_tensor, cast, same_dtype
from mycelia.ops.outputs import one, several
from mycelia.ops.registry import attach, operator
from mycelia.ops.shape import reshaped
from mycelia.ops.slicing import Pick, pick
from mycelia.tensor import Tensor

_TABLE = np.array([[1.5, -2.0, 0.25, 2.0], [3.0, 0.5, -1.0, 1.0]])
_TIES = np.array([1.0, 3.0, 1.0, 0.0, 3.0])
_NAN = np.array([2.0, np.nan, -np.inf, 3.0, np.nan, np.inf])

_ORDERED = (dt.bool_, *dt.REALS)


def put_back(ct: Tensor | None, places: Tensor, shape: tuple[int, ...], axis: int) -> Tensor | None:
    """A cotangent of values taken along an axis, added where they came from; None stays."""
    from mycelia.ops.scatter import scatter_add_elements

    return None if ct is None else scatter_add_elements(shape, places, ct, axis)


# sort


def _infer_sort(x: TensorType, *, axis: int, descending: bool) -> tuple[TensorType, TensorType]:
    check_dtypes("sort", (x,), _ORDERED)
    return x, TensorType(dt.int32, x.shape)


def sorted_with_places(x: Any, axis: int, descending: bool) -> tuple[Any, Any]:
    """JAX arrays: the values in order and their int32 places.

    Descending order sorts the reversed axis ascending and reverses again, which keeps equal elements in place.
    """
    places = lax.broadcasted_iota(np.int32, x.shape, axis)
    if descending:
        x, places = lax.rev(x, (axis,)), lax.rev(places, (axis,))
    values, order = lax.sort((x, places), dimension=axis, is_stable=True, num_keys=1)
    return (lax.rev(values, (axis,)), lax.rev(order, (axis,))) if descending else (values, order)


def _lower_sort(x: Any, *, axis: int, descending: bool) -> Any:
    if x.ndim == 0:
        return x, jnp.zeros((), np.int32)
    return sorted_with_places(x, axis, descending)


def _vjp_sort(ct: Any, x: Tensor, out: Any, *, axis: int, descending: bool) -> list[Any]:
    return [ct[0] if x.ndim == 0 else put_back(ct[0], out[1], x.shape, axis)]


sort_p = Primitive(
    "sort", infer=_infer_sort, lower=_lower_sort, vjp=_vjp_sort, multi=True,
    samples=lambda: [
        Sample((_TABLE,), {"axis": 1, "descending": False}), Sample((_TABLE,), {"axis": 0, "descending": True}),
        Sample((_TIES,), {"axis": 0, "descending": False}, grad=False),
        Sample((_TIES,), {"axis": 0, "descending": True}, grad=False),
        Sample((_NAN,), {"axis": 0, "descending": False}, grad=False, dtypes=False),
        Sample((_NAN,), {"axis": 0, "descending": True}, grad=False, dtypes=False),
        Sample((np.zeros((0, 3)),), {"axis": 0, "descending": False}),
        Sample((np.array(1.0),), {"axis": 0, "descending": False}),
        Bad((_TABLE + 0j,), {"axis": 0, "descending": False}, TypeError, "Complex128"),
    ],
)  # fmt: skip


@operator()
def sort(input_x: Any, axis: int = -1, descending: bool = False) -> tuple[Tensor, ...]:
    """The elements along an axis in order, and where each came from.

    Args:
        input_x: a real tensor.
        axis: the axis.
        descending: largest first.

    Returns:
        The sorted values, and their places as int32. Equal elements keep their order; NaN is the largest.

    Raises:
        OutOfRangeError: there is no such axis.

    >>> import mycelia as ms
    >>> values, places = ms.ops.sort(ms.Tensor([3, 1, 2]))
    >>> print(values, places)
    [1 2 3] [1 2 0]
    """
    x = as_tensor(input_x, "sort", "input_x")
    return several(sort_p, x, axis=as_axis(axis, x.ndim, "sort"), descending=bool(descending))


def _sort_method(self: Tensor, axis: int = -1, descending: bool = False, stable: bool = False) -> tuple[Tensor, ...]:
    """The elements along an axis in order, and where each came from; always stable."""
    return sort(self, axis, descending)


attach("sort", renaming(_sort_method, dim="axis"))


@operator()
def argsort(input: Any, axis: int = -1, descending: bool = False) -> Tensor:
    """The places, as int32, of the elements along an axis in order; see :func:`sort`.

    >>> import mycelia as ms
    >>> print(ms.ops.argsort(ms.Tensor([3, 1, 2])))
    [1 2 0]
    """
    x = as_tensor(input, "argsort")
    return several(sort_p, x, axis=as_axis(axis, x.ndim, "argsort"), descending=bool(descending))[1]


def _argsort_method(self: Tensor, axis: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The places of the elements along an axis in order; always stable."""
    return argsort(self, axis, descending)


attach("argsort", renaming(_argsort_method, dim="axis"))


@operator(methods=True)
def msort(input: Any) -> Tensor:
    """The elements along the first axis in ascending order.

    >>> import mycelia as ms
    >>> print(ms.ops.msort(ms.Tensor([3, 1, 2])))
    [1 2 3]
    """
    return sort(input, 0)[0]


# the first few


def _infer_topk(x: TensorType, *, k: int, axis: int, largest: bool) -> tuple[TensorType, TensorType]:
    check_dtypes("topk", (x,), _ORDERED)
    if not 0 <= k <= x.shape[axis]:
        raise OutOfRangeError("topk", "k", got=str(k), takes=f"from 0 to {x.shape[axis]}, the length of axis {axis}")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return TensorType(x.dtype, shape), TensorType(dt.int32, shape)


def _lower_topk(x: Any, *, k: int, axis: int, largest: bool) -> Any:
    """``lax.top_k`` on the last axis, of keys whose order is ours: NaN made positive, or everything reversed."""
    rows = jnp.moveaxis(x, axis, -1)
    keys = rows.astype(np.int8) if rows.dtype == bool else rows
    if keys.dtype.kind in "iu":
        keys = keys if largest else ~keys
    else:
        nan, zero = jnp.asarray(np.nan, keys.dtype), jnp.zeros((), keys.dtype)
        signed = jnp.where(keys == 0, zero, keys if largest else -keys)
        keys = jnp.where(jnp.isnan(keys), nan if largest else -nan, signed)
    places = lax.top_k(keys, k)[1]
    values = jnp.take_along_axis(rows, places, -1)
    return jnp.moveaxis(values, -1, axis), jnp.moveaxis(places, -1, axis).astype(np.int32)


def _vjp_topk(ct: Any, x: Tensor, out: Any, *, k: int, axis: int, largest: bool) -> list[Any]:
    return [put_back(ct[0], out[1], x.shape, axis)]


topk_p = Primitive(
    "topk", infer=_infer_topk, lower=_lower_topk, vjp=_vjp_topk, multi=True, onnx="TopK",
    samples=lambda: [
        Sample((_TABLE,), {"k": 2, "axis": 1, "largest": True}),
        Sample((_TABLE,), {"k": 1, "axis": 0, "largest": False}),
        Sample((_TIES,), {"k": 3, "axis": 0, "largest": True}, grad=False),
        Sample((_NAN,), {"k": 3, "axis": 0, "largest": True}, grad=False, dtypes=False),
        Sample((_NAN,), {"k": 5, "axis": 0, "largest": False}, grad=False, dtypes=False),
        Sample((_TABLE,), {"k": 0, "axis": 1, "largest": True}),
        Bad((_TABLE,), {"k": 5, "axis": 1, "largest": True}, OutOfRangeError, "from 0 to 4"),
        Bad((_TABLE + 0j,), {"k": 1, "axis": 1, "largest": True}, TypeError, "Complex128"),
    ],
)  # fmt: skip


@operator()
def topk(input: Any, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True) -> tuple[Tensor, ...]:
    """The ``k`` largest or smallest elements along an axis, in order, and where they stand.

    Args:
        input: a real tensor of at least one axis.
        k: how many.
        dim: the axis, the last one by default.
        largest: the largest, or else the smallest.
        sorted: accepted; they are always in order.

    Returns:
        The values, and their places as int32. Of equal elements the first ones count; NaN is the largest.

    Raises:
        OutOfRangeError: the axis is shorter than ``k``.

    >>> import mycelia as ms
    >>> values, places = ms.ops.topk(ms.Tensor([1, 4, 2, 3]), 2)
    >>> print(values, places)
    [4 3] [1 3]
    """
    x = as_tensor(input, "topk")
    if x.ndim == 0:
        raise ShapeError("topk", "input", got="a zero-dimensional tensor", takes="at least one axis")
    axis = x.ndim - 1 if dim is None else as_axis(dim, x.ndim, "topk", "dim")
    return several(topk_p, x, k=as_int(k, "topk", "k"), axis=axis, largest=bool(largest))


attach("topk", renaming(topk, axis="dim"))


@operator(methods=True)
def top_k(input_x: Any, k: int, sorted: bool = True) -> tuple[Tensor, ...]:
    """The ``k`` largest elements along the last axis; see :func:`topk`.

    >>> import mycelia as ms
    >>> print(ms.ops.top_k(ms.Tensor([1, 4, 2, 3]), 2)[0])
    [4 3]
    """
    return topk(input_x, k)


@operator(methods=True)
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The ``k``-th smallest element along an axis, and where it stands.

    Args:
        input: a real tensor.
        k: which one, from 1 on.
        dim: the axis.
        keepdim: keep the axis with length 1.

    Returns:
        The values, and their places as int64.

    Raises:
        OutOfRangeError: the axis is shorter than ``k``, or ``k`` is less than 1.

    >>> import mycelia as ms
    >>> print(ms.ops.kthvalue(ms.Tensor([3, 1, 2]), 2)[0])
    2
    """
    x = as_tensor(input, "kthvalue")
    axis, rank_ = as_axis(dim, x.ndim, "kthvalue", "dim"), as_int(k, "kthvalue", "k")
    length = x.shape[axis] if x.ndim else 1
    if not 1 <= rank_ <= length:
        raise OutOfRangeError("kthvalue", "k", got=str(rank_), takes=f"from 1 to {length}, the length of axis {axis}")
    if x.ndim == 0:
        values, places = sort(x)
        return values, cast(places, dt.int64)
    values, places = several(sort_p, x, axis=axis, descending=False)
    taken = [Pick(axis, rank_ - 1, 1, drop=not keepdim)]
    return pick(values, taken), cast(pick(places, taken), dt.int64)


# places in a sorted sequence


def _infer_search(sequence: TensorType, values: TensorType, *, right: bool, dtype: dt.DType) -> TensorType:
    check_dtypes("searchsorted", (sequence, values), dt.REALS, ("sorted_sequence", "values"))
    if sequence.rank != 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise ShapeError(
            "searchsorted",
            "values",
            got=f"shape {values.shape}",
            takes=f"the leading lengths of 'sorted_sequence', {sequence.shape}",
        )
    return TensorType(dtype, values.shape)


def _lower_search(sequence: Any, values: Any, *, right: bool, dtype: dt.DType) -> Any:
    side = "right" if right else "left"
    if sequence.ndim == 1:
        return jnp.searchsorted(sequence, values, side=side).astype(dtype.np)
    rows, columns = sequence.reshape(-1, sequence.shape[-1]), values.reshape(-1, values.shape[-1])
    found = jax.vmap(lambda s, v: jnp.searchsorted(s, v, side=side))(rows, columns)
    return found.reshape(values.shape).astype(dtype.np)


_STEPS = np.array([1.0, 2.0, 2.0, 3.0])
_LEFT = {"right": False, "dtype": dt.int64}

searchsorted_p = Primitive(
    "searchsorted", infer=_infer_search, lower=_lower_search, differentiable=False,
    samples=lambda: [
        Sample((_STEPS, np.array([[0.5, 2.0], [5.0, 1.0]])), {"right": False, "dtype": dt.int64}),
        Sample((_STEPS, np.array([0.5, 2.0])), {"right": True, "dtype": dt.int32}),
        Sample((np.array([[1.0, 2.0], [4.0, 5.0]]), np.array([[2.0, 0.0, 9.0]] * 2)), _LEFT),
        Sample((np.zeros(0), np.array([0.5, 2.0])), {"right": True, "dtype": dt.int32}),
        Bad((np.zeros((2, 3)), np.zeros((3, 1))), {"right": True, "dtype": dt.int32}, ShapeError, "leading lengths"),
    ],
)  # fmt: skip


@operator()
def searchsorted(
    sorted_sequence: Any, values: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Any = None,
) -> Tensor:  # fmt: skip
    """Where values would have to be inserted to keep a sequence sorted.

    Args:
        sorted_sequence: a tensor in ascending order along its last axis.
        values: what to insert; a number, or a tensor of any shape if the sequence has one axis, else with its
            leading lengths.
        out_int32: give int32 instead of int64.
        right: insert behind equal elements instead of before them.
        side: ``"left"`` or ``"right"``, the same.
        sorter: places that put ``sorted_sequence`` in ascending order, if it is not.

    Returns:
        A tensor of places of the shape of ``values``.

    Raises:
        ArgumentValueError: ``side`` is neither, or contradicts ``right``.
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> print(ms.ops.searchsorted(ms.Tensor([1, 3, 5]), ms.Tensor([3, 6])))
    [1 3]
    """
    where = "searchsorted"
    if side not in (None, "left", "right"):
        raise ArgumentValueError(where, "side", got=repr(side), takes='"left" or "right"')
    if side == "left" and right:
        raise ArgumentValueError(where, "side", got='"left" with right=True', takes='"right", or right=False')
    sequence, places = same_dtype(where, sorted_sequence, values, names=("sorted_sequence", "values"))
    if sequence.ndim == 0:
        raise ShapeError(where, "sorted_sequence", got="a zero-dimensional tensor", takes="at least one axis")
    if sorter is not None:
        from mycelia.ops.indexing import gather_elements

        sequence = gather_elements(sequence, -1, as_tensor(sorter, where, "sorter"))
    shape = places.shape
    if places.ndim == 0 and sequence.ndim > 1:
        places = reshaped(places, (1,) * sequence.ndim)
    found = one(
        searchsorted_p,
        sequence,
        places,
        right=bool(right or side == "right"),
        dtype=dt.int32 if out_int32 else dt.int64,
    )
    return reshaped(found, shape)


def _searchsorted_method(self: Tensor, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Where values would have to be inserted into the tensor, sorted along its last axis, to keep the order."""
    return searchsorted(self, v, side=side, sorter=sorter)


attach("searchsorted", renaming(_searchsorted_method, values="v"))


@operator()
def bucketize(input: Any, boundaries: Any, *, right: bool = False) -> Tensor:
    """Which interval between sorted boundaries each element falls into.

    Args:
        input: a real tensor.
        boundaries: a list or vector in ascending order.
        right: whether an element equal to a boundary belongs to the interval after it.

    Returns:
        An int32 tensor: 0 before the first boundary, their number behind the last one.

    Raises:
        ShapeError: ``boundaries`` is not a vector.

    >>> import mycelia as ms
    >>> print(ms.ops.bucketize(ms.Tensor([3, 6, 9]), [1.0, 3.0, 5.0, 7.0, 9.0]))
    [1 3 4]
    """
    edges = as_tensor(boundaries, "bucketize", "boundaries")
    if edges.ndim != 1:
        raise ShapeError("bucketize", "boundaries", got=f"shape {edges.shape}", takes="one axis")
    return searchsorted(edges, as_tensor(input, "bucketize"), right=right, out_int32=True)


@operator()
def intopk(x1: Any, x2: Any, k: int) -> Tensor:
    """Whether the score of each row's target is among its ``k`` largest.

    Args:
        x1: scores of shape (rows, classes).
        x2: the target class of each row, a vector of integers.
        k: how many count.

    Returns:
        A bool vector. A target with a score that is not finite is never among them; one that ties with the
        last of them is.

    Raises:
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> print(ms.ops.intopk(ms.Tensor([[0.1, 0.9], [0.8, 0.2]]), ms.Tensor([1, 1]), 1))
    [ True False]
    """
    from mycelia.ops.indexing import as_index, gather_elements
    from mycelia.ops.logical import isfinite
    from mycelia.ops.reduction import count_nonzero

    scores: Any = as_tensor(x1, "intopk", "x1")
    targets = as_index(x2, "intopk", "x2")
    if scores.ndim != 2 or targets.shape != scores.shape[:1]:
        raise ShapeError(
            "intopk", "x2", got=f"shape {targets.shape}", takes=f"one target for each row of 'x1' {scores.shape}"
        )
    limit = as_int(k, "intopk", "k")
    own: Any = gather_elements(scores, 1, reshaped(targets, (targets.shape[0], 1)))
    larger: Any = count_nonzero(scores > own, 1)
    return (larger < limit) & isfinite(reshaped(own, targets.shape))  # type: ignore[no-any-return]
