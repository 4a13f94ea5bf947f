"""References of linear algebra, from NumPy and SciPy."""

from __future__ import annotations

import numpy as np
from scipy import linalg


def _each(fn):
    """``fn`` of single matrices over the batch axes."""

    def run(x, **attrs):
        out = np.zeros_like(x)
        for i in np.ndindex(*x.shape[:-2]):
            out[i] = fn(x[i], **attrs)
        return out

    return run


def _cholesky(x, *, upper):
    try:
        factor = np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        return np.where(np.tri(x.shape[-1]), np.nan, 0.0) if not upper else np.nan * x
    return np.swapaxes(factor, -1, -2) if upper else factor


def _triangular(a, b, *, lower, transpose, adjoint, unit):
    return linalg.solve_triangular(a, b, lower=lower, trans=1 if transpose else 0, unit_diagonal=unit)


REFERENCES = {
    "det": np.linalg.det,
    "slogdet": lambda x: tuple(np.linalg.slogdet(x)),
    "inverse": np.linalg.inv,
    "solve": lambda a, b: np.linalg.solve(a, b) if b.size else np.zeros_like(b),
    "solve_triangular": _triangular,
    "cholesky": _cholesky,
    "matrix_exp": _each(linalg.expm),
}
