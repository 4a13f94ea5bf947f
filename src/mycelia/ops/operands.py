"""From what users write to what primitives take: tensors of one dtype, canonical axes and shapes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, GraphError, OutOfRangeError, ShapeError
from mycelia.core.promotion import promote_scalar, result_type
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant, scalar
from mycelia.tensor.scalar import kind_of
from mycelia.tensor.tensor import to_numpy

#: Python scalars that combine with tensors.
NUMBER = (bool, int, float, complex)


def as_tensor(value: Any, where: str, argument: str = "input", dtype: DType | None = None) -> Tensor:
    """A Tensor of an argument: itself, or a tensor of a number, list or NumPy array.

    Raises:
        ArgumentTypeError: the argument is none of these.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, NUMBER) and kind_of(value) in dt._PYTHON:
        return scalar(value, dtype or dt._PYTHON[kind_of(value)])
    if isinstance(value, (np.ndarray, np.generic, list, tuple, *NUMBER)):
        if isinstance(value, (list, tuple)) and any(isinstance(x, Tensor) for x in value):
            from mycelia.ops.joining import stack

            stacked: Tensor = stack([as_tensor(x, where, argument) for x in value])
            return stacked
        return constant(to_numpy(value, dtype, where, argument))
    raise ArgumentTypeError(where, argument, got=type(value).__name__, takes="a Tensor, number or NumPy array")


def cast(tensor: Tensor, dtype: DType) -> Tensor:
    """``tensor`` as ``dtype``; itself if it is of that dtype."""
    if tensor.dtype is dtype:
        return tensor
    from mycelia.ops.casting import cast_p

    return apply(cast_p, tensor, dtype=dtype)  # type: ignore[no-any-return]


def same_dtype(where: str, *values: Any, names: Sequence[str] = ("input", "other")) -> tuple[Tensor, ...]:
    """Operands converted to their common dtype by the promotion rules; Python numbers bend to the tensors.

    Raises:
        DTypeError: there is no common dtype.
    """
    tensors = [v if isinstance(v, Tensor) else None for v in values]
    arrays = [
        as_tensor(v, where, n) if t is None and not (isinstance(v, NUMBER) and kind_of(v) in dt._PYTHON) else t
        for v, t, n in zip(values, tensors, names, strict=False)
    ]
    present = [a.dtype for a in arrays if a is not None]
    if not present:
        arrays = [as_tensor(v, where, n) for v, n in zip(values, names, strict=False)]
        present = [a.dtype for a in arrays if a is not None]
    common = result_type(present, where)
    for v, a in zip(values, arrays, strict=True):
        if a is None:
            common = promote_scalar(common, kind_of(v))
    return tuple(
        [scalar(v, common) if a is None else cast(a, common) for v, a in zip(values, arrays, strict=True)]
    )  # fmt: skip


def as_int(value: Any, where: str, argument: str) -> int:
    """A Python int of an int-like argument (bools refused)."""
    if isinstance(value, bool):
        raise ArgumentTypeError(where, argument, got="a bool", takes="an int")
    if isinstance(value, Tensor) and value.is_symbolic:
        value = _known(value, where, argument, "it is part of the graph: pass a Python int, or take it from x.shape")
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="an int") from None


def as_axis(axis: Any, rank: int, where: str, argument: str = "axis") -> int:
    """A non-negative axis of a tensor of ``rank`` axes.

    Raises:
        OutOfRangeError: it is not in ``[-rank, rank)``.
    """
    value = as_int(axis, where, argument)
    limit = max(rank, 1)
    if not -limit <= value < limit:
        raise OutOfRangeError(where, argument, got=str(value), takes=f"an axis from {-limit} to {limit - 1}")
    return value + rank if value < 0 and rank else max(value, 0) if not rank else value


def _known(value: Tensor, where: str, argument: str, hint: str) -> Any:
    """The ints of a tensor, which must have a value."""
    try:
        return value.tolist()
    except GraphError:
        raise GraphError(
            where, argument, got=f"a Tensor {value._value.type} that is only known when the graph runs",
            takes="Python ints", hint=hint,
        ) from None  # fmt: skip


def as_axes(axes: Any, rank: int, where: str, argument: str = "axis") -> tuple[int, ...]:
    """Sorted unique non-negative axes; None or an empty tuple means all of them."""
    if type(axes) is int and -rank <= axes < rank:
        return (axes % rank,)
    if isinstance(axes, Tensor):
        axes = _known(axes, where, argument, "an axis is part of the graph: pass Python ints")
    if axes is None or (isinstance(axes, (tuple, list)) and not axes):
        return tuple(range(rank))
    if not isinstance(axes, (tuple, list)):
        axes = (axes,)
    found = [as_axis(a, rank, where, argument) for a in axes]
    if len(set(found)) != len(found) and rank:
        raise ArgumentValueError(where, argument, got=str(tuple(axes)), takes="each axis once")
    return tuple(sorted(set(found))) if rank else ()


def as_shape(shape: Any, where: str, argument: str = "shape", *, minimum: int = 0) -> tuple[int, ...]:
    """A tuple of ints of an int, list, tuple or integer tensor."""
    if isinstance(shape, Tensor):
        shape = _known(shape, where, argument, "lengths are part of the graph: take them from x.shape, or pass ints")
    if not isinstance(shape, (tuple, list, range, np.ndarray)):
        shape = (shape,)
    dims = tuple([as_int(d, where, argument) for d in shape])
    for d in dims:
        if d < minimum:
            raise ArgumentValueError(where, argument, got=str(dims), takes=f"lengths of at least {minimum}")
    return dims


def varargs(values: tuple[Any, ...]) -> Any:
    """``f(x, 2, 3)`` and ``f(x, (2, 3))`` alike: the sequence of a variadic shape or axes argument."""
    if len(values) == 1 and isinstance(values[0], (tuple, list, Tensor)):
        return values[0]
    return values


def broadcast_shapes(where: str, shapes: Iterable[tuple[int, ...]], names: Sequence[str] = ()) -> tuple[int, ...]:
    """The shape that all broadcast to.

    Raises:
        ShapeError: two of them do not fit; the message names both.
    """
    all_shapes = list(shapes)
    result: tuple[int, ...] = all_shapes[0] if all_shapes else ()
    for i, shape in enumerate(all_shapes[1:], 1):
        if shape == result:
            continue
        merged = _broadcast_two(result, shape)
        if merged is None:
            name = names[i] if i < len(names) else f"input {i}"
            raise ShapeError(
                where, name, got=f"shape {shape}", takes=f"a shape that broadcasts with {result}",
                hint="two lengths fit if they are equal or one of them is 1, compared from the last axis",
            )  # fmt: skip
        result = merged
    return result


def _broadcast_two(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    if len(a) < len(b):
        a, b = b, a
    out = list(a)
    offset = len(a) - len(b)
    for i, d in enumerate(b):
        have = a[offset + i]
        if have == d or d == 1:
            continue
        if have != 1:
            return None
        out[offset + i] = d
    return tuple(out)
