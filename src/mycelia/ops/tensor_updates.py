"""Tensors with elements replaced or combined at given places; the tensor itself does not change.

``scatter`` and ``tensor_scatter_elements`` take one index for each element, ``tensor_scatter_*`` and
``scatter_nd`` rows of indices, ``index_*`` the indices of slices along one axis, ``index_put`` an index
tensor for each of the first axes. The in-place forms are Tensor methods with a trailing underscore; those
of Parameters are in :mod:`mycelia.ops.parameter_updates`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, OutOfRangeError, ShapeError
from mycelia.ops.calls import attach_in_place
from mycelia.ops.indexing import as_index, check_range, check_rows, gather_p, indexed_shape
from mycelia.ops.operands import NUMBER, as_axis, as_int, as_shape, as_tensor, broadcast_shapes, cast
from mycelia.ops.outputs import one
from mycelia.ops.registry import attach, operator
from mycelia.ops.scatter import index_put_p, scatter_add_nd, scatter_elements_p, scatter_nd_p
from mycelia.ops.shape import broadcast_to, filled, reshaped
from mycelia.ops.slicing import Pick, pick, picked_shape, put
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import scalar


def updates_for(value: Any, x: Tensor, shape: tuple[int, ...], where: str, argument: str = "updates") -> Tensor:
    """An update as the tensor's dtype and, if it is a single number, of the shape of the places."""
    u = scalar(value, x.dtype) if type(value) in NUMBER else cast(as_tensor(value, where, argument, x.dtype), x.dtype)
    return broadcast_to(u, shape) if u.ndim == 0 and shape else u


def divided(x: Tensor, divisors: Tensor) -> Tensor:
    """``x`` divided; integers towards zero."""
    from mycelia.ops.arithmetic import div

    return div(x, divisors) if x.dtype.is_inexact else div(x, divisors, rounding_mode="trunc")


# one index for each element


_REDUCTIONS = {
    "none": "update",
    "update": "update",
    "add": "add",
    "mul": "mul",
    "multiply": "mul",
    "max": "max",
    "min": "min",
}


def _by_elements(
    x: Tensor, dim: Any, index: Any, src: Any, mode: str, where: str, names: tuple[str, str, str]
) -> Tensor:
    places = as_index(index, where, names[1])
    if x.ndim == 0 and places.ndim == 0:
        lone = _by_elements(
            reshaped(x, (1,)), 0, reshaped(places, (1,)), as_tensor(src, where, names[2]), mode, where, names
        )
        return reshaped(lone, ())
    axis = as_axis(dim, x.ndim, where, names[0])
    if x.ndim:
        check_range(places, x.shape[axis], where, names[1])
    values = updates_for(src, x, places.shape, where, names[2])
    if values.ndim == places.ndim and values.shape != places.shape:
        if any(n > d for n, d in zip(places.shape, values.shape, strict=True)):
            raise ShapeError(
                where,
                names[2],
                got=f"shape {values.shape}",
                takes=f"at least the lengths of '{names[1]}', {places.shape}",
            )
        values = pick(values, [Pick(i, 0, n) for i, n in enumerate(places.shape) if n != values.shape[i]])
    return one(scatter_elements_p, x, places, values, axis=axis, mode=mode)


def _reduction(name: Any, where: str, argument: str) -> str:
    if name not in _REDUCTIONS:
        raise ArgumentValueError(where, argument, got=repr(name), takes=", ".join(repr(n) for n in _REDUCTIONS))
    return _REDUCTIONS[name]


@operator()
def scatter(input: Any, axis: int, index: Any, src: Any) -> Tensor:
    """Put elements at places along an axis: ``out[index[i][j]][j] = src[i][j]`` for axis 0.

    Args:
        input: a tensor.
        axis: the axis that ``index`` counts along.
        index: integers, of as many axes as ``input``.
        src: a tensor of at least the lengths of ``index``, or a number.

    Returns:
        A new tensor. Of several elements for one place the last one stays.

    Raises:
        OutOfRangeError: an index outside the axis.
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> print(ms.ops.scatter(ms.Tensor([[1, 2], [3, 4]]), 1, ms.Tensor([[1], [0]]), 9))
    [[1 9]
     [9 4]]
    """
    x = as_tensor(input, "scatter")
    return _by_elements(x, axis, index, src, "update", "scatter", ("axis", "index", "src"))


def _scatter_method(
    self: Tensor,
    axis: Any = None,
    index: Any = None,
    src: Any = None,
    *,
    dim: Any = None,
    value: Any = None,
    reduce: Any = None,
) -> Tensor:
    """Put elements at places along an axis: ``scatter(axis, index, src)``; ``reduce`` is "add" or "multiply"."""
    names = ("dim", "index", "src")
    mode = "update" if reduce is None else _reduction(reduce, "Tensor.scatter", "reduce")
    given = value if src is None else src
    for name, held in zip(names, (axis if dim is None else dim, index, given), strict=True):
        if held is None:
            raise ArgumentTypeError("Tensor.scatter", name, got="nothing", takes="a value")
    return _by_elements(self, axis if dim is None else dim, index, given, mode, "Tensor.scatter", names)


attach("scatter", _scatter_method)
attach_in_place("scatter_", _scatter_method)


@operator()
def tensor_scatter_elements(input_x: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "none") -> Tensor:
    """Put or combine elements at places along an axis.

    Args:
        input_x: a tensor.
        indices: integers, of as many axes.
        updates: a tensor of the shape of ``indices``, or a number.
        axis: the axis that ``indices`` count along.
        reduction: ``"none"`` replaces; ``"add"``, ``"mul"``, ``"max"``, ``"min"`` combine.

    Raises:
        OutOfRangeError: an index outside the axis.
        ArgumentValueError: an unknown reduction.

    >>> import mycelia as ms
    >>> x = ms.Tensor([[1, 2], [3, 4]])
    >>> print(ms.ops.tensor_scatter_elements(x, ms.Tensor([[1], [0]]), ms.Tensor([[5], [5]]), 1, "add"))
    [[1 7]
     [8 4]]
    """
    where = "tensor_scatter_elements"
    x = as_tensor(input_x, where, "input_x")
    mode = _reduction(reduction, where, "reduction")
    return _by_elements(x, axis, indices, updates, mode, where, ("axis", "indices", "updates"))


@operator()
def scatter_add_ext(input: Any, dim: int, index: Any, src: Any) -> Tensor:
    """Add elements at places along an axis: ``out[index[i][j]][j] += src[i][j]`` for ``dim=0``.

    >>> import mycelia as ms
    >>> print(ms.ops.scatter_add_ext(ms.Tensor([1, 2]), 0, ms.Tensor([0, 0]), ms.Tensor([3, 4])))
    [8 2]
    """
    x = as_tensor(input, "scatter_add")
    return _by_elements(x, dim, index, src, "add", "scatter_add", ("dim", "index", "src"))


def _scatter_add_method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """``scatter_add(indices, updates)`` adds at rows of indices, ``scatter_add(dim, index, src)`` elements."""
    elements = len(args) == 3 or kwargs.keys() & {"dim", "index", "src"}
    return (scatter_add_ext if elements else tensor_scatter_add)(self, *args, **kwargs)


attach("scatter_add", _scatter_add_method)
attach_in_place("scatter_add_", scatter_add_ext)


# rows of indices


def by_rows(x: Tensor, indices: Any, updates: Any, mode: str, where: str) -> Tensor:
    """Combine updates at rows of indices; mode "sub" and "div" besides those of the primitive."""
    places = as_index(indices, where, "indices")
    if places.ndim and places.shape[-1] <= x.ndim:
        check_rows(places, x.shape, where, "indices")
        shape = places.shape[:-1] + x.shape[places.shape[-1] :]
    else:
        shape = ()
    values = updates_for(updates, x, shape, where)
    if mode == "sub":
        negative: Any = -values
        return one(scatter_nd_p, x, places, negative, mode="add")
    if mode == "div":
        return divided(x, one(scatter_nd_p, filled(1, x.dtype, x.shape), places, values, mode="mul"))
    return one(scatter_nd_p, x, places, values, mode=mode)


def _row_operator(mode: str, verb: str, result: str) -> Any:
    name = f"tensor_scatter_{mode}"

    def fn(input_x: Any, indices: Any, updates: Any) -> Tensor:
        return by_rows(as_tensor(input_x, name, "input_x"), indices, updates, mode, name)

    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"""{verb} at places given by rows of indices.

    Args:
        input_x: a tensor.
        indices: integers; the last axis holds an index for each leading axis of ``input_x``.
        updates: a tensor of shape ``indices.shape[:-1] + input_x.shape[indices.shape[-1]:]``, or a number.

    Returns:
        A new tensor of the shape and dtype of ``input_x``; several updates of one place all count
        (in ``tensor_scatter_update`` the last one stays).

    Raises:
        OutOfRangeError: an index outside its axis.
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> print(ms.ops.{name}(ms.Tensor([10, 20, 30]), ms.Tensor([[2]]), ms.Tensor([15])))
    {result}
    """
    return operator()(fn)


tensor_scatter_update = _row_operator("update", "Put elements or slices", "[10 20 15]")
tensor_scatter_add = _row_operator("add", "Add elements or slices", "[10 20 45]")
tensor_scatter_sub = _row_operator("sub", "Subtract elements or slices", "[10 20 15]")
tensor_scatter_mul = _row_operator("mul", "Multiply by elements or slices", "[ 10  20 450]")
tensor_scatter_div = _row_operator("div", "Divide by elements or slices", "[10 20  2]")
tensor_scatter_max = _row_operator("max", "Keep the larger of what is there and elements or slices", "[10 20 30]")
tensor_scatter_min = _row_operator("min", "Keep the smaller of what is there and elements or slices", "[10 20 15]")

for _mode in ("sub", "mul", "div", "max", "min"):
    attach(f"scatter_{_mode}", globals()[f"tensor_scatter_{_mode}"])


@operator()
def scatter_nd(indices: Any, updates: Any, shape: Any) -> Tensor:
    """Zeros with elements or slices added at places given by rows of indices.

    Args:
        indices: integers; the last axis holds an index for each leading axis of the result.
        updates: a tensor of shape ``indices.shape[:-1] + shape[indices.shape[-1]:]``.
        shape: the shape of the result.

    Raises:
        OutOfRangeError: an index outside its axis.
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> print(ms.ops.scatter_nd(ms.Tensor([[2], [0], [2]]), ms.Tensor([1, 2, 3]), (4,)))
    [2 0 4 0]
    """
    dims = as_shape(shape, "scatter_nd")
    places, values = as_index(indices, "scatter_nd", "indices"), as_tensor(updates, "scatter_nd", "updates")
    if places.ndim and places.shape[-1] <= len(dims):
        check_rows(places, dims, "scatter_nd", "indices")
    return scatter_add_nd(dims, places, values)


# slices along one axis


def by_axis(
    x: Tensor, axis: Any, index: Any, source: Any, mode: str, where: str, names: tuple[str, str, str]
) -> Tensor:
    """Combine slices at indices along an axis."""
    place = as_axis(axis, x.ndim, where, names[0])
    places = as_index(index, where, names[1])
    if places.ndim > 1:
        raise ShapeError(where, names[1], got=f"shape {places.shape}", takes="one axis")
    if x.ndim == 0:
        raise ShapeError(where, names[2], got="a zero-dimensional tensor", takes="at least one axis")
    if places.ndim == 0:
        places = reshaped(places, (1,))
    check_range(places, x.shape[place], where, names[1])
    shape = (*x.shape[:place], places.shape[0], *x.shape[place + 1 :])
    values = updates_for(source, x, shape, where, names[2])
    if values.shape != shape:
        raise ShapeError(where, names[2], got=f"shape {values.shape}", takes=f"shape {shape}, that of the slices")
    return one(index_put_p, x, values, places, axes=(place,), mode=mode)


def index_added(x: Tensor, dim: Any, index: Any, source: Any, alpha: Any, where: str) -> Tensor:
    """``alpha`` times the slices of ``source`` added at indices along an axis."""
    given: Any = as_tensor(source, where, "source")
    if alpha != 1:
        given = given * alpha
    return by_axis(x, dim, index, given, "add", where, ("dim", "index", "source"))


def _index_add_method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """``index_add(dim, index, source, *, alpha=1)`` or ``index_add(indices, y, axis)``: slices added along an axis."""
    if (args and isinstance(args[0], (Tensor, np.ndarray, list))) or kwargs.keys() & {"indices", "y", "axis"}:
        names = ("indices", "y", "axis", "use_lock", "check_index_bound")
        given = dict(zip(names, args, strict=False)) | kwargs
        return by_axis(
            self, given["axis"], given["indices"], given["y"], "add", "Tensor.index_add", ("axis", "indices", "y")
        )
    alpha = kwargs.pop("alpha", 1)
    given = dict(zip(("dim", "index", "source"), args, strict=False)) | kwargs
    return index_added(self, given["dim"], given["index"], given["source"], alpha, "Tensor.index_add")


attach("index_add", _index_add_method)
attach_in_place("index_add_", _index_add_method)


@operator(methods=True)
def index_fill(x: Any, axis: int, index: Any, value: Any) -> Tensor:
    """The tensor with all elements of some slices along an axis set to a number.

    Args:
        x: a tensor.
        axis: the axis; also called ``dim`` by the method.
        index: a vector of integers, or one.
        value: a number or zero-dimensional tensor.

    Raises:
        OutOfRangeError: an index outside the axis.

    >>> import mycelia as ms
    >>> print(ms.ops.index_fill(ms.Tensor([[1, 2, 3]]), 1, ms.Tensor([0, 2]), 9))
    [[9 2 9]]
    """
    t = as_tensor(x, "index_fill", "x")
    if isinstance(value, Tensor) and value.ndim:
        raise ShapeError("index_fill", "value", got=f"shape {value.shape}", takes="one number")
    return by_axis(t, axis, index, value, "update", "index_fill", ("axis", "index", "value"))


def _index_fill_in_place(self: Tensor, dim: int, index: Any, value: Any) -> Tensor:
    """Slices along an axis set to a number."""
    return index_fill(self, dim, index, value)


attach_in_place("index_fill_", _index_fill_in_place)


@operator(methods=True)
def index_copy(input: Any, dim: int, index: Any, tensor: Any) -> Tensor:
    """The tensor with slices along an axis replaced by those of another.

    Args:
        input: a tensor.
        dim: the axis.
        index: a vector of integers, where each slice goes.
        tensor: as many slices.

    Raises:
        OutOfRangeError: an index outside the axis.
        ShapeError: the slices do not fit.

    >>> import mycelia as ms
    >>> print(ms.ops.index_copy(ms.Tensor([[1, 2], [3, 4]]), 0, ms.Tensor([1]), ms.Tensor([[8, 9]])))
    [[1 2]
     [8 9]]
    """
    x = as_tensor(input, "index_copy")
    return by_axis(x, dim, index, tensor, "update", "index_copy", ("dim", "index", "tensor"))


attach_in_place("index_copy_", index_copy)


# an index tensor for each of the first axes


@operator(methods=True)
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """The tensor with elements put, or added, where index tensors say: ``input[indices] = values``.

    Args:
        input: a tensor.
        indices: a tuple of integer tensors that broadcast together, one for each of the first axes; or bool
            tensors, as in a subscript.
        values: what to put; broadcast to the places.
        accumulate: add instead.

    Raises:
        OutOfRangeError: an index outside its axis.
        ShapeError: the values do not broadcast to the places.

    >>> import mycelia as ms
    >>> print(ms.ops.index_put(ms.Tensor([1, 2, 3]), (ms.Tensor([0, 0]),), ms.Tensor([5, 5]), True))
    [11  2  3]
    """
    x = as_tensor(input, "index_put")
    given = tuple(indices) if isinstance(indices, (tuple, list)) else (indices,)
    places: list[Tensor] = []
    for i, part in enumerate(given):
        index = as_tensor(part, "index_put", f"indices[{i}]")
        if index.dtype is dt.bool_:
            from mycelia.ops.searching import nonzero

            places += nonzero(index, as_tuple=True)
        else:
            places.append(as_index(index, "index_put", f"indices[{i}]"))
    if not places or len(places) > x.ndim:
        raise ShapeError(
            "index_put",
            "indices",
            got=f"{len(places)} index tensors",
            takes=f"from 1 to {x.ndim}, one for each axis of {x.shape}",
        )
    for i, index in enumerate(places):
        check_range(index, x.shape[i], "index_put", f"indices[{i}]")
    axes = tuple(range(len(places)))
    common = broadcast_shapes("index_put", [p.shape for p in places], [f"indices[{i}]" for i in axes])
    shape = indexed_shape(x.shape, common, axes)
    update = broadcast_to(cast(as_tensor(values, "index_put", "values"), x.dtype), shape)
    return one(index_put_p, x, update, *places, axes=axes, mode="add" if accumulate else "update")


attach_in_place("index_put_", index_put)


def _put_flat(self: Tensor, index: Any, source: Any, accumulate: bool = False) -> Tensor:
    """Elements put, or added, at places of the tensor in row-major order."""
    places = as_index(index, "Tensor.put_", "index")
    values = as_tensor(source, "Tensor.put_", "source")
    if values.size != places.size:
        raise ShapeError(
            "Tensor.put_", "source", got=f"{values.size} elements", takes=f"as many as 'index', {places.size}"
        )
    flat = reshaped(self, (self.size,))
    check_range(places, self.size, "Tensor.put_", "index")
    made = one(
        index_put_p,
        flat,
        cast(reshaped(values, places.shape), self.dtype),
        places,
        axes=(0,),
        mode="add" if accumulate else "update",
    )
    return reshaped(made, self.shape)


attach_in_place("put_", _put_flat)


# by a mask


@operator(methods=True)
def masked_scatter(input: Any, mask: Any, source: Any) -> Tensor:
    """The tensor with the elements of ``source``, in order, where a mask is true.

    Args:
        input: a tensor.
        mask: a bool tensor that broadcasts with it.
        source: a tensor with at least as many elements as the mask has true ones.

    Raises:
        ShapeError: ``source`` has too few elements (seen when it runs at once), or the shapes do not broadcast.

    >>> import mycelia as ms
    >>> print(ms.ops.masked_scatter(ms.Tensor([1, 2, 3]), ms.Tensor([True, False, True]), ms.Tensor([8, 9])))
    [8 2 9]
    """
    from mycelia.ops.cumulative import cumsum
    from mycelia.ops.reduction import count_nonzero
    from mycelia.ops.selection import where

    x = as_tensor(input, "masked_scatter")
    chosen = as_tensor(mask, "masked_scatter", "mask")
    if chosen.dtype is not dt.bool_:
        raise ArgumentTypeError("masked_scatter", "mask", got=f"dtype {chosen.dtype}", takes="Bool")
    values = cast(as_tensor(source, "masked_scatter", "source"), x.dtype)
    shape = broadcast_shapes("masked_scatter", (x.shape, chosen.shape), ("input", "mask"))
    x, chosen = broadcast_to(x, shape), broadcast_to(chosen, shape)
    if not x.size:
        return x
    if not chosen.is_symbolic and int(count_nonzero(chosen)) > values.size:
        raise ShapeError(
            "masked_scatter",
            "source",
            got=f"{values.size} elements",
            takes=f"at least {int(count_nonzero(chosen))}, as the mask has true ones",
        )
    if not values.size:
        return x
    order: Any = cumsum(reshaped(cast(chosen, dt.int64), (x.size,)), 0)
    found = one(gather_p, reshaped(values, (values.size,)), order - 1, axis=0, batch_dims=0)
    return where(chosen, reshaped(found, shape), x)  # type: ignore[no-any-return]


attach_in_place("masked_scatter_", masked_scatter)


# slices replaced


def _selected(x: Tensor, axis: int, index: Any, where: str) -> Pick:
    if isinstance(index, Tensor) and index.is_symbolic:
        return Pick(axis, index, 1, drop=True)
    place, length = as_int(index, where, "index"), x.shape[axis]
    if not -length <= place < length:
        raise OutOfRangeError(where, "index", got=str(place), takes=f"an index from {-length} to {length - 1}")
    return Pick(axis, place % length, 1, drop=True)


def _replaced(x: Tensor, src: Any, chosen: Pick, where: str) -> Tensor:
    shape = picked_shape(x, [chosen])
    values = updates_for(src, x, shape, where, "src")
    if values.shape != shape:
        raise ShapeError(where, "src", got=f"shape {values.shape}", takes=f"the shape of the slice, {shape}")
    return put(x, values, [chosen])


@operator(methods=True)
def select_scatter(input: Any, src: Any, axis: int, index: int) -> Tensor:
    """The tensor with one slice along an axis replaced.

    Args:
        input: a tensor.
        src: the new slice, without the axis.
        axis: the axis.
        index: which slice.

    Raises:
        OutOfRangeError: there is no such slice.
        ShapeError: ``src`` has another shape.

    >>> import mycelia as ms
    >>> print(ms.ops.select_scatter(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([8, 9]), 0, 1))
    [[1 2]
     [8 9]]
    """
    x = as_tensor(input, "select_scatter")
    place = as_axis(axis, x.ndim, "select_scatter")
    return _replaced(x, src, _selected(x, place, index, "select_scatter"), "select_scatter")


@operator(methods=True)
def slice_scatter(
    input: Any, src: Any, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The tensor with the part ``start:end:step`` of an axis replaced.

    Args:
        input: a tensor.
        src: the new part.
        axis: the axis.
        start: its first element; the first one by default.
        end: one past its last element; the end by default.
        step: distance of its elements, at least 1.

    Raises:
        ShapeError: ``src`` has another shape.
        ArgumentValueError: ``step`` is less than 1.

    >>> import mycelia as ms
    >>> print(ms.ops.slice_scatter(ms.Tensor([1, 2, 3, 4]), ms.Tensor([8, 9]), 0, 0, 4, 2))
    [8 2 9 4]
    """
    x = as_tensor(input, "slice_scatter")
    place, gap = as_axis(axis, x.ndim, "slice_scatter"), as_int(step, "slice_scatter", "step")
    if gap < 1:
        raise ArgumentValueError("slice_scatter", "step", got=str(gap), takes="an int of at least 1")
    length = x.shape[place]
    first = 0 if start is None else as_int(start, "slice_scatter", "start")
    last = length if end is None else as_int(end, "slice_scatter", "end")
    low = min(max(first + length if first < 0 else first, 0), length)
    high = min(max(last + length if last < 0 else last, low), length)
    return _replaced(x, src, Pick(place, low, -(-(high - low) // gap), gap), "slice_scatter")
