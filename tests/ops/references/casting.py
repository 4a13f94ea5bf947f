"""References of conversions between dtypes."""

from __future__ import annotations

import numpy as np


def _cast(x, *, dtype):
    if dtype.kind == "b":
        return x != 0
    x = np.real(x) if dtype.kind != "c" else x
    if x.dtype.kind == "f" and dtype.kind in "iu":
        bounds = np.iinfo(dtype.np)
        return np.clip(np.trunc(x), bounds.min, bounds.max).astype(dtype.np)
    return x.astype(dtype.np)


REFERENCES = {"cast": _cast}
