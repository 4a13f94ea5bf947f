"""References of the distances between vectors."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist as scipy_cdist, pdist as scipy_pdist


def _metric(p):
    if p == 0:
        return {"metric": lambda u, v: float((u != v).sum())}
    return {"metric": "chebyshev"} if np.isinf(p) else {"metric": "minkowski", "p": p}


def _cdist(a, b, *, p):
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = np.broadcast_to(a, lead + a.shape[-2:]), np.broadcast_to(b, lead + b.shape[-2:])
    out = np.zeros((*lead, a.shape[-2], b.shape[-2]))
    for i in np.ndindex(*lead):
        out[i] = scipy_cdist(a[i], b[i], **_metric(p))
    return out


REFERENCES = {
    "cdist": _cdist,
    "pdist": lambda x, *, p: scipy_pdist(x, **_metric(p)),
}
