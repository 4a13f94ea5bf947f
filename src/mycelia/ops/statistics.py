"""Spread, middle and frequencies: var, std, median, quantile, histc, bincount, cov, corrcoef.

Variances are computed in two passes (mean, then squared deviations); float16 and bfloat16 in float32. The
gradient of ``std`` is 0 where it is 0.
"""

from __future__ import annotations

from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.keywords import renaming
from mycelia.ops.norms import ratio_or_zero
from mycelia.ops.operands import as_axes, as_axis, as_int, as_tensor, cast
from mycelia.ops.outputs import one, several
from mycelia.ops.reduction import over, reduce_mean_p, reduce_sum, reduced_shape, spread
from mycelia.ops.registry import attach, operator
from mycelia.ops.shape import filled, reshaped
from mycelia.ops.sorting import put_back, sorted_with_places
from mycelia.tensor import Tensor

_TABLE = np.array([[1.5, -2.0, 0.25, 2.0], [3.0, 0.5, -1.0, 1.0]])
_CUBE = np.sin(np.arange(24.0)).reshape(2, 3, 4)

Ints = tuple[int, ...]


# variance


def _infer_variance(where: str) -> Any:
    def infer(x: TensorType, *, axes: Ints, keepdims: bool, correction: float) -> TensorType:
        check_dtypes(where, (x,), dt.FLOATS)
        return TensorType(x.dtype, reduced_shape(x.shape, axes, keepdims))

    return infer


def _variance(x: Any, axes: Ints, keepdims: bool, correction: float) -> Any:
    wide = x.astype(np.float32) if x.dtype in (dt.float16.np, dt.bfloat16.np) else x
    away = wide - jnp.mean(wide, axis=axes, keepdims=True)
    total = jnp.sum(away * away, axis=axes, keepdims=keepdims)
    freedom = max(prod(x.shape[i] for i in axes) - correction, 0)
    return total / np.asarray(freedom, total.dtype)


def _deviations(ct: Tensor, x: Any, axes: Ints, correction: float) -> Any:
    """The gradient of half the variance: cotangent times deviation over degrees of freedom."""
    away = x - one(reduce_mean_p, x, axes=axes, keepdims=True)
    above: Any = spread(ct, x.shape, axes)
    return above * away / max(prod(x.shape[i] for i in axes) - correction, 0)


def _variance_samples() -> list[Any]:
    return [
        Sample((_TABLE,), {**over((0,)), "correction": 0}), Sample((_TABLE,), {**over((0, 1), True), "correction": 1}),
        Sample((_CUBE,), {**over((0, 2)), "correction": 1}),
        Sample((np.zeros((0, 3)),), {**over((1,)), "correction": 0}),
        Bad((np.array([1, 2]),), {**over((0,)), "correction": 0}, TypeError, "Int64"),
    ]  # fmt: skip


variance_p = Primitive(
    "variance", infer=_infer_variance("var"), samples=_variance_samples,
    lower=lambda x, *, axes, keepdims, correction: _variance(x, axes, keepdims, correction).astype(x.dtype),
    vjp=lambda ct, x, out, *, axes, keepdims, correction: [2 * _deviations(ct, x, axes, correction)],
)  # fmt: skip
deviation_p = Primitive(
    "standard_deviation", infer=_infer_variance("std"),
    lower=lambda x, *, axes, keepdims, correction: jnp.sqrt(_variance(x, axes, keepdims, correction)).astype(x.dtype),
    vjp=lambda ct, x, out, *, axes, keepdims, correction: [_deviations(ratio_or_zero(ct, out), x, axes, correction)],
    samples=lambda: [*_variance_samples(), Sample((np.ones((2, 3)),), {**over((1,)), "correction": 0}, grad=False)],
)  # fmt: skip


def _spread_of(primitive: Primitive, input: Any, axis: Any, ddof: Any, keepdims: bool, where: str) -> Tensor:
    x = as_tensor(input, where)
    if not x.dtype.is_inexact:
        x = cast(x, dt.float32)
    if isinstance(ddof, bool):
        ddof = int(ddof)
    if not isinstance(ddof, (int, float)):
        raise ArgumentTypeError(where, "ddof", got=type(ddof).__name__, takes="a number")
    return one(primitive, x, axes=as_axes(axis, x.ndim, where), keepdims=bool(keepdims), correction=ddof)


@operator()
def var(input: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Variance over axes.

    Args:
        input: a floating tensor; integers and bools become float32.
        axis: an axis or a tuple of axes; all of them by default.
        ddof: what is subtracted from the number of elements before dividing by it; True is 1.
        keepdims: keep folded axes with length 1.

    Returns:
        A tensor without the folded axes; NaN where there are no degrees of freedom.

    >>> import mycelia as ms
    >>> print(ms.ops.var(ms.Tensor([1.0, 2.0, 3.0, 4.0])))
    1.25
    """
    return _spread_of(variance_p, input, axis, ddof, keepdims, "var")


@operator()
def std(input: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Standard deviation over axes, the square root of :func:`var`.

    >>> import mycelia as ms
    >>> print(ms.ops.std(ms.Tensor([1.0, 3.0])))
    1.0
    """
    return _spread_of(deviation_p, input, axis, ddof, keepdims, "std")


def _method(fn: Any, name: str) -> Any:
    def method(
        input: Any, axis: Any = None, ddof: Any = None, keepdims: bool = False, *, dim: Any = None,
        correction: Any = None, keepdim: bool = False,
    ) -> Tensor:  # fmt: skip
        later = dim is not None or correction is not None or keepdim
        given = ddof if ddof is not None else correction
        result: Tensor = fn(
            input, axis if dim is None else dim, (1 if later else 0) if given is None else given, keepdims or keepdim
        )
        return result

    method.__name__ = name
    method.__doc__ = (
        f"``{name}(axis, ddof=0, keepdims)`` or ``{name}(dim=..., correction=1, keepdim=...)``; see ``ops.{name}``."
    )
    return method


attach("var", _method(var, "var"))
attach("std", _method(std, "std"))


@operator()
def var_mean(input: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """Variance and mean over axes; see :func:`var`.

    >>> import mycelia as ms
    >>> print(*ms.ops.var_mean(ms.Tensor([1.0, 3.0])))
    1.0 2.0
    """
    from mycelia.ops.reduction import mean

    return var(input, axis, ddof, keepdims), mean(input, axis, keepdims)


@operator()
def std_mean(input: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean over axes; see :func:`var`.

    >>> import mycelia as ms
    >>> print(*ms.ops.std_mean(ms.Tensor([1.0, 3.0])))
    1.0 2.0
    """
    from mycelia.ops.reduction import mean

    return std(input, axis, ddof, keepdims), mean(input, axis, keepdims)


# median and quantile


def _infer_median(x: TensorType, *, axis: int, keepdims: bool, ignore_nan: bool) -> tuple[TensorType, TensorType]:
    check_dtypes("median", (x,), dt.REALS)
    if x.rank and x.shape[axis] == 0:
        raise ShapeError("median", "input", got=f"shape {x.shape}", takes=f"at least one element along axis {axis}")
    shape = reduced_shape(x.shape, (axis,) if x.rank else (), keepdims)
    return TensorType(x.dtype, shape), TensorType(dt.int64, shape)


def _lower_median(x: Any, *, axis: int, keepdims: bool, ignore_nan: bool) -> Any:
    """The lower middle of the sorted axis; NaN stand at its end and are the answer, or do not count."""
    if x.ndim == 0:
        return x, jnp.zeros((), np.int64)
    values, places = sorted_with_places(x, axis, False)
    length = x.shape[axis]
    if jnp.issubdtype(x.dtype, jnp.floating):
        count = jnp.sum(~jnp.isnan(values), axis=axis, keepdims=True, dtype=np.int32)
        middle = jnp.maximum(count - 1, 0) // 2 if ignore_nan else jnp.where(count == length, (length - 1) // 2, count)
    else:
        middle = jnp.full(reduced_shape(x.shape, (axis,), True), (length - 1) // 2, np.int32)
    found = [jnp.take_along_axis(a, middle, axis) for a in (values, places.astype(np.int64))]
    return tuple(found if keepdims else [jnp.squeeze(a, axis) for a in found])


def _vjp_median(ct: Any, x: Tensor, out: Any, *, axis: int, keepdims: bool, ignore_nan: bool) -> list[Any]:
    if ct[0] is None or x.ndim == 0:
        return [ct[0]]
    shape = reduced_shape(x.shape, (axis,), True)
    return [put_back(reshaped(ct[0], shape), reshaped(out[1], shape), x.shape, axis)]


_NAN = np.array([3.0, np.nan, 1.0, 2.0, 5.0])


def _median_samples() -> list[Any]:
    return [
        Sample((_TABLE,), {"axis": 1, "keepdims": False, "ignore_nan": False}),
        Sample((_TABLE,), {"axis": 0, "keepdims": True, "ignore_nan": True}),
        Sample((_NAN,), {"axis": 0, "keepdims": False, "ignore_nan": False}, grad=False, dtypes=False),
        Sample((_NAN,), {"axis": 0, "keepdims": False, "ignore_nan": True}, grad=False, dtypes=False),
        Sample((np.array(2.0),), {"axis": 0, "keepdims": False, "ignore_nan": False}),
        Bad((np.zeros((0, 2)),), {"axis": 0, "keepdims": False, "ignore_nan": False}, ShapeError, "at least one"),
    ]  # fmt: skip


median_p = Primitive(
    "median", infer=_infer_median, lower=_lower_median, vjp=_vjp_median, multi=True, samples=_median_samples
)


@operator()
def median(input: Any, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, ...]:
    """The middle element along an axis (the lower one of two), and where it stands.

    Args:
        input: a real tensor.
        axis: the axis.
        keepdims: keep the axis with length 1.

    Returns:
        The values, NaN where there is one, and their places as int64.

    Raises:
        ShapeError: the axis is empty.

    >>> import mycelia as ms
    >>> print(ms.ops.median(ms.Tensor([4.0, 1.0, 3.0, 2.0]))[0])
    2.0
    """
    x = as_tensor(input, "median")
    return several(median_p, x, axis=as_axis(axis, x.ndim, "median"), keepdims=bool(keepdims), ignore_nan=False)


attach("median", renaming(median, dim="axis", keepdim="keepdims"))


@operator(methods=True)
def nanmedian(input: Any, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, ...]:
    """The middle of the elements along an axis that are not NaN, and where it stands; see :func:`median`.

    >>> import mycelia as ms
    >>> print(ms.ops.nanmedian(ms.Tensor([4.0, float("nan"), 3.0]))[0])
    3.0
    """
    x = as_tensor(input, "nanmedian")
    return several(median_p, x, axis=as_axis(axis, x.ndim, "nanmedian"), keepdims=bool(keepdims), ignore_nan=True)


def _infer_quantile(x: TensorType, q: TensorType, *, ignore_nan: bool) -> TensorType:
    check_dtypes("quantile", (x, q), (dt.float32, dt.float64), ("input", "q"))
    if q.rank != 1:
        raise ShapeError("quantile", "q", got=f"shape {q.shape}", takes="a number or one axis")
    if x.shape[-1] == 0:
        raise ShapeError("quantile", "input", got=f"shape {x.shape}", takes="at least one element along the axis")
    return TensorType(x.dtype, (*q.shape, *x.shape[:-1]))


def _lower_quantile(x: Any, q: Any, *, ignore_nan: bool) -> Any:
    return (jnp.nanquantile if ignore_nan else jnp.quantile)(x, q, axis=-1).astype(x.dtype)


quantile_p = Primitive(
    "quantile", infer=_infer_quantile, lower=_lower_quantile, derived_vjp=True,
    samples=lambda: [
        Sample((_TABLE, np.array([0.3, 0.8])), {"ignore_nan": False}),
        Sample((_TABLE, np.array([0.45])), {"ignore_nan": True}),
        Sample((_NAN, np.array([0.0, 0.4, 1.0])), {"ignore_nan": True}, grad=False),
        Sample((_NAN, np.array([0.4])), {"ignore_nan": False}, grad=False),
        Bad((_TABLE, np.zeros((1, 1))), {"ignore_nan": False}, ShapeError, "one axis"),
    ],
)  # fmt: skip


def _quantile(input: Any, q: Any, axis: Any, keepdims: bool, ignore_nan: bool, where: str) -> Tensor:
    x = as_tensor(input, where)
    if x.dtype not in (dt.float32, dt.float64):
        raise DTypeError(where, "input", got=f"dtype {x.dtype}", takes="Float32, Float64")
    part = cast(as_tensor(q, where, "q", x.dtype), x.dtype)
    if part.ndim > 1:
        raise ShapeError(where, "q", got=f"shape {part.shape}", takes="a number or one axis")
    if not part.is_symbolic:
        values = part.asnumpy()
        if not bool(np.all((values >= 0) & (values <= 1))):
            raise ArgumentValueError(where, "q", got=str(values), takes="numbers from 0 to 1")
    from mycelia.ops.shape import moveaxis

    flat = axis is None or x.ndim == 0
    place = 0 if flat else as_axis(axis, x.ndim, where)
    rows = reshaped(x, (x.size,)) if flat else moveaxis(x, place, -1)
    made = one(quantile_p, rows, reshaped(part, (part.size,)), ignore_nan=ignore_nan)
    kept = reduced_shape(x.shape, tuple(range(x.ndim)) if flat else (place,), bool(keepdims))
    return reshaped(made, (*part.shape, *kept))


@operator(methods=True)
def quantile(input: Any, q: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Values below which given parts of the elements lie, interpolated linearly.

    Args:
        input: a float32 or float64 tensor.
        q: a number from 0 to 1, or a vector of them.
        axis: the axis; all elements by default.
        keepdims: keep folded axes with length 1.

    Returns:
        A tensor whose first axis is that of ``q`` if it has one; NaN where there is a NaN.

    Raises:
        ArgumentValueError: ``q`` is outside [0, 1].
        DTypeError: the tensor is of another dtype.

    >>> import mycelia as ms
    >>> print(ms.ops.quantile(ms.Tensor([0.0, 1.0, 2.0, 3.0]), 0.5))
    1.5
    """
    return _quantile(input, q, axis, keepdims, False, "quantile")


@operator(methods=True)
def nanquantile(input: Any, q: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """:func:`quantile` of the elements that are not NaN; NaN where there is none.

    >>> import mycelia as ms
    >>> print(ms.ops.nanquantile(ms.Tensor([0.0, float("nan"), 2.0]), 0.5))
    1.0
    """
    return _quantile(input, q, axis, keepdims, True, "nanquantile")


# frequencies


def _infer_histc(x: TensorType, *, bins: int, low: float, high: float) -> TensorType:
    check_dtypes("histc", (x,), dt.REALS)
    return TensorType(x.dtype, (bins,))


def _lower_histc(x: Any, *, bins: int, low: float, high: float) -> Any:
    flat = x.reshape(-1)
    wide = flat.astype(np.float64 if x.dtype.kind in "iu" or x.dtype == np.float64 else np.float32)
    if not flat.size and low == high:
        low, high = low - 1, high + 1
    least, most = (
        (jnp.min(wide), jnp.max(wide)) if low == high else (jnp.asarray(low, wide.dtype), jnp.asarray(high, wide.dtype))
    )
    least, most = jnp.where(least == most, least - 1, least), jnp.where(least == most, most + 1, most)
    place = jnp.clip(jnp.floor((wide - least) / (most - least) * bins), 0, bins - 1)
    counted = jnp.where((wide >= least) & (wide <= most), place, bins).astype(np.int32)
    return jnp.zeros(bins, np.int64).at[counted].add(1, mode="drop").astype(x.dtype)


histc_p = Primitive(
    "histc", infer=_infer_histc, lower=_lower_histc, differentiable=False,
    samples=lambda: [
        Sample((_TABLE,), {"bins": 4, "low": 0.0, "high": 0.0}),
        Sample((_TABLE,), {"bins": 3, "low": -1.0, "high": 1.0}),
        Sample((_NAN,), {"bins": 3, "low": 0.0, "high": 5.0}, dtypes=False),
        Sample((np.ones(3),), {"bins": 4, "low": 0.0, "high": 0.0}),
        Sample((np.zeros(0),), {"bins": 2, "low": 0.0, "high": 0.0}),
    ],
)  # fmt: skip


@operator(methods=True)
def histc(input: Any, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Tensor:
    """How many elements fall into each of some equal intervals.

    Args:
        input: a real tensor.
        bins: how many intervals.
        min: where the first one begins.
        max: where the last one, which is closed, ends; equal to ``min`` it stands for the range of the data.

    Returns:
        A vector of counts in the dtype of ``input``. Elements outside and NaN are not counted.

    Raises:
        ArgumentValueError: less than one interval, or ``max`` below ``min``.

    >>> import mycelia as ms
    >>> print(ms.ops.histc(ms.Tensor([1.0, 2.0, 1.0]), 4, 0.0, 3.0))
    [0. 2. 1. 0.]
    """
    x = as_tensor(input, "histc")
    count = as_int(bins, "histc", "bins")
    if count < 1:
        raise ArgumentValueError("histc", "bins", got=str(count), takes="an int of at least 1")
    low, high = float(min), float(max)
    if low > high:
        raise ArgumentValueError("histc", "max", got=str(max), takes=f"a number not below 'min', {min}")
    return one(histc_p, x, bins=count, low=low, high=high)


@operator(methods=True)
def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 to the largest occurs, or the sum of the weights where it does.

    Args:
        input: a vector of integers that are not negative.
        weights: as many numbers.
        minlength: the least length of the result.

    Returns:
        A vector of counts as int64, or of sums in the dtype of ``weights`` (int64 for integers).

    Raises:
        ArgumentValueError: a negative number.
        ShapeError: not one axis, or other weights.
        GraphError: inside a graph, whose shapes cannot depend on values.

    >>> import mycelia as ms
    >>> print(ms.ops.bincount(ms.Tensor([0, 1, 1, 3])))
    [1 2 0 1]
    """
    from mycelia.ops.indexing import add_at_p, as_index

    x = as_index(input, "bincount", "input")
    if x.ndim != 1:
        raise ShapeError("bincount", "input", got=f"shape {x.shape}", takes="one axis")
    least = as_int(minlength, "bincount", "minlength")
    if least < 0:
        raise ArgumentValueError("bincount", "minlength", got=str(least), takes="an int of at least 0")
    values = np.asarray(x._concrete("bincount"))
    if values.size and values.min() < 0:
        raise ArgumentValueError("bincount", "input", got=f"the number {values.min()}", takes="numbers of at least 0")
    length = int(np.max(values, initial=-1)) + 1
    if weights is None:
        added = filled(1, dt.int64, x.shape)
    else:
        added = as_tensor(weights, "bincount", "weights")
        if added.shape != x.shape:
            raise ShapeError(
                "bincount", "weights", got=f"shape {added.shape}", takes=f"the shape of 'input', {x.shape}"
            )
        if not added.dtype.is_inexact:
            added = cast(added, dt.int64)
    return one(add_at_p, added, x, length=length if length > least else least, axis=0, batch_dims=0)


# joint spread


def _weights(values: Any, count: int, argument: str) -> Any:
    w = as_tensor(values, "cov", argument)
    if w.shape not in ((count,), ()):
        raise ShapeError(
            "cov", argument, got=f"shape {w.shape}", takes=f"one weight for each of the {count} observations"
        )
    return w


@operator(methods=True)
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """Covariance matrix of variables (rows) over observations (columns).

    Args:
        input: a real tensor of at most two axes; a vector is one variable.
        correction: what is subtracted from the number of observations before dividing by it.
        fweights: how often each observation was made, integers.
        aweights: how much each observation counts.

    Returns:
        A matrix, or a number for one variable.

    Raises:
        ShapeError: more than two axes, or other weights.

    >>> import mycelia as ms
    >>> print(ms.ops.cov(ms.Tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])))
    [[ 1. -1.]
     [-1.  1.]]
    """
    from mycelia.ops.elementary import conj
    from mycelia.ops.linear import matmul
    from mycelia.ops.shape import transpose

    x = as_tensor(input, "cov")
    if x.ndim > 2:
        raise ShapeError("cov", "input", got=f"shape {x.shape}", takes="at most two axes")
    table: Any = cast(x, dt.float32) if not x.dtype.is_inexact else x
    single = x.ndim < 2
    if single:
        table = reshaped(table, (1, x.size))
    count = table.shape[1]
    weight: Any = None
    total: Any = count
    if fweights is not None:
        f = _weights(fweights, count, "fweights")
        if not f.dtype.is_integer:
            raise DTypeError("cov", "fweights", got=f"dtype {f.dtype}", takes="integers")
        weight = cast(f, table.dtype)
    if aweights is not None:
        a = cast(_weights(aweights, count, "aweights"), table.dtype)
        weight = a if weight is None else weight * a
    if weight is None:
        center = one(reduce_mean_p, table, axes=(1,), keepdims=True)
        freedom: Any = max(total - correction, 0)
        away = table - center
        scaled = away
    else:
        whole: Any = reduce_sum(weight, tuple(range(weight.ndim)))
        center = reduce_sum(table * weight, (1,), True) / whole
        away = table - center
        scaled = away * weight
        if aweights is None or not correction:
            freedom = whole - correction
        else:
            squares: Any = reduce_sum(weight * cast(as_tensor(aweights, "cov"), table.dtype), tuple(range(weight.ndim)))
            freedom = whole - correction * squares / whole
    made: Any = matmul(scaled, transpose(conj(away) if away.dtype.is_complex else away, (1, 0)))
    result: Any = made / freedom
    return reshaped(result, ()) if single else result


@operator()
def corrcoef(input: Any) -> Tensor:
    """Correlation matrix of variables (rows) over observations (columns).

    Args:
        input: a real tensor of at most two axes; a vector is one variable.

    Returns:
        A matrix of numbers from -1 to 1, or 1 for one variable; NaN for a variable that does not vary.

    >>> import mycelia as ms
    >>> print(ms.ops.corrcoef(ms.Tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])))
    [[ 1. -1.]
     [-1.  1.]]
    """
    from mycelia.ops.diagonals import diagonal
    from mycelia.ops.elementary import sqrt
    from mycelia.ops.selection import clamp

    c: Any = cov(input)
    if c.ndim == 0:
        return c / c  # type: ignore[no-any-return]
    deviations: Any = sqrt(diagonal(c))
    n = c.shape[0]
    scaled = c / reshaped(deviations, (n, 1)) / reshaped(deviations, (1, n))
    return clamp(scaled, -1, 1)
