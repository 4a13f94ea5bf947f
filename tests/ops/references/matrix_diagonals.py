"""References of bands of diagonals, with NumPy's own diagonals."""

from __future__ import annotations

import numpy as np


def _cells(rows, columns, low, high, align):
    """For each diagonal from the highest: its row in the band, where it starts there, and its number."""
    counts = {k: len(np.diagonal(np.zeros((rows, columns)), k)) for k in range(low, high + 1)}
    width = max(counts.values())
    for row, k in enumerate(range(high, low - 1, -1)):
        side = align.split("_")[0 if k >= 0 else 1]
        yield row, (width - counts[k] if side == "RIGHT" else 0), k, counts[k], width


def _taken(x, *, low, high, align):
    *lead, rows, columns = x.shape
    out = None
    for row, first, k, count, width in _cells(rows, columns, low, high, align):
        out = np.zeros((*lead, high - low + 1, width), x.dtype) if out is None else out
        out[..., row, first : first + count] = np.diagonal(x, k, -2, -1)
    return out


def _put(band, *, rows, columns, low, high, align):
    out = np.zeros((*band.shape[:-2], rows, columns), band.dtype)
    for row, first, k, count, _ in _cells(rows, columns, low, high, align):
        for i in range(count):
            out[..., i + max(-k, 0), i + max(k, 0)] = band[..., row, first + i]
    return out


REFERENCES = {"matrix_diagonals": _taken, "matrix_of_diagonals": _put}
