"""``x[index]`` and ``x[index] = value`` with NumPy's rules.

An index is first sorted into a :class:`Plan`: what is sliced along each axis (ints, slices, None, Ellipsis)
and which axes are read through integer tensors (arrays, lists, and masks as the places where they are
true). The sliced part is one ``dynamic_slice`` whose starts are inputs, so that a loop over ``x[i]`` compiles
once; the rest is one ``index_get``, whose axes then go where NumPy puts them: in place if the indices stand
side by side, in front otherwise. Assignment does the same with ``index_put`` and ``dynamic_update`` and stores
the new value in the tensor.

In a graph an index may be a tensor whose value is not known: as an int it is a computed start, clamped to the
axis; as bounds of a slice the two must differ by a known number, as in ``x[i * 4 : i * 4 + 4]``. A mask can be
assigned through, but what it selects has no known shape.
"""

from __future__ import annotations

import operator as _operator
from typing import Any, NamedTuple

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    GraphError,
    OutOfRangeError,
    ShapeError,
)
from mycelia.ir.builder import Builder
from mycelia.ir.graph import Value
from mycelia.ops.indexing import check_range, index_get_p, indexed_shape
from mycelia.ops.operands import NUMBER, as_tensor, broadcast_shapes, cast
from mycelia.ops.outputs import one
from mycelia.ops.registry import attach, operator
from mycelia.ops.scatter import index_put_p
from mycelia.ops.shape import broadcast_to_p, permuted, reshaped
from mycelia.ops.slicing import Pick, dynamic_slice_p, pick, picked_shape, put
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant, scalar, set_value
from mycelia.tensor.mode import STAGE, current_builder, is_staging, state

Ints = tuple[int, ...]

_KINDS = "ints, slices, None, Ellipsis, and tensors or lists of integers or bools"


class Plan(NamedTuple):
    """What a subscript reads.

    Attributes:
        picks: what is sliced of the tensor's axes.
        shape: the shape after slicing, with the axes that None adds.
        arrays: axes of that shape and the integer tensors that index them.
        place: where NumPy puts the axes of the indices in the result.
    """

    picks: list[Pick]
    shape: Ints
    arrays: list[tuple[int, Tensor]]
    place: int


# items of an index


def _item(value: Any, where: str) -> Any:
    """An int, slice, None, Ellipsis, or a tensor of integers or bools."""
    if value is None or value is Ellipsis or isinstance(value, slice):
        return value
    if isinstance(value, (bool, np.bool_)):
        return constant(np.asarray(value))
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (list, tuple, range)):
        value = np.zeros(0, np.int64) if not len(value) else list(value) if isinstance(value, range) else value
    if isinstance(value, (list, tuple, np.ndarray)):
        value = as_tensor(value, where, "index")
    if not isinstance(value, Tensor):
        if hasattr(value, "__index__"):
            return _operator.index(value)
        raise ArgumentTypeError(where, "index", got=type(value).__name__, takes=_KINDS)
    if value.dtype is not dt.bool_ and not value.dtype.is_integer:
        raise DTypeError(where, "index", got=f"a tensor of dtype {value.dtype}", takes=_KINDS)
    if value.ndim == 0 and value.dtype is not dt.bool_:
        known = _known(value)
        return value if known is None else int(known)
    return value


def _known(value: Tensor) -> np.ndarray[Any, Any] | None:
    """The data of a tensor, or None if only a graph will have it."""
    held = value._value
    if type(held) is not Value:
        return None if is_staging() else np.asarray(held)
    return current_builder().known(held) if is_staging() else None


def _int_pick(axis: int, index: Any, length: int, where: str) -> Pick:
    if isinstance(index, Tensor):
        return Pick(axis, index, 1, drop=True)
    if not -length <= index < length:
        takes = f"an index from {-length} to {length - 1}" if length else "no int, as the axis is empty"
        raise OutOfRangeError(where, "index", got=f"{index} for axis {axis} of length {length}", takes=takes)
    return Pick(axis, index % length, 1, drop=True)


def _slice_pick(axis: int, part: slice, length: int, where: str) -> Pick | None:
    """What a slice takes of an axis; None for all of it."""
    if part.start is None and part.stop is None and part.step is None:
        return None
    bounds = [_bound(b, where) for b in (part.start, part.stop, part.step)]
    if any(isinstance(b, Tensor) for b in bounds):
        return _computed_slice(axis, bounds, length, where)
    if bounds[2] == 0:
        raise ArgumentValueError(where, "index", got="a slice with step 0", takes="a step other than 0")
    start, stop, step = slice(*bounds).indices(length)
    size = len(range(start, stop, step))
    return None if size == length and step == 1 else Pick(axis, start if size else 0, size, step)


def _bound(value: Any, where: str) -> Any:
    if value is None or type(value) is int:
        return value
    made = _item(value, where)
    if isinstance(made, Tensor) and made.ndim == 0 and made.dtype.is_integer:
        return made
    if not isinstance(made, int):
        raise ArgumentTypeError(
            where, "index", got=f"{value!r} as a bound of a slice", takes="ints, None or integer tensors of one element"
        )
    return made


# slices whose bounds a graph computes


def _computed_slice(axis: int, bounds: list[Any], length: int, where: str) -> Pick:
    start, stop, step = bounds
    if isinstance(start, Tensor) and isinstance(stop, Tensor) and step in (None, 1):
        size = _difference(start, stop)
        if size is not None and 0 <= size <= length:
            return Pick(axis, start, size)
    raise GraphError(
        where, message=f"the length of the slice of axis {axis} depends on a tensor known only when the graph runs",
        hint="write x[i : i + 4] with a constant length, use ops.dynamic_slice(x, starts, sizes), or pass Python ints",
    )  # fmt: skip


def _difference(start: Tensor, stop: Tensor) -> int | None:
    """``stop - start`` if it is a known number: both are the same combination of values but for a constant."""
    builder = current_builder()
    first, last = _linear(start._value, builder), _linear(stop._value, builder)
    if first is None or last is None or first[0] != last[0]:
        return None
    return last[1] - first[1]


_Form = tuple[dict[Value, int], int]


def _linear(value: Any, builder: Builder) -> _Form | None:
    """An integer value as a sum of multiples of values and a constant."""
    if type(value) is not Value:
        return None
    known = builder.known(value)
    if known is not None:
        return {}, int(known)
    node = value.node
    name = node.op.name if node is not None else ""
    if node is None or name not in ("add", "sub", "mul", "neg", "cast") or not value.type.dtype.is_integer:
        return {_origin(value, builder): 1}, 0
    parts = [_linear(v, builder) for v in node.inputs]
    if None in parts:
        return None
    forms: list[_Form] = [p for p in parts if p is not None]
    if name == "cast":
        return forms[0] if node.inputs[0].type.dtype.is_integer else None
    if name == "neg":
        return _combine(({}, 0), forms[0], -1)
    if name == "mul":
        constants = [f for f in forms if not f[0]]
        if not constants:
            return {_origin(value, builder): 1}, 0
        other = forms[0] if forms[1] is constants[0] else forms[1]
        return _combine(({}, 0), other, constants[0][1])
    return _combine(forms[0], forms[1], -1 if name == "sub" else 1)


def _combine(a: _Form, b: _Form, factor: int) -> _Form:
    total = dict(a[0])
    for value, count in b[0].items():
        total[value] = total.get(value, 0) + factor * count
    return {v: c for v, c in total.items() if c}, a[1] + factor * b[1]


def _origin(value: Value, builder: Builder) -> Value:
    """The value of the outermost graph that a lifted one stands for."""
    inner: Builder | None = builder
    while inner is not None:
        value = next((outer for outer, held in inner.lifted if held is value), value)
        inner = inner.parent
    return value


# the plan


def _expanded(x: Tensor, index: Any, where: str) -> list[Any]:
    """The items of an index, one for each axis (a mask for several) and each None, the Ellipsis filled in."""
    items = [_item(i, where) for i in (index if isinstance(index, tuple) else (index,))]
    used = 0
    for i in items:
        if isinstance(i, Tensor) and i.dtype is dt.bool_:
            used += i.ndim
        elif i is not None and i is not Ellipsis:
            used += 1
    if used > x.ndim:
        raise OutOfRangeError(
            where, "index", got=f"an index for {used} axes", takes=f"at most the {x.ndim} axes of shape {x.shape}"
        )
    dots = [k for k, i in enumerate(items) if i is Ellipsis]
    if len(dots) > 1:
        raise OutOfRangeError(where, "index", got=f"{len(dots)} Ellipses", takes="at most one")
    rest: list[Any] = [slice(None)] * (x.ndim - used)
    at = dots[0] if dots else len(items)
    return [*items[:at], *rest, *items[at + 1 :]]


def _plan(x: Tensor, index: Any, where: str) -> Plan:
    items = _expanded(x, index, where)
    indexed = [isinstance(i, Tensor) and (i.ndim > 0 or i.dtype is dt.bool_) for i in items]
    picks: list[Pick] = []
    shape: list[int] = []
    arrays: list[tuple[int, Tensor]] = []
    advanced: list[int] = []
    plain_before = None
    axis = plain = 0
    for k, item in enumerate(items):
        if isinstance(item, slice):
            part = _slice_pick(axis, item, x.shape[axis], where)
            if part is not None:
                picks.append(part)
            shape.append(x.shape[axis] if part is None else part.size)
            axis, plain = axis + 1, plain + 1
            continue
        if item is None:
            shape.append(1)
            plain += 1
            continue
        advanced.append(k)
        plain_before = plain if plain_before is None else plain_before
        if not indexed[k]:
            picks.append(_int_pick(axis, item, x.shape[axis], where))
            axis += 1
        elif item.dtype is dt.bool_ and item.ndim == 0:
            arrays.append((len(shape), constant(np.zeros(int(item), np.int64))))
            shape.append(1)
        else:
            found = _mask_places(x, item, axis, where) if item.dtype is dt.bool_ else [item]
            for places in found:
                if item.dtype is not dt.bool_:
                    check_range(places, x.shape[axis], where, "index")
                arrays.append((len(shape), places))
                shape.append(x.shape[axis])
                axis += 1
    together = bool(advanced) and advanced == list(range(advanced[0], advanced[-1] + 1))
    return Plan(picks, tuple(shape), arrays, (plain_before or 0) if together else 0)


def _mask_places(x: Tensor, mask: Tensor, axis: int, where: str) -> list[Tensor]:
    from mycelia.ops.searching import nonzero

    _check_mask(x, mask, axis, where)
    if mask.is_symbolic and is_staging() and current_builder().known(mask._value) is None:
        raise GraphError(
            where, message=f"the shape of the result depends on how many elements a Tensor {mask._value.type} "
            "selects, known only when the graph runs",
            hint="keep the shape: ops.where(mask, x, 0), or multiply by the mask; a mean is sum / mask.sum()",
        )  # fmt: skip
    return list(nonzero(mask, as_tuple=True))


def _check_mask(x: Tensor, mask: Tensor, axis: int, where: str) -> None:
    wanted = x.shape[axis : axis + mask.ndim]
    if mask.shape != wanted:
        raise ShapeError(
            where,
            "index",
            got=f"a mask of shape {mask.shape}",
            takes=f"a mask of shape {wanted}, that of the axes it stands for",
        )


def _moved(result: Ints, first: int, count: int, place: int) -> Ints | None:
    """The permutation that moves ``count`` axes from ``first`` to ``place``; None if they are there."""
    if first == place or not count:
        return None
    rest = [i for i in range(len(result)) if not first <= i < first + count]
    return (*rest[:place], *range(first, first + count), *rest[place:])


def _natural(axes: Ints) -> int:
    """Where ``index_get`` puts the axes of its indices."""
    return axes[0] if axes == tuple(range(axes[0], axes[0] + len(axes))) else 0


# reading


def getitem(self: Tensor, index: Any) -> Tensor:
    """``x[index]`` with NumPy's rules.

    Raises:
        OutOfRangeError: an int outside its axis, or more indices than axes.
        ShapeError: a mask or index arrays that do not fit.
        ArgumentTypeError: something that is no index.
        GraphError: in a graph, a result whose shape depends on values.
    """
    shape = self._value.shape
    if type(index) is int and shape and state.phase != STAGE:
        length = shape[0]
        if -length <= index < length:
            start = scalar(index if index >= 0 else index + length, dt.int64)
            return one(dynamic_slice_p, self, start, axes=(0,), sizes=(1,), steps=(1,), drop=(0,))
    plan = _plan(self, index, "getitem")
    part = reshaped(pick(self, plan.picks), plan.shape)
    if not plan.arrays:
        return part
    axes = tuple([axis for axis, _ in plan.arrays])
    out = one(index_get_p, part, *[places for _, places in plan.arrays], axes=axes)
    perm = _moved(out.shape, _natural(axes), out.ndim - part.ndim + len(axes), plan.place)
    return out if perm is None else permuted(out, perm)


# writing


def _update(x: Tensor, value: Any, shape: Ints) -> Tensor:
    """The value of an assignment as the tensor's dtype, broadcast to the shape of the index expression."""
    if type(value) in NUMBER:
        if type(value) is complex and not x.dtype.is_complex:
            raise DTypeError("setitem", "value", got="a complex number", takes=f"a number that fits dtype {x.dtype}")
        held = scalar(value, x.dtype)
    else:
        data = isinstance(value, (list, tuple, np.ndarray)) and not np.iscomplexobj(value)
        held = as_tensor(value, "setitem", "value", x.dtype if data else None)
        if held.dtype.is_complex and not x.dtype.is_complex:
            raise DTypeError("setitem", "value", got=f"dtype {held.dtype}", takes=f"a value that fits dtype {x.dtype}")
        held = cast(held, x.dtype)
    extra = held.ndim - len(shape)
    if extra > 0 and held.shape[:extra] == (1,) * extra:
        held = reshaped(held, held.shape[extra:])
    if held.shape == shape:
        return held
    lengths = (1,) * (len(shape) - held.ndim) + held.shape
    if len(lengths) != len(shape) or any(n not in (1, d) for n, d in zip(lengths, shape, strict=True)):
        raise ShapeError(
            "setitem",
            "value",
            got=f"shape {held.shape}",
            takes=f"a shape that broadcasts to {shape}, that of the index expression",
        )
    return one(broadcast_to_p, held, shape=shape)


def _only_mask(x: Tensor, index: Any) -> Tensor | None:
    """The mask, if an index is one bool tensor for the first axes and nothing else."""
    if isinstance(index, tuple):
        if len(index) != 1:
            return None
        index = index[0]
    if isinstance(index, (list, np.ndarray)) and np.asarray(index).dtype == bool and np.ndim(index):
        index = as_tensor(index, "setitem", "index")
    if isinstance(index, Tensor) and index.dtype is dt.bool_ and 0 < index.ndim <= x.ndim:
        return index
    return None


def _masked(x: Tensor, mask: Tensor, value: Any) -> Tensor | None:
    """The tensor with a value put where a mask is true, without looking at the mask; None if that needs it."""
    from mycelia.ops.selection import where
    from mycelia.ops.tensor_updates import masked_scatter

    _check_mask(x, mask, 0, "setitem")
    inner = x.shape[mask.ndim :]
    held = value if type(value) in NUMBER else as_tensor(value, "setitem", "value")
    shape = held.shape if isinstance(held, Tensor) else ()
    chosen = reshaped(mask, mask.shape + (1,) * len(inner))
    if len(shape) <= len(inner) or (len(shape) == len(inner) + 1 and shape[0] == 1):
        update = _update(x, held, (1,) * mask.ndim + inner)
        return where(chosen, update, x)  # type: ignore[no-any-return]
    if _known(mask) is None:
        if len(shape) != len(inner) + 1:
            raise ShapeError(
                "setitem",
                "value",
                got=f"shape {shape}",
                takes=f"a shape that broadcasts to (number of true elements, {inner})",
            )
        update = _update(x, held, (shape[0], *inner))
        every = one(broadcast_to_p, chosen, shape=x.shape) if inner else mask
        return masked_scatter(x, every, update)
    return None


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """``x[index] = value`` with NumPy's rules; the value takes the tensor's dtype.

    Raises:
        OutOfRangeError: an int outside its axis, or more indices than axes.
        ShapeError: the value does not broadcast to the index expression.
        ArgumentTypeError: something that is no index, or a complex value for a real tensor.
    """
    mask = _only_mask(self, index)
    if mask is not None:
        made = _masked(self, mask, value)
        if made is not None:
            set_value(self, made)
            return
    plan = _plan(self, index, "setitem")
    sliced = picked_shape(self, plan.picks)
    if not plan.arrays:
        update = reshaped(_update(self, value, plan.shape), sliced)
    else:
        axes = tuple([axis for axis, _ in plan.arrays])
        places = [p for _, p in plan.arrays]
        common = broadcast_shapes("setitem", [p.shape for p in places], [f"index {i}" for i in range(len(places))])
        natural = indexed_shape(plan.shape, common, axes)
        perm = _moved(natural, _natural(axes), len(common), plan.place)
        wanted = natural if perm is None else tuple([natural[i] for i in perm])
        held = _update(self, value, wanted)
        if perm is not None:
            held = permuted(held, tuple(int(i) for i in np.argsort(perm)))
        part = reshaped(pick(self, plan.picks), plan.shape)
        update = reshaped(one(index_put_p, part, held, *places, axes=axes, mode="update"), sliced)
    set_value(self, put(self, update, plan.picks) if plan.picks else update)


attach("__getitem__", getitem)
attach("__setitem__", setitem)


def _itemset(self: Tensor, *args: Any) -> Tensor:
    """A copy with one element set: ``itemset(index, value)``, the index one of row-major order or a tuple."""
    if len(args) not in (1, 2):
        raise ArgumentTypeError("Tensor.itemset", "args", got=f"{len(args)} arguments", takes="an index and a value")
    made = self._snapshot()
    if len(args) == 2 and not isinstance(args[0], tuple):
        made = reshaped(made, (made.size,))._snapshot()
    setitem(made, args[0] if len(args) == 2 else (), args[-1])
    return reshaped(made, self.shape)


attach("itemset", _itemset)


# the old form


@operator()
def strided_slice(
    input_x: Any, begin: Any, end: Any, strides: Any = None, begin_mask: int = 0, end_mask: int = 0,
    ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0,
) -> Tensor:  # fmt: skip
    """The part ``begin:end:strides`` of the first axes of a tensor.

    Args:
        input_x: a tensor.
        begin: where the slice of each of the first axes begins.
        end: where it ends.
        strides: its step, 1 by default; a negative one walks back.
        begin_mask: for each bit that is set, that slice begins at the first element.
        end_mask: for each bit that is set, that slice ends behind the last element.
        ellipsis_mask: the bit that is set stands for all axes not mentioned.
        new_axis_mask: for each bit that is set, a new axis of length 1.
        shrink_axis_mask: for each bit that is set, the one element at ``begin`` and no axis.

    Raises:
        ArgumentValueError: ``begin``, ``end`` and ``strides`` are not of one length, or a step is 0.
        OutOfRangeError: more slices than axes.

    >>> import mycelia as ms
    >>> print(ms.ops.strided_slice(ms.Tensor([[1, 2, 3], [4, 5, 6]]), (0, 0), (2, 3), (1, 2)))
    [[1 3]
     [4 6]]
    """
    where = "strided_slice"
    x = as_tensor(input_x, where, "input_x")
    parts: list[list[Any]] = []
    for values, name in ((begin, "begin"), (end, "end"), (strides, "strides")):
        if values is None and name == "strides":
            values = (1,) * len(parts[0])
        if isinstance(values, Tensor):
            values = values.tolist()
        if not isinstance(values, (tuple, list)):
            raise ArgumentTypeError(where, name, got=type(values).__name__, takes="a tuple of ints")
        parts.append(list(values))
    if len({len(p) for p in parts}) != 1:
        raise ArgumentValueError(
            where, "begin", got=f"{[len(p) for p in parts]} values in begin, end and strides", takes="as many in each"
        )
    key: list[Any] = []
    for i, (first, last, step) in enumerate(zip(*parts, strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(Ellipsis)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(first)
        else:
            key.append(slice(None if begin_mask & bit else first, None if end_mask & bit else last, step))
    return getitem(x, tuple(key))
