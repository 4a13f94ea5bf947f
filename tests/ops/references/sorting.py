"""References of orders: Python's stable sort of each row, NaN as the largest."""

from __future__ import annotations

import math

import numpy as np


def _key(value):
    value = float(value)
    return (1, 0.0) if math.isnan(value) else (0, value)


def _order(row, descending):
    order = sorted(range(len(row)), key=lambda i: _key(row[i]))
    if not descending:
        return order
    groups = sorted({_key(v) for v in row}, reverse=True)
    return [i for g in groups for i in range(len(row)) if _key(row[i]) == g]


def _sort(x, *, axis, descending, k=None):
    if x.ndim == 0:
        return x, np.zeros((), np.int32)
    rows = np.moveaxis(x, axis, -1)
    k = rows.shape[-1] if k is None else k
    places = np.zeros((*rows.shape[:-1], k), np.int32)
    for at in np.ndindex(*rows.shape[:-1]):
        places[at] = _order(rows[at], descending)[:k]
    values = np.take_along_axis(rows, places.astype(np.int64), -1)
    return np.moveaxis(values, -1, axis), np.moveaxis(places, -1, axis)


def _search(sequence, values, *, right, dtype):
    side = "right" if right else "left"
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side).astype(dtype.np)
    out = np.empty(values.shape, dtype.np)
    for at in np.ndindex(*sequence.shape[:-1]):
        out[at] = np.searchsorted(sequence[at], values[at], side)
    return out


REFERENCES = {
    "sort": _sort,
    "topk": lambda x, *, k, axis, largest: _sort(x, axis=axis, descending=largest, k=k),
    "searchsorted": _search,
}
