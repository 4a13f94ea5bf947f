"""References of the losses that are primitives."""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit, rel_entr


def _bce(x, t):
    return -(t * np.log(np.maximum(x, 1e-12)) + (1 - t) * np.log(np.maximum(1 - x, 1e-12)))


def _bce_weighted(x, t, w):
    return -(w * t * log_expit(x) + (1 - t) * log_expit(-x))


def _kl(x, t):
    x, t = np.broadcast_arrays(x, t)
    return np.where(t > 0, rel_entr(np.maximum(t, 0), 1.0) - np.where(t > 0, t * x, 0), 0)


REFERENCES = {
    "binary_cross_entropy": _bce,
    "sigmoid_cross_entropy": lambda x, t: _bce_weighted(x, t, 1.0),
    "weighted_sigmoid_cross_entropy": _bce_weighted,
    "kl_div": _kl,
}
