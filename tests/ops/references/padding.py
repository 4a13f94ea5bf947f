"""References of padding."""

from __future__ import annotations

import numpy as np


def _constant(x, value, *, config):
    for axis, (low, high, between) in enumerate(config):
        rows = np.moveaxis(x, axis, 0)
        spread = np.full((max(len(rows) * (between + 1) - between, 0), *rows.shape[1:]), value, x.dtype)
        spread[:: between + 1] = rows
        grown = np.concatenate([np.full((max(n, 0), *rows.shape[1:]), value, x.dtype) for n in (low,)] + [spread] + [
            np.full((max(high, 0), *rows.shape[1:]), value, x.dtype)
        ])  # fmt: skip
        x = np.moveaxis(grown[max(-low, 0) : len(grown) - max(-high, 0)], 0, axis)
    return x


_MODES = {"reflect": "reflect", "symmetric": "symmetric", "replicate": "edge", "circular": "wrap"}

REFERENCES = {
    "pad_constant": _constant,
    "pad_border": lambda x, *, pairs, mode: np.pad(x, pairs, mode=_MODES[mode]),
}
