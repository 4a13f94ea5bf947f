"""References of reads at given places, element by element."""

from __future__ import annotations

import numpy as np


def inside(index, shape):
    """Whether each index array (negative ones counted from the end) lies within its axis."""
    good = np.ones(np.broadcast_shapes(*[np.shape(i) for i in index]), bool)
    for i, d in zip(index, shape, strict=False):
        good &= (i >= -d) & (i < d)
    return good


def _gather(x, index, *, axis, batch_dims):
    out = np.zeros((*x.shape[:axis], *index.shape[batch_dims:], *x.shape[axis + 1 :]), x.dtype)
    for at in np.ndindex(*x.shape[:axis], *index.shape[batch_dims:]):
        before, rest = at[:axis], at[axis:]
        i = index[(*before[:batch_dims], *rest)]
        if -x.shape[axis] <= i < x.shape[axis]:
            out[at] = x[(*before, i)]
    return out


def _add_at(updates, index, *, length, axis, batch_dims):
    inner = index.shape[batch_dims:]
    out = np.zeros((*updates.shape[:axis], length, *updates.shape[axis + len(inner) :]), updates.dtype)
    for at in np.ndindex(*updates.shape[: axis + len(inner)]):
        before, rest = at[:axis], at[axis:]
        i = index[(*before[:batch_dims], *rest)]
        if -length <= i < length:
            out[(*before, i)] += updates[at]
    return out


def _limit(index, *, length, mode):
    return np.clip(index, 0, length - 1) if mode == "clip" else index % length


def _elements(x, index, *, axis):
    out = np.zeros(index.shape, x.dtype)
    for at in np.ndindex(*index.shape):
        i = index[at]
        if -x.shape[axis] <= i < x.shape[axis]:
            out[at] = x[(*at[:axis], i, *at[axis + 1 :])]
    return out


def _rows(x, index):
    out = np.zeros(index.shape[:-1] + x.shape[index.shape[-1] :], x.dtype)
    for at in np.ndindex(*index.shape[:-1]):
        if inside(list(index[at]), x.shape):
            out[at] = x[tuple(index[at])]
    return out


def _get(x, *indices, axes):
    key = [slice(None)] * x.ndim
    for axis, index in zip(axes, indices, strict=True):
        key[axis] = np.where((index >= -x.shape[axis]) & (index < x.shape[axis]), index, 0)
    out = np.array(x[tuple(key)])
    good = inside(indices, [x.shape[a] for a in axes])
    flags = np.broadcast_to(np.zeros([1] * x.ndim, bool), x.shape)[tuple(key)].copy()
    first = axes[0] if axes == tuple(range(axes[0], axes[0] + len(axes))) else 0
    for at in np.ndindex(*good.shape):
        flags[(slice(None),) * first + at] = not good[at]
    out[flags] = 0
    return out


REFERENCES = {
    "gather": _gather,
    "add_at": _add_at,
    "limit_index": _limit,
    "gather_elements": _elements,
    "gather_nd": _rows,
    "index_get": _get,
}
