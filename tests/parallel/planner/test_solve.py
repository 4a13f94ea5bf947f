"""The integer program against every solution there is, against its bound, and against the other searches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.parallel.planner.random_tasks import best_of_all, best_within, combinations, random_task

from mycelia.parallel.planner.costs import Setting
from mycelia.parallel.planner.layouts import MeshShape
from mycelia.parallel.planner.machine import Level, Machine
from mycelia.parallel.planner.problem import Problem
from mycelia.parallel.planner.searches import propagate, recurse
from mycelia.parallel.planner.solve import Program, colours, least_memory, solve
from mycelia.parallel.planner.units import network_of

MACHINE = Machine("four", (Level("link", 4, 1e-6, 1e-10),), {"default": 1e12}, 1e11, 2**30)
LINE, SQUARE = MeshShape(("data",), (4,)), MeshShape(("data", "model"), (2, 2))


def _cases() -> list[tuple[int, int, MeshShape]]:
    """30 graphs: up to 8 operators on one axis, up to 5 on two."""
    line = [(seed, 3 + seed % 6, LINE) for seed in range(18)]
    return line + [(100 + seed, 2 + seed % 4, SQUARE) for seed in range(12)]


@pytest.mark.parametrize(("seed", "operators", "mesh"), _cases())
def test_the_optimum_is_that_of_looking_at_every_solution(seed: int, operators: int, mesh: MeshShape) -> None:
    task = random_task(seed, operators)
    task.pairs = []
    problem = Problem(network_of(task, cluster=False), Setting(mesh, MACHINE))
    assert combinations(problem) < 3e6
    found = solve(problem, gap=0.0)
    assert found.cost == pytest.approx(best_of_all(problem), rel=1e-9)
    assert found.cost == pytest.approx(found.bound, rel=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_with_a_limit_of_memory_too(seed: int) -> None:
    task = random_task(200 + seed, 3)
    problem = Problem(network_of(task), Setting(MeshShape(("data",), (2,)), MACHINE))
    some = itertools.islice(itertools.product(*[range(len(c)) for c in problem.choices]), 500)
    peaks = sorted({float(problem.memory(s).max()) for s in some})
    for limit in (peaks[-1], peaks[len(peaks) // 2], 0.5 * peaks[0]):
        found, wanted = solve(problem, limit, tie=False, gap=0.0), best_within(problem, limit)
        assert found.fits == np.isfinite(wanted)
        if found.fits:
            assert found.cost == pytest.approx(wanted, rel=1e-9)
            assert problem.memory(found.solution).max() <= limit * (1 + 1e-9)


def test_what_does_not_fit_is_told_with_the_bytes_that_are_missing() -> None:
    task = random_task(3, 3)
    problem = Problem(network_of(task), Setting(MeshShape(("data",), (2,)), MACHINE))
    least = min(float(problem.memory(s).max()) for s in itertools.product(*[range(len(c)) for c in problem.choices]))
    found = solve(problem, 0.9 * least)
    assert not found.fits
    assert 0 < found.short <= 0.1 * least * (1 + 1e-6)
    assert least_memory(problem, least) <= least * (1 + 1e-6)
    assert solve(problem, least).fits


@pytest.mark.parametrize("seed", range(6))
def test_the_other_searches_are_never_better(seed: int) -> None:
    problem = Problem(network_of(random_task(300 + seed, 7)), Setting(SQUARE, MACHINE))
    best = solve(problem, gap=0.0).cost
    outward = propagate(problem)
    with pytest.warns(UserWarning, match="one axis of the mesh at a time"):
        halved = recurse(problem)
    for found in (outward, halved):
        assert found.cost == pytest.approx(problem.cost(found.solution))
        assert found.cost >= best * (1 - 1e-9)
    assert outward.mode == "sharding_propagation"
    assert halved.mode == "recursive_programming"
    assert halved.notes


@pytest.mark.parametrize("seed", range(6))
def test_chains_taken_as_one_unit_cost_no_more(seed: int) -> None:
    task = random_task(400 + seed, 8)
    setting = Setting(SQUARE, MACHINE)
    apart = solve(Problem(network_of(task, cluster=False), setting), gap=0.0).cost
    together = solve(Problem(network_of(task), setting), gap=0.0).cost
    assert together >= apart * (1 - 1e-9)
    assert together <= apart * 1.02


def test_what_is_pinned_stays() -> None:
    task = random_task(5, 4)
    network = network_of(task)
    label = task.labels[0]
    free = Problem(network, Setting(SQUARE, MACHINE))
    pinned = Problem(network, Setting(SQUARE, MACHINE), {label: ("model", None)})
    u = next(u for u, unit in enumerate(network.units) if 0 in unit.nodes)
    slot = network.units[u].entering
    for found in (solve(pinned, gap=0.0), propagate(pinned)):
        assert pinned.layout(found.solution, u, slot) == (-1, 0)
        assert found.cost >= solve(free, gap=0.0).cost * (1 - 1e-9)


def test_equal_layers_are_tied_and_the_ends_are_not() -> None:
    from mycelia.core import dtypes as dt
    from mycelia.ir.graph import Graph
    from mycelia.ir.primitive import primitive_named
    from mycelia.ir.types import TensorType
    from mycelia.parallel.planner.task import task_of_graph

    graph = Graph()
    x = graph.add_param(TensorType(dt.float32, (64, 256)))
    for _ in range(24):
        w = graph.add_param(TensorType(dt.float32, (256, 256)))
        x = graph.add_node(primitive_named("matmul"), (x, w), {"transpose_a": False, "transpose_b": False}).outputs[0]
        x = graph.add_node(primitive_named("relu"), (x,), {}).outputs[0]
    graph.outputs = [x]
    problem = Problem(network_of(task_of_graph(graph)), Setting(SQUARE, MACHINE))
    tied = colours(problem)
    assert len(set(tied)) < len(tied) / 3
    assert len({tied[u] for u in (0, 1, 24)}) == 3
    program = Program(problem, tied)
    assert len(program.costs) < len(Program(problem).costs) / 3
    assert solve(problem).cost == pytest.approx(solve(problem, tie=False).cost, rel=1e-3)
