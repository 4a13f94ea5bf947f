"""Powers: ``x ** y``, and the integer powers, square and reciprocal that have rules of their own.

A Python exponent that is a small whole number becomes ``integer_power``: a few multiplications, and exact
gradients for negative bases and at 0. Every other power is ``pow``, IEEE 754's: ``0 ** 0`` is 1, a negative
base takes whole exponents only (else NaN). The gradient of ``x ** y`` by ``x`` is written
``y * x ** (y - 1)`` so that it is 0, not NaN, where ``x`` and ``y`` are 0; the gradient by ``y`` is 0 where
``x`` is 0 and ``y`` is not negative.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import DTypeError, ShapeError
from mycelia.core.promotion import promote_scalar
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import binary, binary_float, floats, operator_method, unary, unary_float
from mycelia.ops.declare import Bad, Sample, check_dtypes, conj, elementwise
from mycelia.ops.operands import as_tensor, cast, same_dtype
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply
from mycelia.tensor.scalar import plain

#: Whole exponents up to this size are multiplied out: few enough that roundings do not add up.
_LARGEST_MULTIPLIED = 8

_GRID = np.array([[-2.5, -1.0, 0.5], [1.0, 2.0, 3.5]])


def _pow_integers(a: Any, b: Any) -> Any:
    """Integer power, wrapping around; a negative exponent gives 1/a**|b| rounded towards zero, and 0 for a = 0."""
    if a.dtype.kind == "u":
        return jnp.power(a, b)
    whole = jnp.power(a, jnp.where(b < 0, jnp.zeros_like(b), b))
    odd = (b & 1) == 1
    inverse = jnp.where(a == 1, 1, jnp.where(a == -1, jnp.where(odd, -1, 1), 0)).astype(a.dtype)
    return jnp.where(b < 0, inverse, whole)


def _pow(a: Any, b: Any) -> Any:
    if jnp.issubdtype(a.dtype, jnp.integer):
        return _pow_integers(a, b)
    power = lax.pow(a, b)
    if jnp.iscomplexobj(a):
        power = jnp.where((a == 0) & (b.real > 0), 0, power)
    return jnp.where(b == 0, jnp.ones_like(a), power)


def _base_gradient(ct: Any, a: Any, b: Any) -> Any:
    from mycelia.ops.selection import where

    safe = where((a == 0) & (b == 0), 1, b)
    return ct * conj(b * apply(pow_p, a, safe - 1))


def _exponent_gradient(ct: Any, a: Any, b: Any, out: Any) -> Any:
    from mycelia.ops.complex_numbers import real
    from mycelia.ops.elementary import log
    from mycelia.ops.selection import where

    size: Any = real(b)
    flat = (a == 0) & (size >= 0)
    return where(flat, 0, ct * conj(out * log(where(flat, 1, a))))


pow_p = elementwise(
    "pow", _pow, arity=2, dtypes=dt.NUMBERS, names=("input", "exponent"), onnx="Pow",
    vjp=lambda ct, a, b, out: (lambda: _base_gradient(ct, a, b), lambda: _exponent_gradient(ct, a, b, out)),
    samples=lambda: [
        Sample((np.array([0.5, 1.5, 2.0, 3.0]), np.array([-1.5, 0.5, 2.0, 3.0]))),
        Sample((np.array([[0.5], [1.5]]), np.array([0.0, 1.0, -2.0]))), Sample((np.zeros((0, 3)), np.array(2.0))),
        Sample((np.array([0.0, 0.0, -2.0, -2.0, np.inf, -8.0, 0.0]), np.array([0.0, 2.0, 3.0, 2.0, -1.0, 0.5, -1.0])),
               grad=False, dtypes=False),
        Sample((np.array([2, -3, 0, 1, -1, 2, -1]), np.array([10, 3, 0, -2, -3, -1, -2])), grad=False, dtypes=False),
        Bad((_GRID, np.zeros(2)), {}, ShapeError, "broadcasts"),
    ],
)  # fmt: skip


def _multiplied(x: Any, *, y: int) -> Any:
    return lax.integer_pow(x, y) if y >= 0 else jnp.reciprocal(lax.integer_pow(x, -y))


def _infer_multiplied(x: TensorType, *, y: int) -> TensorType:
    check_dtypes("pow", (x,), dt.NUMBERS if y >= 0 else dt.FLOATS + dt.COMPLEX)
    return x


def _multiplied_gradient(ct: Any, x: Any, out: Any, *, y: int) -> list[Any]:
    return [None if y == 0 else ct * conj(integer_power(x, y - 1) * y)]


integer_power_p = Primitive(
    "integer_power", infer=_infer_multiplied, lower=_multiplied, vjp=_multiplied_gradient, shard="...->...",
    samples=lambda: [
        *[Sample((_GRID,), {"y": n}) for n in (-3, -1, 0, 1, 2, 5)], Sample((np.zeros((0, 2)),), {"y": 3}),
        Sample((np.array([0.0, -2.0]),), {"y": 3}), Sample((np.array([0.0, -0.0]),), {"y": -1}, grad=False),
        Bad((np.array([2]),), {"y": -1}, DTypeError, "Int64"), Bad((np.array([True]),), {"y": 2}, DTypeError, "Bool"),
    ],
)  # fmt: skip


def integer_power(x: Tensor, y: int) -> Any:
    """``x ** y`` for a small whole ``y`` by multiplication; integers take no negative ``y``."""
    if y == 1:
        return x
    return square(x) if y == 2 else apply(integer_power_p, x, y=y)


@operator(methods=True, aliases=("tensor_pow", "pows"))
def pow(input: Any, exponent: Any) -> Tensor:
    """Each element raised to a power.

    Args:
        input: base, a tensor or number.
        exponent: a tensor or number that broadcasts with it.

    Returns:
        A tensor of the promoted dtype. ``0 ** 0`` is 1; a negative base with a fraction is NaN; an integer with a
        negative exponent is 1 divided by the power, rounded towards zero (0 for base 0).

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> import mycelia as ms
    >>> print(ms.ops.pow(ms.Tensor([1.0, 2.0, -3.0]), 2))
    [1. 4. 9.]
    """
    input, exponent = plain(input), plain(exponent)  # powers are computed by what the exponent is
    kind = type(exponent)
    if (kind is int or kind is float) and -_LARGEST_MULTIPLIED <= exponent <= _LARGEST_MULTIPLIED:
        x = as_tensor(input, "pow")
        common = promote_scalar(x.dtype, float if kind is float else int)
        if exponent == int(exponent) and (exponent >= 0 or common.is_inexact):
            return integer_power(cast(x, common), int(exponent))  # type: ignore[no-any-return]
    a, b = same_dtype("pow", input, exponent, names=("input", "exponent"))
    if a.dtype.kind == "b":
        a, b = cast(a, dt.int64), cast(b, dt.int64)
    return apply(pow_p, a, b)  # type: ignore[no-any-return]


@operator(methods=True, aliases=("float_power_ext",))
def float_power(input: Any, exponent: Any) -> Tensor:
    """Each element raised to a power in double precision: float64, or complex128 if one of them is complex.

    >>> import mycelia as ms
    >>> ms.ops.float_power(ms.Tensor([2, 3]), -1).dtype
    mycelia.float64
    """
    a, b = same_dtype("float_power", input, exponent, names=("input", "exponent"))
    target = dt.complex128 if a.dtype.is_complex else dt.float64
    return apply(pow_p, cast(a, target), cast(b, target))  # type: ignore[no-any-return]


square_p = elementwise(
    "square", lax.square, dtypes=dt.NUMBERS, vjp=lambda ct, x, out: ct * conj(x * 2),
    samples=lambda: [Sample((_GRID,)), Sample((np.zeros((2, 0)),)), Sample((np.array(-1.5),))],
)  # fmt: skip


@operator(methods=True)
def square(input: Any) -> Tensor:
    """The square of each element.

    >>> import mycelia as ms
    >>> print(ms.ops.square(ms.Tensor([1, -3])))
    [1 9]
    """
    x = as_tensor(input, "square")
    return unary(square_p, "square", cast(x, dt.int64) if x.dtype.kind == "b" else x)


reciprocal_p = elementwise(
    "reciprocal", lambda x: lax.div(jnp.ones_like(x), x), onnx="Reciprocal",
    vjp=lambda ct, x, out: -(ct * conj(square(out))),
    samples=lambda: [
        Sample((_GRID,)), Sample((np.zeros((2, 0)),)), Sample((np.array([0.0, -0.0, np.inf, np.nan]),), grad=False),
    ],
)  # fmt: skip


@operator(methods=True)
def reciprocal(input: Any) -> Tensor:
    """One divided by each element; integers give float32.

    >>> import mycelia as ms
    >>> print(ms.ops.reciprocal(ms.Tensor([1, 4])))
    [1.   0.25]
    """
    return unary_float(reciprocal_p, "reciprocal", input)


@operator(methods=True)
def inv(x: Any) -> Tensor:
    """One divided by each element in the tensor's dtype; integers round towards zero, and 0 gives 0.

    >>> import mycelia as ms
    >>> print(ms.ops.inv(ms.Tensor([1.0, 4.0])))
    [1.   0.25]
    """
    from mycelia.ops.arithmetic import trunc_div_p

    t = as_tensor(x, "inv", "x")
    return unary(reciprocal_p, "inv", t) if t.dtype.is_inexact else binary(trunc_div_p, "inv", 1, t)


def _hypot_gradient(ct: Any, leg: Any, out: Any) -> Any:
    return ct * (leg / out)


hypot_p = elementwise(
    "hypot", jnp.hypot, arity=2, dtypes=dt.FLOATS,
    vjp=lambda ct, a, b, out: (lambda: _hypot_gradient(ct, a, out), lambda: _hypot_gradient(ct, b, out)),
    samples=lambda: [
        Sample((_GRID, _GRID[::-1] + 0.25)),
        Sample((np.array([3.0, 1e30]), np.array([4.0, 1e30])), grad=False, dtypes=False),
        Sample((np.array([0.0, np.inf, np.nan]), np.array([0.0, np.nan, 1.0])), grad=False),
        Sample((np.zeros((0, 3)), np.array(1.0))), Bad((_GRID, np.zeros(2)), {}, ShapeError, "broadcasts"),
    ],
)  # fmt: skip


@operator(methods=True)
def hypot(input: Any, other: Any) -> Tensor:
    """``sqrt(input ** 2 + other ** 2)`` without overflow; integers give float32.

    >>> import mycelia as ms
    >>> print(ms.ops.hypot(ms.Tensor([3.0]), ms.Tensor([4.0])))
    [5.]
    """
    return binary_float(hypot_p, "hypot", input, other)


@operator(methods=True)
def ldexp(x: Any, other: Any) -> Tensor:
    """``x * 2 ** other``; integers give float32.

    Args:
        x: a tensor.
        other: exponents, a tensor or number that broadcasts with it.

    >>> import mycelia as ms
    >>> print(ms.ops.ldexp(ms.Tensor([3.0]), ms.Tensor([4])))
    [48.]
    """
    a, b = floats("ldexp", x, other, names=("x", "other"))
    return a * pow(2, b)


attach("__pow__", operator_method(pow))
attach("__rpow__", operator_method(pow, reverse=True))
