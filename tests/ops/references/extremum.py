"""References of maxima and minima."""

from __future__ import annotations

import numpy as np


def _share(ct, a, b):
    """What the larger operand gets of the cotangent, element by element."""
    ct, a, b = np.broadcast_arrays(ct, a, b)
    shares = [0.0 if x < y else 0.5 if x == y else 1.0 for x, y in zip(a.ravel(), b.ravel(), strict=True)]
    return np.array([c * s if s else 0.0 for c, s in zip(ct.ravel(), shares, strict=True)]).reshape(ct.shape)


REFERENCES = {
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "maximum_share": _share,
}
