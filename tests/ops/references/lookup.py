"""References of one_hot and embedding."""

from __future__ import annotations

import numpy as np


def _one_hot(index, on, off, *, depth, axis):
    out = np.full((*index.shape, depth), off, on.dtype)
    for at in np.ndindex(*index.shape):
        if 0 <= index[at] < depth:
            out[(*at, index[at])] = on
    return np.moveaxis(out, -1, axis)


def _embedding(ids, weight, *, padding_idx, by_frequency):
    out = np.zeros((*ids.shape, weight.shape[1]), weight.dtype)
    for at in np.ndindex(*ids.shape):
        if -len(weight) <= ids[at] < len(weight):
            out[at] = weight[ids[at]]
    return out


REFERENCES = {"one_hot": _one_hot, "embedding": _embedding}
