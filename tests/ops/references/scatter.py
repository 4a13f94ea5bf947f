"""References of writes at given places, update by update."""

from __future__ import annotations

import numpy as np
from tests.ops.references.indexing import inside

_COMBINE = {
    "update": lambda held, new: new,
    "add": lambda held, new: held + new,
    "mul": lambda held, new: held * new,
    "max": np.maximum,
    "min": np.minimum,
}


def _elements(x, index, updates, *, axis, mode):
    out = x.copy()
    for at in np.ndindex(*index.shape):
        i = index[at]
        if -x.shape[axis] <= i < x.shape[axis]:
            place = (*at[:axis], i, *at[axis + 1 :])
            out[place] = _COMBINE[mode](out[place], updates[at])
    return out


def _rows(x, index, updates, *, mode):
    out = x.copy()
    for at in np.ndindex(*index.shape[:-1]):
        if inside(list(index[at]), x.shape):
            place = tuple(index[at])
            out[place] = _COMBINE[mode](out[place], updates[at])
    return out


def _put(x, updates, *indices, axes, mode):
    common = np.broadcast_shapes(*[i.shape for i in indices])
    first = axes[0] if axes == tuple(range(axes[0], axes[0] + len(axes))) else 0
    given = np.moveaxis(updates, range(first, first + len(common)), range(len(common)))
    out = x.copy()
    for at in np.ndindex(*common):
        key = [slice(None)] * x.ndim
        for axis, index in zip(axes, indices, strict=True):
            key[axis] = np.broadcast_to(index, common)[at]
        if inside([np.broadcast_to(i, common)[at] for i in indices], [x.shape[a] for a in axes]):
            out[tuple(key)] = _COMBINE[mode](out[tuple(key)], given[at])
    return out


REFERENCES = {
    "row_major_numbers": lambda *, shape: np.arange(int(np.prod(shape))).reshape(shape),
    "scatter_elements": _elements,
    "scatter_nd": _rows,
    "index_put": _put,
}
