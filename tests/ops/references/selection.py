"""References of choices by a condition."""

from __future__ import annotations

import numpy as np


def _bounds(bounds, sides):
    given = dict(zip(sides, bounds, strict=True))
    return given.get("l"), given.get("h")


def _clip(x, *bounds, sides):
    low, high = _bounds(bounds, sides)
    return np.clip(x, low, high)


def _inside(x, *bounds, sides):
    low, high = _bounds(bounds, sides)
    above = np.ones(x.shape, bool) if low is None else x >= low
    return above & (np.ones(x.shape, bool) if high is None else x <= high)


REFERENCES = {
    "where": np.where,
    "clip": _clip,
    "inside": _inside,
    "isin": np.isin,
}
