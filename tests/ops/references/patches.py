"""References of windows as columns, window by window."""

from __future__ import annotations

import numpy as np


def _windows(height, width, kernel, stride, padding, dilation):
    rows = (height + 2 * padding[0] - dilation[0] * (kernel[0] - 1) - 1) // stride[0] + 1
    columns = (width + 2 * padding[1] - dilation[1] * (kernel[1] - 1) - 1) // stride[1] + 1
    for r in range(rows):
        for c in range(columns):
            top, left = r * stride[0], c * stride[1]
            yield (
                slice(top, top + dilation[0] * (kernel[0] - 1) + 1, dilation[0]),
                slice(left, left + dilation[1] * (kernel[1] - 1) + 1, dilation[1]),
            )


def _im2col(x, *, kernel, stride, padding, dilation):
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    places = _windows(h, w, kernel, stride, padding, dilation)
    return np.stack([padded[:, :, a, b].reshape(n, c * kernel[0] * kernel[1]) for a, b in places], -1)


def _col2im(x, *, size, kernel, stride, padding, dilation):
    n, c = x.shape[0], x.shape[1] // (kernel[0] * kernel[1])
    out = np.zeros((n, c, size[0] + 2 * padding[0], size[1] + 2 * padding[1]), x.dtype)
    for i, (a, b) in enumerate(_windows(*size, kernel, stride, padding, dilation)):
        out[:, :, a, b] += x[:, :, i].reshape(n, c, *kernel)
    return out[:, :, padding[0] : padding[0] + size[0], padding[1] : padding[1] + size[1]]


REFERENCES = {"im2col": _im2col, "col2im": _col2im}
