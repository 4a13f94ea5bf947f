"""References of the logarithm of a sum of exponentials."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp


def _logsumexp(x, *, axes, keepdims):
    if not axes:
        return x
    if x.size == 0:
        return np.full(np.sum(x, axis=axes, keepdims=keepdims).shape, -np.inf)
    return logsumexp(x, axis=axes, keepdims=keepdims)


REFERENCES = {"logsumexp": _logsumexp}
