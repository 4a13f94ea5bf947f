"""Rounding, sign and magnitude: floor, ceil, round, trunc, frac, abs, sign, copysign, nextafter, nan_to_num.

Integers are their own floor, ceil, round and trunc. The functions that are constant almost everywhere have
the gradient 0; so has ``abs`` at 0. ``round`` goes to the even neighbour at halves (IEEE 754).
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType
from mycelia.core.errors import DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import attach_in_place, binary, binary_float
from mycelia.ops.declare import Bad, Sample, check_dtypes, elementwise
from mycelia.ops.keywords import renaming
from mycelia.ops.operands import as_int, as_tensor
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_POINTS = np.array([[-2.7, -1.2, -0.4], [0.3, 1.8, 3.6]])
_SPECIAL = np.array([0.0, -0.0, 0.5, 1.5, -2.5, np.inf, -np.inf, np.nan])


def _samples() -> list[Any]:
    return [
        Sample((_POINTS,)), Sample((np.array(1.25),)), Sample((np.zeros((2, 0)),)), Sample((_SPECIAL,), grad=False),
        Bad((np.array([1j]),), {}, DTypeError, "Complex128"),
    ]  # fmt: skip


def _flat(ct: Tensor, x: Tensor, out: Tensor) -> None:
    return None  # constant almost everywhere


floor_p = elementwise("floor", lax.floor, dtypes=dt.FLOATS, vjp=_flat, onnx="Floor", samples=_samples)
ceil_p = elementwise("ceil", lax.ceil, dtypes=dt.FLOATS, vjp=_flat, onnx="Ceil", samples=_samples)
trunc_p = elementwise("trunc", jnp.trunc, dtypes=dt.FLOATS, vjp=_flat, samples=_samples)


def _round(x: Any, *, decimals: int) -> Any:
    even = lax.RoundingMethod.TO_NEAREST_EVEN
    if jnp.issubdtype(x.dtype, jnp.integer):
        return x if decimals >= 0 else _round_integers(x, 10**-decimals)
    if decimals == 0:
        return lax.round(x, even)
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    scale = float(10 ** max(decimals, -decimals))
    scaled = wide * scale if decimals > 0 else wide / scale
    near = lax.round(scaled, even)
    back = near / scale if decimals > 0 else near * scale
    return jnp.where(jnp.isfinite(scaled), back, wide).astype(x.dtype)


def _round_integers(x: Any, step: int) -> Any:
    if step > np.iinfo(x.dtype).max:
        return jnp.zeros_like(x)
    unit = jnp.asarray(step, x.dtype)
    below = jnp.floor_divide(x, unit)
    rest = x - below * unit
    to_next = unit - rest
    up = (rest > to_next) | ((rest == to_next) & ((below & 1) == 1))
    return (below + up.astype(x.dtype)) * unit


def _infer_round(x: TensorType, *, decimals: int) -> TensorType:
    check_dtypes("round", (x,), dt.REALS)
    return x


def _round_samples() -> list[Any]:
    return [
        Sample((_POINTS,), {"decimals": 0}), Sample((_POINTS * 1.03,), {"decimals": 1}),
        Sample((np.array([121.0, -87.0, 149.0]),), {"decimals": -1}), Sample((np.zeros((2, 0)),), {"decimals": 2}),
        Sample((_SPECIAL,), {"decimals": 0}, grad=False),
        Sample((np.array([1e30, np.inf]),), {"decimals": 2}, grad=False, dtypes=False),
        Bad((np.array([1j]),), {"decimals": 0}, DTypeError, "Complex128"),
    ]  # fmt: skip


round_p = Primitive(
    "round", infer=_infer_round, lower=_round, shard="...->...", onnx="Round", samples=_round_samples,
    vjp=lambda ct, x, out, *, decimals: [None],
)  # fmt: skip

frac_p = elementwise(
    "frac", lambda x: x - jnp.trunc(x), dtypes=dt.FLOATS, vjp=lambda ct, x, out: ct,
    samples=lambda: [
        Sample((_POINTS,)), Sample((np.zeros((2, 0)),)), Sample((_SPECIAL[:5],), grad=False),
        Bad((np.array([1j]),), {}, DTypeError, "Complex128"),
    ],
)  # fmt: skip


def _rounded(primitive: Primitive, where: str, x: Any) -> Tensor:
    t = x if isinstance(x, Tensor) else as_tensor(x, where)
    if t.dtype.is_integer or t.dtype.kind == "b":
        return t
    return apply(primitive, t)  # type: ignore[no-any-return]


@operator(methods=True)
def floor(input: Any) -> Tensor:
    """The largest whole number not above each element.

    >>> import mycelia as ms
    >>> print(ms.ops.floor(ms.Tensor([1.5, -1.5])))
    [ 1. -2.]
    """
    return _rounded(floor_p, "floor", input)


@operator(methods=True)
def ceil(input: Any) -> Tensor:
    """The smallest whole number not below each element.

    >>> import mycelia as ms
    >>> print(ms.ops.ceil(ms.Tensor([1.5, -1.5])))
    [ 2. -1.]
    """
    return _rounded(ceil_p, "ceil", input)


@operator(methods=True, aliases=("fix",))
def trunc(input: Any) -> Tensor:
    """Each element without its fraction.

    >>> import mycelia as ms
    >>> print(ms.ops.trunc(ms.Tensor([1.5, -1.5])))
    [ 1. -1.]
    """
    return _rounded(trunc_p, "trunc", input)


@operator(methods=True)
def round(input: Any, *, decimals: int = 0) -> Tensor:
    """Each element rounded; halves go to the even neighbour.

    Args:
        input: a real tensor or number.
        decimals: decimal places to keep; negative rounds to tens, hundreds, ...

    >>> import mycelia as ms
    >>> print(ms.ops.round(ms.Tensor([0.5, 1.5, -2.4])))
    [ 0.  2. -2.]
    """
    x = input if isinstance(input, Tensor) else as_tensor(input, "round")
    places = as_int(decimals, "round", "decimals")
    if x.dtype.kind == "b" or (x.dtype.is_integer and places >= 0):
        return x
    return apply(round_p, x, decimals=places)  # type: ignore[no-any-return]


def _frac(x: Any) -> Tensor:
    """The fraction of each element, ``x - trunc(x)``.

    >>> import mycelia as ms
    >>> print(ms.ops.frac(ms.Tensor([1.5, -1.25])))
    [ 0.5  -0.25]
    """
    t = as_tensor(x, "frac", "x")
    if t.dtype.is_integer:
        return t - t
    return apply(frac_p, t)  # type: ignore[no-any-return]


_frac.__name__ = "frac"
frac = operator(methods=True)(renaming(_frac, input="x"))


def _magnitude(dtype: DType) -> DType:
    if dtype.is_complex:
        return dt.float32 if dtype is dt.complex64 else dt.float64
    return dtype


abs_p = elementwise(
    "abs", jnp.abs, dtypes=dt.NUMBERS, result=_magnitude, onnx="Abs",
    vjp=lambda ct, x, out: ct * apply(sgn_p if x.dtype.is_complex else sign_p, x),
    samples=lambda: [
        Sample((_POINTS,)), Sample((np.zeros((2, 0)),)), Sample((_SPECIAL,), grad=False),
        Sample((_POINTS + 1j * _POINTS[::-1],), dtypes=False), Bad((np.array([True]),), {}, DTypeError, "Bool"),
    ],
)  # fmt: skip
sign_p: Primitive = elementwise(
    "sign", lax.sign, dtypes=dt.REALS, vjp=_flat, onnx="Sign",
    samples=lambda: [*_samples()[:-1], Bad((np.array([1j]),), {}, DTypeError, "Complex128")],
)  # fmt: skip


def _unit(x: Any) -> Any:
    size = jnp.abs(x)
    zero = size == 0
    return jnp.where(zero, jnp.zeros_like(x), x / jnp.where(zero, 1, size))


def _unit_gradient(ct: Any, x: Any, out: Any) -> Any:
    """The part of ``ct`` across the direction of ``x``, divided by its size; 0 at 0."""
    from mycelia.ops.complex_numbers import real
    from mycelia.ops.elementary import conj
    from mycelia.ops.selection import where

    size: Any = abs(x)
    across = ct - out * real(ct * conj(out))
    return where(size == 0, 0, across / where(size == 0, 1, size))


sgn_p: Primitive = elementwise(
    "sgn", _unit, dtypes=dt.COMPLEX, vjp=_unit_gradient,
    samples=lambda: [
        Sample((_POINTS + 1j * _POINTS[::-1],)), Sample((np.zeros((2, 0), np.complex128),)),
        Sample((np.array([0j]),), grad=False), Bad((_POINTS,), {}, DTypeError, "Complex64"),
    ],
)  # fmt: skip


@operator(methods=("abs", "absolute", "__abs__"), aliases=("absolute",))
def abs(input: Any) -> Tensor:
    """The magnitude of each element; of complex numbers a real tensor.

    >>> import mycelia as ms
    >>> print(ms.ops.abs(ms.Tensor([1.0, -2.0])))
    [1. 2.]
    """
    x = input if isinstance(input, Tensor) else as_tensor(input, "abs")
    return x if x.dtype.kind == "b" else apply(abs_p, x)


@operator(methods=True)
def sign(input: Any) -> Tensor:
    """-1, 0 or 1 by the sign of each real element; NaN for NaN.

    >>> import mycelia as ms
    >>> print(ms.ops.sign(ms.Tensor([3.0, 0.0, -2.0])))
    [ 1.  0. -1.]
    """
    return apply(sign_p, as_tensor(input, "sign"))  # type: ignore[no-any-return]


@operator(methods=True)
def sgn(input: Any) -> Tensor:
    """The sign of each element; of a complex number the number of size 1 in its direction, 0 for 0.

    >>> import mycelia as ms
    >>> print(ms.ops.sgn(ms.Tensor([3 + 4j, 0j])))
    [0.6+0.8j 0. +0.j ]
    """
    x = as_tensor(input, "sgn")
    return apply(sgn_p if x.dtype.is_complex else sign_p, x)  # type: ignore[no-any-return]


def _heaviside(x: Any, values: Any) -> Any:
    step = jnp.where(x < 0, 0, jnp.where(x > 0, 1, values)).astype(x.dtype)
    return jnp.where(x != x, x, step)


def _at_zero(ct: Any, x: Any) -> Any:
    from mycelia.ops.selection import where

    return where(x == 0, ct, 0)


heaviside_p = elementwise(
    "heaviside", _heaviside, arity=2, dtypes=dt.REALS, names=("input", "values"),
    vjp=lambda ct, x, values, out: (None, lambda: _at_zero(ct, x)),
    samples=lambda: [
        Sample((_POINTS, np.array(0.5))), Sample((_SPECIAL, np.array(0.25)), grad=False),
        Sample((np.zeros((0, 3)), np.zeros(3))), Bad((_POINTS, np.zeros(2)), {}, ShapeError, "broadcasts"),
    ],
)  # fmt: skip


@operator(methods=True)
def heaviside(input: Any, values: Any) -> Tensor:
    """The unit step: 0 below zero, 1 above, ``values`` at zero.

    >>> import mycelia as ms
    >>> print(ms.ops.heaviside(ms.Tensor([-1.0, 0.0, 2.0]), ms.Tensor([0.5])))
    [0.  0.5 1. ]
    """
    return binary(heaviside_p, "heaviside", input, values, ("input", "values"))


def _same_side(ct: Any, x: Any, other: Any) -> Any:
    side: Any = sign(x)
    return ct * side * copysign(1.0, other)


copysign_p: Primitive = elementwise(
    "copysign", jnp.copysign, arity=2, dtypes=dt.FLOATS, names=("x", "other"),
    vjp=lambda ct, x, other, out: (lambda: _same_side(ct, x, other), None),
    samples=lambda: [
        Sample((_POINTS, _POINTS[::-1] - 0.5)),
        Sample((_SPECIAL[:, None], np.array([1.0, -1.0, 0.0, -0.0])), grad=False),
        Sample((np.zeros((0, 3)), np.zeros(3))), Bad((_POINTS, np.zeros(2)), {}, ShapeError, "broadcasts"),
    ],
)  # fmt: skip


@operator(methods=True)
def copysign(x: Any, other: Any) -> Tensor:
    """The magnitude of ``x`` with the sign of ``other`` (of -0.0 too); integers give float32.

    >>> import mycelia as ms
    >>> print(ms.ops.copysign(ms.Tensor([1.0, -2.0]), ms.Tensor([-0.0, 3.0])))
    [-1.  2.]
    """
    return binary_float(copysign_p, "copysign", x, other, ("x", "other"))


nextafter_p = elementwise(
    "nextafter", lax.nextafter, arity=2, dtypes=(dt.float32, dt.float64), differentiable=False,
    samples=lambda: [
        Sample((np.array([1.0, 1.0, 0.0, -1.0, np.nan, np.inf]), np.array([2.0, 0.0, -1.0, -1.0, 1.0, 0.0])),
               dtypes=False),
        Sample((np.zeros((0, 3)), np.zeros(3))), Bad((_POINTS, np.zeros(2)), {}, ShapeError, "broadcasts"),
    ],
)  # fmt: skip


@operator(methods=True)
def nextafter(input: Any, other: Any) -> Tensor:
    """The neighbour of ``input`` among the float32 or float64 numbers, in the direction of ``other``.

    >>> import mycelia as ms
    >>> ms.ops.nextafter(ms.Tensor([1.0]), ms.Tensor([2.0])).item() - 1 == 2.0**-23
    True
    """
    return binary_float(nextafter_p, "nextafter", input, other)


def _nan_to_num(x: Any, *, nan: float, posinf: float | None, neginf: float | None) -> Any:
    info: Any = jnp.finfo(x.dtype)  # type: ignore[no-untyped-call]
    high = info.max if posinf is None else jnp.asarray(posinf, x.dtype)
    low = info.min if neginf is None else jnp.asarray(neginf, x.dtype)
    kept = jnp.where(x == np.inf, high, jnp.where(x == -np.inf, low, x))
    return jnp.where(x != x, jnp.asarray(nan, x.dtype), kept).astype(x.dtype)


def _where_finite(ct: Any, x: Any) -> Any:
    from mycelia.ops.logical import isfinite
    from mycelia.ops.selection import where

    return where(isfinite(x), ct, 0)


nan_to_num_p = elementwise(
    "nan_to_num", _nan_to_num, dtypes=dt.FLOATS,
    vjp=lambda ct, x, out, *, nan, posinf, neginf: _where_finite(ct, x),
    samples=lambda: [
        Sample((_POINTS,), {"nan": 0.0, "posinf": None, "neginf": None}),
        Sample((_SPECIAL,), {"nan": 1.5, "posinf": 3.0, "neginf": -2.0}, grad=False),
        Sample((_SPECIAL,), {"nan": 0.0, "posinf": None, "neginf": None}, grad=False, dtypes=False),
        Sample((np.zeros((2, 0)),), {"nan": 0.0, "posinf": None, "neginf": None}),
        Bad((np.array([1]),), {"nan": 0.0, "posinf": None, "neginf": None}, DTypeError, "Int64"),
    ],
)  # fmt: skip


@operator(methods=True)
def nan_to_num(
    input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Numbers in place of NaN and infinity.

    Args:
        input: a real tensor of any shape; integers are returned as they are.
        nan: what NaN becomes, 0 by default.
        posinf: what infinity becomes, by default the largest number of the dtype.
        neginf: what minus infinity becomes, by default the smallest number of the dtype.

    >>> import mycelia as ms
    >>> print(ms.ops.nan_to_num(ms.Tensor([float("nan"), float("inf"), 1.0]), posinf=9.0))
    [0. 9. 1.]
    """
    x = as_tensor(input, "nan_to_num")
    if x.dtype.is_integer or x.dtype.kind == "b":
        return x
    return apply(  # type: ignore[no-any-return]
        nan_to_num_p, x, nan=_attribute(nan, 0.0), posinf=_attribute(posinf, None), neginf=_attribute(neginf, None)
    )


def _attribute(value: float | None, default: float | None) -> float | None:
    if value is None:
        return default
    return math.nan if value != value else float(value)  # one NaN, so that equal calls share a compilation


def _round_method(self: Tensor, ndigits: int | None = None) -> Tensor:
    return round(self, decimals=0 if ndigits is None else ndigits)


attach("__round__", _round_method)
for _name, _compute in (("floor_", floor), ("sign_", sign)):
    attach_in_place(_name, _compute)
