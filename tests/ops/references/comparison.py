"""References of comparisons."""

from __future__ import annotations

import numpy as np

REFERENCES = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "isclose": lambda a, b, *, rtol, atol, equal_nan: np.isclose(a, b, rtol, atol, equal_nan),
}
