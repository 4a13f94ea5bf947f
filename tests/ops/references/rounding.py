"""References of rounding, signs and magnitudes."""

from __future__ import annotations

import numpy as np


def _heaviside(x, values):
    return np.where(np.isnan(x), x, np.heaviside(x, values)) if x.dtype.kind == "f" else np.heaviside(x, values)


def _sgn(x):
    size = np.abs(x)
    return np.divide(x, size, out=np.zeros_like(x), where=size != 0)


def _round(x, *, decimals):
    with np.errstate(all="ignore"):
        rounded = np.round(x, decimals)
    return rounded if x.dtype.kind != "f" else np.where(np.isfinite(x) & ~np.isfinite(rounded), x, rounded)


def _frac(x):
    with np.errstate(all="ignore"):
        return x - np.trunc(x)


def _nan_to_num(x, *, nan, posinf, neginf):
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


REFERENCES = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": _round,
    "frac": _frac,
    "abs": np.abs,
    "sign": np.sign,
    "sgn": _sgn,
    "heaviside": _heaviside,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "nan_to_num": _nan_to_num,
}
