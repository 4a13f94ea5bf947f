"""A plan: how every operator of a step is divided over devices, as data that people read, compare and change.

The file is JSON with a row for each input and each unit of operators, in the order of the graph, so that two plans
differ in the lines in which they differ. What is changed in a file is ``"choice"`` of a unit (for each axis of the mesh
a name of its dimensions, see :mod:`.rules`) or ``"layout"`` of an input; reading it again checks them and works out
costs and memory anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mycelia.core.errors import ArgumentValueError, StateError
from mycelia.parallel.planner.layouts import WHOLE, Layout, MeshShape, Spec, layout_of, spec_of
from mycelia.parallel.planner.machine import Machine, bytes_sent, write_text
from mycelia.parallel.planner.problem import Problem
from mycelia.parallel.planner.stages import Stage, divide, makespan, stage_of_units

VERSION = 1


@dataclass(frozen=True)
class Row:
    """A unit of a plan.

    Attributes:
        name: the label of its first node.
        choice: for each axis of the mesh a name of its dimensions, or ``"-"``.
        layout: of what it makes, as a ``PartitionSpec`` has it.
        nodes: places of its nodes in the graph.
        stage: its pipeline stage.
        compute, comm: seconds in a step.
        nbytes: bytes that one device holds of what it makes.
    """

    name: str
    choice: dict[str, str]
    layout: Spec
    nodes: tuple[int, ...]
    stage: int
    compute: float
    comm: float
    nbytes: float


@dataclass(frozen=True)
class Collective:
    """A collective of a step.

    Attributes:
        where: the unit, or the value that is brought to another layout.
        kind, axis: what it does, along which axis.
        nbytes: of the whole that it is about, in a step.
        each: whether it is done for each micro-batch.
        seconds: in a step.
    """

    where: str
    kind: str
    axis: str
    nbytes: float
    each: bool
    seconds: float


@dataclass(frozen=True)
class RunnerUp:
    """A plan that lost: what it was, its seconds and bytes, and why it lost."""

    what: str
    seconds: float
    peak: float
    why: str


@dataclass
class Plan:
    """A strategy with what it costs; :func:`plan` finds one, :meth:`load` reads one.

    Attributes:
        fingerprint: of the graph that it is for.
        mesh: axes of one pipeline stage.
        stages: pipeline stages.
        micro_batches, schedule, blocks: how a step is divided in time; ``blocks`` are computed again if not 0.
        machine: what it was made for.
        mode: how it was found.
        seconds: of a step.
        bound: seconds that no plan of this mesh is below; 0 if it is not known.
        peak: bytes of the fullest device.
        limit: bytes that a device may use.
        inputs: the layout of each input.
        rows: the units.
        parts: the pipeline stages.
        collectives: of a step.
        runners_up: plans that lost.
        notes: what a reader should know.
        search_seconds: how long the search took.
    """

    fingerprint: str
    mesh: MeshShape
    stages: int
    micro_batches: int
    schedule: str
    blocks: int
    machine: Machine
    mode: str
    seconds: float
    bound: float
    peak: float
    limit: float | None
    inputs: dict[str, Spec]
    input_stage: dict[str, int]
    rows: list[Row]
    parts: list[Stage]
    collectives: list[Collective]
    constraints: dict[tuple[int, int], Spec]
    rows_axis: tuple[str, ...]
    runners_up: list[RunnerUp] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    search_seconds: float = 0.0

    @property
    def devices(self) -> int:
        """How many devices it uses."""
        return self.mesh.devices * self.stages

    @property
    def compute_seconds(self) -> float:
        """Seconds of computing in a step, of all stages one after the other."""
        return sum(row.compute for row in self.rows)

    @property
    def comm_seconds(self) -> float:
        """Seconds of collectives in a step, of all stages one after the other."""
        return sum(c.seconds for c in self.collectives)

    def bytes_sent(self) -> dict[str, float]:
        """Bytes that one device sends in a step, by kind of collective."""
        found: dict[str, float] = {}
        for c in self.collectives:
            n = self.mesh.sizes[self.mesh.names.index(c.axis)]
            found[c.kind] = found.get(c.kind, 0.0) + bytes_sent(c.kind, n, c.nbytes)
        sent = sum(part.cut_bytes for part in self.parts[:-1]) * self.micro_batches
        if sent:
            found["send"] = 2 * sent
        return found

    def describe(self) -> str:
        """One line: mesh, stages and micro-batches."""
        return describe(self.mesh, self.stages, self.micro_batches, self.schedule, self.blocks)

    def explain(self, most: int = 12) -> str:
        """Cost and memory by stage and operator, collectives and bytes, and the plans that lost."""
        from mycelia.parallel.planner.explain import explained

        return explained(self, most)

    def diff(self, other: Plan) -> list[str]:
        """What differs, a line for each, ``-`` for this plan's and ``+`` for the other's.

        Raises:
            ArgumentValueError: the other plan is for another graph.
        """
        if other.fingerprint != self.fingerprint:
            raise ArgumentValueError(
                "diff", "other", got="a plan for another graph", takes="a plan for the same graph as this one"
            )
        lines = []
        for name, mine, its in (
            ("mesh", str(self.mesh), str(other.mesh)), ("stages", self.stages, other.stages),
            ("micro_batches", self.micro_batches, other.micro_batches), ("schedule", self.schedule, other.schedule),
            ("blocks", self.blocks, other.blocks), ("seconds", f"{self.seconds:.6g}", f"{other.seconds:.6g}"),
            ("peak bytes", f"{self.peak:.0f}", f"{other.peak:.0f}"),
        ):  # fmt: skip
            if mine != its:
                lines += [f"- {name}: {mine}", f"+ {name}: {its}"]
        for name, spec in self.inputs.items():
            if spec != other.inputs[name]:
                lines += [f"- {name}: {_spec_text(spec)}", f"+ {name}: {_spec_text(other.inputs[name])}"]
        theirs = {row.name: row for row in other.rows}
        for row in self.rows:
            its_row = theirs.get(row.name)
            if its_row is None or (row.choice, row.stage) != (its_row.choice, its_row.stage):
                lines.append(f"- {row.name}: {_choice_text(row)}")
                if its_row is not None:
                    lines.append(f"+ {row.name}: {_choice_text(its_row)}")
        return lines

    def simulate(self, devices: int, machine: Machine | None = None) -> Simulated:
        """The plan on more devices: the axis that divides the rows of data is made longer, with as many more rows.

        Args:
            devices: how many; a multiple of :attr:`devices`.
            machine: by default this plan's, its outermost level made larger.

        Returns:
            Modelled seconds of a step and what part of the speed per device is left. Nothing is run.

        Raises:
            ArgumentValueError: ``devices`` is no multiple.
        """
        return _simulated(self, devices, machine)

    # files ---------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """As plain data, rounded to six digits."""
        return {
            "version": VERSION, "graph": self.fingerprint, "devices": self.devices,
            "mesh": dict(zip(self.mesh.names, self.mesh.sizes, strict=True)), "stages": self.stages,
            "micro_batches": self.micro_batches, "schedule": self.schedule, "blocks": self.blocks, "mode": self.mode,
            "limit": self.limit, "machine": self.machine.to_dict(),
            "cost": {
                "seconds": _short(self.seconds), "compute": _short(self.compute_seconds),
                "communication": _short(self.comm_seconds), "bound": _short(self.bound), "peak_bytes": round(self.peak),
            },
            "inputs": {
                name: {"layout": _plain(spec), "stage": self.input_stage[name]} for name, spec in self.inputs.items()
            },
            "units": {
                row.name: {"choice": row.choice, "layout": _plain(row.layout), "stage": row.stage,
                           "compute": _short(row.compute), "comm": _short(row.comm)}
                for row in self.rows
            },
            "runners_up": [
                {"what": r.what, "seconds": _short(r.seconds), "peak_bytes": round(r.peak), "why": r.why}
                for r in self.runners_up
            ],
            "notes": self.notes,
        }  # fmt: skip

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON, a row a line; the file is either the old one or the whole new one."""
        write_text(path, _rendered(self.to_dict()))

    @staticmethod
    def load(path: str | os.PathLike[str], task: Any) -> Plan:
        """Read a plan for a task; what was changed in the file is checked, and what it costs worked out again.

        Args:
            path: a file that :meth:`save` wrote.
            task: the graph that it is for.

        Raises:
            ArgumentValueError: the file is not a plan, or for another graph, or a unit or input has a choice or
                layout that it cannot have; all of them are told at once.
        """
        from mycelia.parallel.planner.outer import replanned

        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            version = data["version"]
        except (ValueError, KeyError, TypeError) as error:
            raise ArgumentValueError(
                "Plan.load", "path", got=f"{path}: {error}", takes="a file that Plan.save wrote"
            ) from None
        if version != VERSION:
            raise ArgumentValueError("Plan.load", "path", got=f"version {version}", takes=f"version {VERSION}")
        if data["graph"] != task.fingerprint:
            raise ArgumentValueError(
                "Plan.load", "task", got=f"a graph {task.fingerprint}", takes=f"the graph of the plan, {data['graph']}",
                hint="a plan is for one network with one batch size; make a new one",
            )  # fmt: skip
        return replanned(data, task)


@dataclass(frozen=True)
class Simulated:
    """A modelled step on devices that need not be there.

    Attributes:
        devices: how many.
        seconds: of a step, modelled.
        efficiency: rows per second and device as a part of what the plan has on its own devices.
    """

    devices: int
    seconds: float
    efficiency: float


def describe(mesh: MeshShape, stages: int, micro_batches: int, schedule: str, blocks: int) -> str:
    """A strategy in one line."""
    text = str(mesh)
    if stages > 1:
        text += f", {stages} stages ({schedule})"
    if micro_batches > 1:
        text += f", {micro_batches} micro-batches"
    return text + (f", {blocks} blocks recomputed" if blocks else "")


def plan_of(
    problem: Problem, solution: Sequence[int], stages: int, schedule: str, *, mode: str, bound: float,
    limit: float | None,
) -> Plan:  # fmt: skip
    """The plan of a solution."""
    network, setting = problem.network, problem.setting
    mesh, machine = setting.mesh, setting.machine
    units = network.units
    of_unit = stage_of_units(problem, solution, stages)
    parts = divide(problem, solution, stages, schedule)
    peak = float(problem.memory(solution).max()) if stages == 1 else max(part.peak for part in parts)
    rows = []
    constraints: dict[tuple[int, int], Spec] = {}
    for u in range(network.inputs, len(units)):
        unit, choice = units[u], problem.choices[u][solution[u]]
        runs = problem.runs(u)
        made = range(unit.entering, len(unit.slots))
        held = sum(problem.held_bytes(network.values[unit.slots[s]], choice.layouts[s]) for s in made)
        spec: Spec = ()
        if len(unit.slots) > unit.entering:
            first = unit.entering
            spec = spec_of(choice.layouts[first], network.values[unit.slots[first]].type.rank, mesh)
        text = dict(zip(mesh.names, choice.text, strict=True))
        rows.append(Row(unit.name, text, spec, unit.nodes, of_unit[u], runs * choice.compute, runs * choice.comm, held))
        constraints.update(_constraints(problem, u, choice.layouts, choice.text))
    found = [
        Collective(where, step.kind, mesh.names[step.axis], step.nbytes, each, seconds)
        for where, step, each, seconds in problem.collectives(solution)
    ]
    inputs = {
        units[u].name: spec_of(problem.layout(solution, u, 0), network.values[u].type.rank, mesh)
        for u in range(network.inputs)
    }
    batch = [problem.layout(solution, u, 0) for u in range(network.inputs) if network.values[u].batch is not None]
    rows_axis = tuple([mesh.names[a] for a, d in enumerate(batch[0]) if d == 0]) if batch else ()
    return Plan(
        network.task.fingerprint, mesh, stages, setting.micro_batches, schedule, setting.blocks, machine, mode,
        makespan(parts, setting.micro_batches, schedule), bound, peak, limit, inputs,
        {units[u].name: of_unit[u] for u in range(network.inputs)}, rows, parts, found, constraints, rows_axis,
    )  # fmt: skip


def _constraints(
    problem: Problem, u: int, layouts: Sequence[Layout], text: Sequence[str]
) -> Iterator[tuple[tuple[int, int], Spec]]:
    """The layout of every node's outputs in a unit, also of those inside a chain of elementwise operators."""
    network = problem.network
    unit, mesh = network.units[u], problem.setting.mesh
    place = {v: s for s, v in enumerate(unit.slots) if s >= unit.entering}
    for i in unit.nodes:
        for k, value in enumerate(network.task.graph.nodes[i].outputs):
            number = network.of_value[value]
            rank = value.type.rank
            if number in place:
                yield (i, k), spec_of(layouts[place[number]], rank, mesh)
            elif len(unit.nodes) > 1:
                inside = tuple([int(name[1:]) if name != "-" else WHOLE for name in text])
                yield (i, k), spec_of(inside, rank, mesh)


def _simulated(plan: Plan, devices: int, machine: Machine | None) -> Simulated:
    if devices < 1 or devices % plan.devices:
        raise ArgumentValueError("simulate", "devices", got=str(devices), takes=f"a multiple of {plan.devices}")
    factor = devices // plan.devices
    there = machine if machine is not None else plan.machine.resized(devices)
    axis = plan.mesh.names.index(plan.rows_axis[0]) if plan.rows_axis else 0
    before = plan.mesh.sizes
    order = [axis, *[a for a in range(len(before)) if a != axis]]  # the others stay among neighbours
    after = tuple([before[a] * (factor if a == axis else 1) for a in order])
    extra = 0.0
    for c in plan.collectives:
        a = order.index(plan.mesh.names.index(c.axis))
        grown = c.nbytes * factor if a == 0 and c.each and c.kind == "all_gather" else c.nbytes
        times = plan.micro_batches if c.each else 1
        change = there.seconds(c.kind, after[a], grown, after, a, times) - c.seconds
        share = (plan.micro_batches + plan.stages - 1) / plan.micro_batches if c.each else 1.0
        extra += change * share / plan.stages
    if not plan.rows_axis or before[axis] == 1:  # gradients were not summed along an axis that was not there
        extra += _gradient_sums(plan, there, after, factor)
    slower = plan.machine.rate("float32") / there.rate("float32") - 1.0
    extra += plan.compute_seconds * slower / plan.stages
    seconds = plan.seconds + extra
    return Simulated(devices, seconds, plan.seconds / seconds if seconds else 1.0)


def _gradient_sums(plan: Plan, machine: Machine, sizes: Sequence[int], factor: int) -> float:
    """Seconds to sum gradients along a new axis: as much as the state that a stage trains."""
    static = max(part.static for part in plan.parts)
    return machine.seconds("all_reduce", sizes[0], static / 3, sizes, 0) if factor > 1 else 0.0


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _plain(spec: Spec) -> list[Any]:
    return [list(entry) if isinstance(entry, tuple) else entry for entry in spec]


def _spec_text(spec: Spec) -> str:
    entries = ["+".join(entry) if isinstance(entry, tuple) else entry or "-" for entry in spec]
    return f"({', '.join(entries)})"


def _choice_text(row: Row) -> str:
    return " ".join([f"{axis}={name}" for axis, name in row.choice.items()]) + f" stage {row.stage}"


def _rendered(data: dict[str, Any]) -> str:
    """JSON with a line for each entry of the first two levels."""
    lines = ["{"]
    for i, (key, value) in enumerate(data.items()):
        comma = "," if i < len(data) - 1 else ""
        if isinstance(value, (dict, list)) and value and key in ("inputs", "units", "runners_up", "notes"):
            opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
            lines.append(f' "{key}": {opening}')
            entries = (
                [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in value.items()]
                if isinstance(value, dict) else [json.dumps(entry) for entry in value]
            )  # fmt: skip
            lines += [f"  {entry}{',' if k < len(entries) - 1 else ''}" for k, entry in enumerate(entries)]
            lines.append(f" {closing}{comma}")
        else:
            lines.append(f' "{key}": {json.dumps(value)}{comma}')
    return "\n".join([*lines, "}"]) + "\n"


def edited(problem: Problem, data: dict[str, Any]) -> list[int]:
    """The solution that a plan's file tells.

    Raises:
        ArgumentValueError: naming every unit and input that has what it cannot have.
    """
    wrong: list[str] = []
    solution = []
    network, mesh = problem.network, problem.setting.mesh
    for u, unit in enumerate(network.units):
        choices = problem.choices[u]
        if u < network.inputs:
            spec = data["inputs"].get(unit.name, {}).get("layout")
            wanted = layout_of([tuple(e) if isinstance(e, list) else e for e in spec or ()], mesh, "Plan.load")
            fitting = [i for i, c in enumerate(choices) if c.layouts[0] == wanted] if spec is not None else []
            got = f"layout {spec}"
        else:
            row = data["units"].get(unit.name, {}).get("choice", {})
            text = tuple([row.get(name, "?") for name in mesh.names])
            fitting = [i for i, c in enumerate(choices) if c.text == text]
            got = " ".join([f"{name}={t}" for name, t in zip(mesh.names, text, strict=True)])
        if fitting:
            solution.append(fitting[0])
        else:
            offered = sorted({t for c in choices for t in c.text} - {"-"})
            wrong.append(f"{unit.name} has {got} (an axis may have {', '.join(['-', *offered])}, where it divides)")
            solution.append(0)
    if wrong:
        raise ArgumentValueError(
            "Plan.load", "path", got="; ".join(wrong[:8]) + ("; ..." if len(wrong) > 8 else ""),
            takes="choices that the units have on this mesh",
        )  # fmt: skip
    return solution


class NothingFitsError(StateError):
    """No plan fits the memory of the devices; the message tells what is missing, where, and what would fit."""
