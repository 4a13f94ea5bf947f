"""References of attention: one row of scores after the other."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax


def _attention(q, k, v, *bias, scale, before, after, from_end):
    batch, heads, length, _ = q.shape
    each, reach = heads // k.shape[1], k.shape[2]
    out = np.zeros((batch, heads, length, v.shape[3]))
    shift = reach - length if from_end else 0
    for b, h, s in np.ndindex(batch, heads, length):
        scores = k[b, h // each] @ q[b, h, s] * scale
        allowed = np.array([s + shift - before <= t <= s + shift + after for t in range(reach)])
        for extra in bias:
            full = np.broadcast_to(extra, (batch, heads, length, reach))[b, h, s]
            if extra.dtype == bool:
                allowed &= full
            else:
                scores = scores + full
        if allowed.any():
            out[b, h, s] = softmax(scores[allowed]) @ v[b, h // each][allowed]
    return out


REFERENCES = {"attention": _attention}
