"""References of concat, split, stack and unstack."""

from __future__ import annotations

import numpy as np

REFERENCES = {
    "concat": lambda *arrays, axis: np.concatenate(arrays, axis),
    "split": lambda x, *, axis, sizes: tuple(np.split(x, np.cumsum(sizes)[:-1], axis)),
    "stack": lambda *arrays, axis: np.stack(arrays, axis),
    "unstack": lambda x, *, axis: tuple(np.moveaxis(x, axis, 0)),
}
