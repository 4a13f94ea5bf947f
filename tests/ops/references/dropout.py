"""References of dropout: the mask from the bits of the generator, and what it does."""

from __future__ import annotations

import numpy as np
from tests.ops.references.random import words


def _dropped(x, mask, *, p):
    return np.where(mask, x / (1 - p) if p < 1 else 0.0, 0.0)


def _dropout(key, x, *, p, mask_shape):
    bits = 16 if 1 / 256 <= p <= 255 / 256 else 32
    mask = np.full(mask_shape, p == 0) if p in (0, 1) else words(key, mask_shape, bits) < round((1 - p) * 2**bits)
    return _dropped(x, mask, p=p), mask


REFERENCES = {"dropout": _dropout, "dropped": _dropped}
