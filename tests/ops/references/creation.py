"""References of tensors made from nothing."""

from __future__ import annotations

import numpy as np

REFERENCES = {
    "full": lambda *, shape, value, dtype: np.full(shape, value, dtype.np),
    "arange": lambda *, start, step, size, dtype: np.array([start + i * step for i in range(size)]).astype(dtype.np),
    "linspace": lambda *, start, stop, size, dtype: np.linspace(start, stop, size).astype(dtype.np),
    "eye": lambda *, n, m, dtype: np.eye(n, m).astype(dtype.np),
}
