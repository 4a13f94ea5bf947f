"""References of margin losses: loops, from the definitions."""

from __future__ import annotations

import numpy as np


def _multi_margin(x, labels, weight=None, *, p, margin):
    rows, labels = np.atleast_2d(x), np.atleast_1d(labels)
    out = np.zeros(len(rows))
    for i, (row, own) in enumerate(zip(rows, labels, strict=True)):
        for c, value in enumerate(row):
            if c != own:
                w = 1.0 if weight is None else weight[own]
                out[i] += w * max(0.0, margin - row[own] + value) ** p / len(row)
    return out if x.ndim == 2 else out[0]


def _multilabel(x, labels):
    rows, labels = np.atleast_2d(x), np.atleast_2d(labels)
    out = np.zeros(len(rows))
    for i, (row, listed) in enumerate(zip(rows, labels, strict=True)):
        right = []
        for c in listed:
            if c < 0:
                break
            right.append(c)
        for r in right:
            out[i] += sum(max(0.0, 1 - row[r] + row[c]) for c in range(len(row)) if c not in right) / len(row)
    return out if x.ndim == 2 else out[0]


REFERENCES = {"multi_margin_loss": _multi_margin, "multilabel_margin_loss": _multilabel}
