"""References of fractional max pooling: windows cut out one by one."""

from __future__ import annotations

import itertools

import numpy as np


def _starts(u, size, k, count):
    if count == 1:
        return [size - k]
    step = (size - k) / (count - 1)
    return [int((i + u) * step) - int(u * step) for i in range(count - 1)] + [size - k]


def _pool(x, shifts, *, kernel, sizes):
    y, index = np.zeros((*x.shape[:2], *sizes), x.dtype), np.zeros((*x.shape[:2], *sizes), np.int64)
    shifts = np.broadcast_to(shifts, (*x.shape[:2], len(kernel))).astype(np.float64)
    flat = np.arange(int(np.prod(x.shape[2:]))).reshape(x.shape[2:])
    for n, c in np.ndindex(*x.shape[:2]):
        lines = [_starts(u, *rest) for u, *rest in zip(shifts[n, c], x.shape[2:], kernel, sizes, strict=True)]
        for place in itertools.product(*map(range, sizes)):
            cut = tuple(slice(s[p], s[p] + k) for s, p, k in zip(lines, place, kernel, strict=True))
            box = x[n, c][cut]
            y[(n, c, *place)] = box.max()
            index[(n, c, *place)] = flat[cut].ravel()[box.argmax()]
    return y, index


REFERENCES = {"fractional_max_pool": _pool}
