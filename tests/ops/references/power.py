"""References of powers."""

from __future__ import annotations

import numpy as np


def _pow(a, b):
    with np.errstate(all="ignore"):
        if a.dtype.kind == "u":
            return np.power(a, b)
        if a.dtype.kind == "i":
            whole = np.power(a, np.maximum(b, 0))
            inverse = np.trunc(np.where(a == 0, 0.0, np.float_power(np.where(a == 0, 1, a), np.minimum(b, 0))))
            return np.where(b < 0, inverse.astype(a.dtype), whole)
        return np.power(a, b)


def _integer_power(x, *, y):
    with np.errstate(all="ignore"):
        return x**y if x.dtype.kind in "iu" else np.power(x, float(y))


def _reciprocal(x):
    with np.errstate(all="ignore"):
        return 1 / x


REFERENCES = {
    "pow": _pow,
    "integer_power": _integer_power,
    "square": lambda x: x * x,
    "reciprocal": _reciprocal,
    "hypot": np.hypot,
}
