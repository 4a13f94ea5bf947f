"""Tensors made from nothing: zeros, ones, full, arange, linspace, eye, index grids.

Each is a primitive without inputs whose attributes say all, so a graph stores no elements. Run at once, the
elements come from NumPy: nothing has to be compiled for each new shape. Both ways compute sequences in
double precision and round once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType, as_dtype
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import attach_in_place
from mycelia.ops.declare import Sample
from mycelia.ops.keywords import renaming
from mycelia.ops.operands import as_int, as_shape, as_tensor, cast, varargs
from mycelia.ops.registry import attach, operator
from mycelia.ops.shape import broadcast_to, reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant, scalar
from mycelia.tensor.mode import is_staging
from mycelia.tensor.tensor import to_numpy

_Array = np.ndarray[Any, Any]


def generator(
    name: str,
    lower: Callable[..., Any],
    at_once: Callable[..., _Array],
    shape: Callable[..., tuple[int, ...]],
    samples: Any,
) -> Callable[..., Tensor]:
    """Declare a primitive without inputs; gives the function that applies it.

    Args:
        name: the primitive's name.
        lower: from the attributes to an array in ``jax``.
        at_once: from the attributes to the same array in NumPy, used outside graphs.
        shape: from the attributes but ``dtype`` to the shape.
        samples: as in :class:`Primitive`.
    """

    def infer(*, dtype: DType, **attrs: Any) -> TensorType:
        return TensorType(dtype, shape(**attrs))

    primitive = Primitive(
        name, infer=infer, lower=lambda *, dtype, **attrs: lower(dtype=dtype, **attrs).astype(dtype.np),
        differentiable=False, shard="->...", samples=samples,
    )  # fmt: skip

    def make(*, dtype: DType, **attrs: Any) -> Tensor:
        if is_staging():
            return apply(primitive, dtype=dtype, **attrs)  # type: ignore[no-any-return]
        return constant(at_once(dtype=dtype, **attrs).astype(dtype.np, copy=False))

    return make


_full = generator(
    "full",
    lambda *, shape, value, dtype: lax.full(shape, value, dtype.np),
    lambda *, shape, value, dtype: np.full(shape, value, dtype.np),
    lambda *, shape, value: shape,
    lambda: [
        Sample((), {"shape": (2, 3), "value": 1.5, "dtype": dt.float32}),
        Sample((), {"shape": (), "value": 7, "dtype": dt.int64}),
        Sample((), {"shape": (0, 2), "value": True, "dtype": dt.bool_}),
        Sample((), {"shape": (2,), "value": math.nan, "dtype": dt.float16}),
        Sample((), {"shape": (2,), "value": 1 + 2j, "dtype": dt.complex64}),
    ],
)  # fmt: skip


def _full_of(shape: tuple[int, ...], value: Any, dtype: DType) -> Tensor:
    if value != value and not isinstance(value, complex):
        value = math.nan  # one NaN, so that equal graphs are equal
    if value == 0 and dtype.is_inexact and str(value)[0] == "-":
        return broadcast_to(scalar(value, dtype), shape)  # attributes cannot tell -0.0 from 0.0
    if dtype.kind in "iu" and isinstance(value, (int, float)):
        value = _fitted(value, dtype)
    return _full(shape=shape, value=value, dtype=dtype)


def _fitted(value: float, dtype: DType) -> int:
    """A number as an integer of a dtype: towards zero; refused where it does not fit."""
    bounds = np.iinfo(dtype.np)
    if value != value or not bounds.min <= value <= bounds.max:
        raise ArgumentValueError("full", "fill_value", got=str(value), takes=f"a value that fits {dtype}")
    return int(value)


def dtype_or(dtype: Any, default: DType, where: str) -> DType:
    """The dtype a user named, or the default for None; placeholders that hold no numbers are refused."""
    if dtype is None:
        return default
    made = dtype if type(dtype) is DType else as_dtype(dtype, where)
    if made.kind == "O":
        raise DTypeError(where, "dtype", got=str(made), takes="a numeric dtype")
    return made


@operator()
def zeros(size: Any, dtype: Any = None) -> Tensor:
    """A tensor of zeros.

    Args:
        size: the shape: an int, a list or tuple of ints, or an integer tensor.
        dtype: float32 by default.

    Raises:
        ArgumentValueError: a negative length.

    >>> import mycelia as ms
    >>> print(ms.ops.zeros((2, 3)))
    [[0. 0. 0.]
     [0. 0. 0.]]
    """
    return _full(shape=as_shape(size, "zeros", "size"), value=0, dtype=dtype_or(dtype, dt.float32, "zeros"))


def _ones(shape: Any, dtype: Any = None) -> Tensor:
    """A tensor of ones.

    Args:
        shape: an int, a list or tuple of ints, or an integer tensor; also called ``size``.
        dtype: float32 by default.

    >>> import mycelia as ms
    >>> print(ms.ops.ones(3, ms.int32))
    [1 1 1]
    """
    return _full(shape=as_shape(shape, "ones"), value=1, dtype=dtype_or(dtype, dt.float32, "ones"))


_ones.__name__ = "ones"
ones = operator()(renaming(_ones, size="shape"))


@operator()
def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """A tensor filled with one value.

    Args:
        size: the shape: an int, a list or tuple of ints, or an integer tensor.
        fill_value: a number, or a tensor of one element.
        dtype: by default that of the value: bool, int64, float32, complex64, or the tensor's.

    Raises:
        ArgumentValueError: a negative length, or a value that an integer dtype does not hold.

    >>> import mycelia as ms
    >>> print(ms.ops.full((2,), 7.5))
    [7.5 7.5]
    """
    made = None if dtype is None else dtype_or(dtype, dt.float32, "full")
    return _filled(as_shape(size, "full", "size"), fill_value, made, "full")


def _filled(shape: tuple[int, ...], value: Any, dtype: DType | None, where: str) -> Tensor:
    if isinstance(value, (bool, int, float, complex)) and type(value) in dt._PYTHON:
        return _full_of(shape, value, dtype or dt._PYTHON[type(value)])
    x = as_tensor(value, where, "fill_value")
    if x.size != 1:
        raise ShapeError(where, "fill_value", got=f"shape {x.shape}", takes="one element")
    return broadcast_to(reshape(x if dtype is None else cast(x, dtype), ()), shape)


@operator()
def zeros_like(input: Any, *, dtype: Any = None) -> Tensor:
    """Zeros in the shape of a tensor.

    Args:
        input: a tensor or number.
        dtype: by default the tensor's.

    >>> import mycelia as ms
    >>> print(ms.ops.zeros_like(ms.Tensor([1, 2])))
    [0 0]
    """
    x = as_tensor(input, "zeros_like")
    return _full(shape=x.shape, value=0, dtype=dtype_or(dtype, x.dtype, "zeros_like"))


@operator()
def ones_like(input: Any, *, dtype: Any = None) -> Tensor:
    """Ones in the shape of a tensor.

    Args:
        input: a tensor or number.
        dtype: by default the tensor's.

    >>> import mycelia as ms
    >>> print(ms.ops.ones_like(ms.Tensor([1.5, 2.5])))
    [1. 1.]
    """
    x = as_tensor(input, "ones_like")
    return _full(shape=x.shape, value=1, dtype=dtype_or(dtype, x.dtype, "ones_like"))


@operator()
def full_like(input: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """A tensor filled with one value, in the shape of another.

    Args:
        input: a tensor or number.
        fill_value: a number, or a tensor of one element.
        dtype: by default that of ``input``; a float for integers loses its fraction.

    >>> import mycelia as ms
    >>> print(ms.ops.full_like(ms.Tensor([1, 2]), 5))
    [5 5]
    """
    x = as_tensor(input, "full_like")
    return _filled(x.shape, fill_value, dtype_or(dtype, x.dtype, "full_like"), "full_like")


@operator()
def fill(type: Any, shape: Any, value: Any) -> Tensor:
    """A tensor of a dtype and shape filled with one value.

    >>> import mycelia as ms
    >>> print(ms.ops.fill(ms.float32, (2,), 3))
    [3. 3.]
    """
    return _filled(as_shape(shape, "fill"), value, dtype_or(type, dt.float32, "fill"), "fill")


@operator()
def fills(x: Any, value: Any) -> Tensor:
    """A tensor of the shape and dtype of ``x`` filled with one value.

    >>> import mycelia as ms
    >>> print(ms.ops.fills(ms.Tensor([1.0, 2.0]), 7))
    [7. 7.]
    """
    return full_like(x, value)


@operator()
def empty(*size: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor whose elements are to be overwritten; they are zeros.

    Args:
        size: the shape, as ints or one list or tuple.
        dtype: float32 by default.
        device: accepted for compatibility.

    >>> import mycelia as ms
    >>> ms.ops.empty(2, 3).shape
    (2, 3)
    """
    return _full(shape=as_shape(varargs(size), "empty", "size"), value=0, dtype=dtype_or(dtype, dt.float32, "empty"))


@operator()
def empty_like(input: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor in the shape of another whose elements are to be overwritten; they are zeros.

    >>> import mycelia as ms
    >>> ms.ops.empty_like(ms.Tensor([1, 2])).dtype
    mycelia.int64
    """
    return zeros_like(input, dtype=dtype)


_eye = generator(
    "eye",
    lambda *, n, m, dtype: jnp.eye(n, m, dtype=dtype.np),
    lambda *, n, m, dtype: np.eye(n, m, dtype=dtype.np),
    lambda *, n, m: (n, m),
    lambda: [
        Sample((), {"n": 2, "m": 3, "dtype": dt.float32}), Sample((), {"n": 0, "m": 2, "dtype": dt.int64}),
        Sample((), {"n": 2, "m": 2, "dtype": dt.bool_}),
    ],
)  # fmt: skip


@operator()
def eye(n: int, m: int | None = None, dtype: Any = None) -> Tensor:
    """A matrix with ones on the main diagonal and zeros elsewhere.

    Args:
        n: number of rows.
        m: number of columns; as many as rows by default.
        dtype: float32 by default.

    >>> import mycelia as ms
    >>> print(ms.ops.eye(2, 3, ms.int32))
    [[1 0 0]
     [0 1 0]]
    """
    rows, columns = as_shape((n, n if m is None else m), "eye", "n" if m is None else "n, m")
    return _eye(n=rows, m=columns, dtype=dtype_or(dtype, dt.float32, "eye"))


@operator()
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = dt.int64) -> Tensor:
    """The indices of the lower triangle of a matrix: a tensor of two rows, row numbers and column numbers.

    Args:
        row: number of rows of the matrix.
        col: number of columns of the matrix.
        offset: which diagonal ends the triangle; above the main one if positive.
        dtype: int64 by default.

    >>> import mycelia as ms
    >>> print(ms.ops.tril_indices(2, 2))
    [[0 1 1]
     [0 0 1]]
    """
    return _triangle("tril_indices", np.tril_indices, row, col, offset, dtype)


@operator()
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = dt.int64) -> Tensor:
    """The indices of the upper triangle of a matrix (see :func:`tril_indices`).

    >>> import mycelia as ms
    >>> print(ms.ops.triu_indices(2, 2))
    [[0 0 1]
     [0 1 1]]
    """
    return _triangle("triu_indices", np.triu_indices, row, col, offset, dtype)


def _triangle(where: str, find: Callable[..., Any], row: int, col: int, offset: int, dtype: Any) -> Tensor:
    rows, columns = as_shape((row, col), where, "row, col")
    found = find(rows, as_int(offset, where, "offset"), columns)
    return constant(np.stack(found).astype(dtype_or(dtype, dt.int64, where).np))


@operator()
def meshgrid(*inputs: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinate tensors of a grid from the coordinates along each axis.

    Args:
        inputs: vectors (or single numbers) of one dtype.
        indexing: ``"xy"`` swaps the first two axes, as plots have them; ``"ij"`` keeps the order of the inputs.

    Returns:
        As many tensors as inputs, each of the grid's shape.

    Raises:
        ArgumentValueError: another ``indexing``.
        ShapeError: an input has more than one axis.

    >>> import mycelia as ms
    >>> x, y = ms.ops.meshgrid(ms.Tensor([1, 2, 3]), ms.Tensor([4, 5]))
    >>> print(x)
    [[1 2 3]
     [1 2 3]]
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentValueError("meshgrid", "indexing", got=repr(indexing), takes='"xy" or "ij"')
    if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
        inputs = tuple(inputs[0])
    axes = [as_tensor(x, "meshgrid", f"inputs[{i}]") for i, x in enumerate(inputs)]
    for i, x in enumerate(axes):
        if x.ndim > 1:
            raise ShapeError("meshgrid", f"inputs[{i}]", got=f"shape {x.shape}", takes="a vector")
    order = [i for i, _ in enumerate(axes)]
    if indexing == "xy" and len(axes) > 1:
        order[:2] = [1, 0]
    grid = [axes[i].size for i in order]
    made = []
    for i, x in enumerate(axes):
        lengths = [1] * len(axes)
        lengths[order.index(i)] = x.size
        made.append(broadcast_to(reshape(x, tuple(lengths)), tuple(grid)))
    return tuple(made)


@operator()
def meshgrid_ext(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinate tensors of a grid, with ``"ij"`` indexing by default (see :func:`meshgrid`).

    >>> import mycelia as ms
    >>> ms.ops.meshgrid_ext(ms.Tensor([1, 2, 3]), ms.Tensor([4, 5]))[0].shape
    (3, 2)
    """
    return meshgrid(*tensors, indexing="ij" if indexing is None else indexing)


@operator()
def tensor(
    input_data: Any = None, dtype: Any = None, shape: Any = None, init: Any = None, const_arg: bool = False
) -> Tensor:
    """A new Tensor of data; the function form of :class:`Tensor`.

    >>> import mycelia as ms
    >>> print(ms.ops.tensor([1, 2]))
    [1 2]
    """
    return Tensor(input_data, dtype, shape, init, const_arg)


@operator()
def from_numpy(array: Any) -> Tensor:
    """A Tensor of a NumPy array, with its dtype.

    Raises:
        ArgumentTypeError: not a NumPy array.

    >>> import numpy as np
    >>> import mycelia as ms
    >>> print(ms.ops.from_numpy(np.array([1, 2])))
    [1 2]
    """
    return Tensor.from_numpy(array)


@operator()
def scalar_to_tensor(input_x: Any, dtype: Any = dt.float32) -> Tensor:
    """A tensor without axes of a Python number.

    Raises:
        ArgumentTypeError: not a number.

    >>> import mycelia as ms
    >>> print(ms.ops.scalar_to_tensor(3))
    3.0
    """
    if not isinstance(input_x, (bool, int, float)):
        raise ArgumentTypeError("scalar_to_tensor", "input_x", got=type(input_x).__name__, takes="a bool, int or float")
    return constant(to_numpy(input_x, dtype_or(dtype, dt.float32, "scalar_to_tensor"), "scalar_to_tensor", "input_x"))


@operator()
def eps(x: Any) -> Tensor:
    """The gap between 1 and the next larger number of the dtype of ``x``, in the shape of ``x``.

    Raises:
        DTypeError: the dtype is not a floating one.

    >>> import mycelia as ms
    >>> ms.ops.eps(ms.Tensor([1.0])).item() == 2.0**-23
    True
    """
    t = as_tensor(x, "eps", "x")
    if not t.dtype.is_floating:
        raise DTypeError("eps", "x", got=f"dtype {t.dtype}", takes="a floating dtype")
    return full_like(t, float(jnp.finfo(t.dtype.np).eps))  # type: ignore[no-untyped-call]


def _new_zeros(self: Tensor, size: Any, dtype: Any = None) -> Tensor:
    """Zeros of another shape, by default in the tensor's dtype."""
    return zeros(size, self.dtype if dtype is None else dtype)


def _new_ones(self: Tensor, size: Any, dtype: Any = None) -> Tensor:
    """Ones of another shape, by default in the tensor's dtype."""
    return _ones(size, self.dtype if dtype is None else dtype)


def _new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """One value in another shape, by default in the tensor's dtype."""
    return full(size, fill_value, dtype=self.dtype if dtype is None else dtype)


def _new_empty(self: Tensor, size: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of another shape to be overwritten, by default in the tensor's dtype; zeros."""
    return zeros(size, self.dtype if dtype is None else dtype)


def _fill_method(self: Tensor, value: Any) -> Tensor:
    """A tensor of the same shape and dtype filled with one value."""
    return full_like(self, value)


for _name, _method in (
    ("new_zeros", _new_zeros), ("new_ones", _new_ones), ("new_full", _new_full), ("new_empty", _new_empty),
    ("fill", _fill_method), ("fills", _fill_method),
):  # fmt: skip
    attach(_name, _method)
attach_in_place("fill_", full_like)
attach_in_place("zero_", zeros_like)
