"""References of random numbers of further distributions.

They start from the bits of :mod:`tests.ops.references.random`. What is drawn by rejection is compared with
``jax.random``, whose streams are the reference; ``test_distributions.py`` tests the distributions.
"""

from __future__ import annotations

import jax
import numpy as np
from scipy import special, stats
from tests.ops.references.random import threefry, uniform


def _key(words):
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def _order(key, n):
    return np.argsort(threefry(key, n), kind="stable")


def _positive(key, shape):
    return 1 - uniform(key, shape, np.float64)


def _gamma(key, alpha, *, shape):
    return np.asarray(jax.random.gamma(_key(key), np.broadcast_to(alpha, shape), dtype=np.float64))


def _poisson(key, rate, *, shape):
    return np.asarray(jax.random.poisson(_key(key), rate.astype(np.float32), shape, np.int64))


def _shuffle(key, x, *, inverse):
    if not x.ndim or not x.shape[0]:
        return x
    order = _order(key, x.shape[0])
    return x[np.argsort(order)] if inverse else x[order]


def _categorical(key, logits, *, count, replace):
    if replace:
        shares = np.cumsum(special.softmax(logits, -1), -1)
        points = uniform(key, (*logits.shape[:-1], count), np.float64)
        rows = shares.reshape(-1, shares.shape[-1])
        found = [np.searchsorted(r, p * r[-1], "right") for r, p in zip(rows, points.reshape(-1, count), strict=True)]
        return np.array(found, np.int64).reshape(points.shape)
    noisy = logits + stats.gumbel_r.ppf(_positive(key, logits.shape))
    return np.argsort(-noisy, -1, kind="stable")[..., :count]


def _truncated(key, *, shape, dtype, low, high):
    low_share, high_share = stats.norm.cdf(low), stats.norm.cdf(high)
    return stats.norm.ppf(low_share + (high_share - low_share) * uniform(key, shape, np.float64))


def _places(key, x, *, count):
    order = _order(key, x.size)
    hits = [int(i) for i in order if x.ravel()[i]][:count]
    index, mask = np.zeros((count, x.ndim), np.int32), np.zeros(count, bool)
    for row, place in enumerate(hits):
        index[row], mask[row] = np.unravel_index(place, x.shape), True
    return index, mask


REFERENCES = {
    "random_gamma": _gamma,
    "random_poisson": _poisson,
    "random_permutation": lambda key, *, n, dtype: _order(key, n).astype(dtype.np),
    "shuffle": _shuffle,
    "random_categorical": _categorical,
    "random_truncated_normal": _truncated,
    "random_exponential": lambda key, *, shape, dtype: -np.log(_positive(key, shape)),
    "random_laplace": lambda key, *, shape, dtype: stats.laplace.ppf(_positive(key, shape)),
    "random_cauchy": lambda key, *, shape, dtype: stats.cauchy.ppf(_positive(key, shape)),
    "random_gumbel": lambda key, *, shape, dtype: stats.gumbel_r.ppf(_positive(key, shape)),
    "random_places": _places,
}
