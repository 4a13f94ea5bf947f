"""One integer program over the joint graph: a binary variable for each choice of each unit, solved by HiGHS.

Between a unit and one that uses its value stand variables ``e[p, q]`` for each pair of layouts, whose sums over ``q``
and ``p`` are the sums of the choices on either side: that is the local polytope, the tightest linear form of a product
of choices that looks at one edge. Where several units of a phase share what was brought to a layout, ``f[p, q]`` is at
least each of their ``e``. All axes of the mesh are in one program.

Equal layers are tied: units get colours by what they do and, for a few rounds, by the colours of those that they
exchange values with (B. Weisfeiler and A. Leman, 1968); units of one colour take one choice. Near the ends of a stack,
and where layers differ, colours differ, so that the choices there are free.

Memory is bounded by rows for points in time. They are added when a solution breaks them, at its peaks, and the
program is solved again; most steps need a few of the thousands that there could be.
"""

from __future__ import annotations

import time as clock
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp  # type: ignore[import-untyped]
from scipy.sparse import coo_matrix  # type: ignore[import-untyped]

from mycelia.parallel.planner.layouts import Layout
from mycelia.parallel.planner.problem import Problem

#: How far apart units may stand to be told apart by what is around them.
ROUNDS = 4
#: How often rows are added for points in time.
_MOST_TIMES = 12


@dataclass
class Found:
    """A solution.

    Attributes:
        solution: a choice for each unit; empty if nothing fits.
        cost: its seconds.
        bound: seconds that no solution of the program is below.
        seconds: how long it took to find.
        mode: how it was found.
        peak: bytes of one device.
        notes: what a reader should know.
        times: points in time that bounded memory.
        short: bytes that are missing if nothing fits.
    """

    solution: list[int]
    cost: float
    bound: float
    seconds: float
    mode: str
    peak: float = 0.0
    notes: list[str] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    short: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether there is a solution."""
        return bool(self.solution)

    @property
    def gap(self) -> float:
        """How far the cost may be above the best, as a part of it."""
        return 0.0 if self.cost <= 0 else max(0.0, (self.cost - self.bound) / self.cost)


def colours(problem: Problem, rounds: int = ROUNDS) -> list[int]:
    """A number for each unit, equal for those that take one choice."""
    network = problem.network
    numbers: dict[Hashable, int] = {}
    found = [
        numbers.setdefault((unit.key, unit.phase, problem.pinned.get(u, -1)), len(numbers))
        for u, unit in enumerate(network.units)
    ]
    beside: list[list[tuple[int, int, int, int]]] = [[] for _ in network.units]
    for v, held in enumerate(network.values):
        u, s = held.producer
        if u < 0:
            continue
        for phase, w, t in problem.uses(v):
            beside[u].append((s, phase, w, t))
            beside[w].append((t, -1 - phase, u, s))
    for _ in range(rounds):
        numbers = {}
        around = [tuple(sorted([(s, p, found[w], t) for s, p, w, t in near])) for near in beside]
        found = [numbers.setdefault((found[u], around[u]), len(numbers)) for u in range(len(found))]
    return found


class Program:
    """The integer program of a problem.

    Args:
        problem: what is solved.
        tied: a number for each unit, equal for those that take one choice; None ties none.
    """

    def __init__(self, problem: Problem, tied: Sequence[int] | None = None) -> None:
        self.problem = problem
        units = problem.network.units
        groups: dict[int, list[int]] = {}
        for u in range(len(units)):
            groups.setdefault(tied[u] if tied is not None else u, []).append(u)
        self.classes = list(groups.values())
        self.class_of = [0] * len(units)
        for c, members in enumerate(self.classes):
            for u in members:
                self.class_of[u] = c
        self.costs: list[float] = []
        self.integral: list[int] = []
        self.first: list[int] = []
        self._rows: list[tuple[list[int], list[float], float, float]] = []
        self._edges: dict[tuple[int, int, int, int], dict[tuple[Layout, Layout], int]] = {}
        for members in self.classes:
            choices = problem.choices[members[0]]
            self.first.append(len(self.costs))
            runs = problem.runs(members[0])
            self.costs += [len(members) * runs * (c.compute + c.comm) for c in choices]
            self.integral += [1] * len(choices)
            places = list(range(self.first[-1], len(self.costs)))
            self._rows.append((places, [1.0] * len(places), 1.0, 1.0))
        self._add_edges()

    def _variable(self, cost: float = 0.0) -> int:
        self.costs.append(cost)
        self.integral.append(0)
        return len(self.costs) - 1

    def _by_layout(self, c: int, slot: int) -> dict[Layout, list[int]]:
        found: dict[Layout, list[int]] = {}
        for i, choice in enumerate(self.problem.choices[self.classes[c][0]]):
            found.setdefault(choice.layouts[slot], []).append(self.first[c] + i)
        return found

    def _add_edges(self) -> None:
        problem = self.problem
        groups: dict[tuple[Any, ...], list[int]] = {}
        for v, held in enumerate(problem.network.values):
            u, s = held.producer
            if u < 0:
                continue
            by_phase: dict[int, dict[tuple[int, int], None]] = {}
            for phase, w, t in problem.uses(v):
                by_phase.setdefault(phase, {})[self.class_of[w], t] = None
            for phase, readers in by_phase.items():
                groups.setdefault((self.class_of[u], s, phase, tuple(sorted(readers))), []).append(v)
        for (c, s, phase, readers), values in groups.items():
            held = problem.network.values[values[0]]
            edges = [self._edge(c, s, d, t) for d, t in readers]
            shared: dict[tuple[Layout, Layout], list[int]] = {}
            for edge in edges:
                for pair, place in edge.items():
                    shared.setdefault(pair, []).append(place)
            for pair, places in shared.items():
                seconds = problem.move_seconds(phase, held, *pair) if pair[0] != pair[1] else 0.0
                if seconds <= 0:
                    continue
                if len(places) == 1:
                    self.costs[places[0]] += seconds * len(values)
                    continue
                common = self._variable(seconds * len(values))
                for place in places:
                    self._rows.append(([common, place], [1.0, -1.0], 0.0, np.inf))

    def _edge(self, c: int, s: int, d: int, t: int) -> dict[tuple[Layout, Layout], int]:
        """The variables of an edge, by layouts before and after."""
        key = (c, s, d, t)
        if key in self._edges:
            return self._edges[key]
        before, after = self._by_layout(c, s), self._by_layout(d, t)
        made = self._edges[key] = {}
        if len(before) == 1 and len(after) == 1 and before.keys() == after.keys():
            return made
        for p in before:
            for q in after:
                made[p, q] = self._variable()
        for p, places in before.items():
            row = [made[p, q] for q in after]
            self._rows.append(([*row, *places], [1.0] * len(row) + [-1.0] * len(places), 0.0, 0.0))
        for q, places in after.items():
            row = [made[p, q] for p in before]
            self._rows.append(([*row, *places], [1.0] * len(row) + [-1.0] * len(places), 0.0, 0.0))
        return made

    def memory_row(self, time: int) -> dict[int, float]:
        """Bytes of one device while a unit runs, as coefficients of variables."""
        problem, network = self.problem, self.problem.network
        found: dict[int, float] = {}
        for number, held in enumerate(network.values):
            u, s = held.producer
            if u < 0:
                continue
            if any(born <= time <= last for born, last in problem.lifetimes(number)):
                c = self.class_of[u]
                for layout, places in self._by_layout(c, s).items():
                    nbytes = problem.held_bytes(held, layout)
                    if nbytes:
                        for place in places:
                            found[place] = found.get(place, 0.0) + nbytes
        unit = network.units[time]
        for t, v in enumerate(unit.slots[: unit.entering]):
            held = network.values[v]
            u, s = held.producer
            if u >= 0:
                for (p, q), place in self._edge(self.class_of[u], s, self.class_of[time], t).items():
                    if p != q:
                        found[place] = found.get(place, 0.0) + problem.copy_bytes(held, q)
        return found

    def solve(
        self, limit: float | None = None, times: Sequence[int] = (), relaxed: bool = False, seconds: float = 60.0,
        gap: float = 1e-3, least_memory: bool = False,
    ) -> tuple[np.ndarray | None, float, float]:  # fmt: skip
        """The best choices, their cost and a bound; None for the choices if there are none.

        Args:
            limit: bytes of one device.
            times: points in time at which it holds.
            relaxed: without asking for whole numbers; the cost is then the bound.
            seconds: how long it may take.
            gap: how far from the best it may stop, as a part of the cost.
            least_memory: minimize the most memory at these points instead of the cost.
        """
        scale = 1.0 / max(1e-30, sum(self.costs[: sum(self.integral)]) / max(1, len(self.classes)))
        costs = np.array(self.costs) * scale
        rows = list(self._rows)
        count = len(costs)
        unit = limit or 1.0
        if least_memory:
            costs = np.append(np.zeros(count), 1.0)
        for time in times:
            row = self.memory_row(time)
            places, sizes = list(row), [b / unit for b in row.values()]
            if least_memory:
                rows.append(([*places, count], [*sizes, -1.0], -np.inf, 0.0))
            elif limit is not None:
                rows.append((places, sizes, -np.inf, 1.0))
        entries = [(r, place, size) for r, row in enumerate(rows) for place, size in zip(row[0], row[1], strict=True)]
        r, p, size = zip(*entries, strict=True)
        matrix = coo_matrix((size, (r, p)), shape=(len(rows), len(costs))).tocsr()
        integral = np.array([0 if relaxed else k for k in self.integral] + [0] * least_memory)
        upper = np.where(np.arange(len(costs)) < count, 1.0, np.inf)
        result = milp(
            costs, integrality=integral, bounds=Bounds(0.0, upper),
            constraints=LinearConstraint(matrix, [row[2] for row in rows], [row[3] for row in rows]),
            options={"time_limit": seconds, "mip_rel_gap": gap, "presolve": True},
        )  # fmt: skip
        if result.x is None:
            return None, np.inf, np.inf
        if least_memory:
            return result.x[:count], float(result.x[count]) * unit, float(result.x[count]) * unit
        bound = result.fun if relaxed or result.mip_dual_bound is None else result.mip_dual_bound
        return result.x, float(result.fun) / scale, float(bound) / scale

    def solution(self, x: np.ndarray) -> list[int]:
        """A choice for each unit from the variables."""
        picked = []
        for c, members in enumerate(self.classes):
            count = len(self.problem.choices[members[0]])
            picked.append(int(np.argmax(x[self.first[c] : self.first[c] + count])))
        return [picked[c] for c in self.class_of]


def solve(
    problem: Problem, limit: float | None = None, tie: bool = True, seconds: float = 60.0, gap: float = 1e-3
) -> Found:
    """The best solution of a problem.

    Args:
        problem: units, choices and costs.
        limit: bytes that one device may use; None for no limit.
        tie: whether equal layers take equal choices.
        seconds: how long it may take.
        gap: how far from the best it may stop, as a part of the cost.
    """
    start = clock.perf_counter()
    program = Program(problem, colours(problem) if tie else None)
    times: list[int] = []
    bound = 0.0
    for _ in range(_MOST_TIMES):
        left = max(1.0, seconds - (clock.perf_counter() - start))
        x, _, bound = program.solve(limit, times, seconds=left, gap=gap)
        if x is None:
            taken = clock.perf_counter() - start
            return _nothing(program, limit or 0.0, times, taken)
        solution = program.solution(x)
        level = problem.memory(solution)
        if limit is None or level.max() <= limit * (1 + 1e-9):
            return Found(
                solution, problem.cost(solution), bound, clock.perf_counter() - start, "auto", float(level.max()),
                times=times,
            )  # fmt: skip
        times += [t for t in _peaks(level, limit) if t not in times][:4]
    taken = clock.perf_counter() - start
    return Found([], np.inf, bound, taken, "auto", short=float(level.max() - (limit or 0.0)), times=times)


def _peaks(level: np.ndarray, limit: float) -> list[int]:
    """The highest points of the stretches above the limit, the highest first."""
    above = np.flatnonzero(level > limit)
    stretches = np.split(above, np.flatnonzero(np.diff(above) > 1) + 1)
    found = [int(s[np.argmax(level[s])]) for s in stretches if len(s)]
    return sorted(found, key=lambda t: -level[t])


def _nothing(program: Program, limit: float, times: list[int], taken: float) -> Found:
    """What is missing: the least memory that these points in time need."""
    x, least, _ = program.solve(limit, times, relaxed=True, least_memory=True, seconds=30)
    note = "the solver found no solution in time" if x is None else ""
    return Found(
        [], np.inf, np.inf, taken, "auto", short=max(0.0, least - limit), times=times, notes=[note] if note else []
    )


def least_memory(problem: Problem, unit: float) -> float:
    """A bound of the bytes that one device needs at least, whatever is chosen.

    Args:
        problem: units and choices.
        unit: a size about which it is likely to be, for scaling.
    """
    program = Program(problem, colours(problem))
    times: list[int] = []
    least = 0.0
    for _ in range(4):
        if not times:
            even = [
                min(range(len(c)), key=lambda i, c=c: -sum(a >= 0 for lay in c[i].layouts for a in lay))  # type: ignore[misc]
                for c in problem.choices
            ]
            level = problem.memory(even)
        else:
            x, least, _ = program.solve(unit, times, relaxed=True, least_memory=True, seconds=30)
            if x is None:
                return least
            level = problem.memory(program.solution(x))
        new = [t for t in _peaks(level, least * 1.01) if t not in times][:2]
        if not new:
            break
        times += new
    return least
