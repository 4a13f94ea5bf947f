"""References of rotary position embedding: pairs as complex numbers times ``i``."""

from __future__ import annotations

import numpy as np


def _turned(x, *, interleaved):
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else np.split(x, 2, -1)
    z = (a + 1j * b) * 1j
    out = np.zeros_like(x)
    if interleaved:
        out[..., ::2], out[..., 1::2] = z.real, z.imag
        return out
    return np.concatenate([z.real, z.imag], -1)


REFERENCES = {
    "turned_pairs": _turned,
    "rotary_embedding": lambda x, cos, sin, *, interleaved: x * cos + _turned(x, interleaved=interleaved) * sin,
}
