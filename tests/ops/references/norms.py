"""References of vector norms."""

from __future__ import annotations

import numpy as np


def _vector_norm(x, *, axes, keepdims, ord):
    if not axes:
        return np.abs(x)
    moved = np.moveaxis(x, axes, range(len(axes)))
    flat = moved.reshape(int(np.prod(moved.shape[: len(axes)])), *moved.shape[len(axes) :])
    out = np.linalg.norm(flat, ord, axis=0) if flat.size else np.zeros(flat.shape[1:])
    return np.expand_dims(out, axes) if keepdims else out


def _ratio_or_zero(a, b):
    a, b = np.broadcast_arrays(a, b)
    return np.divide(a, b, out=np.zeros_like(a), where=b != 0)


REFERENCES = {"vector_norm": _vector_norm, "ratio_or_zero": _ratio_or_zero}
