"""Running results along an axis: cumsum, cumprod, cummax, cummin, logcumsumexp, diff.

The gradient of ``cumprod`` must not divide, so that it is right with zeros. With P the exclusive product,
d/dx_k of sum_i ct_i prod_{j<=i} x_j is P_k h_k, where h_k = ct_k + x_{k+1} h_{k+1}: a linear recurrence.
``linear_recurrence`` solves h_i = a_i h_{i-1} + b_i by a parallel prefix scan (Blelloch, "Prefix Sums and
Their Applications", 1990); its own gradient is again a linear recurrence, in the other direction.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType, as_dtype
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes, conj
from mycelia.ops.keywords import renaming
from mycelia.ops.operands import as_axis, as_int, as_tensor, cast, same_dtype
from mycelia.ops.outputs import one, several
from mycelia.ops.registry import attach, operator
from mycelia.ops.shape import reshaped
from mycelia.tensor import Tensor

_TABLE = np.array([[1.5, -2.0, 0.25, 2.0], [3.0, 0.5, -1.0, 1.0]])
_ZEROS = np.array([[1.5, 0.0, 2.0, 0.5], [0.0, 3.0, 0.0, -1.0]])
_NAN = np.array([1.0, np.nan, 3.0, -np.inf])


def _wide(dtype: Any) -> Any:
    """The dtype to accumulate in: float32 for the 16-bit floats."""
    return np.dtype(np.float32) if dtype in (dt.float16.np, dt.bfloat16.np) else dtype


def _on_axis(where: str, dtypes: Any) -> Any:
    def infer(x: TensorType, *, axis: int, **attrs: Any) -> TensorType:
        check_dtypes(where, (x,), dtypes)
        if x.rank == 0:
            raise ShapeError(where, "input", got="a zero-dimensional tensor", takes="at least one axis")
        return x

    return infer


def shifted(x: Tensor, axis: int, steps: int) -> Tensor:
    """``x`` moved by ``steps`` along ``axis``, zeros where nothing moved in."""
    from mycelia.ops.padding import pad_zeros

    pairs = [(0, 0)] * x.ndim
    pairs[axis] = (steps, -steps)
    return pad_zeros(x, tuple(pairs)) if x.shape[axis] else x


# sums


def _scan_samples(*further: Any) -> Any:
    def samples() -> list[Any]:
        plain, other = {"exclusive": False, "reverse": False}, {"exclusive": True, "reverse": True}
        return [
            Sample((_TABLE,), {"axis": 1, **plain}), Sample((_TABLE,), {"axis": 0, **other}),
            Sample((_ZEROS,), {"axis": 1, **other}),
            Sample((_ZEROS,), {"axis": 1, "exclusive": False, "reverse": True}),
            Sample((_ZEROS,), {"axis": 1, "exclusive": True, "reverse": False}),
            Sample((_ZEROS,), {"axis": 1, **plain}),
            Sample((np.zeros((0, 3)),), {"axis": 0, **plain}), Sample((np.zeros((2, 0)),), {"axis": 0, **other}),
            Sample((np.array([2.0]),), {"axis": 0, **other}),
            Bad((np.array(1.0),), {"axis": 0, **plain}, ShapeError, "at least one axis"),
            Bad((np.array([True]),), {"axis": 0, **plain}, TypeError, "Bool"), *further,
        ]  # fmt: skip

    return samples


def _exclusive(out: Any, axis: int, reverse: bool, fill: int) -> Any:
    """Shift an inclusive scan by one step, the first place taken by ``fill``."""
    if not out.shape[axis]:
        return out
    config = [(0, 0, 0)] * out.ndim
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return lax.pad(out, np.asarray(fill, out.dtype), config)


def _lower_cumsum(x: Any, *, axis: int, exclusive: bool, reverse: bool) -> Any:
    out = lax.cumsum(x.astype(_wide(x.dtype)), axis, reverse=reverse).astype(x.dtype)
    return _exclusive(out, axis, reverse, 0) if exclusive else out


cumsum_p: Primitive = Primitive(
    "cumsum", infer=_on_axis("cumsum", dt.NUMBERS), lower=_lower_cumsum, onnx="CumSum", samples=_scan_samples(),
    vjp=lambda ct, x, out, *, axis, exclusive, reverse: [
        one(cumsum_p, ct, axis=axis, exclusive=exclusive, reverse=not reverse)
    ],
)  # fmt: skip


# products


def _infer_recurrence(a: TensorType, b: TensorType, *, axis: int, reverse: bool) -> TensorType:
    check_dtypes("linear_recurrence", (a, b), dt.FLOATS + dt.COMPLEX, ("a", "b"))
    if a.shape != b.shape:
        raise ShapeError("linear_recurrence", "b", got=f"shape {b.shape}", takes=f"the shape of 'a', {a.shape}")
    return b


def _lower_recurrence(a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
    def then(first: Any, second: Any) -> Any:
        return first[0] * second[0], second[0] * first[1] + second[1]

    if not a.size:
        return b
    wide = _wide(a.dtype)
    return lax.associative_scan(then, (a.astype(wide), b.astype(wide)), reverse=reverse, axis=axis)[1].astype(b.dtype)


def _vjp_recurrence(ct: Tensor, a: Tensor, b: Tensor, out: Tensor, *, axis: int, reverse: bool) -> list[Any]:
    step = 1 if reverse else -1
    g: Any = one(linear_recurrence_p, shifted(conj(a), axis, step), ct, axis=axis, reverse=not reverse)
    return [lambda: g * shifted(conj(out), axis, -step), g]


linear_recurrence_p: Primitive = Primitive(
    "linear_recurrence", infer=_infer_recurrence, lower=_lower_recurrence, vjp=_vjp_recurrence,
    samples=lambda: [
        Sample((_TABLE, _ZEROS), {"axis": 1, "reverse": False}), Sample((_ZEROS, _TABLE), {"axis": 1, "reverse": True}),
        Sample((_TABLE, _TABLE), {"axis": 0, "reverse": False}),
        Sample((np.zeros((0, 2)),) * 2, {"axis": 0, "reverse": True}),
        Bad((_TABLE, _TABLE[0]), {"axis": 0, "reverse": False}, ShapeError, "shape of 'a'"),
    ],
)  # fmt: skip


def _lower_cumprod(x: Any, *, axis: int, exclusive: bool, reverse: bool) -> Any:
    out = lax.cumprod(x.astype(_wide(x.dtype)), axis, reverse=reverse).astype(x.dtype)
    return _exclusive(out, axis, reverse, 1) if exclusive else out


def _vjp_cumprod(ct: Tensor, x: Tensor, out: Tensor, *, axis: int, exclusive: bool, reverse: bool) -> list[Any]:
    step = 1 if reverse else -1
    before: Any = out if exclusive else one(cumprod_p, x, axis=axis, exclusive=True, reverse=reverse)
    given = shifted(ct, axis, step) if exclusive else ct
    after: Any = one(linear_recurrence_p, shifted(conj(x), axis, step), given, axis=axis, reverse=not reverse)
    return [after * conj(before)]


cumprod_p: Primitive = Primitive(
    "cumprod", infer=_on_axis("cumprod", dt.NUMBERS), lower=_lower_cumprod, vjp=_vjp_cumprod, samples=_scan_samples()
)


# extremes


def _infer_extreme(where: str, index: DType) -> Any:
    check = _on_axis(where, (dt.bool_, *dt.REALS))

    def infer(x: TensorType, *, axis: int) -> tuple[TensorType, TensorType]:
        return check(x, axis=axis), TensorType(index, x.shape)

    return infer


def _lower_extreme(x: Any, *, axis: int, larger: bool, index: Any) -> Any:
    """A prefix scan of (value, place) pairs: the later one wins ties, the first NaN stays."""

    def better(first: Any, second: Any) -> Any:
        (v, i), (w, j) = first, second
        take = (w >= v) if larger else (w <= v)
        if jnp.issubdtype(x.dtype, jnp.inexact):
            take = (take | (w != w)) & ~(v != v)
        return jnp.where(take, w, v), jnp.where(take, j, i)

    places = lax.broadcasted_iota(index, x.shape, axis)
    return (x, places) if not x.size else tuple(lax.associative_scan(better, (x, places), axis=axis))


def _vjp_extreme(ct: Any, x: Tensor, out: Any, *, axis: int) -> list[Any]:
    from mycelia.ops.scatter import scatter_add_elements

    return [None if ct[0] is None else scatter_add_elements(x.shape, out[1], ct[0], axis)]


def _extreme_samples() -> list[Any]:
    return [
        Sample((_TABLE,), {"axis": 1}), Sample((_TABLE,), {"axis": 0}),
        Sample((_NAN,), {"axis": 0}, grad=False, dtypes=False),
        Sample((np.array([1.0, 1.0, 0.0, 2.0, 2.0]),), {"axis": 0}, grad=False),
        Sample((np.zeros((0, 3)),), {"axis": 0}),
        Bad((np.array(1.0),), {"axis": 0}, ShapeError, "at least one axis"),
        Bad((_TABLE + 0j,), {"axis": 0}, TypeError, "Complex128"),
    ]  # fmt: skip


cummax_p = Primitive(
    "cummax", infer=_infer_extreme("cummax", dt.int64), multi=True, vjp=_vjp_extreme, samples=_extreme_samples,
    lower=partial(_lower_extreme, larger=True, index=np.int64),
)  # fmt: skip
cummin_p = Primitive(
    "cummin", infer=_infer_extreme("cummin", dt.int32), multi=True, vjp=_vjp_extreme, samples=_extreme_samples,
    lower=partial(_lower_extreme, larger=False, index=np.int32),
)  # fmt: skip


def _lower_logcumsumexp(x: Any, *, axis: int) -> Any:
    return lax.cumlogsumexp(x.astype(_wide(x.dtype)), axis).astype(x.dtype)


def _vjp_logcumsumexp(ct: Any, x: Any, out: Any, *, axis: int) -> list[Any]:
    """With s_k = ct_k + exp(out_k - out_{k+1}) s_{k+1}, whose factors are at most 1, it is exp(x_k - out_k) s_k."""
    from mycelia.ops.elementary import exp
    from mycelia.ops.padding import pad_zeros
    from mycelia.ops.selection import where

    if not x.shape[axis]:
        return [ct]

    def cut(y: Tensor, low: int, high: int) -> Any:
        return pad_zeros(y, tuple([(low, high) if i == axis else (0, 0) for i in range(x.ndim)]))

    finite = where(out == float("-inf"), 0, out)
    factors = cut(exp(cut(out, 0, -1) - cut(finite, -1, 0)), 0, 1)
    sums: Any = one(linear_recurrence_p, factors, ct, axis=axis, reverse=True)
    return [sums * exp(x - finite)]


logcumsumexp_p = Primitive(
    "logcumsumexp", infer=_on_axis("logcumsumexp", dt.FLOATS), lower=_lower_logcumsumexp, vjp=_vjp_logcumsumexp,
    samples=lambda: [
        Sample((_TABLE,), {"axis": 1}), Sample((_TABLE,), {"axis": 0}),
        Sample((np.array([800.0, 800.0, -800.0]),), {"axis": 0}, dtypes=False),
        Sample((np.array([-np.inf, -np.inf, 1.0]),), {"axis": 0}, grad=False, dtypes=False),
        Sample((np.zeros((0, 3)),), {"axis": 1}), Bad((np.array([1]),), {"axis": 0}, TypeError, "Int64"),
    ],
)  # fmt: skip


# public functions


def _axis_of(x: Tensor, axis: Any, where: str, argument: str = "axis") -> int:
    if x.ndim == 0:
        raise ShapeError(where, "input", got="a zero-dimensional tensor", takes="at least one axis")
    return as_axis(axis, x.ndim, where, argument)


def _cumsum(x: Any, axis: Any, dtype: Any = None) -> Tensor:
    """Running sum along an axis.

    Args:
        x: a tensor with at least one axis; bools are summed as int64, integers as themselves.
        axis: the axis to run along; also called ``dim``.
        dtype: convert to this dtype first.

    Raises:
        OutOfRangeError: there is no such axis.
        ShapeError: a zero-dimensional tensor.

    >>> import mycelia as ms
    >>> print(ms.ops.cumsum(ms.Tensor([1, 2, 3]), 0))
    [1 3 6]
    """
    t = as_tensor(x, "cumsum", "x")
    if dtype is not None:
        t = cast(t, as_dtype(dtype, "cumsum"))
    elif t.dtype is dt.bool_:
        t = cast(t, dt.int64)
    return one(cumsum_p, t, axis=_axis_of(t, axis, "cumsum"), exclusive=False, reverse=False)


_cumsum.__name__ = _cumsum.__qualname__ = "cumsum"
cumsum = operator()(renaming(_cumsum, dim="axis"))


def _cumsum_method(self: Tensor, axis: Any = None, dtype: Any = None) -> Tensor:
    """Running sum along an axis, or over all elements in row-major order without one."""
    return _cumsum(reshaped(self, (self.size,)) if axis is None else self, 0 if axis is None else axis, dtype)


attach("cumsum", renaming(_cumsum_method, dim="axis"))


@operator(methods=True)
def cumprod(input: Any, dim: Any, dtype: Any = None) -> Tensor:
    """Running product along an axis.

    Args:
        input: a tensor with at least one axis; bools and integers are multiplied as int64 (uint64 as itself).
        dim: the axis to run along.
        dtype: convert to this dtype first.

    Raises:
        OutOfRangeError: there is no such axis.

    >>> import mycelia as ms
    >>> print(ms.ops.cumprod(ms.Tensor([1, 2, 3]), 0))
    [1 2 6]
    """
    x = as_tensor(input, "cumprod")
    if dtype is not None:
        x = cast(x, as_dtype(dtype, "cumprod"))
    elif not x.dtype.is_inexact and x.dtype is not dt.uint64:
        x = cast(x, dt.int64)
    return one(cumprod_p, x, axis=_axis_of(x, dim, "cumprod", "dim"), exclusive=False, reverse=False)


def _cummax(input: Any, axis: Any) -> tuple[Tensor, ...]:
    """Largest value so far along an axis, and where it stands.

    Args:
        input: a real tensor with at least one axis.
        axis: the axis to run along; also called ``dim``.

    Returns:
        The values, and their places as int64. The last of equal values counts; from the first NaN on, that NaN.

    >>> import mycelia as ms
    >>> print(ms.ops.cummax(ms.Tensor([1, 3, 2]), 0)[0])
    [1 3 3]
    """
    x = as_tensor(input, "cummax")
    return several(cummax_p, x, axis=_axis_of(x, axis, "cummax"))


def _cummin(input: Any, axis: Any) -> tuple[Tensor, ...]:
    """Smallest value so far along an axis, and where it stands.

    Args:
        input: a real tensor with at least one axis.
        axis: the axis to run along; also called ``dim``.

    Returns:
        The values, and their places as int32. The last of equal values counts; from the first NaN on, that NaN.

    >>> import mycelia as ms
    >>> print(ms.ops.cummin(ms.Tensor([3, 1, 2]), 0)[0])
    [3 1 1]
    """
    x = as_tensor(input, "cummin")
    return several(cummin_p, x, axis=_axis_of(x, axis, "cummin"))


_cummax.__name__ = _cummax.__qualname__ = "cummax"
_cummin.__name__ = _cummin.__qualname__ = "cummin"
cummax = operator(methods=True)(renaming(_cummax, dim="axis"))
cummin = operator(methods=True)(renaming(_cummin, dim="axis"))


@operator(methods=True)
def logcumsumexp(input: Any, axis: Any) -> Tensor:
    """Logarithm of the running sum of exponentials along an axis, without overflow.

    Args:
        input: a floating tensor with at least one axis.
        axis: the axis to run along.

    >>> import mycelia as ms
    >>> print(ms.ops.logcumsumexp(ms.Tensor([0.0, 0.0]), 0))
    [0.        0.6931472]
    """
    x = as_tensor(input, "logcumsumexp")
    return one(logcumsumexp_p, x, axis=_axis_of(x, axis, "logcumsumexp"))


def _differences(x: Tensor, axis: int) -> Tensor:
    from mycelia.ops.slicing import narrowed

    length = max(x.shape[axis] - 1, 0)
    low: Any = narrowed(x, axis, 0, length)
    high: Any = narrowed(x, axis, x.shape[axis] - length, length)
    result: Tensor = (high != low) if x.dtype is dt.bool_ else high - low
    return result


def _diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours along an axis, ``n`` times over.

    Args:
        x: a tensor with at least one axis; of bools, whether neighbours differ.
        n: how often to take differences; 0 gives ``x``.
        axis: the axis to run along; also called ``dim``.
        prepend: values put before ``x`` along the axis first.
        append: values put after it.

    Raises:
        ArgumentValueError: ``n`` is negative.

    >>> import mycelia as ms
    >>> print(ms.ops.diff(ms.Tensor([1, 4, 9])))
    [3 5]
    """
    from mycelia.ops.joining import concat

    times = as_int(n, "diff", "n")
    if times < 0:
        raise ArgumentValueError("diff", "n", got=str(n), takes="an int of at least 0")
    t = as_tensor(x, "diff", "x")
    place = _axis_of(t, axis, "diff")
    around = [v for v in (prepend, t, append) if v is not None]
    if len(around) > 1 and times:
        parts = same_dtype("diff", *around, names=("x",) * len(around))
        t = concat([_as_block(p, t, place) for p in parts], place)
    for _ in range(times):
        t = _differences(t, place)
    return t


def _as_block(part: Tensor, like: Tensor, axis: int) -> Tensor:
    from mycelia.ops.shape import broadcast_to

    if part.ndim:
        return part
    return broadcast_to(part, tuple([1 if i == axis else d for i, d in enumerate(like.shape)]))


_diff.__name__ = _diff.__qualname__ = "diff"
diff = operator(methods=True, aliases=("diff_ext",))(renaming(_diff, dim="axis", input="x"))
