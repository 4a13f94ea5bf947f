"""References of candidate sampling, from the bits of the generator."""

from __future__ import annotations

import numpy as np
from tests.ops.references.random import uniform


def _sampler(key, true, *, count, unique, classes, log_uniform):
    shares = np.full(classes, 1 / classes)
    if log_uniform:
        shares = np.diff(np.log(np.arange(classes + 1) + 1.0)) / np.log(classes + 1.0)
    if unique:
        waits = -np.log(1 - uniform(key, (classes,), np.float64)) / shares
        drawn = np.argsort(waits)[:count]
        expected = np.full(classes, count / classes)
        if log_uniform:
            expected = 1 - np.exp(-np.sort(waits)[count - 1] * shares) if count < classes else np.ones(classes)
    else:
        drawn = np.searchsorted(np.cumsum(shares), uniform(key, (count,), np.float64), "right")
        expected = shares * count
    return drawn, expected[true].astype(np.float32), expected[drawn].astype(np.float32)


REFERENCES = {"candidate_sampler": _sampler}
