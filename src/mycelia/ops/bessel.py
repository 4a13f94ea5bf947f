"""Bessel functions J, Y and K of orders 0 and 1, computed in double precision (chapter 10 of the DLMF).

J near 0 is the trapezoidal rule on Bessel's integral (10.9.1), which converges exponentially; Y and K are
their series (10.8, 10.31) for small arguments and Gauss-Legendre quadrature of their integrals (10.9.7,
10.32.9) beyond; J and Y of large arguments are Hankel's expansions (10.17). Y and K are NaN for negative
arguments, infinite at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import DTypeError
from mycelia.ir.primitive import Primitive
from mycelia.ops.calls import unary_float
from mycelia.ops.declare import Bad, Sample, elementwise
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

#: From here on Hankel's expansions reach double precision before they diverge.
_FAR = 25.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_TERMS = np.arange(24)
_FACTORIALS = np.array([math.factorial(k) for k in range(26)], float)
_HARMONIC = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, 26))])


def _double(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: fn(x.astype(np.float64)).astype(x.dtype)


def _series(x: Any, order: int, sign: int, weights: Any) -> Any:
    """The sum of ``weights[k] * sign**k * (x/2)**(2k + order) / (k! (k + order)!)``."""
    factors = weights * float(sign) ** _TERMS / (_FACTORIALS[_TERMS] * _FACTORIALS[_TERMS + order])
    half = x[..., None] / 2
    return jnp.sum(factors * half ** (2 * _TERMS + order), axis=-1)


def _expansion(x: Any, order: int) -> tuple[Any, Any, Any]:
    """The two sums of Hankel's expansion with their common factor, and the angle."""
    coefficients = [1.0]
    for k in range(1, 24):
        coefficients.append(coefficients[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    a = np.array(coefficients)
    signs = (-1.0) ** np.arange(12)
    inverse = 1 / x[..., None]
    even = jnp.sum(signs * a[0::2] * inverse ** (2 * np.arange(12)), axis=-1)
    odd = jnp.sum(signs * a[1::2] * inverse ** (2 * np.arange(12) + 1), axis=-1)
    size = jnp.sqrt(2 / (math.pi * x))
    return size * even, size * odd, x - order * math.pi / 2 - math.pi / 4


def _on_range(function: Callable[[Any], Any], length: Any) -> Any:
    """The integral of ``function`` from 0 to ``length``."""
    half = length[..., None] / 2
    return jnp.sum(_WEIGHTS * function(half * (_NODES + 1)), axis=-1) * length / 2


def _first_kind(order: int) -> Callable[[Any], Any]:
    angles = np.arange(64) * (2 * math.pi / 64)

    def j(x: Any) -> Any:
        size = jnp.abs(x)
        near = jnp.minimum(size, _FAR)[..., None]
        by_integral = jnp.mean(jnp.cos(order * angles - near * np.sin(angles)), axis=-1)
        far = jnp.clip(size, _FAR, 1e300)
        even, odd, angle = _expansion(far, order)
        value = jnp.where(size < _FAR, by_integral, even * jnp.cos(angle) - odd * jnp.sin(angle))
        value = jnp.where(jnp.isinf(x), 0, jnp.where(jnp.isnan(x), jnp.nan, value))
        return jnp.where(x < 0, -value, value) if order else value

    return j


def _logarithmic(x: Any, order: int, sign: int) -> Any:
    """The part with digamma of the series of Y and K: the sum of ``(psi(k + 1) + psi(k + order + 1)) * term``."""
    psi = _HARMONIC[_TERMS] + _HARMONIC[_TERMS + order] - 2 * np.euler_gamma
    return _series(x, order, sign, psi)


def _second_kind(order: int) -> Callable[[Any], Any]:
    def y(x: Any) -> Any:
        small = jnp.clip(x, 1e-300, 3.0)
        ones = np.ones(24)
        series = (2 * jnp.log(small / 2) * _series(small, order, -1, ones) - _logarithmic(small, order, -1)) / math.pi
        if order:
            series = series - 2 / (math.pi * small)
        middle = jnp.clip(x, 3.0, _FAR)
        turn = _on_range(lambda t: jnp.sin(middle[..., None] * jnp.sin(t) - order * t), jnp.full_like(x, math.pi))

        def decay(t: Any) -> Any:
            growth = 2 * jnp.sinh(t) if order else 2.0
            return growth * jnp.exp(-middle[..., None] * jnp.sinh(t))

        quadrature = (turn - _on_range(decay, jnp.arcsinh(45 / middle))) / math.pi
        far = jnp.clip(x, _FAR, 1e300)
        even, odd, angle = _expansion(far, order)
        large = jnp.where(jnp.isinf(x), 0, even * jnp.sin(angle) + odd * jnp.cos(angle))
        value = jnp.where(x < 3, series, jnp.where(x < _FAR, quadrature, large))
        return jnp.where(x == 0, -jnp.inf, jnp.where((x < 0) | (x != x), jnp.nan, value))

    return y


def _modified(order: int, scaled: bool) -> Callable[[Any], Any]:
    def k(x: Any) -> Any:
        small = jnp.clip(x, 1e-300, 1.0)
        log_part = jnp.log(small / 2) * _series(small, order, 1, np.ones(24))
        if order:
            series = 1 / small + log_part - _logarithmic(small, 1, 1) / 2
        else:
            series = -log_part + _logarithmic(small, 0, 1) / 2
        large = jnp.clip(x, 1.0, 1e300)

        def decay(t: Any) -> Any:
            growth = jnp.cosh(t) if order else 1.0
            return growth * jnp.exp(-2 * large[..., None] * jnp.sinh(t / 2) ** 2)

        by_quadrature = _on_range(decay, 2 * jnp.arcsinh(jnp.sqrt(22.5 / large)))
        if scaled:
            value = jnp.where(x < 1, series * jnp.exp(small), by_quadrature)
        else:
            value = jnp.where(x < 1, series, by_quadrature * jnp.exp(-large))
        value = jnp.where(jnp.isinf(x), 0, value)
        return jnp.where(x == 0, jnp.inf, jnp.where((x < 0) | (x != x), jnp.nan, value))

    return k


def _points(positive: bool) -> Callable[[], list[Any]]:
    points = np.array([[0.25, 1.5, 2.9], [3.5, 24.0, 40.0]])
    return lambda: [
        Sample((points,)), Sample((points if positive else -points,)), Sample((np.array(0.75),)),
        Sample((np.zeros((2, 0)),)), Sample((np.array([0.0, np.nan, -1.5]),), grad=False, dtypes=False),
        Bad((np.array([1j]),), {}, DTypeError, "Complex128"),
    ]  # fmt: skip


def _declare(name: str, lower: Callable[[Any], Any], vjp: Callable[..., Any], positive: bool = True) -> Primitive:
    return elementwise(name, _double(lower), dtypes=dt.FLOATS, vjp=vjp, samples=_points(positive))


def _ratio(x: Any, out: Any) -> Any:
    """J1(x) / x, 1/2 at 0."""
    from mycelia.ops.selection import where

    zero = x == 0
    return where(zero, 0.5, out / where(zero, 1, x))


j0_p: Primitive = _declare("bessel_j0", _first_kind(0), lambda ct, x, out: -(ct * apply(j1_p, x)), positive=False)
j1_p: Primitive = _declare(
    "bessel_j1", _first_kind(1), lambda ct, x, out: ct * (apply(j0_p, x) - _ratio(x, out)), positive=False
)
y0_p: Primitive = _declare("bessel_y0", _second_kind(0), lambda ct, x, out: -(ct * apply(y1_p, x)))
y1_p: Primitive = _declare("bessel_y1", _second_kind(1), lambda ct, x, out: ct * (apply(y0_p, x) - out / x))
k0_p: Primitive = _declare("bessel_k0", _modified(0, False), lambda ct, x, out: -(ct * apply(k1_p, x)))
k1_p: Primitive = _declare("bessel_k1", _modified(1, False), lambda ct, x, out: -(ct * (apply(k0_p, x) + out / x)))
k0e_p: Primitive = _declare("bessel_k0e", _modified(0, True), lambda ct, x, out: ct * (out - apply(k1e_p, x)))
k1e_p: Primitive = _declare("bessel_k1e", _modified(1, True), lambda ct, x, out: ct * (out - apply(k0e_p, x) - out / x))


@operator()
def bessel_j0(x: Any) -> Tensor:
    """Bessel function of the first kind of order 0.

    >>> import mycelia as ms
    >>> f"{ms.ops.bessel_j0(ms.Tensor(1.0)).item():.4f}"
    '0.7652'
    """
    return unary_float(j0_p, "bessel_j0", x)


@operator()
def bessel_j1(x: Any) -> Tensor:
    """Bessel function of the first kind of order 1.

    >>> import mycelia as ms
    >>> f"{ms.ops.bessel_j1(ms.Tensor(1.0)).item():.4f}"
    '0.4401'
    """
    return unary_float(j1_p, "bessel_j1", x)


@operator()
def bessel_y0(x: Any) -> Tensor:
    """Bessel function of the second kind of order 0.

    >>> import mycelia as ms
    >>> f"{ms.ops.bessel_y0(ms.Tensor(1.0)).item():.4f}"
    '0.0883'
    """
    return unary_float(y0_p, "bessel_y0", x)


@operator()
def bessel_y1(x: Any) -> Tensor:
    """Bessel function of the second kind of order 1.

    >>> import mycelia as ms
    >>> f"{ms.ops.bessel_y1(ms.Tensor(1.0)).item():.4f}"
    '-0.7812'
    """
    return unary_float(y1_p, "bessel_y1", x)


@operator()
def bessel_k0(x: Any) -> Tensor:
    """Modified Bessel function of the second kind of order 0.

    >>> import mycelia as ms
    >>> f"{ms.ops.bessel_k0(ms.Tensor(1.0)).item():.4f}"
    '0.4210'
    """
    return unary_float(k0_p, "bessel_k0", x)


@operator()
def bessel_k0e(x: Any) -> Tensor:
    """``exp(x)`` times the modified Bessel function of the second kind of order 0.

    >>> import mycelia as ms
    >>> f"{ms.ops.bessel_k0e(ms.Tensor(1.0)).item():.4f}"
    '1.1445'
    """
    return unary_float(k0e_p, "bessel_k0e", x)


@operator()
def bessel_k1(x: Any) -> Tensor:
    """Modified Bessel function of the second kind of order 1.

    >>> import mycelia as ms
    >>> f"{ms.ops.bessel_k1(ms.Tensor(1.0)).item():.4f}"
    '0.6019'
    """
    return unary_float(k1_p, "bessel_k1", x)


@operator()
def bessel_k1e(x: Any) -> Tensor:
    """``exp(x)`` times the modified Bessel function of the second kind of order 1.

    >>> import mycelia as ms
    >>> f"{ms.ops.bessel_k1e(ms.Tensor(1.0)).item():.4f}"
    '1.6362'
    """
    return unary_float(k1e_p, "bessel_k1e", x)
