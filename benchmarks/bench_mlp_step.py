"""A Graph-mode training step of the MLP beside the same step written by hand in jax.

Both do forward, mean cross-entropy, backward and Adam on 64 x 784 float32 inputs, in one executable with
donated buffers, timed from call to finished loss in alternating rounds.

    python benchmarks/bench_mlp_step.py
"""

from __future__ import annotations

import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mycelia as ms
from benchmarks.networks import make


def by_hand(work: Any) -> Any:
    """The same step as plain jax: a pytree of weights, Adam written out."""
    params = {p.name: jnp.array(p.asnumpy()) for p in work.network.get_parameters()}
    x, y = jnp.array(work.x.asnumpy()), jnp.array(work.y.asnumpy())

    def loss_of(w: dict[str, Any], x: Any, y: Any) -> Any:
        h = jax.nn.relu(x @ w["layers.0.weight"].T + w["layers.0.bias"])
        h = jax.nn.relu(h @ w["layers.2.weight"].T + w["layers.2.bias"])
        logits = h @ w["layers.4.weight"].T + w["layers.4.bias"]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()

    @partial(jax.jit, donate_argnums=(0, 1, 2))
    def step(w: Any, m: Any, v: Any, t: Any, x: Any, y: Any) -> Any:
        loss, g = jax.value_and_grad(loss_of)(w, x, y)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        rate = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        w = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + 1e-8), w, m, v)
        return w, m, v, t, loss

    zeros = jax.tree.map(jnp.zeros_like, params)
    state = [params, zeros, jax.tree.map(jnp.zeros_like, params), jnp.float32(0)]

    def run() -> float:
        *state[:], loss = step(*state, x, y)
        return float(loss)

    return run


def ours(work: Any) -> Any:
    """Our step, compiled."""
    step = ms.jit(work.step())

    def run() -> float:
        return float(step(work.x, work.y))

    return run


def main() -> None:
    work = make("mlp")
    runs = {"jax by hand": by_hand(work), "mycelia graph": ours(work)}
    losses = {name: [run() for _ in range(3)] for name, run in runs.items()}
    print("first losses:", {k: [f"{v:.6f}" for v in vs] for k, vs in losses.items()})
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(20):
        for name, run in runs.items():
            for _ in range(20):
                start = time.perf_counter()
                run()
                times[name].append((time.perf_counter() - start) * 1e3)
    for name, found in times.items():
        print(f"{name:14} median {statistics.median(found):7.3f} ms   least {min(found):7.3f} ms")
    ratio = statistics.median(times["mycelia graph"]) / statistics.median(times["jax by hand"])
    least = min(times["mycelia graph"]) / min(times["jax by hand"])
    print(f"ratio of medians {ratio:.2f}, of least times {least:.2f}")
    assert np.isfinite(losses["mycelia graph"]).all()


if __name__ == "__main__":
    main()
