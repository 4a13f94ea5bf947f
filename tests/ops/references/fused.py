"""References of operators that stand for several others."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr


def _gelu_grad(ct, x):
    return ct * (ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi))


REFERENCES = {"gelu_grad": _gelu_grad}
