"""References of normalization by neighbours."""

from __future__ import annotations

import numpy as np


def _lrn(x, *, radius, bias, alpha, beta):
    out = np.zeros_like(x)
    for c in range(x.shape[1]):
        near = x[:, max(c - radius, 0) : c + radius + 1]
        out[:, c] = x[:, c] / (bias + alpha * (near**2).sum(1)) ** beta
    return out


REFERENCES = {
    "l2_normalize": lambda x, *, axes, epsilon: x / np.sqrt(np.maximum((x**2).sum(axes, keepdims=True), epsilon)),
    "lrn": _lrn,
}
