"""References of triangles and diagonals."""

from __future__ import annotations

import numpy as np


def _diag_embed(x, *, offset, axis1, axis2, rows, columns):
    made = np.zeros((*x.shape[:-1], rows, columns), x.dtype)
    for i in range(x.shape[-1]):
        made[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(made, (-2, -1), (axis1, axis2))


REFERENCES = {
    "tril": lambda x, *, diagonal: np.tril(x, diagonal),
    "triu": lambda x, *, diagonal: np.triu(x, diagonal),
    "diagonal": lambda x, *, offset, axis1, axis2: np.diagonal(x, offset, axis1, axis2),
    "diag_embed": _diag_embed,
}
