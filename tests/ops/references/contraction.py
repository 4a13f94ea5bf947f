"""References of the sums of products over named axes."""

from __future__ import annotations

import numpy as np

REFERENCES = {
    "einsum": lambda *arrays, equation: np.einsum(equation, *arrays),
    "cross": lambda a, b, *, axis: np.cross(*np.broadcast_arrays(a, b), axis=axis),
}
