"""Tensors put together and taken apart along an axis: concat, stack, split, unstack and their kin.

``concat`` and ``stack`` take all their tensors as inputs, ``split`` and ``unstack`` give all their parts as
outputs; each pair is each other's gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core.dtypes import ALL
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.axes import atleast_1d, atleast_2d, atleast_3d
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.keywords import renaming
from mycelia.ops.operands import as_axis, as_int, as_shape, as_tensor, same_dtype
from mycelia.ops.outputs import one, several
from mycelia.ops.padding import pad_zeros
from mycelia.ops.registry import attach, operator
from mycelia.ops.shape import filled, reshaped
from mycelia.ops.slicing import narrowed
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant

_A = np.arange(6.0).reshape(2, 3)
_B = -np.arange(12.0).reshape(4, 3)


# concat and split


def _infer_concat(*types: TensorType, axis: int) -> TensorType:
    check_dtypes("concat", types, ALL, tuple([f"tensors[{i}]" for i in range(len(types))]))
    first = types[0]
    if first.rank == 0:
        raise ShapeError(
            "concat", "tensors[0]", got="a zero-dimensional tensor", takes="at least one axis", hint="use stack"
        )
    total = 0
    for i, t in enumerate(types):
        if t.rank != first.rank or t.shape[:axis] + t.shape[axis + 1 :] != first.shape[:axis] + first.shape[axis + 1 :]:
            raise ShapeError(
                "concat",
                f"tensors[{i}]",
                got=f"shape {t.shape}",
                takes=f"the shape of tensors[0], {first.shape}, except along axis {axis}",
            )
        total += t.shape[axis]
    return TensorType(first.dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :]))


def _vjp_concat(ct: Tensor, *inputs: Tensor, out: Tensor, axis: int) -> Sequence[Any]:
    return several(split_p, ct, axis=axis, sizes=tuple([x.shape[axis] for x in inputs]))


def _infer_split(x: TensorType, *, axis: int, sizes: tuple[int, ...]) -> tuple[TensorType, ...]:
    if sum(sizes) != x.shape[axis]:
        raise ShapeError(
            "split", "split_size_or_sections", got=str(sizes), takes=f"lengths that add up to {x.shape[axis]}"
        )
    return tuple([TensorType(x.dtype, (*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in sizes])


def _zeros_for_missing(cts: Sequence[Tensor | None], outs: Sequence[Tensor]) -> list[Tensor]:
    return [filled(0, o.dtype, o.shape) if ct is None else ct for ct, o in zip(cts, outs, strict=True)]


concat_p: Primitive = Primitive(
    "concat", infer=_infer_concat, vjp=_vjp_concat, onnx="Concat",
    lower=lambda *arrays, axis: lax.concatenate(arrays, axis),
    samples=lambda: [
        Sample((_A, _B), {"axis": 0}), Sample((_A,), {"axis": 1}),
        Sample((_A, _A[:, :1], np.zeros((2, 0))), {"axis": 1}),
        Bad((_A, _B), {"axis": 1}, ShapeError, "except along axis 1"),
        Bad((_A, _A[0]), {"axis": 0}, ShapeError, "tensors"),
        Bad((np.array(1.0),), {"axis": 0}, ShapeError, "at least one axis"),
    ],
)  # fmt: skip
split_p: Primitive = Primitive(
    "split", infer=_infer_split, multi=True, onnx="Split",
    lower=lambda x, *, axis, sizes: tuple(lax.split(x, sizes, axis)) if sizes else (),
    vjp=lambda ct, x, out, *, axis, sizes: [one(concat_p, *_zeros_for_missing(ct, out), axis=axis)],
    samples=lambda: [
        Sample((_B,), {"axis": 0, "sizes": (1, 3)}), Sample((_B,), {"axis": 1, "sizes": (1, 0, 2)}),
        Bad((_B,), {"axis": 0, "sizes": (1, 2)}, ShapeError, "add up to 4"),
    ],
)  # fmt: skip


# stack and unstack


def _infer_stack(*types: TensorType, axis: int) -> TensorType:
    check_dtypes("stack", types, ALL, tuple([f"tensors[{i}]" for i in range(len(types))]))
    first = types[0]
    for i, t in enumerate(types):
        if t.shape != first.shape:
            raise ShapeError(
                "stack", f"tensors[{i}]", got=f"shape {t.shape}", takes=f"the shape of tensors[0], {first.shape}"
            )
    return TensorType(first.dtype, (*first.shape[:axis], len(types), *first.shape[axis:]))


def _lower_unstack(x: Any, *, axis: int) -> Any:
    return tuple([lax.index_in_dim(x, i, axis, keepdims=False) for i in range(x.shape[axis])])


stack_p: Primitive = Primitive(
    "stack", infer=_infer_stack, lower=lambda *arrays, axis: jnp.stack(arrays, axis),
    vjp=lambda ct, *inputs, out, axis: several(unstack_p, ct, axis=axis),
    samples=lambda: [
        Sample((_A, -_A), {"axis": 0}), Sample((_A, -_A, _A), {"axis": 2}),
        Sample((np.array(1.0), np.array(2.0)), {"axis": 0}),
        Bad((_A, _B), {"axis": 0}, ShapeError, "tensors"),
    ],
)  # fmt: skip
unstack_p: Primitive = Primitive(
    "unstack", multi=True, lower=_lower_unstack,
    infer=lambda x, *, axis: (TensorType(x.dtype, x.shape[:axis] + x.shape[axis + 1 :]),) * x.shape[axis],
    vjp=lambda ct, x, out, *, axis: [one(stack_p, *_zeros_for_missing(ct, out), axis=axis)],
    samples=lambda: [Sample((_A,), {"axis": 0}), Sample((_A,), {"axis": 1}), Sample((np.zeros((2, 0)),), {"axis": 0})],
)  # fmt: skip


# putting together


def _parts(tensors: Any, where: str) -> tuple[Tensor, ...]:
    if isinstance(tensors, Tensor):
        raise ArgumentTypeError(where, "tensors", got="a Tensor", takes="a tuple or list of tensors")
    try:
        given = tuple(tensors)
    except TypeError:
        raise ArgumentTypeError(
            where, "tensors", got=type(tensors).__name__, takes="a tuple or list of tensors"
        ) from None
    if not given:
        raise ArgumentValueError(where, "tensors", got="an empty sequence", takes="at least one tensor")
    first = given[0]
    if isinstance(first, Tensor) and all(
        [isinstance(x, Tensor) and x._value.dtype == first._value.dtype for x in given]
    ):
        return given
    names = [f"tensors[{i}]" for i in range(len(given))]
    return same_dtype(where, *[as_tensor(x, where, n) for x, n in zip(given, names, strict=True)], names=names)


def _concat(tensors: Any, axis: int = 0) -> Tensor:
    """Put tensors one after another along an axis.

    Args:
        tensors: a tuple or list of tensors whose shapes differ at most along ``axis``; dtypes are promoted.
        axis: the axis; also called ``dim``.

    Raises:
        ShapeError: the shapes do not fit, or the tensors are zero-dimensional.
        ArgumentValueError: there is no tensor.

    >>> import mycelia as ms
    >>> print(ms.ops.concat((ms.Tensor([1, 2]), ms.Tensor([3]))))
    [1 2 3]
    """
    parts = _parts(tensors, "concat")
    return one(concat_p, *parts, axis=as_axis(axis, parts[0].ndim, "concat"))


_concat.__name__ = _concat.__qualname__ = "concat"
concat = operator(aliases=("cat",))(renaming(_concat, dim="axis"))
cat = concat


def _stack(tensors: Any, axis: int = 0) -> Tensor:
    """Put tensors of one shape together along a new axis.

    Args:
        tensors: a tuple or list of tensors, or a single one; dtypes are promoted.
        axis: where the new axis stands in the result; also called ``dim``.

    Raises:
        ShapeError: the shapes differ.
        OutOfRangeError: there is no such place.

    >>> import mycelia as ms
    >>> print(ms.ops.stack((ms.Tensor([1, 2]), ms.Tensor([3, 4]))))
    [[1 2]
     [3 4]]
    """
    parts = (tensors,) if isinstance(tensors, Tensor) else _parts(tensors, "stack")
    return one(stack_p, *parts, axis=as_axis(axis, parts[0].ndim + 1, "stack"))


_stack.__name__ = _stack.__qualname__ = "stack"
stack = operator()(renaming(_stack, dim="axis"))


@operator()
def hstack(tensors: Any) -> Tensor:
    """Put tensors one after another along the second axis; along the first if they have only one.

    >>> import mycelia as ms
    >>> print(ms.ops.hstack((ms.Tensor([1, 2]), ms.Tensor([3]))))
    [1 2 3]
    """
    parts = [atleast_1d(x) for x in _parts(tensors, "hstack")]
    return _concat(parts, 0 if parts[0].ndim == 1 else 1)


@operator(aliases=("row_stack",))
def vstack(inputs: Any) -> Tensor:
    """Put tensors one below another, each a row if it has one axis.

    >>> import mycelia as ms
    >>> print(ms.ops.vstack((ms.Tensor([1, 2]), ms.Tensor([3, 4]))))
    [[1 2]
     [3 4]]
    """
    return _concat([atleast_2d(x) for x in _parts(inputs, "vstack")], 0)


@operator()
def dstack(tensors: Any) -> Tensor:
    """Put tensors together along the third axis.

    >>> import mycelia as ms
    >>> print(ms.ops.dstack((ms.Tensor([1, 2]), ms.Tensor([3, 4]))))
    [[[1 3]
      [2 4]]]
    """
    return _concat([atleast_3d(x) for x in _parts(tensors, "dstack")], 2)


@operator()
def column_stack(tensors: Any) -> Tensor:
    """Put tensors side by side, each a column if it has one axis.

    >>> import mycelia as ms
    >>> print(ms.ops.column_stack((ms.Tensor([1, 2]), ms.Tensor([3, 4]))))
    [[1 3]
     [2 4]]
    """
    parts = _parts(tensors, "column_stack")
    return _concat([reshaped(x, (x.size, 1)) if x.ndim < 2 else x for x in parts], 1)


@operator()
def block_diag(*inputs: Any) -> Tensor:
    """A matrix with the given matrices along its diagonal and zeros elsewhere.

    Args:
        inputs: matrices; a vector is a row, a number a 1x1 matrix.

    Raises:
        ShapeError: more than two axes.

    >>> import mycelia as ms
    >>> print(ms.ops.block_diag(ms.Tensor([[1, 2]]), ms.Tensor(3)))
    [[1 2 0]
     [0 0 3]]
    """
    blocks = [atleast_2d(x) for x in _parts(inputs, "block_diag")]
    for i, b in enumerate(blocks):
        if b.ndim != 2:
            raise ShapeError("block_diag", f"inputs[{i}]", got=f"shape {b.shape}", takes="at most two axes")
    width = sum([b.shape[1] for b in blocks])
    rows, left = [], 0
    for b in blocks:
        rows.append(pad_zeros(b, ((0, 0), (left, width - left - b.shape[1]))))
        left += b.shape[1]
    return _concat(rows, 0)


@operator()
def tuple_to_array(input_x: Any) -> Tensor:
    """A vector of Python numbers: int32 if all are ints, else float32.

    Args:
        input_x: a tuple of numbers.

    Raises:
        ArgumentTypeError: not a tuple or list of numbers.

    >>> import mycelia as ms
    >>> print(ms.ops.tuple_to_array((1, 2, 3)))
    [1 2 3]
    """
    numbers = isinstance(input_x, (tuple, list)) and all([isinstance(v, (int, float)) for v in input_x])
    if not numbers:
        raise ArgumentTypeError("tuple_to_array", "input_x", got=repr(input_x), takes="a tuple of numbers")
    whole = all([isinstance(v, int) for v in input_x])
    return constant(np.array(input_x, np.int32 if whole else np.float32))


# taking apart


def _on_axis(input: Any, axis: Any, where: str, argument: str = "axis") -> tuple[Tensor, int]:
    x = as_tensor(input, where)
    if x.ndim == 0:
        raise ShapeError(where, "input", got="a zero-dimensional tensor", takes="at least one axis")
    return x, as_axis(axis, x.ndim, where, argument)


def _in_sizes(x: Tensor, axis: int, size: int) -> tuple[Tensor, ...]:
    length = x.shape[axis]
    count = max(-(-length // size), 1)
    sizes = (size,) * (count - 1) + (length - size * (count - 1),)
    return (x,) if count == 1 else several(split_p, x, axis=axis, sizes=sizes)


def _split(tensor: Any, split_size_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Cut a tensor into parts along an axis.

    Args:
        tensor: a tensor of at least one axis.
        split_size_or_sections: the length of each part (the last one may be shorter), or all lengths.
        axis: the axis; also called ``dim``.

    Raises:
        ShapeError: the lengths do not add up to that of the axis.
        ArgumentValueError: a length is negative, or 0 for an int.

    >>> import mycelia as ms
    >>> [x.shape for x in ms.ops.split(ms.ops.ones((5,)), 2)]
    [(2,), (2,), (1,)]
    """
    x, place = _on_axis(tensor, axis, "split")
    if isinstance(split_size_or_sections, (tuple, list)):
        sizes = as_shape(split_size_or_sections, "split", "split_size_or_sections")
        return several(split_p, x, axis=place, sizes=sizes)
    size = as_int(split_size_or_sections, "split", "split_size_or_sections")
    if size < 1:
        raise ArgumentValueError("split", "split_size_or_sections", got=str(size), takes="an int of at least 1")
    return _in_sizes(x, place, size)


_split.__name__ = _split.__qualname__ = "split"
split = operator()(renaming(_split, dim="axis", split_size="split_size_or_sections"))
attach("split", split)


def _chunk(input: Any, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """Cut a tensor into at most ``chunks`` parts of equal length; the last one may be shorter.

    Args:
        input: a tensor of at least one axis.
        chunks: how many parts at most.
        axis: the axis; also called ``dim``.

    Raises:
        ArgumentValueError: ``chunks`` is less than 1.

    >>> import mycelia as ms
    >>> [x.shape for x in ms.ops.chunk(ms.ops.ones((5,)), 2)]
    [(3,), (2,)]
    """
    x, place = _on_axis(input, axis, "chunk")
    count = as_int(chunks, "chunk", "chunks")
    if count < 1:
        raise ArgumentValueError("chunk", "chunks", got=str(count), takes="an int of at least 1")
    return _in_sizes(x, place, max(-(-x.shape[place] // count), 1))


_chunk.__name__ = _chunk.__qualname__ = "chunk"
chunk = operator(methods=True)(renaming(_chunk, dim="axis"))


def _cut_at(x: Tensor, axis: int, places: Sequence[int]) -> tuple[Tensor, ...]:
    """Python slices between the given places; they may overlap or lie outside."""
    length = x.shape[axis]
    bounds = [0, *[min(max(p + length if p < 0 else p, 0), length) for p in places], length]
    pairs = list(pairwise(bounds))
    if all([a <= b for a, b in pairs]):
        return several(split_p, x, axis=axis, sizes=tuple([b - a for a, b in pairs]))
    return tuple([narrowed(x, axis, a, max(b - a, 0)) for a, b in pairs])


def _tensor_split(
    input: Any, indices_or_sections: Any, axis: int = 0, where: str = "tensor_split"
) -> tuple[Tensor, ...]:
    x, place = _on_axis(input, axis, where)
    if isinstance(indices_or_sections, (tuple, list)) or (
        isinstance(indices_or_sections, Tensor) and indices_or_sections.ndim
    ):
        return _cut_at(x, place, as_shape(indices_or_sections, where, "indices_or_sections", minimum=-(2**62)))
    count = as_int(indices_or_sections, where, "indices_or_sections")
    if count < 1:
        raise ArgumentValueError(where, "indices_or_sections", got=str(count), takes="an int of at least 1")
    size, longer = divmod(x.shape[place], count)
    return several(split_p, x, axis=place, sizes=(size + 1,) * longer + (size,) * (count - longer))


@operator(methods=True)
def tensor_split(input: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Cut a tensor into parts along an axis.

    Args:
        input: a tensor of at least one axis.
        indices_or_sections: a number of parts, the first ones longer by one if need be; or the places to cut at.
        axis: the axis.

    Raises:
        ArgumentValueError: the number of parts is less than 1.

    >>> import mycelia as ms
    >>> [x.shape for x in ms.ops.tensor_split(ms.ops.ones((5,)), 3)]
    [(2,), (2,), (1,)]
    """
    return _tensor_split(input, indices_or_sections, axis)


@operator(methods=True)
def hsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Cut a tensor along its second axis (the first if there is only one); see :func:`tensor_split`.

    >>> import mycelia as ms
    >>> [x.shape for x in ms.ops.hsplit(ms.ops.ones((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    x = as_tensor(input, "hsplit")
    return _tensor_split(x, indices_or_sections, min(x.ndim - 1, 1), "hsplit")


def _split_along(input: Any, indices_or_sections: Any, axis: int, where: str) -> tuple[Tensor, ...]:
    x = as_tensor(input, where)
    if x.ndim <= axis:
        raise ShapeError(where, "input", got=f"shape {x.shape}", takes=f"at least {axis + 1} axes")
    return _tensor_split(x, indices_or_sections, axis, where)


@operator(methods=True)
def vsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Cut a tensor of at least two axes along its first axis; see :func:`tensor_split`.

    >>> import mycelia as ms
    >>> [x.shape for x in ms.ops.vsplit(ms.ops.ones((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    x = as_tensor(input, "vsplit")
    if x.ndim < 2:
        raise ShapeError("vsplit", "input", got=f"shape {x.shape}", takes="at least two axes")
    return _tensor_split(x, indices_or_sections, 0, "vsplit")


@operator(methods=True)
def dsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Cut a tensor of at least three axes along its third axis; see :func:`tensor_split`.

    >>> import mycelia as ms
    >>> [x.shape for x in ms.ops.dsplit(ms.ops.ones((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _split_along(input, indices_or_sections, 2, "dsplit")


@operator()
def unstack(input_x: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, without that axis.

    Args:
        input_x: a tensor of at least one axis.
        axis: the axis.

    Raises:
        OutOfRangeError: there is no such axis.

    >>> import mycelia as ms
    >>> print(ms.ops.unstack(ms.Tensor([[1, 2], [3, 4]]))[1])
    [3 4]
    """
    x, place = _on_axis(input_x, axis, "unstack")
    return several(unstack_p, x, axis=place) if x.shape[place] else ()


@operator(methods=True)
def unbind(input: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, without that axis; like :func:`unstack`.

    >>> import mycelia as ms
    >>> print(ms.ops.unbind(ms.Tensor([[1, 2], [3, 4]]))[1])
    [3 4]
    """
    x, place = _on_axis(input, dim, "unbind", "dim")
    return several(unstack_p, x, axis=place) if x.shape[place] else ()
