"""Standard normal numbers restricted to an interval, by rejection.

Proposals are normal where the interval holds much of the mass, uniform where it is narrow, and exponential
far out in a tail, as in C. Robert, "Simulation of truncated normal variables", Statistics and Computing 5,
1995. Exact at any distance from the mean, without the inverse of the distribution function.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _normal_tail(count: int, low: float, high: float, random: np.random.Generator) -> Array:
    """Standard normals on [low, high], low > 0, by Robert's exponential proposals."""
    rate = (low + math.sqrt(low * low + 4)) / 2
    x = low + random.exponential(1 / rate, count)
    kept: Array = x[(x <= high) & (random.random(count) <= np.exp(-((x - rate) ** 2) / 2))]
    return kept


def standard_truncated(size: int, low: float, high: float, random: np.random.Generator) -> Array:
    """``size`` standard normals restricted to [low, high].

    Args:
        size: how many.
        low: lower bound, less than ``high``.
        high: upper bound.
        random: where randomness comes from.

    >>> import numpy as np
    >>> x = standard_truncated(4, 1.0, 1.5, np.random.default_rng(0))
    >>> bool(((x >= 1.0) & (x <= 1.5)).all())
    True
    """
    out = np.empty(size)
    done = 0
    mass = (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2))) / 2
    peak = 0.0 if low <= 0 <= high else min(low * low, high * high)
    while done < size:
        wanted = max(int((size - done) * 1.2 / max(mass, 0.2)) + 16, 16)
        if mass > 0.2:
            x = random.standard_normal(wanted)
            x = x[(x >= low) & (x <= high)]
        elif low <= 0 <= high or high - low < 1:
            x = low + (high - low) * random.random(wanted)
            x = x[random.random(wanted) <= np.exp((peak - x * x) / 2)]
        elif low > 0:
            x = _normal_tail(wanted, low, high, random)
        else:
            x = -_normal_tail(wanted, -high, -low, random)
        x = x[: size - done]
        out[done : done + len(x)] = x
        done += len(x)
    return out
