"""jax's programs: one jitted function for each job, the training state donated, float32 or bfloat16 products."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.jax_networks import NETWORKS, Scope
from benchmarks.program import Last, Program
from benchmarks.workloads import Workload, initial

RATE = {"adam": 1e-3, "momentum": 0.01}
BETA1, BETA2, EPSILON, MOMENTUM = 0.9, 0.999, 1e-8, 0.9


def arranged(name: str, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of :mod:`benchmarks.networks` in the layout of :mod:`benchmarks.jax_networks`."""
    if value.ndim == 4:
        return value.transpose(2, 3, 1, 0)
    return value.T if value.ndim == 2 and not name.endswith("embedding_table") else value


def cross_entropy(logits: Any, labels: Any) -> Any:
    """The mean over rows, in float32."""
    logits = logits.reshape(-1, logits.shape[-1]).astype(jnp.float32)
    chosen = jnp.take_along_axis(logits, labels[:, None], 1)[:, 0]
    return (jax.nn.logsumexp(logits, -1) - chosen).mean()


def adam(values: Any, grads: Any, state: Any) -> tuple[Any, Any]:
    """Adam's update (Kingma and Ba, 2015)."""
    first, second, count = state
    count = count + 1
    first = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, first, grads)
    second = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, second, grads)
    rate = RATE["adam"] * jnp.sqrt(1 - BETA2**count) / (1 - BETA1**count)
    values = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + EPSILON), values, first, second)
    return values, (first, second, count)


def momentum(values: Any, grads: Any, state: Any) -> tuple[Any, Any]:
    """Heavy-ball descent."""
    state = jax.tree.map(lambda m, g: MOMENTUM * m + g, state, grads)
    return jax.tree.map(lambda p, m: p - RATE["momentum"] * m, values, state), state


def program(work: Workload, mode: str, job: str, precision: str, threads: int) -> Program:
    """The program of a workload; the only ``mode`` is ``jit``. The processor affinity sets the threads."""
    network = NETWORKS[work.name](**work.options)
    dtype = jnp.bfloat16 if precision == "bf16" else jnp.float32
    arrays = {name: jnp.asarray(arranged(name, initial(name, shape))) for name, shape in network.shapes.items()}
    statistics = {name: value for name, value in arrays.items() if name.rpartition(".")[2].startswith("moving_")}
    weights = {name: value for name, value in arrays.items() if name not in statistics}
    images = len(work.input_shape) == 4
    x, y = jnp.asarray(work.x().transpose(0, 2, 3, 1) if images else work.x()), jnp.asarray(work.y())
    parameters = sum(value.size for value in weights.values())
    update = adam if work.optimizer == "adam" else momentum
    last = Last()

    @partial(jax.jit, donate_argnums=0)
    def train(state: Any, x: Any, y: Any) -> Any:
        weights, statistics, kept = state

        def loss_of(weights: Any) -> Any:
            scope = Scope(weights | statistics, True, dtype)
            return cross_entropy(network.forward(scope, x), y), scope.statistics

        (loss, statistics), grads = jax.value_and_grad(loss_of, has_aux=True)(weights)
        weights, kept = update(weights, grads, kept)
        return (weights, statistics, kept), loss

    @jax.jit
    def infer(weights: Any, x: Any) -> Any:
        return network.forward(Scope(weights, False, dtype), x)

    if job == "infer":

        def step() -> None:
            last.result = infer(arrays, x).block_until_ready()
    else:
        zero = partial(jax.tree.map, jnp.zeros_like)
        kept = (zero(weights), zero(weights), jnp.zeros((), jnp.int32)) if update is adam else zero(weights)
        state = [(weights, statistics, kept)]

        def step() -> None:
            state[0], loss = train(state[0], x, y)
            last.result = loss.block_until_ready()

    def value() -> float:
        result = np.asarray(last.result.astype(jnp.float32))
        return float(result if job == "train" else np.square(result).mean())

    return Program(step, value, parameters, jax.__version__)
