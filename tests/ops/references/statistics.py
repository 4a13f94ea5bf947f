"""References of variance, median, quantile and histogram."""

from __future__ import annotations

import numpy as np


def _variance(x, *, axes, keepdims, correction):
    return np.var(x, axis=axes, keepdims=keepdims, ddof=correction)


def _median(x, *, axis, keepdims, ignore_nan):
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    rows = np.moveaxis(x, axis, -1)
    values, places = np.empty(rows.shape[:-1], x.dtype), np.empty(rows.shape[:-1], np.int64)
    for at in np.ndindex(*rows.shape[:-1]):
        row = rows[at]
        missing = np.flatnonzero(np.isnan(row)) if x.dtype.kind == "f" else []
        if len(missing) and (not ignore_nan or len(missing) == len(row)):
            places[at] = missing[0]
        else:
            order = np.argsort(row, kind="stable")[: len(row) - len(missing)]
            places[at] = order[(len(order) - 1) // 2]
        values[at] = row[places[at]]
    if keepdims:
        return np.expand_dims(values, axis), np.expand_dims(places, axis)
    return values, places


def _histc(x, *, bins, low, high):
    values = np.asarray(x, np.float64)[~np.isnan(np.asarray(x, np.float64))]
    if low == high:
        low, high = (values.min(), values.max()) if values.size else (low, high)
    if low == high:
        low, high = low - 1, high + 1
    return np.histogram(values, bins, (low, high))[0].astype(x.dtype)


REFERENCES = {
    "variance": _variance,
    "standard_deviation": lambda x, **attrs: np.sqrt(_variance(x, **attrs)),
    "median": _median,
    "quantile": lambda x, q, *, ignore_nan: (np.nanquantile if ignore_nan else np.quantile)(x, q, axis=-1),
    "histc": _histc,
}
