"""References of adaptive pooling: boxes cut out one by one."""

from __future__ import annotations

import itertools

import numpy as np


def _boxes(x, sizes):
    lead = x.ndim - len(sizes)
    for place in itertools.product(*map(range, sizes)):
        cuts = tuple(
            slice(int(np.floor(i * n / c)), int(np.ceil((i + 1) * n / c)))
            for i, n, c in zip(place, x.shape[lead:], sizes, strict=True)
        )
        yield (*(slice(None),) * lead, *place), (*(slice(None),) * lead, *cuts)


def _avg(x, *, sizes):
    lead = x.ndim - len(sizes)
    out = np.zeros(x.shape[:lead] + sizes)
    for place, cuts in _boxes(x, sizes):
        out[place] = x[cuts].mean(tuple(range(lead, x.ndim)))
    return out


def _avg_grad(ct, *, input_shape, sizes):
    out = np.zeros(input_shape)
    lead = len(input_shape) - len(sizes)
    for place, cuts in _boxes(out, sizes):
        box = out[cuts]
        box += ct[place].reshape(ct.shape[:lead] + (1,) * len(sizes)) / np.prod(box.shape[lead:])
    return out


def _max(x, *, sizes):
    lead = x.ndim - len(sizes)
    y, index = np.zeros(x.shape[:lead] + sizes), np.zeros(x.shape[:lead] + sizes, np.int64)
    positions = np.broadcast_to(np.arange(int(np.prod(x.shape[lead:]))).reshape(x.shape[lead:]), x.shape)
    for place, cuts in _boxes(x, sizes):
        rows = int(np.prod(x.shape[:lead]))
        box, where = x[cuts].reshape(rows, -1) if rows else None, positions[cuts]
        if rows:
            best = box.argmax(-1)
            y[place] = box[np.arange(rows), best].reshape(x.shape[:lead])
            index[place] = where.reshape(rows, -1)[np.arange(rows), best].reshape(x.shape[:lead])
    return y, index


def _scatter(g, index, *, spatial, lead):
    out = np.zeros((*g.shape[:lead], int(np.prod(spatial))))
    for row in np.ndindex(*g.shape[:lead]):
        np.add.at(out[row], index[row].ravel(), g[row].ravel())
    return out.reshape(*g.shape[:lead], *spatial)


def _gather(x, index, *, lead):
    flat = x.reshape(*x.shape[:lead], int(np.prod(x.shape[lead:])))
    places = index.reshape(*index.shape[:lead], int(np.prod(index.shape[lead:])))
    return np.take_along_axis(flat, places, -1).reshape(index.shape)


REFERENCES = {
    "adaptive_avg_pool": _avg,
    "adaptive_avg_pool_grad": _avg_grad,
    "adaptive_max_pool": _max,
    "scatter_places": _scatter,
    "gather_places": _gather,
}
