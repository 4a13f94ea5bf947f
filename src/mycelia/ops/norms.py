"""Sizes of vectors: p-norms over axes.

The gradient of a norm at zero is taken as zero. The infinity norms share their gradient among ties.
"""

from __future__ import annotations

from math import inf
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import as_dtype
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float
from mycelia.ops.declare import Bad, Sample, check_dtypes, conj, elementwise
from mycelia.ops.keywords import renaming
from mycelia.ops.operands import as_axes, as_axis, cast
from mycelia.ops.reduction import over, reduced_shape, spread
from mycelia.ops.registry import OPERATORS, attach, operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_TABLE = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])

Ints = tuple[int, ...]


# quotients


def _lower_ratio(a: Any, b: Any) -> Any:
    zero = b == 0
    return jnp.where(zero, 0, a / jnp.where(zero, 1, b)).astype(a.dtype)


def _vjp_ratio(ct: Any, a: Tensor, b: Tensor, out: Any) -> Any:
    return lambda: ratio_or_zero(ct, conj(b)), lambda: -ratio_or_zero(ct * conj(out), conj(b))


#: ``a / b``, and 0 where ``b`` is 0.
ratio_or_zero_p: Primitive = elementwise(
    "ratio_or_zero", _lower_ratio, arity=2, dtypes=dt.FLOATS + dt.COMPLEX, vjp=_vjp_ratio,
    samples=lambda: [
        Sample((_TABLE, _TABLE[::-1] + 0.125)), Sample((_TABLE, np.array([0.0, 2.0, 0.0])), grad=False),
        Sample((_TABLE, np.array(4.0))), Sample((np.zeros((0, 3)), _TABLE[:1])),
    ],
)  # fmt: skip


def ratio_or_zero(a: Tensor, b: Tensor) -> Tensor:
    """``a / b`` of tensors of one dtype, and 0 where ``b`` is 0."""
    return apply(ratio_or_zero_p, a, b)  # type: ignore[no-any-return]


# vector norms


def _refuse_empty(x: TensorType, axes: Ints, ord: float) -> None:
    if (ord < 0 or ord == inf) and any(x.shape[a] == 0 for a in axes):
        raise ShapeError("norm", "input", got=f"shape {x.shape}", takes=f"at least one element for order {ord}")


def _infer_norm(x: TensorType, *, axes: Ints, keepdims: bool, ord: float) -> TensorType:
    check_dtypes("norm", (x,), dt.FLOATS + dt.COMPLEX)
    _refuse_empty(x, axes, ord)
    real = {dt.complex64: dt.float32, dt.complex128: dt.float64}.get(x.dtype, x.dtype)
    return TensorType(real, reduced_shape(x.shape, axes, keepdims))


def _lower_norm(x: Any, *, axes: Ints, keepdims: bool, ord: float) -> Any:
    narrow = x.real.dtype
    size = jnp.abs(x.astype(np.float32) if narrow.itemsize == 2 else x)
    fold: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    if ord == inf:
        made = size.max(**fold)
    elif ord == -inf:
        made = size.min(**fold)
    elif ord == 0:
        made = (size != 0).sum(**fold)
    elif ord == 1:
        made = size.sum(**fold)
    elif ord == 2:
        made = jnp.sqrt((size * size).sum(**fold))
    else:
        made = (size**ord).sum(**fold) ** (1 / ord)
    return made.astype(narrow)


def _vjp_norm(ct: Any, x: Any, out: Tensor, *, axes: Ints, keepdims: bool, ord: float) -> list[Any]:
    from mycelia.ops.power import pow as power
    from mycelia.ops.reduction import reduce_sum
    from mycelia.ops.rounding import abs as absolute, sgn, sign
    from mycelia.ops.selection import where

    def wide(value: Tensor) -> Any:
        return spread(value, x.shape, axes)

    def complexly(value: Any) -> Any:
        return value if value.dtype is x.dtype else cast(value, x.dtype)

    if ord == 0:
        return [None]
    if ord == 2:
        return [ratio_or_zero(x * complexly(wide(ct)), complexly(wide(out)))]
    direction: Any = sgn(x) if x.dtype.is_complex else sign(x)
    if ord == 1:
        return [direction * complexly(wide(ct))]
    size: Any = absolute(x)
    if abs(ord) == inf:
        tied: Any = cast(size == wide(out), size.dtype)
        share = ratio_or_zero(tied, spread(reduce_sum(tied, axes), x.shape, axes))
        return [direction * complexly(share * wide(ct))]
    slope = power(where(size == 0.0, 0.0, ratio_or_zero(wide(out), size)), 1.0 - ord)
    return [direction * complexly(where(size == 0.0, 0.0, slope * wide(ct)))]


def _norm_samples() -> list[Any]:
    def attrs(ord: float, axes: Ints, keepdims: bool = False) -> dict[str, Any]:
        return {**over(axes, keepdims), "ord": ord}

    return [
        *[Sample((_TABLE,), attrs(p, (1,))) for p in (2.0, 1.0, 3.0, 0.5, -1.0, inf, -inf)],
        Sample((_TABLE,), attrs(0.0, (0,)), grad=False), Sample((_TABLE,), attrs(2.0, (0, 1), True)),
        Sample((np.zeros((2, 3)),), attrs(2.0, (1,)), grad=False), Sample((np.zeros((0, 3)),), attrs(2.0, (0,))),
        Sample((np.array(-2.0),), attrs(2.0, ())),
        Bad((np.zeros((0, 3)),), attrs(inf, (0,)), ShapeError, "one element"),
    ]  # fmt: skip


vector_norm_p: Primitive = Primitive(
    "vector_norm", infer=_infer_norm, lower=_lower_norm, vjp=_vjp_norm, samples=_norm_samples
)


def _as_inexact(x: Any, dtype: Any, where: str, argument: str) -> Tensor:
    made = as_float(x, where, argument)
    return made if dtype is None else cast(made, as_dtype(dtype, where))


def as_order(value: Any, where: str, argument: str = "ord") -> float:
    """The order of a norm: any number, infinity included."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(where, argument, got=repr(value), takes="a number, infinity included")
    return float(value)


def p_norm(x: Tensor, ord: float, axes: Ints, keepdims: bool = False) -> Tensor:
    """The p-norm over canonical axes of an inexact tensor; what rules are written with."""
    return apply(vector_norm_p, x, axes=axes, keepdims=bool(keepdims), ord=ord)  # type: ignore[no-any-return]


@operator()
def vector_norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """p-norms over axes: ``sum(abs(x) ** p) ** (1 / p)``.

    Args:
        x: a tensor; integers become float32.
        ord: p, any number; 0 counts what is not zero, infinity gives the largest size, -infinity the least.
        axis: an axis or a tuple of axes; all by default.
        keepdims: keep folded axes with length 1.
        dtype: convert to this dtype first.

    >>> import mycelia as ms
    >>> print(ms.ops.vector_norm(ms.Tensor([3.0, 4.0])))
    5.0
    """
    t = _as_inexact(x, dtype, "vector_norm", "x")
    return p_norm(t, as_order(ord, "vector_norm"), as_axes(axis, t.ndim, "vector_norm"), keepdims)


def _norm(x: Tensor, ord: Any, dim: Any, keepdim: bool) -> Tensor:
    if dim is None:
        if ord is None:
            return p_norm(x, 2.0, tuple(range(x.ndim)), keepdim)
        if x.ndim not in (1, 2):
            takes = "one or two axes if 'dim' is not given"
            raise ShapeError("norm", "A", got=f"shape {x.shape} with ord {ord!r}", takes=takes)
        axes: Ints = tuple(range(x.ndim))
    else:
        axes = tuple([as_axis(a, x.ndim, "norm", "dim") for a in (dim if isinstance(dim, (tuple, list)) else (dim,))])
        if len(axes) not in (1, 2) and ord is not None:
            raise ArgumentValueError("norm", "dim", got=str(dim), takes="one axis, or two for a matrix norm")
    if ord is None:
        return p_norm(x, 2.0, tuple(sorted(axes)), keepdim)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ArgumentValueError("norm", "ord", got=repr(ord), takes="a number for vectors; words are for matrices")
        return p_norm(x, as_order(ord, "norm"), axes, keepdim)
    return OPERATORS["matrix_norm"](x, ord, axes, keepdim)  # type: ignore[no-any-return]


@operator()
def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of a vector or matrix, as ``numpy.linalg.norm``.

    Args:
        A: a tensor; integers become float32.
        ord: see :func:`vector_norm` and :func:`matrix_norm`; None is the root of the sum of squares.
        dim: an axis for vector norms, two axes for matrix norms; by default all elements, or with ``ord``
            the one or two axes that there are.
        keepdim: keep folded axes with length 1.
        dtype: convert to this dtype first.

    Raises:
        ShapeError: ``ord`` without ``dim`` for more than two axes.

    >>> import mycelia as ms
    >>> print(ms.ops.norm(ms.Tensor([[3.0, 0.0], [0.0, 4.0]])))
    5.0
    """
    return _norm(_as_inexact(A, dtype, "norm", "A"), ord, dim, keepdim)


attach("norm", renaming(norm, p="ord", axis="dim", keepdims="keepdim"))
