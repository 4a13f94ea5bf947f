"""References of slices with fixed and computed starts."""

from __future__ import annotations

import numpy as np


def _places(shape, starts, axes, sizes, steps):
    """Index arrays of the slice, one for each axis."""
    places = [np.arange(d) for d in shape]
    for start, axis, size, step in zip(starts, axes, sizes, steps, strict=True):
        first, reach = int(start), (size - 1) * abs(step) + 1 if size else 0
        if first < 0:
            first += shape[axis]
        low = min(max(first - (reach - 1) if step < 0 else first, 0), shape[axis] - reach)
        around = low + abs(step) * np.arange(size)
        places[axis] = around[::-1] if step < 0 else around
    return np.ix_(*places)


def _read(x, *starts, axes, sizes, steps, drop):
    part = x[_places(x.shape, starts, axes, sizes, steps)] if x.ndim else x
    return part.reshape([d for i, d in enumerate(part.shape) if i not in drop])


def _write(x, update, *starts, axes, sizes, steps, drop):
    out = x.copy()
    where = _places(x.shape, starts, axes, sizes, steps)
    out[where] = update.reshape(out[where].shape)
    return out


REFERENCES = {
    "slice": lambda x, *, starts, stops, steps: x[tuple(slice(*b) for b in zip(starts, stops, steps, strict=True))],
    "dynamic_slice": _read,
    "dynamic_update": _write,
}
