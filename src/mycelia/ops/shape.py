"""Operators that give elements another shape or order of axes: reshape, transpose, broadcast.

All of them are made of three primitives: ``reshape`` keeps the row-major order, ``transpose`` permutes
axes, ``broadcast_to`` repeats along axes of length 1.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from jax import lax

from mycelia.core.dtypes import DType
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, conj, sum_to
from mycelia.ops.keywords import as_keyword, renaming
from mycelia.ops.operands import as_axis, as_shape, as_tensor, broadcast_shapes, varargs
from mycelia.ops.outputs import one
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import scalar

_CUBE = np.arange(24.0).reshape(2, 3, 4)


# reshape


def _infer_reshape(x: TensorType, *, shape: tuple[int, ...]) -> TensorType:
    if prod(shape) != x.size:
        raise ShapeError(
            "reshape", "shape", got=f"{shape} ({prod(shape)} elements)", takes=f"{x.size} elements, as {x.shape} has"
        )
    return TensorType(x.dtype, shape)


reshape_p: Primitive = Primitive(
    "reshape", infer=_infer_reshape, lower=lambda x, *, shape: x.reshape(shape),
    vjp=lambda ct, x, out, *, shape: [reshaped(ct, x.shape)], onnx="Reshape",
    samples=lambda: [
        Sample((_CUBE,), {"shape": (4, 6)}), Sample((np.array(3.0),), {"shape": (1, 1)}),
        Sample((np.zeros((0, 2)),), {"shape": (2, 0, 5)}), Bad((_CUBE,), {"shape": (5, 5)}, ShapeError, "24 elements"),
    ],
)  # fmt: skip


def reshaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """``x`` under a (canonical) shape of as many elements."""
    return x if x.shape == shape else one(reshape_p, x, shape=shape)


@operator()
def reshape(input: Any, shape: Any) -> Tensor:
    """The same elements in row-major order under another shape.

    Args:
        input: a tensor of any shape.
        shape: the new lengths; one of them may be -1 and is computed.

    Raises:
        ShapeError: the number of elements would change.
        ArgumentValueError: more than one -1, or a length below -1.

    >>> import mycelia as ms
    >>> ms.ops.reshape(ms.Tensor([[1, 2], [3, 4]]), (4,)).shape
    (4,)
    """
    x = input if isinstance(input, Tensor) else as_tensor(input, "reshape")
    dims = as_shape(shape, "reshape", minimum=-1)
    if -1 in dims:
        if dims.count(-1) > 1:
            raise ArgumentValueError("reshape", "shape", got=str(dims), takes="at most one -1")
        rest = -prod(dims)
        if rest == 0 or x.size % rest:
            raise ShapeError(
                "reshape", "shape", got=str(dims), takes=f"lengths that divide the {x.size} elements of shape {x.shape}"
            )
        dims = tuple([x.size // rest if d == -1 else d for d in dims])
    return reshaped(x, dims)


def _reshape_method(self: Tensor, *shape: Any) -> Tensor:
    return reshape(self, varargs(shape))


attach("reshape", as_keyword(_reshape_method, "shape"))
attach("view", as_keyword(_reshape_method, "shape"))


@operator(methods=True)
def reshape_as(input: Any, other: Tensor) -> Tensor:
    """``input`` under the shape of ``other``.

    >>> import mycelia as ms
    >>> ms.ops.reshape_as(ms.Tensor([1, 2, 3, 4]), ms.Tensor([[1, 2], [3, 4]])).shape
    (2, 2)
    """
    return reshape(input, as_tensor(other, "reshape_as", "other").shape)


@operator(methods=True)
def view_as(input: Any, other: Tensor) -> Tensor:
    """``input`` under the shape of ``other``; like :func:`reshape_as`.

    >>> import mycelia as ms
    >>> ms.ops.view_as(ms.Tensor([1, 2, 3, 4]), ms.Tensor([[1, 2], [3, 4]])).shape
    (2, 2)
    """
    return reshape(input, as_tensor(other, "view_as", "other").shape)


@operator(methods=True)
def ravel(input: Any) -> Tensor:
    """All elements in row-major order along one axis.

    >>> import mycelia as ms
    >>> print(ms.ops.ravel(ms.Tensor([[1, 2], [3, 4]])))
    [1 2 3 4]
    """
    x = as_tensor(input, "ravel")
    return reshape(x, (x.size,))


@operator()
def flatten(input: Any, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Merge the axes from ``start_dim`` to ``end_dim`` into one.

    Args:
        input: a tensor; a zero-dimensional one gets one axis.
        order: ``"C"`` keeps the row-major order of elements, ``"F"`` takes them column by column (of the
            tensor with its axes reversed).
        start_dim: first axis to merge.
        end_dim: last axis to merge.

    Raises:
        ArgumentValueError: ``order`` is neither, or the last axis stands before the first.
        OutOfRangeError: there is no such axis.

    >>> import mycelia as ms
    >>> ms.ops.flatten(ms.ops.ones((2, 3, 4))).shape
    (2, 12)
    """
    x = as_tensor(input, "flatten")
    if order not in ("C", "F"):
        raise ArgumentValueError("flatten", "order", got=repr(order), takes='"C" or "F"')
    if order == "F":
        x = transpose(x, tuple(range(x.ndim - 1, -1, -1)))
    if x.ndim == 0:
        return reshape(x, (1,))
    if start_dim == 1 and x.ndim == 1:
        start_dim = 0
    first, last = as_axis(start_dim, x.ndim, "flatten", "start_dim"), as_axis(end_dim, x.ndim, "flatten", "end_dim")
    if first > last:
        raise ArgumentValueError(
            "flatten",
            "start_dim",
            got=str(start_dim),
            takes=f"an axis not after 'end_dim', {end_dim}, of {x.ndim} axes",
        )
    return reshape(x, (*x.shape[:first], prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))


def _flatten_method(self: Tensor, order: Any = "C", end_dim: Any = -1, *, start_dim: int = 0) -> Tensor:
    """Merge axes into one: ``flatten(order="C", *, start_dim=0, end_dim=-1)`` or ``flatten(start_dim, end_dim)``."""
    if not isinstance(order, str):
        order, start_dim = "C", order
    return flatten(self, order, start_dim=start_dim, end_dim=end_dim)


attach("flatten", _flatten_method)


# transpose


def _infer_transpose(x: TensorType, *, perm: tuple[int, ...]) -> TensorType:
    return TensorType(x.dtype, tuple([x.shape[i] for i in perm]))


def _inverse(perm: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argsort(perm))


transpose_p: Primitive = Primitive(
    "transpose", infer=_infer_transpose, lower=lambda x, *, perm: lax.transpose(x, perm),
    vjp=lambda ct, x, out, *, perm: [one(transpose_p, ct, perm=_inverse(perm))], onnx="Transpose",
    samples=lambda: [Sample((_CUBE,), {"perm": (2, 0, 1)}), Sample((np.zeros((0, 2)),), {"perm": (1, 0)})],
)  # fmt: skip


def permuted(x: Tensor, perm: tuple[int, ...]) -> Tensor:
    """``x`` with its axes in the (canonical) order ``perm``."""
    return x if perm == tuple(range(len(perm))) else one(transpose_p, x, perm=perm)


def _permute(x: Tensor, given: Any, where: str, argument: str) -> Tensor:
    order = as_shape(given, where, argument, minimum=-max(x.ndim, 1))
    perm = tuple([as_axis(a, x.ndim, where, argument) for a in order])
    if sorted(perm) != list(range(x.ndim)):
        raise ArgumentValueError(
            where, argument, got=str(order), takes=f"each of the {x.ndim} axes of shape {x.shape} once"
        )
    return permuted(x, perm)


def _transpose(input: Any, input_perm: Any) -> Tensor:
    """Reorder the axes.

    Args:
        input: a tensor.
        input_perm: for each axis of the result, the axis of ``input`` it is; also called ``dims``.

    Raises:
        ArgumentValueError: not a permutation of the axes.

    >>> import mycelia as ms
    >>> ms.ops.transpose(ms.ops.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return _permute(as_tensor(input, "transpose"), input_perm, "transpose", "input_perm")


_transpose.__name__ = _transpose.__qualname__ = "transpose"
transpose = operator()(renaming(_transpose, dims="input_perm", perm="input_perm"))


def _permute_function(input: Any, axis: Any) -> Tensor:
    """Reorder the axes; like :func:`transpose`.

    Args:
        input: a tensor.
        axis: for each axis of the result, the axis of ``input`` it is; also called ``dims``.

    >>> import mycelia as ms
    >>> ms.ops.permute(ms.ops.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return _permute(as_tensor(input, "permute"), axis, "permute", "axis")


_permute_function.__name__ = _permute_function.__qualname__ = "permute"
permute = operator()(renaming(_permute_function, dims="axis"))


def _reversed_axes(x: Tensor) -> Tensor:
    return permuted(x, tuple(range(x.ndim - 1, -1, -1)))


def _permute_method(self: Tensor, *axis: Any, dims: Any = None) -> Tensor:
    """Reorder the axes: ``permute(2, 0, 1)`` or ``permute((2, 0, 1))``; without axes, reverse them."""
    given = varargs(axis) if axis else dims
    return _reversed_axes(self) if given is None else _permute(self, given, "Tensor.permute", "axis")


def _transpose_method(self: Tensor, *axes: Any, dim0: Any = None, dim1: Any = None) -> Tensor:
    """Reorder the axes: ``transpose(2, 0, 1)`` or a tuple; two ints swap those two axes; none reverses all."""
    if dim0 is not None or dim1 is not None:
        axes = (*axes, *(d for d in (dim0, dim1) if d is not None))
    if not axes or axes == (None,):
        return _reversed_axes(self)
    if len(axes) == 2 and not isinstance(axes[0], (tuple, list)):
        return _swap(self, axes[0], axes[1], "Tensor.transpose", ("dim0", "dim1"))
    return _permute(self, varargs(axes), "Tensor.transpose", "axes")


attach("permute", _permute_method)
attach("transpose", _transpose_method)


def _swap(x: Tensor, axis0: Any, axis1: Any, where: str, names: tuple[str, str]) -> Tensor:
    a, b = as_axis(axis0, x.ndim, where, names[0]), as_axis(axis1, x.ndim, where, names[1])
    if a == b:
        return x
    perm = list(range(x.ndim))
    perm[a], perm[b] = b, a
    return one(transpose_p, x, perm=tuple(perm))


@operator(methods=True)
def swapaxes(input: Any, axis0: int, axis1: int) -> Tensor:
    """Exchange two axes.

    Args:
        input: a tensor.
        axis0: one axis.
        axis1: the other.

    Raises:
        OutOfRangeError: there is no such axis.

    >>> import mycelia as ms
    >>> ms.ops.swapaxes(ms.ops.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    return _swap(as_tensor(input, "swapaxes"), axis0, axis1, "swapaxes", ("axis0", "axis1"))


@operator(methods=True)
def swapdims(input: Any, dim0: int, dim1: int) -> Tensor:
    """Exchange two axes; like :func:`swapaxes`.

    >>> import mycelia as ms
    >>> ms.ops.swapdims(ms.ops.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    return _swap(as_tensor(input, "swapdims"), dim0, dim1, "swapdims", ("dim0", "dim1"))


def _move(x: Tensor, source: Any, destination: Any, where: str) -> Tensor:
    sources, targets = (
        as_shape(source, where, "source", minimum=-x.ndim),
        as_shape(destination, where, "destination", minimum=-x.ndim),
    )
    if len(sources) != len(targets):
        raise ArgumentValueError(
            where, "destination", got=f"{len(targets)} axes", takes=f"as many as 'source', {len(sources)}"
        )
    src = [as_axis(a, x.ndim, where, "source") for a in sources]
    dst = [as_axis(a, x.ndim, where, "destination") for a in targets]
    for found, given, name in ((src, sources, "source"), (dst, targets, "destination")):
        if len(set(found)) != len(found):
            raise ArgumentValueError(where, name, got=str(given), takes="each axis once")
    order = [i for i in range(x.ndim) if i not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return permuted(x, tuple(order))


@operator(methods=True)
def movedim(x: Any, source: Any, destination: Any) -> Tensor:
    """Move axes to other places; the others keep their order.

    Args:
        x: a tensor.
        source: an axis or several.
        destination: where each of them goes.

    Raises:
        ArgumentValueError: an axis twice, or different numbers of axes.

    >>> import mycelia as ms
    >>> ms.ops.movedim(ms.ops.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return _move(as_tensor(x, "movedim"), source, destination, "movedim")


@operator(methods=True)
def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
    """Move axes to other places; like :func:`movedim`.

    >>> import mycelia as ms
    >>> ms.ops.moveaxis(ms.ops.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return _move(as_tensor(x, "moveaxis"), source, destination, "moveaxis")


@operator(methods=True)
def t(input: Any) -> Tensor:
    """The transpose of a matrix; a tensor of any other rank as it is.

    >>> import mycelia as ms
    >>> ms.ops.t(ms.ops.ones((2, 3))).shape
    (3, 2)
    """
    x = as_tensor(input, "t")
    return one(transpose_p, x, perm=(1, 0)) if x.ndim == 2 else x


@operator(methods=True)
def adjoint(x: Any) -> Tensor:
    """The conjugate transpose of the matrices in the last two axes.

    Raises:
        ShapeError: fewer than two axes.

    >>> import mycelia as ms
    >>> ms.ops.adjoint(ms.ops.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    return _matrices_transposed(as_tensor(x, "adjoint"), "adjoint", conjugate=True)


def _matrices_transposed(x: Tensor, where: str, conjugate: bool) -> Tensor:
    if x.ndim < 2:
        raise ShapeError(where, "x", got=f"shape {x.shape}", takes="at least two axes")
    swapped = _swap(x, x.ndim - 2, x.ndim - 1, where, ("x", "x"))
    return conj(swapped) if conjugate else swapped


def _hermitian(x: Tensor) -> Tensor:
    if x.ndim not in (0, 2):
        raise ShapeError("Tensor.H", "self", got=f"shape {x.shape}", takes="a matrix", hint="use x.mH for batches")
    return _matrices_transposed(x, "Tensor.H", conjugate=True) if x.ndim else conj(x)


for _name, _get, _doc in (
    ("T", _reversed_axes, "The tensor with its axes in reverse order."),
    ("mT", lambda x: _matrices_transposed(x, "Tensor.mT", False), "The matrices in the last two axes transposed."),
    ("mH", lambda x: _matrices_transposed(x, "Tensor.mH", True), "The conjugate transpose of the last two axes."),
    ("H", _hermitian, "The conjugate transpose of a matrix."),
):
    attach(_name, property(_get, doc=_doc))  # type: ignore[arg-type]


# broadcast


def _infer_broadcast(x: TensorType, *, shape: tuple[int, ...]) -> TensorType:
    extra = len(shape) - x.rank
    fits = extra >= 0 and all(d in (1, s) for d, s in zip(x.shape, shape[extra:], strict=True))
    if not fits:
        raise ShapeError("broadcast_to", "shape", got=str(shape), takes=f"a shape that {x.shape} broadcasts to")
    return TensorType(x.dtype, shape)


def _lower_broadcast(x: Any, *, shape: tuple[int, ...]) -> Any:
    extra = len(shape) - x.ndim
    return lax.broadcast_in_dim(x, shape, tuple(range(extra, len(shape))))


broadcast_to_p: Primitive = Primitive(
    "broadcast_to", infer=_infer_broadcast, lower=_lower_broadcast, onnx="Expand",
    vjp=lambda ct, x, out, *, shape: [sum_to(ct, x.shape)],
    samples=lambda: [
        Sample((np.array([[1.0], [2.0]]),), {"shape": (3, 2, 4)}), Sample((np.array(2.0),), {"shape": (0, 2)}),
        Bad((np.zeros((2, 3)),), {"shape": (2, 4)}, ShapeError, "broadcasts to"),
    ],
)  # fmt: skip


def filled(value: Any, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    """A tensor of one number, broadcast from a single element."""
    x = scalar(value, dtype)
    return one(broadcast_to_p, x, shape=shape) if shape else x


def _broadcast(x: Tensor, shape: Any, where: str, argument: str) -> Tensor:
    dims = as_shape(shape, where, argument, minimum=-1)
    if -1 in dims:
        extra = len(dims) - x.ndim
        if extra < 0 or -1 in dims[:extra]:
            raise ArgumentValueError(
                where, argument, got=str(dims), takes=f"-1 only for one of the axes of shape {x.shape}"
            )
        dims = tuple([x.shape[i - extra] if d == -1 else d for i, d in enumerate(dims)])
    return x if dims == x.shape else one(broadcast_to_p, x, shape=dims)


@operator()
def broadcast_to(input: Any, shape: Any) -> Tensor:
    """Repeat along axes of length 1, and new leading axes, up to ``shape``; -1 keeps a length.

    Args:
        input: a tensor.
        shape: the lengths of the result.

    Raises:
        ShapeError: ``input`` does not broadcast to ``shape``.

    >>> import mycelia as ms
    >>> ms.ops.broadcast_to(ms.Tensor([1, 2]), (3, 2)).shape
    (3, 2)
    """
    return _broadcast(
        input if isinstance(input, Tensor) else as_tensor(input, "broadcast_to"), shape, "broadcast_to", "shape"
    )


@operator()
def expand(input_x: Any, size: Any) -> Tensor:
    """Broadcast to a shape; like :func:`broadcast_to`.

    >>> import mycelia as ms
    >>> ms.ops.expand(ms.Tensor([[1], [2]]), (-1, 3)).shape
    (2, 3)
    """
    return _broadcast(as_tensor(input_x, "expand", "input_x"), size, "expand", "size")


def _broadcast_method(self: Tensor, *shape: Any) -> Tensor:
    """Broadcast to a shape, given as ints or one tuple; -1 keeps a length."""
    return _broadcast(self, varargs(shape), "Tensor.broadcast_to", "shape")


attach("broadcast_to", as_keyword(_broadcast_method, "shape"))
attach("expand", as_keyword(_broadcast_method, "size"))


@operator(methods=True)
def expand_as(input: Any, other: Tensor) -> Tensor:
    """Broadcast to the shape of ``other``.

    >>> import mycelia as ms
    >>> ms.ops.expand_as(ms.Tensor([1, 2]), ms.ops.ones((3, 2))).shape
    (3, 2)
    """
    return _broadcast(as_tensor(input, "expand_as"), as_tensor(other, "expand_as", "other").shape, "expand_as", "other")


@operator()
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Tensors broadcast to their common shape.

    Args:
        tensors: tensors, or one list of them.

    Raises:
        ShapeError: two shapes do not broadcast.

    >>> import mycelia as ms
    >>> [x.shape for x in ms.ops.broadcast_tensors(ms.Tensor([1, 2]), ms.Tensor([[1], [2]]))]
    [(2, 2), (2, 2)]
    """
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    made = [as_tensor(x, "broadcast_tensors", f"tensors[{i}]") for i, x in enumerate(given)]
    shape = broadcast_shapes("broadcast_tensors", [x.shape for x in made], [f"tensors[{i}]" for i in range(len(made))])
    return tuple([_broadcast(x, shape, "broadcast_tensors", "tensors") for x in made])
