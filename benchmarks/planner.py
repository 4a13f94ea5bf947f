"""The planner: how near its plans are to what is possible, and how they compare with plans written by hand.

``python -m benchmarks.planner`` plans the training step of a 48-layer transformer and prints the bound of the linear
program, the gap and the time, then the table of ``docs/parallel.md``: the networks that are measured elsewhere, on 1 to
8 devices and modelled to 1,024. Costs are the planner's own; nothing is run in parallel.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import jax
import numpy as np

from benchmarks.networks import GPT, Work, make
from benchmarks.workloads import workload
from mycelia import nn
from mycelia.parallel.planner import Level, Machine, MeshShape, Plan, Task, plan, shaped, stage_task
from mycelia.parallel.planner.costs import Setting
from mycelia.parallel.planner.layouts import WHOLE, Layout
from mycelia.parallel.planner.plan import plan_of
from mycelia.parallel.planner.problem import Problem
from mycelia.parallel.planner.solve import Program, colours, solve
from mycelia.parallel.planner.units import network_of

#: 8 accelerators in a node, nodes joined by a network: round numbers of present-day machines.
NODES = Machine(
    "nodes of 8 accelerators", (Level("node", 8, 5e-6, 1 / 200e9), Level("network", 128, 1.5e-5, 1 / 25e9)),
    {"default": 60e12, "float16": 240e12, "bfloat16": 240e12}, 1.5e12, 64e9, 3e-6,
)  # fmt: skip


@contextmanager
def without_elements() -> Iterator[None]:
    """Parameters that are made here have a type and no elements: the largest network costs no memory."""
    from mycelia.tensor import Parameter

    plain = Parameter.__init__

    def hollow(self: Parameter, *args: object, **options: object) -> None:
        plain(self, *args, **options)  # type: ignore[arg-type]
        self._value = jax.ShapeDtypeStruct(self._value.shape, self._value.dtype)

    Parameter.__init__ = hollow  # type: ignore[method-assign]
    try:
        yield
    finally:
        Parameter.__init__ = plain  # type: ignore[method-assign]


def transformer(
    layers: int = 48, width: int = 1024, heads: int = 16, context: int = 512, batch: int = 64, vocabulary: int = 32768
) -> Task:
    """The training step of a GPT with Adam, as a task."""
    with without_elements():
        network = GPT(vocabulary, width, layers, heads, context)
        optimizer = nn.Adam(network.trainable_params(), 1e-4)
    network.set_train()
    x, y = shaped((batch, context), np.int32), shaped((batch * context,), np.int32)
    return stage_task(Work(network, x, y, optimizer).step(), x, y)


# plans written by hand -------------------------------------------------------------------------------------------


def by_layouts(problem: Problem, wanted: Sequence[Layout]) -> list[int]:
    """The choice of each unit that keeps its values in these layouts, or the nearest to them.

    Args:
        problem: units and choices.
        wanted: a layout for each value.
    """
    solution = []
    for u, unit in enumerate(problem.network.units):
        layouts = [wanted[v] for v in unit.slots]

        def miss(i: int, u: int = u, layouts: list[Layout] = layouts) -> tuple[int, float]:
            choice = problem.choices[u][i]
            return (sum(a != b for a, b in zip(choice.layouts, layouts, strict=True)), choice.compute + choice.comm)

        solution.append(min(range(len(problem.choices[u])), key=miss))
    return solution


def data_parallel(problem: Problem) -> list[int]:
    """Rows divided along the first axis, everything else whole; gradients are summed by all-reduce."""
    rest = problem.setting.mesh.whole[1:]
    return by_layouts(
        problem,
        [(WHOLE if held.batch is None else held.batch, *rest) for held in problem.network.values],
    )


#: Dimension of each weight (shape: out, in) that M. Shoeybi et al., "Megatron-LM" (2019) divide.
_MEGATRON = {"qkv": 0, "query": 0, "key": 0, "value": 0, "up": 0, "out": 1, "down": 1, "head": 0, "token": 0}


def megatron_pins(problem: Problem) -> dict[str, tuple[str | None, ...]]:
    """Layouts of parameters: rows of the first products and columns of the second ones, along the last axis."""
    axis = problem.setting.mesh.names[-1]
    pins = {}
    task = problem.network.task
    for name, value in zip(task.names, task.graph.params, strict=True):
        parts = name.split(".")
        layer = next((p for p in parts if p in _MEGATRON), None)
        if layer is None or value.type.rank not in (1, 2):
            continue
        d = _MEGATRON[layer]
        if value.type.rank == 2:
            pins[name] = (axis, None) if d == 0 else (None, axis)
        elif d == 0 and parts[-1] == "bias":
            pins[name] = (axis,)
    return pins


def hand_plans(task: Task, machine: Machine, devices: int, rows: int) -> dict[str, Plan]:
    """Data parallelism, Megatron with and without rows divided, and a pipeline of data-parallel stages."""
    network = network_of(task)
    there = machine.resized(devices)
    found = {}
    if rows % devices == 0:
        problem = Problem(network, Setting(MeshShape(("data",), (devices,)), there))
        found["data parallel"] = _made(problem, data_parallel(problem), 1)
    for n in (devices, devices // 2):
        if n < 2:
            continue
        mesh = MeshShape(("data", "model"), (devices // n, n))
        free = Problem(network, Setting(mesh, there))
        pins = megatron_pins(free)
        try:
            problem = Problem(network, Setting(mesh, there), pins)
        except ValueError:  # a dimension that does not divide
            continue
        if pins:
            found[f"Megatron {devices // n} x {n}"] = _made(problem, solve(problem, seconds=60).solution, 1)
    for stages in (2, 4):
        m = 4 * stages
        if devices % stages or rows % (m * devices // stages) or len(network.units) < 64 or network.mixes_rows:
            continue
        setting = Setting(MeshShape(("data",), (devices // stages,)), there, m, stages)
        problem = Problem(network, setting)
        found[f"1F1B of {stages} stages, {m} micro-batches"] = _made(problem, data_parallel(problem), stages)
    return found


def _made(problem: Problem, solution: list[int], stages: int) -> Plan:
    return plan_of(problem, solution, stages, "1f1b", mode="by hand", bound=0.0, limit=None)


# what is printed -------------------------------------------------------------------------------------------------


def bound_report(task: Task, machine: Machine, devices: int, untied: bool) -> list[str]:
    """Bound, gap and time of the integer program of a large step."""
    mesh = MeshShape(("data", "model"), (2, devices // 2))
    problem = Problem(network_of(task), Setting(mesh, machine.resized(devices)))
    start = time.perf_counter()
    found = solve(problem, machine.memory)
    program = Program(problem, colours(problem))
    _, bound, _ = program.solve(machine.memory, found.times, relaxed=True)
    lines = [
        f"{len(task.graph.nodes):,} nodes, {len(problem.network.units):,} units, {len(program.classes)} classes, "
        f"{sum(program.integral):,} choices, {len(program.costs):,} variables on {mesh}",
        f"plan {found.cost:.6f} s, bound of the linear program {bound:.6f} s, gap {1 - bound / found.cost:.4%}, "
        f"solved in {found.seconds:.1f} s, peak {found.peak / 1e9:.2f} GB",
    ]
    if untied:
        start = time.perf_counter()
        _, loose, _ = Program(problem).solve(machine.memory, found.times, relaxed=True, seconds=3600)
        lines.append(
            f"bound with every layer free: {loose:.6f} s, gap {1 - loose / found.cost:.4%} "
            f"({time.perf_counter() - start:.0f} s)"
        )
    return lines


def task_of(name: str, rows: int) -> Task:
    """The training step of a network that is measured, with this many rows."""
    work = make(name)
    given = workload(name)
    labels = rows * int(np.prod(given.input_shape[1:])) if given.classes == given.tokens else rows
    dtype = np.int32 if given.tokens else np.float32
    x, y = shaped((rows, *given.input_shape[1:]), dtype), shaped((labels,), np.int32)
    return stage_task(Work(work.network, x, y, work.optimizer).step(), x, y)


#: Rows for each device in the table.
ROWS = {"gpt": 8, "bert": 8, "mlp": 64, "resnet50": 8}


def table_rows(name: str, devices: Sequence[int], modelled: Sequence[int]) -> Iterator[list[str]]:
    """Rows of the table: plans, and what plans by hand would take; then plans for machines that are not there."""
    alone = 0.0
    for count in devices:
        rows = ROWS[name] * count
        task = task_of(name, rows)
        found = plan(task, NODES, devices=count, seconds=30)
        alone = alone or found.seconds
        hand = hand_plans(task, NODES, count, rows) if count > 1 else {}
        best = min(hand.items(), key=lambda item: item[1].seconds, default=None)
        ratio = "" if best is None else f"{best[0]} ({best[1].seconds / found.seconds:.2f}x)"
        yield _row(name, str(count), found, alone, ratio)
        assert all(p.seconds >= found.seconds * (1 - 1e-3) for p in hand.values()), "a plan by hand is faster"
    for count in modelled:
        mesh = MeshShape(("data", "model"), (count // 8, 8))
        found = plan(task_of(name, ROWS[name] * count), NODES, devices=count, mesh=mesh, seconds=30)
        yield _row(name, f"{count} (modelled)", found, alone, "")


def _row(name: str, devices: str, found: Plan, alone: float, ratio: str) -> list[str]:
    return [
        name, devices, found.describe(), f"{found.seconds * 1e3:.3f}", f"{alone / found.seconds:.0%}",
        f"{found.peak / 1e6:.0f}", ratio, f"{found.search_seconds:.1f}",
    ]  # fmt: skip


def main() -> None:
    """Print what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--untied", action="store_true", help="also the bound with every layer free (minutes)")
    parser.add_argument("--networks", nargs="*", default=["gpt", "bert", "mlp", "resnet50"])
    parser.add_argument("--devices", nargs="*", type=int, default=[1, 2, 4, 8])
    args = parser.parse_args()
    if args.layers:
        for line in bound_report(transformer(args.layers), NODES, 8, args.untied):
            print(line, flush=True)
    print("| network | devices | plan | ms a step | efficiency | MB | best by hand | search s |")
    print("|---|---|---|---|---|---|---|---|")
    for name in args.networks:
        for row in table_rows(name, args.devices, (64, 1024)):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
