"""References of random numbers: the Threefry 2x32 generator written out, and what is made of its bits.

J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): twenty rounds of additions,
rotations and exclusive ors, the key added after every fourth. A block of 64 bits is made of the counter of its
place; the distributions are tested in ``test_random.py``.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfinv

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(key, count):
    """``count`` blocks of 64 bits, as uint64."""
    counters = np.arange(count, dtype=np.uint64)
    x0, x1 = (counters >> np.uint64(32)).astype(np.uint32), counters.astype(np.uint32)
    k0, k1 = np.uint32(key[0]), np.uint32(key[1])
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    with np.errstate(over="ignore"):
        x0, x1 = x0 + keys[0], x1 + keys[1]
        for i in range(5):
            for r in _ROTATIONS[i % 2]:
                x0 = x0 + x1
                x1 = ((x1 << np.uint32(r)) | (x1 >> np.uint32(32 - r))) ^ x0
            x0 = x0 + keys[(i + 1) % 3]
            x1 = x1 + keys[(i + 2) % 3] + np.uint32(i + 1)
    return (x0.astype(np.uint64) << np.uint64(32)) | x1.astype(np.uint64)


def words(key, shape, bits):
    """Unsigned integers of 16 or 32 bits: the blocks cut from their low end."""
    count, each = int(np.prod(shape)), 64 // bits
    blocks = threefry(key, -(-count // each))
    return blocks.view(f"<u{bits // 8}")[:count].reshape(shape)


def uniform(key, shape, dtype):
    """Floats from [0, 1): the highest bits as a fraction."""
    if dtype == np.float64:
        return (threefry(key, int(np.prod(shape))) >> np.uint64(12)).reshape(shape) / 2.0**52
    made = ((words(key, shape, 32) >> np.uint32(9)) / 2.0**23).astype(np.float32)
    if dtype == np.float32:
        return made
    below_one = np.nextafter(np.asarray(1, dtype), np.asarray(0, dtype))
    return np.minimum(made.astype(dtype), below_one)


def _advance(state):
    seed, counter = int(state[0]), int(state[1]) + 1
    carried = counter // 2**32
    return state, np.array([(seed + carried) % 2**32, counter % 2**32], np.uint32)


def _normal(key, *, shape, dtype):
    wide = np.float64 if dtype.itemsize == 8 else np.float32
    u = np.maximum(uniform(key, shape, wide) * 2 - 1, np.nextafter(wide(-1), wide(0)))
    return (np.sqrt(2) * erfinv(u.astype(np.float64))).astype(wide).astype(dtype.np)


def _bernoulli(key, p, *, shape):
    return uniform(key, shape, np.float64 if p.dtype == np.float64 else np.float32) < p


def _integers(key, low, high, *, shape, dtype):
    span = np.maximum(high - low, 1).astype(np.uint64)
    return (low + (threefry(key, int(np.prod(shape))).reshape(shape) % span).astype(np.int64)).astype(dtype.np)


REFERENCES = {
    "random_integers": _integers,
    "random_advance": _advance,
    "random_uniform": lambda key, *, shape, dtype: uniform(key, shape, dtype.np),
    "random_normal": _normal,
    "random_bernoulli": _bernoulli,
}
