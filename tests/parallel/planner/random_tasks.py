"""Random small graphs to plan, and their optimum found by looking at every solution."""

from __future__ import annotations

import itertools
import random

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.ir.graph import Graph, Value
from mycelia.ir.primitive import primitive_named
from mycelia.ir.types import TensorType
from mycelia.parallel.planner.problem import Problem
from mycelia.parallel.planner.task import DATA, STATE, Task, task_of_graph

_SIZES = (2, 8, 64, 256, 1024)


def random_task(seed: int, operators: int) -> Task:
    """A graph of products, sums, reductions and elementwise operators; several values are used more than once."""
    rng = random.Random(seed)
    graph = Graph()
    values: list[Value] = []
    kinds: list[str] = []

    def fresh(shape: tuple[int, ...]) -> Value:
        kinds.append(rng.choice((DATA, STATE)))
        return graph.add_param(TensorType(dt.float32, shape))

    def operand() -> Value:
        old = bool(values) and rng.random() < 0.9
        return rng.choice(values[-4:]) if old else fresh((rng.choice(_SIZES), rng.choice(_SIZES)))

    for _ in range(operators):
        kind = rng.choice(("matmul", "matmul", "add", "relu", "transpose", "reduce_sum"))
        x = operand()
        while x.type.rank != 2:
            x = fresh((rng.choice(_SIZES), rng.choice(_SIZES)))
        attrs: dict[str, object] = {}
        inputs = (x,)
        if kind == "matmul":
            attrs = {"transpose_a": rng.random() < 0.3, "transpose_b": False}
            inner = x.shape[0] if attrs["transpose_a"] else x.shape[1]
            like = [v for v in values if v.type.rank == 2 and v.shape[0] == inner]
            inputs = (x, rng.choice(like) if like and rng.random() < 0.6 else fresh((inner, rng.choice(_SIZES))))
        elif kind == "add":
            like = [v for v in values if v.shape == x.shape]
            inputs = (x, rng.choice(like) if like and rng.random() < 0.7 else fresh(x.shape))
        elif kind == "transpose":
            attrs = {"perm": (1, 0)}
        elif kind == "reduce_sum":
            attrs = {"axes": (rng.randrange(2),), "keepdims": True}
        values.append(graph.add_node(primitive_named(kind), inputs, attrs).outputs[0])
    unused = [v for v in values if not any(v in n.inputs for n in graph.nodes)]
    rng.shuffle(unused)
    graph.outputs = unused
    pairs = [
        (i, o)
        for i, p in enumerate(graph.params)
        for o, v in enumerate(graph.outputs)
        if kinds[i] == STATE and p.type == v.type
    ][:1]
    return task_of_graph(graph, kinds, pairs)


def combinations(problem: Problem) -> float:
    """How many solutions there are, the layouts of inputs not counted."""
    return float(np.prod([float(len(c)) for c in problem.choices[problem.network.inputs :]]))


def best_of_all(problem: Problem) -> float:
    """The least cost of all solutions: one array over the choices of all operators, inputs minimized out."""
    network = problem.network
    first, count = network.inputs, len(network.units)
    places = {u: k for k, u in enumerate(range(first, count))}
    total = np.zeros([len(problem.choices[u]) for u in range(first, count)])
    for u, k in places.items():
        total = total + _along(np.array([c.compute + c.comm for c in problem.choices[u]]), [k], total.ndim)
    for held in network.values:
        u, s = held.producer
        uses = [(u, s), *[(w, t) for w, t in held.consumers]]
        phases = [3 if held.renews == w and t == 0 else network.units[w].phase for w, t in held.consumers]
        owners = list(dict.fromkeys(w for w, _ in uses))
        sizes = [len(problem.choices[w]) for w in owners]
        part = np.zeros(sizes)
        before = [problem.choices[u][i].layouts[s] for i in range(len(problem.choices[u]))]
        for phase in sorted(set(phases)):
            mine = [use for use, p in zip(held.consumers, phases, strict=True) if p == phase]
            wanted = {c.layouts[t] for w, t in mine for c in problem.choices[w]}
            for q in sorted(wanted):
                cost = np.array([0.0 if p == q else problem.moves.seconds(held, p, q) for p in before])
                used = np.zeros(sizes, bool)
                for w, t in mine:
                    wants = np.array([c.layouts[t] == q for c in problem.choices[w]])
                    used |= _along(wants, [owners.index(w)], part.ndim)
                part = part + _along(cost, [0], part.ndim) * used
        if any(w < first for w in owners[1:]):  # the new value of an input: both stand in the array of their own
            raise AssertionError("call it without pairs")
        if u < first:
            part = part.min(0)
            owners = owners[1:]
        if owners:
            total = total + _along(part, [places[w] for w in owners], total.ndim)
    return float(total.min())


def _along(array: np.ndarray, axes: list[int], rank: int) -> np.ndarray:
    """The array with its axes at these places among ``rank``."""
    order = np.argsort(axes)
    array = np.transpose(array, order) if array.ndim > 1 else array
    shape = [1] * rank
    for size, axis in zip(array.shape, sorted(axes), strict=True):
        shape[axis] = size
    return array.reshape(shape)


def best_within(problem: Problem, limit: float) -> float:
    """The least cost of all solutions that stay within a limit of bytes; infinite if none does."""
    best = np.inf
    for solution in itertools.product(*[range(len(c)) for c in problem.choices]):
        cost = problem.cost(solution)
        if cost < best and problem.memory(solution).max() <= limit * (1 + 1e-9):
            best = cost
    return float(best)
