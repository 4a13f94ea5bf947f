"""References of sums, products, quotients and remainders."""

from __future__ import annotations

import functools

import numpy as np


def quiet(fn):
    """``fn`` without NumPy's warnings: divisions by zero are part of the samples."""

    @functools.wraps(fn)
    def run(*arrays, **attrs):
        with np.errstate(all="ignore"):
            return fn(*arrays, **attrs)

    return run


def _trunc_div(a, b):
    if a.dtype.kind in "iu":
        quotient = np.floor_divide(a, b)
        rest = a - quotient * b
        return quotient + ((rest != 0) & (quotient < 0) & (b != 0)).astype(a.dtype)
    return np.trunc(np.divide(a, b))


def _lerp(start, end, weight):
    return start * (1 - weight) + end * weight


REFERENCES = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": quiet(np.divide),
    "neg": np.negative,
    "floor_div": quiet(np.floor_divide),
    "trunc_div": quiet(_trunc_div),
    "remainder": quiet(np.remainder),
    "fmod": quiet(np.fmod),
    "lerp": _lerp,
    "add_n": lambda *arrays: np.sum(np.stack(arrays), axis=0).astype(arrays[0].dtype),
}
