"""References of special functions, from SciPy."""

from __future__ import annotations

import functools

import numpy as np
from scipy import special


def _quiet(fn):
    @functools.wraps(fn)
    def run(*arrays, **attrs):
        with np.errstate(all="ignore"):
            return fn(*arrays, **attrs)

    return run


def _xdivy(x, y):
    return np.where((x == 0) & ~np.isnan(y), 0, x / y)


def _difference(fn, a, x, h):
    """A five-point difference in the first argument."""
    at = [fn(a + k * h, x) for k in (-2, -1, 1, 2)]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)


def _second_difference(fn, a, x, h):
    at = [fn(a + k * h, x) for k in (-3, -2, -1, 0, 1, 2, 3)]
    weights = np.array([2, -27, 270, -490, 270, -27, 2]) / 180
    return sum(w * v for w, v in zip(weights, at, strict=True)) / h**2


REFERENCES = {
    "igamma_grad_a": lambda a, x: _difference(special.gammainc, a, x, 1e-3),
    "igamma_grad_aa": lambda a, x: _second_difference(special.gammainc, a, x, 1e-2),
    "zeta_by_order": lambda s, q: _difference(special.zeta, s, q, 1e-3),
    "erf": special.erf,
    "erfc": special.erfc,
    "erfinv": special.erfinv,
    "lgamma": special.gammaln,
    "digamma": special.digamma,
    "polygamma": lambda x, *, n: special.polygamma(n, x),
    "igamma": special.gammainc,
    "igammac": special.gammaincc,
    "zeta": special.zeta,
    "bessel_i0": special.i0,
    "bessel_i0e": special.i0e,
    "bessel_i1": special.i1,
    "bessel_i1e": special.i1e,
    "sinc": np.sinc,
    "logit": _quiet(special.logit),
    "xlogy": _quiet(special.xlogy),
    "xdivy": _quiet(_xdivy),
    "logaddexp": _quiet(np.logaddexp),
    "logaddexp2": _quiet(np.logaddexp2),
}
