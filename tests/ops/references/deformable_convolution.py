"""References of deformable convolution: pixels read one by one."""

from __future__ import annotations

import numpy as np


def _pixel(image, y, x):
    total = 0.0
    for i in (int(np.floor(y)), int(np.floor(y)) + 1):
        for j in (int(np.floor(x)), int(np.floor(x)) + 1):
            if 0 <= i < image.shape[0] and 0 <= j < image.shape[1]:
                total += image[i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return total


def _conv(x, w, offsets, bias=None, *, strides, padding, dilation, groups, offset_groups, modulated):
    out, each, kh, kw = w.shape
    batch, channels = x.shape[:2]
    y = np.zeros((batch, out, *offsets.shape[2:]))
    moved = offsets.reshape(batch, -1, offset_groups, kh, kw, *offsets.shape[2:])
    for n, o, i, j in np.ndindex(*y.shape):
        first = o // (out // groups) * each
        for c in range(each):
            channel = first + c
            g = channel // (channels // offset_groups)
            for a, b in np.ndindex(kh, kw):
                row = i * strides[0] - padding[0] + a * dilation[0] + moved[n, 1, g, a, b, i, j]
                column = j * strides[1] - padding[2] + b * dilation[1] + moved[n, 0, g, a, b, i, j]
                value = _pixel(x[n, channel], row, column) * w[o, c, a, b]
                y[n, o, i, j] += value * (moved[n, 2, g, a, b, i, j] if modulated else 1)
    return y if bias is None else y + bias[:, None, None]


REFERENCES = {"deformable_conv": _conv}
