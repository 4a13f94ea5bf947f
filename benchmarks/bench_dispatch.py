"""What a small operator costs in PYNATIVE_MODE: microseconds per call, warm, beside jax's own jit.

python benchmarks/bench_dispatch.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import mycelia as ms


def microseconds(fn: Callable[[], object], calls: int = 2000, rounds: int = 15) -> list[float]:
    """Time per call in each round."""
    fn()
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            fn()
        found.append((time.perf_counter() - start) / calls * 1e6)
    return found


def main() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    a, b = ms.Tensor(np.ones((8, 8), np.float32)), ms.Tensor(np.ones((8, 8), np.float32))
    x, y = jnp.ones((8, 8), jnp.float32), jnp.ones((8, 8), jnp.float32)
    add = jax.jit(lambda p, q: p + q)
    cases = {
        "a + b": lambda: a + b, "a * 2.0": lambda: a * 2.0, "a.sum(0)": lambda: a.sum(0),
        "ops.relu(a)": lambda: ms.ops.relu(a), "ops.matmul(a, b)": lambda: ms.ops.matmul(a, b),
        "jax.jit add": lambda: add(x, y),
    }  # fmt: skip
    print(f"{'8x8 float32':18} {'median':>8} {'least':>8}  (us per call)")
    for name, fn in cases.items():
        times = microseconds(fn)
        print(f"{name:18} {statistics.median(times):8.2f} {min(times):8.2f}")


if __name__ == "__main__":
    main()
