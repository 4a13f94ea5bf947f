"""References of the reductions of :mod:`mycelia.ops.reduction`."""

from __future__ import annotations

import numpy as np

REFERENCES = {
    "reduce_sum": lambda x, *, axes, keepdims: np.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype),
    "reduce_mean": lambda x, *, axes, keepdims: np.mean(x, axis=axes, keepdims=keepdims),
    "reduce_prod": lambda x, *, axes, keepdims: np.prod(x, axis=axes, keepdims=keepdims, dtype=x.dtype),
    "reduce_all": lambda x, *, axes, keepdims: np.all(x, axis=axes, keepdims=keepdims),
    "reduce_any": lambda x, *, axes, keepdims: np.any(x, axis=axes, keepdims=keepdims),
    "count_nonzero": lambda x, *, axes, keepdims, dtype: np.sum(x != 0, axis=axes, keepdims=keepdims).astype(dtype.np),
}
