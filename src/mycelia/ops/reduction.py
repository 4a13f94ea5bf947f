"""Operators that fold axes to one value each: sum, mean, prod, all, any, count_nonzero.

Sums and means of float16 and bfloat16 are accumulated in float32. The gradient of a product uses the
products of the elements before and after each one instead of a division, so it is right with zeros.
"""

from __future__ import annotations

from math import prod as _prod
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType, as_dtype
from mycelia.core.errors import ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes, conj, sum_to
from mycelia.ops.keywords import renaming
from mycelia.ops.operands import as_axes, as_shape, as_tensor, broadcast_shapes, cast, varargs
from mycelia.ops.outputs import one
from mycelia.ops.registry import attach, operator
from mycelia.ops.shape import broadcast_to_p, filled, permuted, reshaped
from mycelia.tensor import Tensor

_TABLE = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])
_ZEROS = np.array([[1.5, 0.0, 2.0], [0.0, 3.0, 0.0]])
_CUBE = np.linspace(-1.5, 2.0, 24).reshape(2, 3, 4)


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """The shape left when ``axes`` are folded."""
    if keepdims:
        return tuple([1 if i in axes else d for i, d in enumerate(shape)])
    return tuple([d for i, d in enumerate(shape) if i not in axes])


def spread(x: Tensor, shape: tuple[int, ...], axes: tuple[int, ...]) -> Tensor:
    """A folded tensor broadcast back over the axes it lost."""
    x = reshaped(x, reduced_shape(shape, axes, True))
    return x if x.shape == shape else one(broadcast_to_p, x, shape=shape)


def over(axes: tuple[int, ...], keepdims: bool = False) -> dict[str, Any]:
    """The attributes of a reduction."""
    return {"axes": axes, "keepdims": keepdims}


def _samples(*further: Any) -> Any:
    """Inputs for reductions that take every real and complex number."""
    return lambda: [
        Sample((_TABLE,), over((0,))), Sample((_TABLE,), over((0, 1), True)), Sample((_CUBE,), over((0, 2))),
        Sample((np.zeros((0, 3)),), over((0,))), Sample((np.zeros((0, 3)),), over((1,))),
        Sample((np.array(2.0),), over(())), *further,
    ]  # fmt: skip


# sum and mean


def _wide(x: Any) -> Any:
    """A 16-bit float array as float32, which it is accumulated in; any other as it is."""
    return x.astype(np.float32) if x.dtype in (dt.float16.np, dt.bfloat16.np) else x


def _infer_sum(x: TensorType, *, axes: tuple[int, ...], keepdims: bool) -> TensorType:
    check_dtypes("sum", (x,), dt.NUMBERS)
    return TensorType(x.dtype, reduced_shape(x.shape, axes, keepdims))


def _lower_sum(x: Any, *, axes: tuple[int, ...], keepdims: bool) -> Any:
    return jnp.sum(_wide(x), axis=axes, keepdims=keepdims, dtype=_wide(x).dtype).astype(x.dtype)


reduce_sum_p: Primitive = Primitive(
    "reduce_sum", infer=_infer_sum, lower=_lower_sum, onnx="ReduceSum",
    vjp=lambda ct, x, out, *, axes, keepdims: [spread(ct, x.shape, axes)],
    samples=_samples(Bad((np.array([True]),), over((0,)), TypeError, "Bool")),
)  # fmt: skip


def reduce_sum(x: Tensor, axes: tuple[int, ...], keepdims: bool = False) -> Tensor:
    """Sum over canonical axes in the tensor's own dtype; what rules are written with."""
    return one(reduce_sum_p, x, axes=axes, keepdims=keepdims)


def _count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    return _prod([shape[i] for i in axes])


def _infer_mean(x: TensorType, *, axes: tuple[int, ...], keepdims: bool) -> TensorType:
    check_dtypes("mean", (x,), dt.FLOATS + dt.COMPLEX)
    return TensorType(x.dtype, reduced_shape(x.shape, axes, keepdims))


def _lower_mean(x: Any, *, axes: tuple[int, ...], keepdims: bool) -> Any:
    return jnp.mean(_wide(x), axis=axes, keepdims=keepdims).astype(x.dtype)


reduce_mean_p: Primitive = Primitive(
    "reduce_mean", infer=_infer_mean, lower=_lower_mean, onnx="ReduceMean",
    vjp=lambda ct, x, out, *, axes, keepdims: [spread(ct / _count(x.shape, axes), x.shape, axes)],
    samples=_samples(Bad((np.array([1]),), over((0,)), TypeError, "Int64")),
)  # fmt: skip


# product


def _infer_prod(x: TensorType, *, axes: tuple[int, ...], keepdims: bool) -> TensorType:
    check_dtypes("prod", (x,), dt.NUMBERS)
    return TensorType(x.dtype, reduced_shape(x.shape, axes, keepdims))


def _lower_prod(x: Any, *, axes: tuple[int, ...], keepdims: bool) -> Any:
    return jnp.prod(_wide(x), axis=axes, keepdims=keepdims, dtype=_wide(x).dtype).astype(x.dtype)


def _products_of_others(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """For each element the product of all others along ``axes``."""
    from mycelia.ops.cumulative import cumprod_p

    kept = tuple([i for i in range(x.ndim) if i not in axes])
    perm = (*kept, *axes)
    moved = permuted(x, perm)
    row = reshaped(moved, (*[x.shape[i] for i in kept], _count(x.shape, axes)))
    axis = len(kept)
    before: Any = one(cumprod_p, row, axis=axis, exclusive=True, reverse=False)
    after = one(cumprod_p, row, axis=axis, exclusive=True, reverse=True)
    back = tuple(int(i) for i in np.argsort(perm))
    return permuted(reshaped(before * after, moved.shape), back)


def _vjp_prod(ct: Tensor, x: Tensor, out: Tensor, *, axes: tuple[int, ...], keepdims: bool) -> list[Any]:
    if not axes:
        return [ct]
    above: Any = spread(ct, x.shape, axes)
    return [above * conj(_products_of_others(x, axes))]


reduce_prod_p: Primitive = Primitive(
    "reduce_prod", infer=_infer_prod, lower=_lower_prod, vjp=_vjp_prod, onnx="ReduceProd",
    samples=_samples(
        Sample((_ZEROS,), over((1,))), Sample((_ZEROS,), over((0, 1), True)),
        Bad((np.array([True]),), over((0,)), TypeError, "Bool"),
    ),
)  # fmt: skip


# truth


def _infer_truth(where: str) -> Any:
    def infer(x: TensorType, *, axes: tuple[int, ...], keepdims: bool) -> TensorType:
        check_dtypes(where, (x,), (dt.bool_,))
        return TensorType(dt.bool_, reduced_shape(x.shape, axes, keepdims))

    return infer


_MIXED = np.array([[True, False, True], [True, True, True]])


def _truth_samples() -> list[Any]:
    return [
        Sample((_MIXED,), over((0,))), Sample((_MIXED,), over((1,), True)), Sample((_MIXED,), over((0, 1))),
        Sample((np.zeros((0, 3), bool),), over((0,))), Sample((np.array(False),), over(())),
        Bad((_TABLE,), over((0,)), TypeError, "Bool"),
    ]  # fmt: skip


reduce_all_p = Primitive(
    "reduce_all", infer=_infer_truth("all"), differentiable=False, samples=_truth_samples,
    lower=lambda x, *, axes, keepdims: jnp.all(x, axis=axes, keepdims=keepdims),
)  # fmt: skip
reduce_any_p = Primitive(
    "reduce_any", infer=_infer_truth("any"), differentiable=False, samples=_truth_samples,
    lower=lambda x, *, axes, keepdims: jnp.any(x, axis=axes, keepdims=keepdims),
)  # fmt: skip


def _infer_count(x: TensorType, *, axes: tuple[int, ...], keepdims: bool, dtype: DType) -> TensorType:
    return TensorType(dtype, reduced_shape(x.shape, axes, keepdims))


def _lower_count(x: Any, *, axes: tuple[int, ...], keepdims: bool, dtype: DType) -> Any:
    return jnp.sum(x != 0, axis=axes, keepdims=keepdims, dtype=jnp.int64).astype(dtype.np)


count_nonzero_p = Primitive(
    "count_nonzero", infer=_infer_count, lower=_lower_count, differentiable=False,
    samples=lambda: [
        Sample((_ZEROS,), {**over((0,)), "dtype": dt.int32}),
        Sample((_MIXED,), {**over((0, 1), True), "dtype": dt.int64}),
        Sample((np.array([np.nan, 0.0, -0.0]),), {**over((0,)), "dtype": dt.int32}),
        Sample((np.zeros((0, 3)),), {**over((0,)), "dtype": dt.int32}),
    ],
)  # fmt: skip


# public functions


def _counted(x: Tensor, dtype: Any, where: str) -> Tensor:
    """``x`` as the dtype it is summed in: the one asked for, int64 for bools and integers."""
    if dtype is not None:
        return cast(x, as_dtype(dtype, where))
    return cast(x, dt.int64) if not x.dtype.is_inexact and x.dtype is not dt.uint64 else x


@operator()
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Sum over axes.

    Args:
        input: a tensor of any shape; bools and integers are summed as int64 (uint64 as itself).
        dim: an axis or a tuple of axes; all of them by default.
        keepdim: keep folded axes with length 1.
        dtype: convert to this dtype first.

    Returns:
        A tensor without the folded axes; 0 where there was nothing to add.

    Raises:
        OutOfRangeError: there is no such axis.

    >>> import mycelia as ms
    >>> print(ms.ops.sum(ms.Tensor([[1, 2], [3, 4]]), 0))
    [4 6]
    """
    x = _counted(input if isinstance(input, Tensor) else as_tensor(input, "sum"), dtype, "sum")
    return one(reduce_sum_p, x, axes=as_axes(dim, x.ndim, "sum", "dim"), keepdims=bool(keepdim))


def _sum_method(
    input: Any, axis: Any = None, second: Any = None, keepdims: bool = False, initial: Any = None, *, dtype: Any = None
) -> Tensor:
    """Sum over axes: ``sum(axis, dtype, keepdims, initial)`` or ``sum(dim, keepdim, *, dtype)``.

    ``initial`` is added to the result.
    """
    if isinstance(second, bool):
        keepdims = second
    elif second is not None:
        dtype = second
    result: Any = sum(input, axis, keepdims, dtype=dtype)
    return result if initial is None else result + initial  # type: ignore[no-any-return]


attach("sum", renaming(_sum_method, dim="axis", keepdim="keepdims"))


def _inexact(input: Any, where: str, argument: str = "input") -> Tensor:
    x = input if isinstance(input, Tensor) else as_tensor(input, where, argument)
    return x if x.dtype.is_inexact else cast(x, dt.float32)


@operator()
def mean(x: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Arithmetic mean over axes.

    Args:
        x: a tensor of any shape; bools and integers give float32.
        axis: an axis or a tuple of axes; all of them by default.
        keep_dims: keep folded axes with length 1.

    Returns:
        A tensor without the folded axes; NaN where there was nothing to average.

    >>> import mycelia as ms
    >>> print(ms.ops.mean(ms.Tensor([[1.0, 2.0], [3.0, 4.0]]), 0))
    [2. 3.]
    """
    t = _inexact(x, "mean", "x")
    return one(reduce_mean_p, t, axes=as_axes(axis, t.ndim, "mean"), keepdims=bool(keep_dims))


def _mean_method(input: Any, axis: Any = None, keep_dims: bool = False, *, dtype: Any = None) -> Tensor:
    """Mean over axes: ``mean(axis, keep_dims)`` or ``mean(dim, keepdim, *, dtype)``."""
    return mean(input if dtype is None else cast(as_tensor(input, "mean"), as_dtype(dtype, "mean")), axis, keep_dims)


attach("mean", renaming(_mean_method, dim="axis", keepdim="keep_dims", keepdims="keep_dims"))


@operator()
def prod(input: Any, axis: Any = None, keep_dims: bool = False, dtype: DType | None = None) -> Tensor:
    """Product over axes.

    Args:
        input: a tensor of any shape; bools and integers are multiplied as int64 (uint64 as itself).
        axis: an axis or a tuple of axes; all of them by default.
        keep_dims: keep folded axes with length 1.
        dtype: convert to this dtype first.

    Returns:
        A tensor without the folded axes; 1 where there was nothing to multiply.

    >>> import mycelia as ms
    >>> print(ms.ops.prod(ms.Tensor([[1, 2], [3, 4]]), 1))
    [ 2 12]
    """
    x = _counted(input if isinstance(input, Tensor) else as_tensor(input, "prod"), dtype, "prod")
    return one(reduce_prod_p, x, axes=as_axes(axis, x.ndim, "prod"), keepdims=bool(keep_dims))


attach("prod", renaming(prod, dim="axis", keepdim="keep_dims", keepdims="keep_dims"))


def _truth(input: Any, where: str) -> Tensor:
    x = input if isinstance(input, Tensor) else as_tensor(input, where)
    return cast(x, dt.bool_)


@operator()
def all(input: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Whether all elements along axes are true (not zero).

    Args:
        input: a tensor of any dtype.
        axis: an axis or a tuple of axes; all of them by default.
        keep_dims: keep folded axes with length 1.

    Returns:
        A bool tensor; True where there was nothing to test.

    >>> import mycelia as ms
    >>> print(ms.ops.all(ms.Tensor([[True, False], [True, True]]), 1))
    [False  True]
    """
    x = _truth(input, "all")
    return one(reduce_all_p, x, axes=as_axes(axis, x.ndim, "all"), keepdims=bool(keep_dims))


@operator()
def any(input: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Whether any element along axes is true (not zero).

    Args:
        input: a tensor of any dtype.
        axis: an axis or a tuple of axes; all of them by default.
        keep_dims: keep folded axes with length 1.

    Returns:
        A bool tensor; False where there was nothing to test.

    >>> import mycelia as ms
    >>> print(ms.ops.any(ms.Tensor([[True, False], [False, False]]), 1))
    [ True False]
    """
    x = _truth(input, "any")
    return one(reduce_any_p, x, axes=as_axes(axis, x.ndim, "any"), keepdims=bool(keep_dims))


attach("all", renaming(all, dim="axis", keepdim="keep_dims", keepdims="keep_dims"))
attach("any", renaming(any, dim="axis", keepdim="keep_dims", keepdims="keep_dims"))


@operator()
def count_nonzero(x: Any, axis: Any = (), keep_dims: bool = False, dtype: Any = dt.int32) -> Tensor:
    """How many elements along axes are not zero; NaN is not zero.

    Args:
        x: a tensor of any dtype.
        axis: an axis or a tuple of axes; all of them by default.
        keep_dims: keep folded axes with length 1.
        dtype: the dtype of the result, int32 by default.

    >>> import mycelia as ms
    >>> print(ms.ops.count_nonzero(ms.Tensor([[0, 2], [3, 4]]), 0))
    [1 2]
    """
    t = as_tensor(x, "count_nonzero", "x")
    kind = dt.int32 if dtype is None else as_dtype(dtype, "count_nonzero")
    return one(count_nonzero_p, t, axes=as_axes(axis, t.ndim, "count_nonzero"), keepdims=bool(keep_dims), dtype=kind)


attach("count_nonzero", renaming(count_nonzero, dim="axis", keepdim="keep_dims"))


def _without_nan(x: Tensor) -> tuple[Tensor, Tensor]:
    """``x`` with zeros for NaN, and ones where there was a number."""
    from mycelia.ops.logical import isnan
    from mycelia.ops.selection import where

    missing = isnan(x)
    return where(missing, 0, x), where(missing, 0, filled(1, x.dtype, x.shape))


@operator()
def nansum(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Sum over axes with NaN counted as zero.

    Args:
        input: a real tensor; bools are summed as int64, integers as themselves.
        axis: an axis or a tuple of axes; all of them by default.
        keepdims: keep folded axes with length 1.
        dtype: convert to this dtype first.

    >>> import mycelia as ms
    >>> print(ms.ops.nansum(ms.Tensor([1.0, float("nan"), 3.0])))
    4.0
    """
    x = as_tensor(input, "nansum")
    if dtype is not None:
        x = cast(x, as_dtype(dtype, "nansum"))
    elif x.dtype is dt.bool_:
        x = cast(x, dt.int64)
    if x.dtype.is_inexact:
        x = _without_nan(x)[0]
    return reduce_sum(x, as_axes(axis, x.ndim, "nansum"), bool(keepdims))


attach("nansum", renaming(nansum, dim="axis", keepdim="keepdims"))


def _sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum over axes until the tensor has a shape that it is the broadcast of.

    Raises:
        ShapeError: it is not.
    """
    shape = as_shape(varargs(size), "Tensor.sum_to_size", "size")
    fits = (
        len(shape) <= self.ndim
        and broadcast_shapes("Tensor.sum_to_size", (self.shape, shape), ("self", "size")) == self.shape
    )
    if not fits:
        raise ShapeError("Tensor.sum_to_size", "size", got=str(shape), takes=f"a shape that broadcasts to {self.shape}")
    return sum_to(self, shape)


attach("sum_to_size", _sum_to_size)


@operator()
def nanmean(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Mean over axes of the elements that are not NaN; NaN where there is none.

    Args:
        input: a floating tensor.
        axis: an axis or a tuple of axes; all of them by default.
        keepdims: keep folded axes with length 1.
        dtype: convert the result to this dtype.

    Raises:
        DTypeError: the tensor is not floating.

    >>> import mycelia as ms
    >>> print(ms.ops.nanmean(ms.Tensor([1.0, float("nan"), 3.0])))
    2.0
    """
    x = as_tensor(input, "nanmean")
    check_dtypes("nanmean", (TensorType(x.dtype, x.shape),), dt.FLOATS)
    axes = as_axes(axis, x.ndim, "nanmean")
    wide = cast(x, dt.float32) if x.dtype.itemsize < 4 else x
    numbers, present = _without_nan(wide)
    total: Any = reduce_sum(numbers, axes, bool(keepdims))
    result = total / reduce_sum(present, axes, bool(keepdims))
    return cast(result, x.dtype if dtype is None else as_dtype(dtype, "nanmean"))


attach("nanmean", nanmean)
