"""References of decompositions, from NumPy and SciPy, whose LAPACK gives the same signs."""

from __future__ import annotations

import numpy as np
from scipy import linalg


def _each(fn, count):
    """``fn`` of single matrices, its ``count`` results stacked over the batch axes."""

    def run(x, **attrs):
        lead = x.shape[:-2]
        found = [fn(x[i], **attrs) for i in np.ndindex(*lead)]
        parts = [np.stack([f[k] for f in found]).reshape(lead + np.shape(found[0][k])) for k in range(count)]
        return tuple(parts) if count > 1 else parts[0]

    return run


def _svd(x, *, full_matrices):
    u, s, vh = np.linalg.svd(x, full_matrices=full_matrices)
    return s, u, np.swapaxes(vh, -1, -2)


def _lu(x):
    packed, pivots = linalg.lu_factor(x) if x.shape[0] == x.shape[1] else linalg.lapack.dgetrf(x)[:2]
    order = np.arange(x.shape[0])
    for i, p in enumerate(pivots):
        order[[i, p]] = order[[p, i]]
    return packed, pivots.astype(np.int32), order.astype(np.int32)


def _permutation(pivots, *, size):
    out = np.zeros((*pivots.shape[:-1], size), np.int32)
    for i in np.ndindex(*pivots.shape[:-1]):
        order = np.arange(size)
        for k, p in enumerate(pivots[i]):
            order[[k, p]] = order[[p, k]]
        out[i] = order
    return out


def _geqrf(x):
    packed, tau, _, _ = linalg.lapack.dgeqrf(x)
    return packed, tau


def _orgqr(a, tau):
    """The product of the reflectors ``I - tau * v @ v.T``, written out."""
    m, n = a.shape
    q = np.eye(m)
    for k, t in enumerate(tau):
        v = np.concatenate([np.zeros(k), [1.0], a[k + 1 :, k]])
        q = q @ (np.eye(m) - t * np.outer(v, v))
    return q[:, :n]


def _eigenvectors(x):
    values, vectors = np.linalg.eig(x)
    return values.astype(complex), vectors.astype(complex)


REFERENCES = {
    "qr": lambda x, *, mode: tuple(np.linalg.qr(x, mode)),
    "svd": _svd,
    "svdvals": lambda x: np.linalg.svd(x, compute_uv=False),
    "eigh": lambda x, *, lower: tuple(np.linalg.eigh(x, "L" if lower else "U")),
    "eig": _eigenvectors,
    "eigvals": lambda x: np.linalg.eigvals(x).astype(complex),
    "lu": _each(_lu, 3),
    "pivots_to_permutation": _permutation,
    "geqrf": _each(_geqrf, 2),
    "orgqr": _orgqr,
}
