"""References of pooling: windows collected one by one."""

from __future__ import annotations

import itertools

import numpy as np


def _windows(shape, kernel, strides, padding, dilation, channels_last):
    """For each place of the result: for each offset, the place in the image or None."""
    sizes = shape[1:-1] if channels_last else shape[2:]
    outs = [
        (n + lo + hi - (k - 1) * d - 1) // s + 1
        for n, k, s, (lo, hi), d in zip(sizes, kernel, strides, padding, dilation, strict=True)
    ]
    for place in itertools.product(*map(range, outs)):
        found = []
        for offset in itertools.product(*map(range, kernel)):
            at = tuple(
                p * s - lo + o * d
                for p, s, (lo, _), o, d in zip(place, strides, padding, offset, dilation, strict=True)
            )
            found.append(at if all(0 <= a < n for a, n in zip(at, sizes, strict=True)) else None)
        yield place, found, sizes, outs


def _first(x, *, channels_last):
    return np.moveaxis(x, -1, 1) if channels_last else x


def _last(x, *, channels_last):
    return np.moveaxis(x, 1, -1) if channels_last else x


def _max_with_index(x, *, kernel, strides, padding, dilation, channels_last):
    x = _first(x, channels_last=channels_last)
    y = index = None
    for place, found, sizes, outs in _windows(x.shape, kernel, strides, padding, dilation, False):
        if y is None:
            y = np.zeros((*x.shape[:2], *outs), x.dtype)
            index = np.zeros(y.shape, np.int64)
        inside = [at for at in found if at is not None]
        values = np.stack([x[(slice(None), slice(None), *at)] for at in inside], -1)
        best = np.argmax(values, -1)
        flat = np.array([np.ravel_multi_index(at, sizes) for at in inside])
        y[(slice(None), slice(None), *place)] = np.take_along_axis(values, best[..., None], -1)[..., 0]
        index[(slice(None), slice(None), *place)] = flat[best]
    return _last(y, channels_last=channels_last), _last(index, channels_last=channels_last)


def _max_grad(ct, x, y, **attrs):
    last = attrs["channels_last"]
    index = _first(_max_with_index(x, **attrs)[1], channels_last=last)
    ct, shape = _first(ct, channels_last=last), _first(x, channels_last=last).shape
    out = np.zeros((*shape[:2], int(np.prod(shape[2:]))))
    for n, c in np.ndindex(*shape[:2]):
        np.add.at(out[n, c], index[n, c].ravel(), ct[n, c].ravel())
    return _last(out.reshape(shape), channels_last=last)


def _max_pick(c, x, y, **attrs):
    last = attrs["channels_last"]
    index = _first(_max_with_index(x, **attrs)[1], channels_last=last)
    c = _first(c, channels_last=last)
    flat = c.reshape(*c.shape[:2], int(np.prod(c.shape[2:])))
    places = index.reshape(*index.shape[:2], int(np.prod(index.shape[2:])))
    picked = np.take_along_axis(flat, places, -1).reshape(index.shape)
    return _last(picked, channels_last=last)


def _weights(shape, *, kernel, strides, padding, excess, include_pad, divisor, channels_last):
    """The matrix of an average pooling of one channel: result places by image places."""
    ones = (1,) * len(kernel)
    rows = []
    sizes = shape[1:-1] if channels_last else shape[2:]
    for place, found, sizes, _ in _windows(shape, kernel, strides, padding, ones, channels_last):
        row = np.zeros(sizes)
        for at in found:
            if at is not None:
                row[at] = 1
        count = divisor
        if not divisor:
            count = 1
            for p, s, k, (lo, hi), e, n in zip(place, strides, kernel, padding, excess, sizes, strict=True):
                places = [q for q in range(p * s - lo, p * s - lo + k) if q < n + hi - e]
                count *= len(places) if include_pad else len([q for q in places if 0 <= q < n])
        rows.append(row.ravel() / count)
    return np.array(rows)


def _outs(shape, kernel, strides, padding, channels_last):
    sizes = shape[1:-1] if channels_last else shape[2:]
    return [(n + lo + hi - k) // s + 1 for n, k, s, (lo, hi) in zip(sizes, kernel, strides, padding, strict=True)]


def _avg(x, **attrs):
    last = attrs["channels_last"]
    outs = _outs(x.shape, attrs["kernel"], attrs["strides"], attrs["padding"], last)
    matrix, moved = _weights(x.shape, **attrs), _first(x, channels_last=last)
    y = moved.reshape(*moved.shape[:2], matrix.shape[1]) @ matrix.T
    return _last(y.reshape(*moved.shape[:2], *outs), channels_last=last)


def _avg_grad(ct, *, input_shape, **attrs):
    last = attrs["channels_last"]
    matrix, moved = _weights(input_shape, **attrs), _first(ct, channels_last=last)
    dx = moved.reshape(*moved.shape[:2], matrix.shape[0]) @ matrix
    sizes = input_shape[1:-1] if last else input_shape[2:]
    return _last(dx.reshape(*moved.shape[:2], *sizes), channels_last=last)


REFERENCES = {
    "max_pool": lambda x, **attrs: _max_with_index(x, **attrs)[0],
    "max_pool_with_index": _max_with_index,
    "max_pool_grad": _max_grad,
    "max_pool_pick": _max_pick,
    "avg_pool": _avg,
    "avg_pool_grad": _avg_grad,
}
