"""Special functions: error functions, gamma functions, Bessel functions of the first kind, xlogy and their kin.

The definitions are those of NIST's Digital Library of Mathematical Functions (chapters 5, 7, 8, 10 and 25);
values and poles agree with SciPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ops.calls import as_float, attach_in_place, binary_float, unary_float
from mycelia.ops.declare import Bad, Sample, conj, elementwise
from mycelia.ops.operands import as_int
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_SPREAD = np.array([[-2.5, -1.1, -0.4], [0.25, 1.0, 3.0]])
_POSITIVE = np.array([[0.25, 0.5, 1.0], [1.5, 2.0, 8.0]])
_INSIDE = np.array([[-0.9, -0.5, 0.0], [0.25, 0.5, 0.75]])
_SPECIAL = np.array([0.0, np.inf, -np.inf, np.nan])


def wide(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A lowering that computes half precision in float32 and rounds once at the end."""

    def lower(*arrays: Any, **attrs: Any) -> Any:
        first = arrays[0].dtype
        if first.itemsize > 2 or first.kind == "b":
            return fn(*arrays, **attrs).astype(first)
        return fn(*[a.astype(np.float32) for a in arrays], **attrs).astype(first)

    return lower


def _on(points: Any, special: Any = _SPECIAL) -> Callable[[], list[Any]]:
    return lambda: [
        Sample((points,)), Sample((points[0, 0],)), Sample((np.zeros((2, 0)),)),
        Sample((np.array(special),), grad=False, dtypes=False), Bad((np.array([1j]),), {}, DTypeError, "Complex128"),
    ]  # fmt: skip


def _exp(x: Any) -> Any:
    from mycelia.ops.elementary import exp

    return exp(x)


def _log(x: Any) -> Any:
    from mycelia.ops.elementary import log

    return log(x)


_TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)


def _bell(x: Any, factor: float) -> Any:
    return _exp(-(x * x)) * factor


erf_p = elementwise(
    "erf", lax.erf, dtypes=dt.FLOATS, onnx="Erf", samples=_on(_SPREAD),
    vjp=lambda ct, x, out: ct * _bell(x, _TWO_BY_ROOT_PI),
)  # fmt: skip
erfc_p = elementwise(
    "erfc", lax.erfc, dtypes=dt.FLOATS, samples=_on(_SPREAD), vjp=lambda ct, x, out: ct * _bell(x, -_TWO_BY_ROOT_PI)
)
erfinv_p = elementwise(
    "erfinv", wide(lax.erf_inv), dtypes=dt.FLOATS, samples=_on(_INSIDE, (1.0, -1.0, 2.0, np.nan)),
    vjp=lambda ct, x, out: ct * (_exp(out * out) / _TWO_BY_ROOT_PI),
)  # fmt: skip


def _lgamma(x: Any) -> Any:
    pole = (x <= 0) & (x == jnp.floor(x))
    return jnp.where(pole, jnp.inf, lax.lgamma(x))


def _digamma(x: Any) -> Any:
    return jnp.where(x == 0, -jnp.copysign(jnp.inf, x), lax.digamma(x))


lgamma_p = elementwise(
    "lgamma", wide(_lgamma), dtypes=dt.FLOATS, vjp=lambda ct, x, out: ct * apply(digamma_p, x),
    samples=_on(np.array([[-2.5, -0.5, 0.25], [1.0, 3.5, 20.0]]), (0.0, -1.0, np.inf, np.nan)),
)  # fmt: skip
digamma_p: Primitive = elementwise(
    "digamma", wide(_digamma), dtypes=dt.FLOATS, vjp=lambda ct, x, out: ct * apply(polygamma_p, x, n=1),
    samples=_on(np.array([[-2.5, -0.3, 0.25], [1.0, 3.5, 20.0]]), (0.0, -0.0, -1.0, np.inf, np.nan)),
)  # fmt: skip


def _polygamma(x: Any, *, n: int) -> Any:
    return _digamma(x) if n == 0 else jsp.polygamma(n, x)


polygamma_p: Primitive = elementwise(
    "polygamma", wide(_polygamma), dtypes=dt.FLOATS, vjp=lambda ct, x, out, *, n: ct * apply(polygamma_p, x, n=n + 1),
    samples=lambda: [
        *[Sample((np.array([0.5, 1.0, 2.5, 6.0]),), {"n": n}) for n in (0, 1, 2, 3)],
        Sample((np.zeros((2, 0)),), {"n": 1}),
        Bad((np.array([1j]),), {"n": 1}, DTypeError, "Complex128"),
    ],
)  # fmt: skip


def _pairs(a: Any, b: Any) -> Callable[[], list[Any]]:
    return lambda: [
        Sample((a, b)), Sample((a[0], b)), Sample((np.array(a[0, 0]), b)), Sample((np.zeros((0, b.shape[1])), b[0])),
        Bad((a, np.ones(5)), {}, ShapeError, "broadcasts"), Bad((a + 1j, b + 1j), {}, DTypeError, "Complex128"),
    ]  # fmt: skip


def _gamma_pairs() -> list[Any]:
    return [
        *_pairs(_POSITIVE, _POSITIVE[::-1] + 0.1)(),
        Sample((np.array([2.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])), grad=False, dtypes=False),
    ]  # fmt: skip


def _gamma_density(a: Any, x: Any) -> Any:
    """The derivative of P(a, x) by x."""
    return _exp((a - 1) * _log(x) - x - lgamma(a))


def _gamma_density_by_order(a: Any, x: Any) -> Any:
    return _gamma_density(a, x) * (_log(x) - digamma(a))


#: Terms of the series of P(a, x): enough for x up to 800.
_GAMMA_TERMS = 1024


def _gamma_curvature(a: Any, x: Any) -> Any:
    """The second derivative of P(a, x) by a, from the series of positive terms (DLMF 8.7.1); NaN if x > 800."""
    k = a[..., None] + np.arange(1, _GAMMA_TERMS + 1)
    log_x = jnp.log(jnp.where(x > 0, x, 1))[..., None]
    terms = jnp.exp((k - 1) * log_x - x[..., None] - lax.lgamma(k))
    total = jnp.sum(terms * ((log_x - lax.digamma(k)) ** 2 - jsp.polygamma(1, k)), axis=-1)
    return jnp.where(x > 800, jnp.nan, jnp.where(x == 0, 0, total))


_GAMMA_PAIRS = _pairs(_POSITIVE, _POSITIVE[::-1] + 0.1)
igamma_grad_aa_p: Primitive = elementwise(
    "igamma_grad_aa", wide(_gamma_curvature), arity=2, dtypes=dt.FLOATS, samples=_GAMMA_PAIRS
)
igamma_grad_aa_p.derived_vjp = True
#: The derivative of P(a, x) by a.
igamma_grad_a_p: Primitive = elementwise(
    "igamma_grad_a", wide(lax.igamma_grad_a), arity=2, dtypes=dt.FLOATS, samples=_GAMMA_PAIRS,
    vjp=lambda ct, a, x, out: (
        lambda: ct * apply(igamma_grad_aa_p, a, x), lambda: ct * _gamma_density_by_order(a, x),
    ),
)  # fmt: skip
igamma_p = elementwise(
    "igamma", wide(jsp.gammainc), arity=2, dtypes=dt.FLOATS, samples=_gamma_pairs,
    vjp=lambda ct, a, x, out: (
        lambda: ct * apply(igamma_grad_a_p, a, x), lambda: ct * _gamma_density(a, x),
    ),
)  # fmt: skip
igammac_p = elementwise(
    "igammac", wide(jsp.gammaincc), arity=2, dtypes=dt.FLOATS, samples=_gamma_pairs,
    vjp=lambda ct, a, x, out: (
        lambda: -(ct * apply(igamma_grad_a_p, a, x)), lambda: -(ct * _gamma_density(a, x)),
    ),
)  # fmt: skip


#: B_2 / 2!, B_4 / 4!, ... of the Euler-Maclaurin formula.
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600)


def _zeta_sum(s: Any, q: Any) -> Any:
    """Hurwitz zeta by the Euler-Maclaurin formula (DLMF 25.11.28), smooth in the exponent too."""
    n = 12
    total = jnp.sum((q[..., None] + np.arange(n)) ** -s[..., None], axis=-1)
    last = q + n
    total += last ** (1 - s) / (s - 1) + last**-s / 2
    rising, power = s, last ** (-s - 1)
    for j, number in enumerate(_BERNOULLI):
        total += number * rising * power
        rising = rising * (s + 2 * j + 1) * (s + 2 * j + 2)
        power = power / (last * last)
    return total


def _zeta_by_order(s: Any, q: Any) -> Any:
    return jax.jvp(lambda order: _zeta_sum(order, q), (s,), (jnp.ones_like(s),))[1]


_ORDERS = np.array([[2.0, 3.5], [1.5, 6.0]])
zeta_by_order_p = elementwise(
    "zeta_by_order", wide(_zeta_by_order), arity=2, dtypes=dt.FLOATS, samples=_pairs(_ORDERS, _ORDERS - 0.7)
)
zeta_by_order_p.derived_vjp = True
zeta_p: Primitive = elementwise(
    "zeta", wide(jsp.zeta), arity=2, dtypes=dt.FLOATS,
    vjp=lambda ct, x, q, out: (
        lambda: ct * apply(zeta_by_order_p, x, q), lambda: -(ct * x * apply(zeta_p, x + 1, q)),
    ),
    samples=lambda: [
        *_pairs(_ORDERS, _ORDERS - 0.7)(),
        Sample((np.array([1.0, 2.0, np.nan]), np.array([1.0, 0.5, 1.0])), grad=False, dtypes=False),
    ],
)  # fmt: skip

i0_p = elementwise(
    "bessel_i0", wide(jsp.i0), dtypes=dt.FLOATS, samples=_on(_SPREAD, (0.0, np.nan)),
    vjp=lambda ct, x, out: ct * apply(i1_p, x),
)  # fmt: skip
i0e_p = elementwise(
    "bessel_i0e", wide(jsp.i0e), dtypes=dt.FLOATS, samples=_on(_SPREAD, (0.0, np.nan)),
    vjp=lambda ct, x, out: ct * (apply(i1e_p, x) - _sign(x) * out),
)  # fmt: skip
i1_p: Primitive = elementwise("bessel_i1", wide(jsp.i1), dtypes=dt.FLOATS, samples=_on(_SPREAD, (0.0, np.nan)))
i1e_p: Primitive = elementwise("bessel_i1e", wide(jsp.i1e), dtypes=dt.FLOATS, samples=_on(_SPREAD, (0.0, np.nan)))
i1_p.derived_vjp = i1e_p.derived_vjp = True


def _sign(x: Any) -> Any:
    from mycelia.ops.rounding import sign

    return sign(x)


sinc_p = elementwise(
    "sinc", wide(jnp.sinc), samples=lambda: [
        Sample((_SPREAD,)), Sample((np.array([0.0, 1.0, -2.0]),)), Sample((np.zeros((2, 0)),)),
        Sample((_SPREAD + 0.5j,), dtypes=False), Bad((np.array([1]),), {}, DTypeError, "Int64"),
    ],
)  # fmt: skip
sinc_p.derived_vjp = True

logit_p = elementwise(
    "logit", wide(lambda x: jnp.log(x) - jnp.log1p(-x)), dtypes=dt.FLOATS, vjp=lambda ct, x, out: ct / (x * (1 - x)),
    samples=_on(np.array([[0.1, 0.5, 0.9], [0.25, 0.75, 0.99]]), (0.0, 1.0, 1.5, np.nan)),
)  # fmt: skip


def _xlogy(x: Any, y: Any) -> Any:
    zero = (x == 0) & (y == y)
    return jnp.where(zero, 0, x * jnp.log(jnp.where(zero, 1, y)))


def _xlogy_by_x(ct: Any, x: Any, y: Any) -> Any:
    from mycelia.ops.selection import where

    flat = (x == 0) & (y <= 0)
    return where(flat, 0, ct * _log(where(flat, 1, y)))


xlogy_p = elementwise(
    "xlogy", wide(_xlogy), arity=2, dtypes=dt.FLOATS,
    vjp=lambda ct, x, y, out: (lambda: _xlogy_by_x(ct, x, y), lambda: ct * (x / y)),
    samples=lambda: [
        *_pairs(_SPREAD, _POSITIVE)(),
        Sample((np.array([0.0, 0.0, 0.0, 1.0, 2.0]), np.array([0.0, np.nan, np.inf, 0.0, -1.0])),
               grad=False, dtypes=False),
    ],
)  # fmt: skip


def _xdivy(x: Any, y: Any) -> Any:
    zero = (x == 0) & (y == y)
    return jnp.where(zero, jnp.zeros_like(x), x / jnp.where(zero, jnp.ones_like(y), y))


def _xdivy_by_x(ct: Any, x: Any, y: Any) -> Any:
    from mycelia.ops.operands import cast

    return ct * conj(apply(xdivy_p, cast(x != 0, y.dtype), y))


xdivy_p: Primitive = elementwise(
    "xdivy", _xdivy, arity=2,
    vjp=lambda ct, x, y, out: (lambda: _xdivy_by_x(ct, x, y), lambda: -(ct * conj(apply(xdivy_p, out, y)))),
    samples=lambda: [
        *_pairs(_SPREAD, _POSITIVE)()[:-1],
        Sample((np.array([0.0, 0.0, 1.0, -1.0]), np.array([0.0, np.nan, 0.0, np.inf])), grad=False, dtypes=False),
    ],
)  # fmt: skip

logaddexp_p = elementwise(
    "logaddexp", wide(jnp.logaddexp), arity=2, dtypes=dt.FLOATS, samples=lambda: [
        *_pairs(_SPREAD, _POSITIVE)(),
        Sample((np.array([-np.inf, np.inf, 1000.0, np.nan]), np.array([-np.inf, 1.0, 1000.0, 1.0])),
               grad=False, dtypes=False),
    ],
)  # fmt: skip
logaddexp2_p = elementwise(
    "logaddexp2", wide(jnp.logaddexp2), arity=2, dtypes=dt.FLOATS, samples=lambda: [
        *_pairs(_SPREAD, _POSITIVE)(),
        Sample((np.array([-np.inf, np.inf, 1000.0, np.nan]), np.array([-np.inf, 1.0, 1000.0, 1.0])),
               grad=False, dtypes=False),
    ],
)  # fmt: skip
logaddexp_p.derived_vjp = logaddexp2_p.derived_vjp = True


@operator(methods=True)
def erf(input: Any) -> Tensor:
    """Error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t*t)`` from 0 to each element.

    >>> import mycelia as ms
    >>> f"{ms.ops.erf(ms.Tensor(0.5)).item():.4f}"
    '0.5205'
    """
    return unary_float(erf_p, "erf", input)


@operator(methods=True)
def erfc(input: Any) -> Tensor:
    """Complementary error function ``1 - erf(x)``, precise for large ``x``.

    >>> import mycelia as ms
    >>> f"{ms.ops.erfc(ms.Tensor(0.5)).item():.4f}"
    '0.4795'
    """
    return unary_float(erfc_p, "erfc", input)


@operator(methods=True)
def erfinv(input: Any) -> Tensor:
    """Inverse of the error function; infinite at -1 and 1, NaN beyond.

    >>> import mycelia as ms
    >>> f"{ms.ops.erfinv(ms.Tensor(0.5)).item():.4f}"
    '0.4769'
    """
    return unary_float(erfinv_p, "erfinv", input)


@operator(methods=True)
def lgamma(input: Any) -> Tensor:
    """Logarithm of the magnitude of the gamma function; infinite at 0, -1, -2, ...

    >>> import mycelia as ms
    >>> f"{ms.ops.lgamma(ms.Tensor(3.5)).item():.4f}"
    '1.2010'
    """
    return unary_float(lgamma_p, "lgamma", input)


@operator(methods=True)
def digamma(input: Any) -> Tensor:
    """Derivative of :func:`lgamma`; NaN at -1, -2, ...

    >>> import mycelia as ms
    >>> f"{ms.ops.digamma(ms.Tensor(1.0)).item():.4f}"
    '-0.5772'
    """
    return unary_float(digamma_p, "digamma", input)


@operator()
def bessel_i0e(x: Any) -> Tensor:
    """``exp(-abs(x))`` times the modified Bessel function of order 0.

    >>> import mycelia as ms
    >>> f"{ms.ops.bessel_i0e(ms.Tensor(1.0)).item():.4f}"
    '0.4658'
    """
    return unary_float(i0e_p, "bessel_i0e", x)


@operator()
def bessel_i1(x: Any) -> Tensor:
    """Modified Bessel function of the first kind of order 1.

    >>> import mycelia as ms
    >>> f"{ms.ops.bessel_i1(ms.Tensor(1.0)).item():.4f}"
    '0.5652'
    """
    return unary_float(i1_p, "bessel_i1", x)


@operator()
def bessel_i1e(x: Any) -> Tensor:
    """``exp(-abs(x))`` times the modified Bessel function of order 1.

    >>> import mycelia as ms
    >>> f"{ms.ops.bessel_i1e(ms.Tensor(1.0)).item():.4f}"
    '0.2079'
    """
    return unary_float(i1e_p, "bessel_i1e", x)


@operator(methods=True)
def sinc(input: Any) -> Tensor:
    """``sin(pi x) / (pi x)``; 1 at 0.

    >>> import mycelia as ms
    >>> f"{ms.ops.sinc(ms.Tensor(0.5)).item():.4f}"
    '0.6366'
    """
    return unary_float(sinc_p, "sinc", input)


@operator()
def bessel_i0(x: Any) -> Tensor:
    """Modified Bessel function of the first kind of order 0.

    >>> import mycelia as ms
    >>> f"{ms.ops.bessel_i0(ms.Tensor(1.0)).item():.4f}"
    '1.2661'
    """
    return unary_float(i0_p, "bessel_i0", x)


@operator(methods=True)
def i0(input: Any) -> Tensor:
    """Modified Bessel function of the first kind of order 0 (see :func:`bessel_i0`).

    >>> import mycelia as ms
    >>> f"{ms.ops.i0(ms.Tensor(1.0)).item():.4f}"
    '1.2661'
    """
    return unary_float(i0_p, "i0", input)


@operator()
def polygamma(n: Any, input: Any) -> Tensor:
    """The n-th derivative of :func:`digamma`.

    Args:
        n: order, an int or a tensor of one integer, not negative.
        input: a real tensor.

    Raises:
        ArgumentValueError: a negative order.

    >>> import mycelia as ms
    >>> f"{ms.ops.polygamma(1, ms.Tensor(1.0)).item():.4f}"
    '1.6449'
    """
    order = as_int(n.item() if isinstance(n, Tensor) else n, "polygamma", "n")
    if order < 0:
        raise ArgumentValueError("polygamma", "n", got=str(order), takes="an order of at least 0")
    return unary_float(polygamma_p, "polygamma", input, n=order)


@operator(methods=True)
def mvlgamma(input: Any, p: int) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension ``p``.

    Args:
        input: a real tensor; defined where elements are larger than ``(p - 1) / 2``.
        p: dimension, at least 1.

    Raises:
        ArgumentValueError: ``p`` is below 1.

    >>> import mycelia as ms
    >>> f"{ms.ops.mvlgamma(ms.Tensor(3.0), 2).item():.4f}"
    '1.5502'
    """
    x: Any = as_float(input, "mvlgamma")
    order = as_int(p, "mvlgamma", "p")
    if order < 1:
        raise ArgumentValueError("mvlgamma", "p", got=str(order), takes="a dimension of at least 1")
    total: Any = order * (order - 1) / 4 * math.log(math.pi)
    for j in range(order):
        total = lgamma(x - j / 2) + total
    return total  # type: ignore[no-any-return]


@operator(methods=True)
def igamma(input: Any, other: Any) -> Tensor:
    """Regularized lower incomplete gamma function P(a, x).

    Args:
        input: a, positive.
        other: x, not negative, broadcasting with it.

    >>> import mycelia as ms
    >>> f"{ms.ops.igamma(ms.Tensor(2.0), ms.Tensor(1.0)).item():.4f}"
    '0.2642'
    """
    return binary_float(igamma_p, "igamma", input, other)


@operator(methods=True)
def igammac(input: Any, other: Any) -> Tensor:
    """Regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x) (see :func:`igamma`).

    >>> import mycelia as ms
    >>> f"{ms.ops.igammac(ms.Tensor(2.0), ms.Tensor(1.0)).item():.4f}"
    '0.7358'
    """
    return binary_float(igammac_p, "igammac", input, other)


@operator()
def zeta(input: Any, other: Any) -> Tensor:
    """Hurwitz zeta function: the sum of ``(k + other) ** -input`` over k = 0, 1, 2, ...

    Args:
        input: exponents, larger than 1.
        other: offsets, positive, broadcasting with them.

    >>> import mycelia as ms
    >>> f"{ms.ops.zeta(ms.Tensor(2.0), ms.Tensor(1.0)).item():.4f}"
    '1.6449'
    """
    return binary_float(zeta_p, "zeta", input, other)


@operator(methods=True)
def logit(input: Any, eps: float | None = None) -> Tensor:
    """``log(x / (1 - x))``, the inverse of the sigmoid.

    Args:
        input: a real tensor with elements in [0, 1]; NaN outside.
        eps: clamp the elements to [eps, 1 - eps] first.

    >>> import mycelia as ms
    >>> f"{ms.ops.logit(ms.Tensor(0.75)).item():.4f}"
    '1.0986'
    """
    from mycelia.ops.selection import clamp

    x = as_float(input, "logit")
    return unary_float(logit_p, "logit", x if eps is None else clamp(x, eps, 1 - eps))


@operator(methods=True)
def xlogy(input: Any, other: Any) -> Tensor:
    """``input * log(other)``, and 0 where ``input`` is 0 (NaN where ``other`` is NaN), with broadcasting.

    >>> import mycelia as ms
    >>> print(ms.ops.xlogy(ms.Tensor([0.0, 2.0]), ms.Tensor([0.0, 1.0])))
    [0. 0.]
    """
    return binary_float(xlogy_p, "xlogy", input, other)


@operator()
def xdivy(x: Any, y: Any) -> Tensor:
    """``x / y``, and 0 where ``x`` is 0 (NaN where ``y`` is NaN), with broadcasting.

    >>> import mycelia as ms
    >>> print(ms.ops.xdivy(ms.Tensor([0.0, 1.0]), ms.Tensor([0.0, 2.0])))
    [0.  0.5]
    """
    return binary_float(xdivy_p, "xdivy", x, y, ("x", "y"))


@operator(methods=True)
def logaddexp(input: Any, other: Any) -> Tensor:
    """``log(exp(input) + exp(other))`` without overflow, with broadcasting.

    >>> import mycelia as ms
    >>> f"{ms.ops.logaddexp(ms.Tensor(1.0), ms.Tensor(1.0)).item():.4f}"
    '1.6931'
    """
    return binary_float(logaddexp_p, "logaddexp", input, other)


@operator(methods=True)
def logaddexp2(input: Any, other: Any) -> Tensor:
    """``log2(2 ** input + 2 ** other)`` without overflow, with broadcasting.

    >>> import mycelia as ms
    >>> print(ms.ops.logaddexp2(ms.Tensor([1.0]), ms.Tensor([1.0])))
    [2.]
    """
    return binary_float(logaddexp2_p, "logaddexp2", input, other)


attach("xdivy", xdivy)
attach_in_place("erfinv_", erfinv)
