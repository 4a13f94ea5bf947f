"""Two searches that need no solver, by MindSpore's names for them.

``sharding_propagation`` starts from the layouts that the user gave (without any: rows of data divided along the first
axis) and goes outwards from them, unit by unit, taking what costs the least beside what is decided already.

``recursive_programming`` halves the devices again and again, as double recursive programming does (H. Wang et al.,
"Efficient and systematic partitioning of large and deep neural networks", 2020): for one axis of the mesh after the
other, the heaviest units first, each takes the name that costs the least beside those that are decided. Since one axis
is looked at at a time, what only pays for several together is not found.
"""

from __future__ import annotations

import heapq
import time as clock
import warnings
from collections.abc import Callable, Sequence

from mycelia.parallel.planner.layouts import Layout
from mycelia.parallel.planner.problem import Problem
from mycelia.parallel.planner.solve import Found
from mycelia.parallel.planner.task import DATA

#: How often all units look again at what was decided around them.
_SWEEPS = 2


class _Around:
    """The edges of each unit, and what a choice costs beside decided units."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        network = problem.network
        self.edges: list[list[tuple[int, int, int, int, int, bool]]] = [[] for _ in network.units]
        for v, held in enumerate(network.values):
            u, s = held.producer
            if u < 0:
                continue
            for phase, w, t in problem.uses(v):
                self.edges[u].append((s, w, t, v, phase, True))
                self.edges[w].append((t, u, s, v, phase, False))

    def cost(self, u: int, i: int, solution: Sequence[int]) -> float:
        """Seconds of choice ``i`` of a unit and of its edges to units that have one (not -1)."""
        problem = self.problem
        choice = problem.choices[u][i]
        total = problem.runs(u) * (choice.compute + choice.comm)
        for s, w, t, v, phase, made in self.edges[u]:
            if solution[w] < 0 and w != u:
                continue
            other = choice.layouts[t] if w == u else problem.choices[w][solution[w]].layouts[t]
            mine = choice.layouts[s]
            if mine != other:
                before, after = (mine, other) if made else (other, mine)
                total += problem.move_seconds(phase, problem.network.values[v], before, after)
        return total

    def best(self, u: int, solution: Sequence[int], allowed: Callable[[tuple[str, ...]], bool] | None = None) -> int:
        """The choice that costs the least, of those whose text is allowed."""
        choices = self.problem.choices[u]
        among = [i for i, c in enumerate(choices) if allowed is None or allowed(c.text)]
        return min(among or range(len(choices)), key=lambda i: (self.cost(u, i, solution), i))


def propagate(problem: Problem) -> Found:
    """``sharding_propagation``: what is given, and from there outwards what costs the least."""
    start = clock.perf_counter()
    around = _Around(problem)
    network = problem.network
    solution = [-1] * len(network.units)
    starts = list(problem.pinned)
    if not starts:
        starts = [u for u in range(network.inputs) if network.task.kinds[u] == DATA]
    for u in starts:
        if u in problem.pinned:
            solution[u] = around.best(u, solution)
        else:
            solution[u] = _rows_divided(problem, u)
    queue: list[tuple[int, int]] = []
    hops = dict.fromkeys(starts, 0)

    def reach(u: int) -> None:
        for _, w, *_ in around.edges[u]:
            if solution[w] < 0 and w not in hops:
                hops[w] = hops[u] + 1
                heapq.heappush(queue, (hops[w], w))

    for u in starts:
        reach(u)
    for u in [*starts, *range(len(solution))]:  # what nothing given reaches begins again from its first unit
        if solution[u] < 0 and u not in hops:
            hops[u] = 0
            heapq.heappush(queue, (0, u))
        while queue:
            _, w = heapq.heappop(queue)
            solution[w] = around.best(w, solution)
            reach(w)
    free = [u for u in range(len(solution)) if u not in starts]
    for _ in range(_SWEEPS):
        for u in free:
            solution[u] = around.best(u, solution)
    return _found(problem, solution, start, "sharding_propagation")


def _rows_divided(problem: Problem, u: int) -> int:
    """The choice that divides the first dimension along the most axes, the first ones before others."""
    batch = problem.network.values[problem.network.units[u].slots[0]].batch

    def value(layout: Layout) -> tuple[int, ...]:
        return tuple([int(d == batch and batch is not None) for d in layout])

    choices = problem.choices[u]
    return max(range(len(choices)), key=lambda i: (value(choices[i].layouts[0]), -i))


def recurse(problem: Problem) -> Found:
    """``recursive_programming``: one axis after the other, the heaviest units first; quick, and not the best."""
    start = clock.perf_counter()
    warnings.warn(
        "recursive_programming looks at one axis of the mesh at a time; auto usually finds a faster plan",
        UserWarning, stacklevel=2,
    )  # fmt: skip
    around = _Around(problem)
    units = problem.network.units
    weight = [max(c.compute for c in choices) for choices in problem.choices]
    order = sorted(range(len(units)), key=lambda u: (-weight[u], u))
    axes = len(problem.setting.mesh.sizes)
    solution = [-1] * len(units)
    for axis in range(axes):
        before = list(solution)
        solution = [-1] * len(units)
        for u in order:
            kept = problem.choices[u][before[u]].text[:axis] if before[u] >= 0 else ()
            solution[u] = around.best(u, solution, _beginning(kept, axis, axes))
    for _ in range(_SWEEPS):
        for u in order:
            solution[u] = around.best(u, solution)
    found = _found(problem, solution, start, "recursive_programming")
    found.notes.append("one axis of the mesh was looked at at a time; auto usually finds a faster plan")
    return found


def _beginning(kept: tuple[str, ...], axis: int, axes: int) -> Callable[[tuple[str, ...]], bool]:
    """Texts that begin with what is decided and leave the axes after this one alone."""

    def allowed(text: tuple[str, ...]) -> bool:
        return text[:axis] == kept[:axis] and text[axis + 1 :] == ("-",) * (axes - axis - 1)

    return allowed


def _found(problem: Problem, solution: list[int], start: float, mode: str) -> Found:
    return Found(
        solution, problem.cost(solution), 0.0, clock.perf_counter() - start, mode,
        float(problem.memory(solution).max()),
    )  # fmt: skip
