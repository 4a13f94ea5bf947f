"""The search around the integer program: meshes, pipeline stages, micro-batches, schedules, recomputing.

For each number of stages and each mesh of what is left, the integer program is solved once, at the finest micro-batch;
its choices are then priced for every number of micro-batches and every schedule by simulation. A configuration that
could not win even if everything divided perfectly is not solved. Whether state of the optimizer, gradients or
parameters are divided (ZeRO; S. Rajbhandari et al., 2020) needs no search of its own: those are layouts like others,
and the program takes what fits and costs the least.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.parallel.planner.costs import Setting, unit_work
from mycelia.parallel.planner.explain import bytes_text, time_text
from mycelia.parallel.planner.layouts import MeshShape
from mycelia.parallel.planner.machine import Machine
from mycelia.parallel.planner.plan import NothingFitsError, Plan, RunnerUp, describe, edited, plan_of
from mycelia.parallel.planner.problem import Problem
from mycelia.parallel.planner.searches import propagate, recurse
from mycelia.parallel.planner.solve import Found, least_memory, solve
from mycelia.parallel.planner.stages import SCHEDULES
from mycelia.parallel.planner.task import Task
from mycelia.parallel.planner.units import FORWARD, Network, network_of

MODES = ("auto", "sharding_propagation", "recursive_programming")
#: Names of the axes of a mesh that nobody named.
_AXES = ("data", "model", "more")
#: Into how many blocks the forward part is divided if it is computed again.
_BLOCKS = (8, 32)
_MICRO_BATCHES = (1, 2, 4, 8)


def plan(
    task: Task,
    machine: Machine,
    *,
    devices: int | None = None,
    limit: float | None = None,
    mode: str = "auto",
    mesh: MeshShape | None = None,
    stages: int | Sequence[int] | None = None,
    micro_batches: int | Sequence[int] | None = None,
    schedules: Sequence[str] = SCHEDULES,
    recompute: bool | None = None,
    pins: Mapping[str | int, Sequence[object]] | None = None,
    seconds: float = 60.0,
) -> Plan:
    """The fastest plan that is found.

    Args:
        task: the graph, see :func:`~mycelia.parallel.planner.task.stage_task`.
        machine: rates, links and memory.
        devices: how many to use; by default all of the machine's.
        limit: bytes that a device may use; by default the machine's memory.
        mode: ``"auto"`` (the integer program), ``"sharding_propagation"`` or ``"recursive_programming"``.
        mesh: the axes of a stage, if they are given; by default meshes of one and two axes are tried.
        stages: numbers of pipeline stages that are tried; by default 1 and what divides the devices.
        micro_batches: numbers that are tried; by default 1, and for a pipeline up to 8 for each stage.
        schedules: of pipelines.
        recompute: whether what the backward pass needs is computed again; None tries it if memory is short.
        pins: layouts that are given: by name of an input, or label or number of a node.
        seconds: how long one integer program may take.

    Raises:
        ArgumentValueError: a mode, schedule, mesh or number that cannot be.
        NothingFitsError: no plan fits the memory; says how many bytes are missing and how many devices would do.

    >>> import mycelia as ms
    >>> from mycelia.parallel.planner import Level, Machine, shaped, stage_task
    >>> net = ms.nn.Dense(1024, 1024)
    >>> machine = Machine("two", (Level("link", 2, 1e-6, 1e-11),), {"default": 1e12}, 1e11, 2**30)
    >>> found = plan(stage_task(net, shaped((4096, 1024))), machine)
    >>> found.inputs["x"], found.inputs["weight"]
    (('data', None), (None, None))
    """
    start = clock.perf_counter()
    count = _checked(task, machine, devices, mode, mesh, schedules)
    there = machine.resized(count)
    allowed = limit if limit is not None else machine.memory
    network = network_of(task)
    search = _Search(network, there, allowed, mode, pins or {}, seconds, tuple(schedules), mesh is not None)
    configurations = list(_configurations(network, there, count, mesh, stages, micro_batches))
    again = [0] if recompute is not True else []
    again += list(_BLOCKS) if recompute is True else []
    for blocks in again:
        for shape, parts, numbers in configurations:
            search.visit(shape, parts, numbers, blocks)
    if search.best is None and recompute is None and _is_training(network):
        for blocks in _BLOCKS:
            for shape, parts, numbers in configurations:
                search.visit(shape, parts, numbers, blocks)
    if search.best is None and not micro_batches and not network.mixes_rows:
        for shape, parts, numbers in configurations:
            more = [m for m in (2, 4, 8, 16) if parts == 1 and task.rows and task.rows % m == 0 and m not in numbers]
            if more and _is_training(network):
                search.visit(shape, parts, more, 0)
    if search.best is None:
        raise search.nothing_fits(count)
    best = search.best
    if network.mixes_rows and _is_training(network):
        best.notes.append(f"no micro-batches: '{network.mixing[0]}' joins the rows of a batch")
    best.runners_up = search.runners_up(best)
    best.search_seconds = clock.perf_counter() - start
    return best


def _checked(
    task: Task, machine: Machine, devices: int | None, mode: str, mesh: MeshShape | None, schedules: Sequence[str]
) -> int:
    if not isinstance(task, Task):
        raise ArgumentTypeError("plan", "task", got=type(task).__name__, takes="what stage_task gives")
    if mode not in MODES:
        raise ArgumentValueError("plan", "mode", got=repr(mode), takes=", ".join(map(repr, MODES)))
    for schedule in schedules:
        if schedule not in SCHEDULES:
            raise ArgumentValueError("plan", "schedules", got=repr(schedule), takes=", ".join(map(repr, SCHEDULES)))
    count = machine.devices if devices is None else devices
    if count < 1 or (mesh is not None and count % mesh.devices):
        takes = "1 or more" if mesh is None else f"a multiple of the mesh's {mesh.devices}"
        raise ArgumentValueError("plan", "devices", got=str(count), takes=takes)
    return count


def _is_training(network: Network) -> bool:
    return any(unit.phase != FORWARD for unit in network.units)


def _configurations(
    network: Network, machine: Machine, devices: int, mesh: MeshShape | None, stages: int | Sequence[int] | None,
    micro_batches: int | Sequence[int] | None,
) -> Iterator[tuple[MeshShape, int, list[int]]]:  # fmt: skip
    """Mesh of a stage, number of stages, numbers of micro-batches."""
    rows = network.task.rows
    forward = sum(unit.phase == FORWARD for unit in network.units) - network.inputs
    if stages is not None:
        counts = [stages] if isinstance(stages, int) else list(stages)
    elif mesh is not None:
        counts = [devices // mesh.devices]
    else:
        most = max(1, forward // 4)
        counts = [p for p in range(1, devices + 1) if devices % p == 0 and (p == 1 or p <= most)]
        if not _is_training(network) or not rows or network.mixes_rows:
            counts = [1]
    for count in counts:
        if devices % count:
            raise ArgumentValueError("plan", "stages", got=str(count), takes=f"a divisor of {devices} devices")
        if micro_batches is not None:
            numbers = [micro_batches] if isinstance(micro_batches, int) else list(micro_batches)
        else:
            numbers = [1] if count == 1 else [count * k for k in _MICRO_BATCHES]
        if network.mixes_rows and any(m > 1 for m in numbers):
            if micro_batches is not None:
                raise ArgumentValueError(
                    "plan", "micro_batches", got=str(micro_batches), takes="1 for this network",
                    hint=f"'{network.mixing[0]}' joins the rows of a batch: parts of it would give other results",
                )  # fmt: skip
            numbers = [1]
        fitting = [m for m in numbers if m == 1 or (rows and rows % m == 0)]
        if not fitting:
            if micro_batches is not None:
                raise ArgumentValueError(
                    "plan", "micro_batches", got=str(micro_batches), takes=f"numbers that divide {rows} rows"
                )
            continue
        for shape in [mesh] if mesh is not None else _meshes(devices // count, machine):
            yield shape, count, fitting


def _meshes(devices: int, machine: Machine) -> Iterator[MeshShape]:
    """Meshes of one and two axes; both orders only where links differ."""
    yield MeshShape(_AXES[:1], (devices,))
    for n in range(2, devices // 2 + 1):
        if devices % n == 0 and (len(machine.levels) > 1 or n * n <= devices):
            yield MeshShape(_AXES[:2], (n, devices // n))


class _Search:
    """What was found so far."""

    def __init__(
        self, network: Network, machine: Machine, limit: float, mode: str,
        pins: Mapping[str | int, Sequence[object]], seconds: float, schedules: tuple[str, ...], given: bool,
    ) -> None:  # fmt: skip
        self.network, self.machine, self.limit, self.mode = network, machine, limit, mode
        self.pins, self.seconds, self.schedules = pins, seconds, schedules
        self.given = given
        self.best: Plan | None = None
        self.tried: list[tuple[str, float, float, str]] = []
        self.missing: list[tuple[float, str, Problem, Found]] = []
        self._ideal = _ideal_seconds(network, machine)

    def visit(self, mesh: MeshShape, stages: int, numbers: Sequence[int], blocks: int) -> None:
        """Solve one mesh and number of stages, and price it for each number of micro-batches and schedule."""
        finest = max(numbers)
        what = describe(mesh, stages, finest, self.schedules[-1], blocks)
        bubble = 1.0 + (stages - 1) / finest
        ideal = self._ideal / (mesh.devices * stages) * bubble
        if self.best is not None and ideal > self.best.seconds:
            why = f"computing alone takes {time_text(ideal)}"
            self.tried.append((what, float("inf"), 0.0, why))
            return
        held = min(stages, finest) if "1f1b" in self.schedules else finest
        setting = Setting(mesh, self.machine, finest, held if stages > 1 else 1, blocks)
        problem = Problem(self.network, setting, self.pins)
        allowance = self.limit * stages
        for _ in range(3):
            found = self._solved(problem, allowance)
            if not found.fits:
                short = found.short / stages
                self.missing.append((short, what, problem, found))
                self.tried.append((what, float("inf"), self.limit + short, f"{bytes_text(short)} too much"))
                return
            self._name_axes(problem, found)
            fullest = self._priced(problem, found, stages, numbers, blocks)
            if stages == 1 or fullest <= self.limit:
                return
            allowance *= 0.98 * self.limit / fullest

    def _name_axes(self, problem: Problem, found: Found) -> None:
        """Call the axis that divides the rows of data by the first name, if nobody has used the names."""
        mesh = problem.setting.mesh
        if self.given or self.pins or len(mesh.sizes) != 2:
            return
        batches = [
            problem.layout(found.solution, u, 0)
            for u in range(self.network.inputs)
            if self.network.values[u].batch is not None
        ]
        if batches and batches[0][0] != 0 and batches[0][1] == 0:
            renamed = MeshShape((_AXES[1], _AXES[0]), mesh.sizes)
            problem.setting = replace(problem.setting, mesh=renamed)

    def _solved(self, problem: Problem, allowance: float) -> Found:
        if self.mode == "sharding_propagation":
            found = propagate(problem)
        elif self.mode == "recursive_programming":
            found = recurse(problem)
        else:
            return solve(problem, allowance, seconds=self.seconds)
        if found.peak > allowance:
            found.short, found.solution = found.peak - allowance, []
        return found

    def _priced(self, problem: Problem, found: Found, stages: int, numbers: Sequence[int], blocks: int) -> float:
        """Plans for all numbers of micro-batches and schedules; bytes of the leanest."""
        texts = [problem.choices[u][i].layouts for u, i in enumerate(found.solution)]
        leanest = float("inf")
        for m in numbers:
            for schedule in self.schedules if stages > 1 else self.schedules[-1:]:
                here, solution = problem, found.solution
                if m != problem.setting.micro_batches:
                    setting = Setting(problem.setting.mesh, self.machine, m, min(stages, m), blocks)
                    here = Problem(self.network, setting, self.pins)
                    solution = [
                        next((k for k, c in enumerate(here.choices[u]) if c.layouts == layouts), -1)
                        for u, layouts in enumerate(texts)
                    ]
                    if -1 in solution:
                        continue
                made = plan_of(
                    here, solution, stages, schedule, mode=found.mode, bound=found.bound if here is problem else 0.0,
                    limit=self.limit,
                )  # fmt: skip
                made.notes += found.notes
                leanest = min(leanest, made.peak)
                self._enter(made)
        return leanest

    def _enter(self, made: Plan) -> None:
        over = made.peak - self.limit
        if over > self.limit * 1e-9:
            self.tried.append((made.describe(), made.seconds, made.peak, f"{bytes_text(over)} too much"))
            return
        self.tried.append((made.describe(), made.seconds, made.peak, ""))
        if self.best is None or _better(made, self.best):
            self.best = made

    def runners_up(self, best: Plan) -> list[RunnerUp]:
        """Everything else that was tried, the fastest first."""
        found = []
        for what, seconds, peak, why in sorted(self.tried, key=lambda t: (t[1], t[0])):
            if what == best.describe() and not why:
                continue
            slower = f"{seconds / best.seconds - 1:.1%} slower" if best.seconds and not why else why
            found.append(RunnerUp(what, seconds, peak, slower))
        return found

    def nothing_fits(self, devices: int) -> NothingFitsError:
        """The error that says what is missing."""
        if not self.missing:
            leanest = min((peak for _, _, peak, _ in self.tried), default=0.0)
            return NothingFitsError(
                "plan", message=f"no plan fits {bytes_text(self.limit)} on {devices} devices: the leanest of "
                f"{len(self.tried)} that were tried needs {bytes_text(leanest)}",
                hint="give more stages, micro-batches or recompute=True to choose from, or a higher limit",
            )  # fmt: skip
        short, what, problem, found = min(self.missing, key=lambda entry: entry[0])
        where = ""
        if found.times:
            unit = self.network.units[found.times[-1]]
            where = f", while '{unit.name}' runs"
        enough = self._enough(problem, devices)
        hint = (
            f"it would fit on {enough} devices" if enough else
            "more devices alone would not do; raise the limit or make the batch smaller"
        )  # fmt: skip
        return NothingFitsError(
            "plan", message=f"no plan fits {bytes_text(self.limit)} on {devices} devices: the leanest ({what}) lacks "
            f"{bytes_text(short)} for each device{where}", hint=hint,
        )  # fmt: skip

    def _enough(self, problem: Problem, devices: int) -> int | None:
        """How many devices hold the network, by doubling the first axis."""
        mesh = problem.setting.mesh
        stages = devices // mesh.devices
        for factor in (2, 4, 8, 16):
            sizes = (mesh.sizes[0] * factor, *mesh.sizes[1:])
            there = self.machine.resized(devices * factor) if self.machine.levels else self.machine
            setting = Setting(
                MeshShape(mesh.names, sizes), there, problem.setting.micro_batches, problem.setting.in_flight,
                problem.setting.blocks,
            )  # fmt: skip
            if least_memory(Problem(self.network, setting), self.limit) <= self.limit * stages:
                return devices * factor
        return None


def _better(made: Plan, best: Plan) -> bool:
    """Whether a plan is faster, or as fast and leaner."""
    if abs(made.seconds - best.seconds) <= 1e-6 * best.seconds:
        return made.peak < best.peak
    return made.seconds < best.seconds


def _ideal_seconds(network: Network, machine: Machine) -> float:
    """Seconds of one device for all products alone."""
    total = 0.0
    for unit in network.units:
        flops, dtype = unit_work(network, unit)
        total += flops / machine.rate(dtype)
    return total


def replanned(data: Mapping[str, Any], task: Task) -> Plan:
    """The plan that a file's data describes, worked out again."""
    try:
        mesh = MeshShape(tuple(data["mesh"]), tuple(data["mesh"].values()))
        stages, m, schedule = int(data["stages"]), int(data["micro_batches"]), str(data["schedule"])
        blocks, limit = int(data["blocks"]), data["limit"]
        machine = Machine.from_dict(data["machine"])
        units, inputs = data["units"], data["inputs"]
    except (KeyError, TypeError, AttributeError) as error:
        raise ArgumentValueError("Plan.load", "path", got=f"a plan without {error}", takes="a whole plan") from None
    if not isinstance(units, dict) or not isinstance(inputs, dict):
        raise ArgumentValueError("Plan.load", "path", got="rows that are no table", takes="a whole plan")
    setting = Setting(mesh, machine, m, min(stages, m) if stages > 1 else 1, blocks)
    problem = Problem(network_of(task), setting)
    made = plan_of(
        problem, edited(problem, dict(data)), stages, schedule, mode=str(data["mode"]), bound=0.0, limit=limit
    )
    if limit is not None and made.peak > limit:
        made.notes.append(f"{bytes_text(made.peak - limit)} above the limit on the fullest device")
    return made


__all__ = ["MODES", "plan", "replanned"]
