"""What a small operator costs in PYNATIVE_MODE: microseconds per call, warm, its result not read.

Each operator on 2x2 float32 tensors, alone and recorded under ``value_and_grad``, beside jax's own jit of a sum, which
is what every call of an operator ends in, and beside torch if it is installed. They take turns, and what is counted is
the processor time of the calling thread, so that other programs on the machine matter little: small operators run in
the thread that calls them.

    python benchmarks/bench_dispatch.py
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mycelia as ms

CALLS, ROUNDS = 1000, 40
_ONES = np.ones((2, 2), np.float32)

Cases = dict[str, Callable[[], object]]


def in_turns(cases: Cases, calls: int = CALLS, rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Microseconds per call in each round, for each case."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    for fn in cases.values():
        fn()
    for _ in range(rounds):
        for name, fn in cases.items():
            start = time.thread_time()
            for _ in range(calls):
                fn()
            found[name].append((time.thread_time() - start) / calls * 1e6)
    return found


def operators(a: Any, b: Any, suffix: str = "") -> Cases:
    """Mycelia's calls."""
    calls: Cases = {
        "a + b": lambda: a + b, "ops.relu(a)": lambda: ms.ops.relu(a), "ops.matmul(a, b)": lambda: ms.ops.matmul(a, b),
        "a * 2.0": lambda: a * 2.0, "a.sum(0)": lambda: a.sum(0), "a.reshape(4)": lambda: a.reshape(4),
    }  # fmt: skip
    return {name + suffix: fn for name, fn in calls.items()}


def torch_operators(recorded: bool, suffix: str = "") -> Cases:
    """torch's calls; none if it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch

    a, b = torch.ones(2, 2, requires_grad=recorded), torch.ones(2, 2)
    calls: Cases = {
        "torch a + b": lambda: a + b, "torch relu(a)": lambda: torch.relu(a), "torch a @ b": lambda: a @ b,
    }  # fmt: skip
    return {name + suffix: fn for name, fn in calls.items()}


def measured() -> dict[str, list[float]]:
    """The times of all cases, by what they are called in the table."""
    a, b = ms.Tensor(_ONES), ms.Tensor(_ONES)
    x, y = jnp.asarray(_ONES), jnp.asarray(_ONES)
    add = jax.jit(lambda p, q: p + q)
    found = in_turns({"jax.jit add": lambda: add(x, y), **operators(a, b), **torch_operators(False)})

    def recorded(tracked: Any) -> Any:
        found.update(in_turns({**operators(tracked, b, ", recorded"), **torch_operators(True, ", recorded")}))
        return tracked.sum()

    ms.value_and_grad(recorded)(a)
    return found


def main() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    print(f"{'2x2 float32':26} {'median':>8} {'least':>8}  (us per call)")
    for name, times in measured().items():
        print(f"{name:26} {statistics.median(times):8.2f} {min(times):8.2f}")


if __name__ == "__main__":
    main()
