"""References of the largest and smallest elements along axes."""

from __future__ import annotations

import numpy as np


def _weights(x, extreme, *, axes):
    same = np.where(np.isnan(extreme), np.isnan(x), x == extreme)
    return same / same.sum(axis=axes, keepdims=True)


def _place(find):
    def reference(x, *, axis, keepdims, dtype=np.int64):
        if x.ndim == 0:
            return np.zeros((), np.int64)
        return np.asarray(find(x, axis=axis, keepdims=keepdims)).astype(getattr(dtype, "np", dtype))

    return reference


def _both(largest, find):
    def reference(x, *, axis, keepdims):
        place = _place(find)(x, axis=axis, keepdims=keepdims)
        return (largest(x, axis=axis, keepdims=keepdims) if x.ndim else x), place

    return reference


REFERENCES = {
    "tie_weights": _weights,
    "reduce_max": lambda x, *, axes, keepdims: np.max(x, axis=axes, keepdims=keepdims),
    "reduce_min": lambda x, *, axes, keepdims: np.min(x, axis=axes, keepdims=keepdims),
    "argmax": _place(np.argmax),
    "argmin": _place(np.argmin),
    "max_with_index": _both(np.max, np.argmax),
    "min_with_index": _both(np.min, np.argmin),
}
