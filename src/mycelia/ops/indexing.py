"""Elements read at places that tensors of integers name: gather, index_select, take.

A negative index counts from the end. An index outside the axis is refused when the operator runs at once
on the CPU; where the data cannot be looked at (in a graph, on another device) it reads 0, and a gradient
that would go there is dropped. Each read is one primitive whose gradient adds the cotangent at the same
places; those are in :mod:`mycelia.ops.scatter`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, DTypeError, OutOfRangeError, ShapeError
from mycelia.ir.graph import Value
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.keywords import renaming
from mycelia.ops.operands import as_axis, as_int, as_tensor, broadcast_shapes
from mycelia.ops.outputs import one
from mycelia.ops.registry import attach, operator
from mycelia.ops.shape import broadcast_to, filled, reshaped
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant
from mycelia.tensor.mode import STAGE, current_builder, state

_TABLE = np.arange(12.0).reshape(3, 4)
_CUBE = np.arange(24.0).reshape(2, 3, 4)

Ints = tuple[int, ...]


def check_integers(where: str, index: TensorType, argument: str) -> None:
    """Refuse indices that are not integers."""
    if not index.dtype.is_integer:
        raise DTypeError(where, argument, got=f"dtype {index.dtype}", takes="integers")


def as_index(value: Any, where: str, argument: str) -> Tensor:
    """An integer tensor of an index argument; an empty list is one."""
    if isinstance(value, (list, tuple)) and not value:
        return constant(np.zeros(0, np.int64))
    index = value if isinstance(value, Tensor) else as_tensor(value, where, argument)
    if not index.dtype.is_integer:
        raise DTypeError(where, argument, got=f"dtype {index.dtype}", takes="integers")
    return index


def on_host(index: Tensor) -> np.ndarray[Any, Any] | None:
    """The indices, where they can be looked at: running at once on the CPU, or constants of a graph."""
    value = index._value
    if state.phase == STAGE:
        return current_builder().known(value) if type(value) is Value else None
    if not isinstance(value, jax.Array) or next(iter(value.devices())).platform != "cpu":
        return None
    return np.asarray(value)


def _refuse_outside(host: np.ndarray[Any, Any], length: int, where: str, argument: str) -> None:
    signed = host.dtype.kind == "i"
    if host.size and (host.max() >= length or (signed and host.min() < -length)):
        wrong = host[(host >= length) | (host < -length)] if signed else host[host >= length]
        takes = f"indices from {-length} to {length - 1}" if length else "no index, as the axis is empty"
        raise OutOfRangeError(where, argument, got=f"the index {wrong.flat[0]}", takes=takes)


def check_range(index: Tensor, length: int, where: str, argument: str) -> None:
    """Refuse indices outside an axis, where they can be looked at: running at once on the CPU.

    Raises:
        OutOfRangeError: naming the first such index.
    """
    host = on_host(index)
    if host is not None:
        _refuse_outside(host, length, where, argument)


def check_rows(index: Tensor, shape: Ints, where: str, argument: str) -> None:
    """:func:`check_range` for each column of packed indices."""
    host = on_host(index) if index.shape else None
    if host is not None:
        for axis, length in enumerate(shape[: host.shape[-1]]):
            _refuse_outside(host[..., axis], length, where, f"{argument}[..., {axis}]")


# along one axis


def _infer_gather(x: TensorType, index: TensorType, *, axis: int, batch_dims: int) -> TensorType:
    check_integers("gather", index, "input_indices")
    if not batch_dims <= axis < x.rank or batch_dims > index.rank:
        raise ShapeError(
            "gather",
            "batch_dims",
            got=f"{batch_dims} with axis {axis}",
            takes="at most the axis and the axes of the indices",
        )
    if x.shape[:batch_dims] != index.shape[:batch_dims]:
        raise ShapeError(
            "gather",
            "input_indices",
            got=f"shape {index.shape}",
            takes=f"first lengths {x.shape[:batch_dims]}, as 'input_params' has",
        )
    return TensorType(x.dtype, (*x.shape[:axis], *index.shape[batch_dims:], *x.shape[axis + 1 :]))


def _lower_gather(x: Any, index: Any, *, axis: int, batch_dims: int) -> Any:
    def read(x: Any, index: Any) -> Any:
        return jnp.take(x, index, axis - batch_dims, mode="fill", fill_value=0)

    for _ in range(batch_dims):
        read = jax.vmap(read)
    return read(x, index)


def _vjp_gather(ct: Tensor, x: Tensor, index: Tensor, out: Tensor, *, axis: int, batch_dims: int) -> list[Any]:
    return [lambda: one(add_at_p, ct, index, length=x.shape[axis], axis=axis, batch_dims=batch_dims), None]


def _infer_add_at(updates: TensorType, index: TensorType, *, length: int, axis: int, batch_dims: int) -> TensorType:
    check_integers("unsorted_segment_sum", index, "segment_ids")
    check_dtypes("unsorted_segment_sum", (updates,), dt.NUMBERS)
    inner = index.shape[batch_dims:]
    if updates.shape[axis : axis + len(inner)] != inner or updates.shape[:batch_dims] != index.shape[:batch_dims]:
        raise ShapeError(
            "unsorted_segment_sum", "segment_ids", got=f"shape {index.shape}", takes=f"lengths that {updates.shape} has"
        )
    return TensorType(updates.dtype, (*updates.shape[:axis], length, *updates.shape[axis + len(inner) :]))


def accumulator(dtype: Any) -> Any:
    """The dtype to add in: float32 for the 16-bit floats."""
    return np.dtype(np.float32) if dtype in (dt.float16.np, dt.bfloat16.np) else dtype


def _lower_add_at(updates: Any, index: Any, *, length: int, axis: int, batch_dims: int) -> Any:
    place = axis - batch_dims
    wide = accumulator(updates.dtype)

    def add(updates: Any, index: Any) -> Any:
        shape = (*updates.shape[:place], length, *updates.shape[place + index.ndim :])
        return jnp.zeros(shape, wide).at[(slice(None),) * place + (index,)].add(updates, mode="drop")

    for _ in range(batch_dims):
        add = jax.vmap(add)
    return add(updates.astype(wide), index).astype(updates.dtype)


def _vjp_add_at(
    ct: Tensor, updates: Tensor, index: Tensor, out: Tensor, *, length: int, axis: int, batch_dims: int
) -> list[Any]:
    return [one(gather_p, ct, index, axis=axis, batch_dims=batch_dims), None]


gather_p: Primitive = Primitive(
    "gather", infer=_infer_gather, lower=_lower_gather, vjp=_vjp_gather, onnx="Gather",
    samples=lambda: [
        Sample((_TABLE, np.array([2, 0, 0])), {"axis": 0, "batch_dims": 0}),
        Sample((_TABLE, np.array([[1, -1], [3, 9]])), {"axis": 1, "batch_dims": 0}),
        Sample((_CUBE, np.array([[0, 2], [1, 1]])), {"axis": 1, "batch_dims": 1}),
        Sample((_TABLE, np.array(1)), {"axis": 0, "batch_dims": 0}),
        Sample((_TABLE, np.zeros((0,), int)), {"axis": 1, "batch_dims": 0}),
        Bad((_TABLE, np.array([0.5])), {"axis": 0, "batch_dims": 0}, TypeError, "integers"),
        Bad((_TABLE, np.array([0, 1])), {"axis": 1, "batch_dims": 1}, ShapeError, "first lengths"),
    ],
)  # fmt: skip
add_at_p: Primitive = Primitive(
    "add_at", infer=_infer_add_at, lower=_lower_add_at, vjp=_vjp_add_at,
    samples=lambda: [
        Sample((_TABLE, np.array([1, 1, 0])), {"length": 4, "axis": 0, "batch_dims": 0}),
        Sample((_TABLE, np.array([0, 7, 1, 1])), {"length": 2, "axis": 1, "batch_dims": 0}),
        Sample((_CUBE, np.array([[0, 2, 0], [1, 1, 0]])), {"length": 3, "axis": 1, "batch_dims": 1}),
        Bad((_TABLE, np.array([0, 1])), {"length": 4, "axis": 0, "batch_dims": 0}, ShapeError, "lengths"),
    ],
)  # fmt: skip


def taken(x: Tensor, index: Any, axis: int) -> Tensor:
    """The elements along a canonical axis at known or computed places, unchecked."""
    return one(gather_p, x, index if isinstance(index, Tensor) else constant(index), axis=axis, batch_dims=0)


@operator()
def gather(input_params: Any, input_indices: Any, axis: Any, batch_dims: int = 0) -> Tensor:
    """The slices along an axis at given indices.

    Args:
        input_params: a tensor.
        input_indices: integers of any shape, which takes the place of the axis in the result.
        axis: the axis.
        batch_dims: how many leading axes the tensor and the indices share.

    Returns:
        A tensor of shape ``shape[:axis] + indices.shape[batch_dims:] + shape[axis + 1:]``.

    Raises:
        OutOfRangeError: an index outside the axis.
        DTypeError: the indices are not integers.

    >>> import mycelia as ms
    >>> print(ms.ops.gather(ms.Tensor([10, 20, 30]), ms.Tensor([2, 0]), 0))
    [30 10]
    """
    x, index = as_tensor(input_params, "gather", "input_params"), as_index(input_indices, "gather", "input_indices")
    place = as_axis(axis, x.ndim, "gather")
    if x.ndim == 0:
        raise ShapeError("gather", "input_params", got="a zero-dimensional tensor", takes="at least one axis")
    shared = as_int(batch_dims, "gather", "batch_dims")
    if shared < 0:
        shared += index.ndim
    check_range(index, x.shape[place], "gather", "input_indices")
    return one(gather_p, x, index, axis=place, batch_dims=shared)


def _gather_method(self: Tensor, *args: Any, batch_dims: int = 0, **kwargs: Any) -> Tensor:
    """``gather(input_indices, axis, batch_dims=0)`` reads slices, ``gather(dim, index)`` elements."""
    if "index" in kwargs or (args and not isinstance(args[0], (Tensor, list, np.ndarray))):
        return gather_elements(self, *args, **kwargs)
    if len(args) < 3:
        kwargs["batch_dims"] = batch_dims
    return gather(self, *args, **kwargs)


attach("gather", _gather_method)


@operator()
def index_select(input: Any, axis: int, index: Any) -> Tensor:
    """The slices along an axis at the indices of a vector.

    Args:
        input: a tensor.
        axis: the axis; also called ``dim``.
        index: a vector of integers, or one integer.

    Raises:
        OutOfRangeError: an index outside the axis.
        ShapeError: ``index`` has more than one axis.

    >>> import mycelia as ms
    >>> print(ms.ops.index_select(ms.Tensor([[1, 2, 3], [4, 5, 6]]), 1, ms.Tensor([2, 0])))
    [[3 1]
     [6 4]]
    """
    x, places = as_tensor(input, "index_select"), as_index(index, "index_select", "index")
    if places.ndim > 1:
        raise ShapeError("index_select", "index", got=f"shape {places.shape}", takes="one axis")
    if places.ndim == 0:
        places = reshaped(places, (1,))
    if x.ndim == 0:
        x = reshaped(x, (1,))
    axis = as_axis(axis, x.ndim, "index_select")
    check_range(places, x.shape[axis], "index_select", "index")
    return one(gather_p, x, places, axis=axis, batch_dims=0)


attach("index_select", renaming(index_select, dim="axis"))


@operator()
def take(input: Any, index: Any) -> Tensor:
    """The elements at given places of the tensor in row-major order.

    Args:
        input: a tensor.
        index: integers of any shape, the shape of the result.

    Raises:
        OutOfRangeError: an index outside the tensor.

    >>> import mycelia as ms
    >>> print(ms.ops.take(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([0, 3])))
    [1 4]
    """
    x, places = as_tensor(input, "take"), as_index(index, "take", "index")
    check_range(places, x.size, "take", "index")
    return one(gather_p, reshaped(x, (x.size,)), places, axis=0, batch_dims=0)


def _take_method(self: Tensor, indices: Any, axis: int | None = None, mode: str = "clip") -> Tensor:
    """Elements at indices: along an axis, or of the tensor in row-major order.

    Indices outside are clipped to the nearest (``mode="clip"``, negative ones to 0), taken modulo the length
    (``"wrap"``) or refused (``"raise"``).
    """
    if mode not in ("clip", "wrap", "raise"):
        raise ArgumentValueError("Tensor.take", "mode", got=repr(mode), takes='"clip", "wrap" or "raise"')
    places = as_index(indices, "Tensor.take", "indices")
    x = reshaped(self, (self.size,)) if axis is None else self
    place = 0 if axis is None else as_axis(axis, x.ndim, "Tensor.take")
    length = x.shape[place]
    if mode == "raise":
        check_range(places, length, "Tensor.take", "indices")
    else:
        places = one(limit_index_p, places, length=length, mode=mode)
    return one(gather_p, x, places, axis=place, batch_dims=0)


attach("take", renaming(_take_method, index="indices"))


def _lower_limit(index: Any, *, length: int, mode: str) -> Any:
    if mode == "clip":
        return jnp.clip(index, 0, max(length - 1, 0)).astype(index.dtype)
    return jnp.remainder(index, max(length, 1)).astype(index.dtype)


limit_index_p = Primitive(
    "limit_index", infer=lambda index, *, length, mode: index, lower=_lower_limit, differentiable=False,
    samples=lambda: [
        Sample((np.array([-9, -1, 0, 2, 7]),), {"length": 3, "mode": "clip"}, dtypes=False),
        Sample((np.array([-9, -1, 0, 2, 7]),), {"length": 3, "mode": "wrap"}, dtypes=False),
    ],
)  # fmt: skip


# one element for each index


def _infer_elements(x: TensorType, index: TensorType, *, axis: int) -> TensorType:
    check_integers("gather_elements", index, "index")
    if x.rank != index.rank or x.rank == 0:
        raise ShapeError(
            "gather_elements",
            "index",
            got=f"shape {index.shape}",
            takes=f"as many axes as the tensor of shape {x.shape}",
        )
    if any(i != axis and n > d for i, (n, d) in enumerate(zip(index.shape, x.shape, strict=True))):
        raise ShapeError(
            "gather_elements",
            "index",
            got=f"shape {index.shape}",
            takes=f"lengths within those of {x.shape} except along axis {axis}",
        )
    return TensorType(x.dtype, index.shape)


def _lower_elements(x: Any, index: Any, *, axis: int) -> Any:
    cut = tuple([slice(None) if i == axis else slice(n) for i, n in enumerate(index.shape)])
    return jnp.take_along_axis(x[cut], index, axis, mode="fill", fill_value=0)


def _vjp_elements(ct: Tensor, x: Tensor, index: Tensor, out: Tensor, *, axis: int) -> list[Any]:
    from mycelia.ops.scatter import scatter_add_elements

    return [lambda: scatter_add_elements(x.shape, index, ct, axis), None]


gather_elements_p: Primitive = Primitive(
    "gather_elements", infer=_infer_elements, lower=_lower_elements, vjp=_vjp_elements, onnx="GatherElements",
    samples=lambda: [
        Sample((_TABLE, np.array([[0, 3, -1], [1, 1, 0]])), {"axis": 1}),
        Sample((_TABLE, np.array([[0, 2, 9]])), {"axis": 0}),
        Sample((_TABLE, np.zeros((0, 2), int)), {"axis": 0}),
        Bad((_TABLE, np.array([0, 1])), {"axis": 0}, ShapeError, "as many axes"),
        Bad((_TABLE, np.zeros((4, 1), int)), {"axis": 1}, ShapeError, "except along axis 1"),
        Bad((_TABLE, np.zeros((1, 1))), {"axis": 1}, TypeError, "integers"),
    ],
)  # fmt: skip


def _elements(x: Tensor, dim: Any, index: Any, where: str) -> Tensor:
    places = as_index(index, where, "index")
    axis = as_axis(dim, x.ndim, where, "dim")
    if x.ndim == 0 and places.ndim == 0:
        return reshaped(_elements(reshaped(x, (1,)), 0, reshaped(places, (1,)), where), ())
    if x.ndim:
        check_range(places, x.shape[axis], where, "index")
    return one(gather_elements_p, x, places, axis=axis)


@operator()
def gather_elements(input: Any, dim: int, index: Any) -> Tensor:
    """For each index the element along an axis: ``out[i][j] = input[index[i][j]][j]`` for ``dim=0``.

    Args:
        input: a tensor.
        dim: the axis that ``index`` counts along.
        index: integers, of as many axes; lengths at most those of ``input`` except along ``dim``.

    Returns:
        A tensor of the shape of ``index``.

    Raises:
        OutOfRangeError: an index outside the axis.
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> print(ms.ops.gather_elements(ms.Tensor([[1, 2], [3, 4]]), 1, ms.Tensor([[1], [0]])))
    [[2]
     [3]]
    """
    return _elements(as_tensor(input, "gather_elements"), dim, index, "gather_elements")


attach("gather_elements", gather_elements)


@operator()
def gather_d(x: Any, dim: int, index: Any) -> Tensor:
    """For each index the element along an axis; like :func:`gather_elements`.

    >>> import mycelia as ms
    >>> print(ms.ops.gather_d(ms.Tensor([[1, 2], [3, 4]]), 1, ms.Tensor([[1], [0]])))
    [[2]
     [3]]
    """
    return _elements(as_tensor(x, "gather_d", "x"), dim, index, "gather_d")


@operator()
def take_along_dim(input: Any, indices: Any, dim: int | None = None) -> Tensor:
    """For each index the element along an axis, the other axes broadcast; without ``dim`` in row-major order.

    >>> import mycelia as ms
    >>> print(ms.ops.take_along_dim(ms.Tensor([[3, 1], [2, 4]]), ms.Tensor([[1]]), 1))
    [[1]
     [4]]
    """
    where = "take_along_dim"
    x, places = as_tensor(input, where), as_index(indices, where, "indices")
    if dim is None:
        return _elements(reshaped(x, (x.size,)), 0, reshaped(places, (places.size,)), where)
    axis = as_axis(dim, x.ndim, where, "dim")
    if places.ndim != x.ndim:
        raise ShapeError(
            where, "indices", got=f"shape {places.shape}", takes=f"as many axes as 'input' of shape {x.shape}"
        )
    around = [(*t.shape[:axis], 1, *t.shape[axis + 1 :]) for t in (x, places)]
    common = broadcast_shapes(where, around, ("input", "indices"))
    x = broadcast_to(x, (*common[:axis], x.shape[axis], *common[axis + 1 :]))
    places = broadcast_to(places, (*common[:axis], places.shape[axis], *common[axis + 1 :]))
    return _elements(x, axis, places, where)


# one slice for each row of indices


def _infer_nd(x: TensorType, index: TensorType) -> TensorType:
    check_integers("gather_nd", index, "indices")
    if not index.shape or index.shape[-1] > x.rank:
        raise ShapeError(
            "gather_nd",
            "indices",
            got=f"shape {index.shape}",
            takes=f"a last axis of at most {x.rank} indices, one for each axis of {x.shape}",
        )
    return TensorType(x.dtype, index.shape[:-1] + x.shape[index.shape[-1] :])


def places_of(index: Any) -> Any:
    """The index arrays of a packed one: ``index[..., k]`` for each axis k."""
    return tuple([index[..., i] for i in range(index.shape[-1])])


def _lower_nd(x: Any, index: Any) -> Any:
    if index.shape[-1] == 0:
        return jnp.broadcast_to(x, index.shape[:-1] + x.shape)
    return x.at[places_of(index)].get(mode="fill", fill_value=0)


def _vjp_nd(ct: Tensor, x: Tensor, index: Tensor, out: Tensor) -> list[Any]:
    from mycelia.ops.scatter import scatter_add_nd

    return [lambda: scatter_add_nd(x.shape, index, ct), None]


gather_nd_p: Primitive = Primitive(
    "gather_nd", infer=_infer_nd, lower=_lower_nd, vjp=_vjp_nd, onnx="GatherND",
    samples=lambda: [
        Sample((_TABLE, np.array([[0, 1], [2, -1]])), {}), Sample((_CUBE, np.array([[1], [0], [1]])), {}),
        Sample((_TABLE, np.array([1, 9])), {}), Sample((_TABLE, np.zeros((0, 2), int)), {}),
        Bad((_TABLE, np.zeros((1, 3), int)), {}, ShapeError, "at most 2"),
        Bad((_TABLE, np.zeros((1, 2))), {}, TypeError, "integers"),
    ],
)  # fmt: skip


@operator(methods=True)
def gather_nd(input_x: Any, indices: Any) -> Tensor:
    """The slices at places given by rows of indices.

    Args:
        input_x: a tensor.
        indices: integers; the last axis holds an index for each leading axis of ``input_x``.

    Returns:
        A tensor of shape ``indices.shape[:-1] + input_x.shape[indices.shape[-1]:]``.

    Raises:
        OutOfRangeError: an index outside its axis.
        ShapeError: more indices than axes.

    >>> import mycelia as ms
    >>> print(ms.ops.gather_nd(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([[0, 1], [1, 0]])))
    [2 3]
    """
    x, places = as_tensor(input_x, "gather_nd", "input_x"), as_index(indices, "gather_nd", "indices")
    check_rows(places, x.shape, "gather_nd", "indices")
    return one(gather_nd_p, x, places)


# by one index array for each of some axes


def indexed_shape(shape: Ints, common: Ints, axes: Ints) -> Ints:
    """NumPy's placement: the indices' axes stand where the axes were if these are neighbours, else in front."""
    rest = [d for i, d in enumerate(shape) if i not in axes]
    first = axes[0] if axes == tuple(range(axes[0], axes[0] + len(axes))) else 0
    return (*rest[:first], *common, *rest[first:])


def location(axes: Ints, indices: Sequence[Any]) -> Any:
    """The subscript that puts index arrays on their axes."""
    places: list[Any] = [slice(None)] * (axes[-1] + 1)
    for axis, index in zip(axes, indices, strict=True):
        places[axis] = index
    return tuple(places)


def infer_indices(where: str, x: TensorType, indices: Sequence[TensorType], axes: Ints) -> Ints:
    """The shape that index arrays read; refuses what are no indices."""
    for i, index in enumerate(indices):
        check_integers(where, index, f"index {i}")
    common = broadcast_shapes(where, [i.shape for i in indices], [f"index {i}" for i in range(len(indices))])
    return indexed_shape(x.shape, common, axes)


def _infer_get(x: TensorType, *indices: TensorType, axes: Ints) -> TensorType:
    return TensorType(x.dtype, infer_indices("getitem", x, indices, axes))


def _vjp_get(ct: Tensor, x: Tensor, *indices: Tensor, out: Tensor, axes: Ints) -> list[Any]:
    from mycelia.ops.scatter import index_put_p

    zeros = filled(0, x.dtype, x.shape)
    return [one(index_put_p, zeros, ct, *indices, axes=axes, mode="add"), *[None] * len(indices)]


index_get_p: Primitive = Primitive(
    "index_get", infer=_infer_get, vjp=_vjp_get,
    lower=lambda x, *indices, axes: x.at[location(axes, indices)].get(mode="fill", fill_value=0),
    samples=lambda: [
        Sample((_TABLE, np.array([2, 0, -1])), {"axes": (0,)}),
        Sample((_CUBE, np.array([[0], [1]]), np.array([3, 0, 9])), {"axes": (0, 2)}),
        Sample((_CUBE, np.array([2, 1]), np.array([3, 3])), {"axes": (1, 2)}),
        Sample((_CUBE, np.zeros((0,), int)), {"axes": (1,)}),
        Bad((_TABLE, np.array([0.5])), {"axes": (0,)}, TypeError, "integers"),
        Bad((_CUBE, np.array([0, 1]), np.array([0, 1, 2])), {"axes": (0, 1)}, ShapeError, "broadcasts"),
    ],
)  # fmt: skip
