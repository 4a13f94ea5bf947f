"""References of running results: one step after another, as they are defined."""

from __future__ import annotations

import numpy as np


def _walk(x, axis, reverse):
    rows = np.moveaxis(x, axis, 0)
    return rows[::-1] if reverse else rows


def _back(rows, axis, reverse):
    rows = np.asarray(rows)
    return np.moveaxis(rows[::-1] if reverse else rows, 0, axis)


def _running(start, step):
    def reference(x, *, axis, exclusive=False, reverse=False):
        out, held = np.empty_like(_walk(x, axis, reverse)), start
        for i, row in enumerate(_walk(x, axis, reverse)):
            after = step(held, row)
            out[i] = held if exclusive else after
            held = after
        return _back(out, axis, reverse)

    return reference


def _recurrence(a, b, *, axis, reverse):
    out, held = np.empty_like(_walk(b, axis, reverse)), 0.0
    for i, (factor, added) in enumerate(zip(_walk(a, axis, reverse), _walk(b, axis, reverse), strict=True)):
        held = factor * held + added
        out[i] = held
    return _back(out, axis, reverse)


def _extreme(better, index):
    def reference(x, *, axis):
        values = np.moveaxis(x, axis, 0).copy()
        places = np.zeros(values.shape, index)
        for i in range(1, len(values)):
            before, now = values[i - 1], values[i]
            take = better(now, before)
            if x.dtype.kind == "f":
                take = (take | np.isnan(now)) & ~np.isnan(before)
            values[i] = np.where(take, now, before)
            places[i] = np.where(take, i, places[i - 1])
        return np.moveaxis(values, 0, axis), np.moveaxis(places, 0, axis)

    return reference


REFERENCES = {
    "cumsum": _running(0, lambda held, row: held + row),
    "cumprod": _running(1, lambda held, row: held * row),
    "linear_recurrence": _recurrence,
    "cummax": _extreme(np.greater_equal, np.int64),
    "cummin": _extreme(np.less_equal, np.int32),
    "logcumsumexp": lambda x, *, axis: np.logaddexp.accumulate(x, axis) if x.size else x,
}
