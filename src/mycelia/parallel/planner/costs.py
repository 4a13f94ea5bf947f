"""The choices of a unit on a mesh, and what they cost.

A choice puts each axis of the mesh on a name of the unit's dimensions, or on none (then every device along the axis
does the same). Computing takes the operations over the rate plus the bytes read and written over the bandwidth, both
of one device's part, and the overhead of an operator. A summed name leaves parts of sums: all-reduce makes them whole,
reduce-scatter leaves each device one part of the sum, divided along a dimension of the output.

With micro-batches, what belongs to the rows of the data is communicated once for each of them, a gradient of
parameters only once: it is added up first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from mycelia.compiler.report import graph_cost, node_cost
from mycelia.ir.graph import Node
from mycelia.parallel.planner.layouts import WHOLE, Layout, MeshShape, Step, parts, steps_between
from mycelia.parallel.planner.machine import Machine
from mycelia.parallel.planner.units import Held, Network, Unit

#: Partial sums of fewer bytes are always made whole: parts of them are not worth a choice.
LEAST_SCATTERED = 4096


@dataclass(frozen=True)
class Choice:
    """How a unit works on a mesh.

    Attributes:
        text: for each axis a name, ``"k>0"`` for a summed name whose sums stay divided along dimension 0, or ``"-"``.
        layouts: of the unit's slots.
        compute: seconds of computing.
        comm: seconds of the collectives inside.
        steps: those collectives, with the slot each is about.
    """

    text: tuple[str, ...]
    layouts: tuple[Layout, ...]
    compute: float
    comm: float
    steps: tuple[tuple[int, Step], ...]


@dataclass(frozen=True)
class Setting:
    """Where and how a network runs.

    Attributes:
        mesh: of one pipeline stage.
        machine: rates and links.
        micro_batches: how many parts of the batch are done one after the other.
        in_flight: of how many of them what the backward pass needs is held at once.
        blocks: into how many blocks the forward part is divided of which only what enters is kept for the backward
            pass, which computes them again; 0 keeps everything.
    """

    mesh: MeshShape
    machine: Machine
    micro_batches: int = 1
    in_flight: int = 1
    blocks: int = 0


def unit_work(network: Network, unit: Unit) -> tuple[float, str]:
    """Floating-point operations of a unit, and the dtype that tells their rate."""
    graph = network.task.graph
    total = 0.0
    dtype = "float32"
    for i in unit.nodes:
        node = graph.nodes[i]
        total += _flops(node)
        dtype = node.outputs[0].type.dtype.name if node.outputs else dtype
    return total, dtype


def _flops(node: Node) -> float:
    if node.op.name in ("attention", "attention_grad"):
        return _attention_flops(node)
    if node.op.name == "scan":
        return float(graph_cost(node.attrs["body_graph"]).flops * node.attrs["length"])
    held = [graph_cost(g).flops for _, g in node.subgraphs]
    return float(sum(held)) if held else float(node_cost(node).flops)


def _attention_flops(node: Node) -> float:
    """Two products of all rows with all columns forward, five backward."""
    layout = node.attrs["layout"]
    gradient = node.op.name == "attention_grad"
    lead = 3 + node.attrs["statistic"] if gradient else 0
    q = node.inputs[lead].type.shape
    k = q if layout == "packed" else node.inputs[lead + 1].type.shape
    b, rows, h, d = (q[0], q[1], q[3], q[4]) if layout == "packed" else (
        (q[0], q[2], q[1], q[3]) if layout == "heads" else q
    )  # fmt: skip
    columns = k[2] if layout == "heads" else k[1]
    return (10.0 if gradient else 4.0) * b * h * rows * columns * d


def choices_of(network: Network, unit: Unit, setting: Setting) -> list[Choice]:
    """All choices of a unit whose dimensions divide evenly, in a fixed order."""
    mesh = setting.mesh
    held = [network.values[v] for v in unit.slots]
    shapes = [_micro_shape(h, setting.micro_batches) for h in held]
    terms = (*unit.rule.inputs, *unit.rule.outputs)
    options = list(_options(unit, held))
    flops, dtype = unit_work(network, unit)
    found: dict[tuple[Layout, ...], Choice] = {}
    for picked in _assignments(options, len(mesh.sizes)):
        layouts = _layouts(unit, terms, picked)
        if not all(_fits(shape, layout, mesh) for shape, layout in zip(shapes, layouts, strict=True)):
            continue
        names = {a: name for a, (name, _) in enumerate(picked) if name is not None}
        if not _divisible(names, terms, shapes, mesh):
            continue
        made = _priced(unit, held, layouts, picked, flops, dtype, setting)
        known = found.get(made.layouts)
        if known is None or made.compute + made.comm < known.compute + known.comm:
            found[made.layouts] = made
    return list(found.values())


def _micro_shape(held: Held, micro_batches: int) -> tuple[int, ...]:
    shape = held.type.shape
    if held.batch is None or micro_batches == 1:
        return shape
    if shape[held.batch] % micro_batches:
        return (*shape[: held.batch], 1, *shape[held.batch + 1 :])
    return (*shape[: held.batch], shape[held.batch] // micro_batches, *shape[held.batch + 1 :])


_Option = tuple[str | None, int | None]


def _options(unit: Unit, held: Sequence[Held]) -> Iterator[_Option]:
    """What an axis may be put on: nothing, or a name, with the dimension along which sums stay divided."""
    yield None, None
    rule = unit.rule
    for name in rule.names():
        yield name, None
        sums = rule.partial(name)
        if not sums or not rule.scatter:
            continue
        values = [held[unit.entering + k] for k in sums]
        if max(v.nbytes for v in values) < LEAST_SCATTERED:
            continue
        for d in range(min(v.type.rank for v in values)):
            if all(v.type.shape[d] > 1 for v in values):
                yield name, d


def _assignments(options: list[_Option], axes: int) -> Iterator[tuple[_Option, ...]]:
    if not axes:
        yield ()
        return
    for rest in _assignments(options, axes - 1):
        for option in options:
            yield (*rest, option)


def _layouts(unit: Unit, terms: Sequence[Sequence[str | None]], picked: Sequence[_Option]) -> tuple[Layout, ...]:
    found = []
    for s, term in enumerate(terms):
        layout = []
        for name, scatter in picked:
            if name is not None and name in term:
                layout.append(term.index(name))
            elif scatter is not None and s >= unit.entering and s - unit.entering in unit.rule.partial(name or ""):
                layout.append(scatter)
            else:
                layout.append(WHOLE)
        found.append(tuple(layout))
    return tuple(found)


def _fits(shape: Sequence[int], layout: Layout, mesh: MeshShape) -> bool:
    over: dict[int, int] = {}
    for d, n in zip(layout, mesh.sizes, strict=True):
        if d >= 0:
            over[d] = over.get(d, 1) * n
    return all(shape[d] % n == 0 for d, n in over.items())


def _divisible(
    names: dict[int, str], terms: Sequence[Sequence[str | None]], shapes: Sequence[Sequence[int]], mesh: MeshShape
) -> bool:
    """Whether every dimension of each name, also inside the operator, divides."""
    over: dict[str, int] = {}
    for a, name in names.items():
        over[name] = over.get(name, 1) * mesh.sizes[a]
    return all(
        shape[d] % over[name] == 0
        for term, shape in zip(terms, shapes, strict=True)
        for d, name in enumerate(term)
        if name in over
    )


def _priced(
    unit: Unit, held: Sequence[Held], layouts: tuple[Layout, ...], picked: Sequence[_Option], flops: float, dtype: str,
    setting: Setting,
) -> Choice:  # fmt: skip
    mesh, machine, rule = setting.mesh, setting.machine, unit.rule
    divided = prod(
        [n for (name, _), n in zip(picked, mesh.sizes, strict=True) if name is not None and name not in rule.idle]
    )
    moved = sum(h.nbytes / parts(layout, mesh) for h, layout in zip(held, layouts, strict=True) if h.stored)
    compute = 0.0
    if unit.nodes:
        compute = flops / divided / machine.rate(dtype) + moved / machine.bandwidth
        if moved:
            compute += machine.overhead * (setting.micro_batches if unit.carrying else 1)
    steps = list(_steps(unit, held, layouts, picked, mesh))
    comm = sum(
        machine.seconds(
            step.kind, mesh.sizes[step.axis], step.nbytes, mesh.sizes, step.axis,
            setting.micro_batches if slot < 0 or held[slot].carrying else 1,
        )
        for slot, step in steps
    )  # fmt: skip
    text = tuple(["-" if name is None else name if d is None else f"{name}>{d}" for name, d in picked])
    return Choice(text, layouts, compute, comm, tuple(steps))


def _steps(
    unit: Unit, held: Sequence[Held], layouts: Sequence[Layout], picked: Sequence[_Option], mesh: MeshShape
) -> Iterator[tuple[int, Step]]:
    """The collectives inside; slot -1 stands for what is reduced inside an operator."""
    rule = unit.rule
    for a, (name, _) in enumerate(picked):
        if name is not None and name in rule.inner and mesh.sizes[a] > 1:
            inner = rule.inner[name]
            over = prod([n for (other, _), n in zip(picked, mesh.sizes, strict=True) if other in inner.names])
            yield -1, Step("all_reduce", a, inner.nbytes / over)
    for k in range(len(unit.slots) - unit.entering):
        slot = unit.entering + k
        summed = [
            a for a, (name, _) in enumerate(picked)
            if name is not None and mesh.sizes[a] > 1 and k in rule.partial(name)
        ]  # fmt: skip
        term = rule.outputs[k]
        local = held[slot].nbytes / prod(
            [n for (name, _), n in zip(picked, mesh.sizes, strict=True) if name is not None and name in term]
        )
        for a in [a for a in summed if layouts[slot][a] != WHOLE]:
            yield slot, Step("reduce_scatter", a, local)
            local /= mesh.sizes[a]
        for a in [a for a in summed if layouts[slot][a] == WHOLE]:
            yield slot, Step("all_reduce", a, local)


class Moves:
    """What it takes to bring values from one layout to another, remembered."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._known: dict[tuple[float, Layout, Layout], list[Step]] = {}

    def steps(self, held: Held, before: Layout, after: Layout) -> list[Step]:
        """The collectives for a value."""
        nbytes = held.nbytes / (self.setting.micro_batches if held.carrying else 1)
        key = (nbytes, before, after)
        if key not in self._known:
            self._known[key] = steps_between(before, after, nbytes, self.setting.mesh, self.setting.machine)
        whole = held.nbytes / nbytes if nbytes else 1.0
        return [Step(s.kind, s.axis, s.nbytes * whole) for s in self._known[key]]

    def seconds(self, held: Held, before: Layout, after: Layout) -> float:
        """How long they take, for all micro-batches."""
        mesh = self.setting.mesh
        times = self.setting.micro_batches if held.carrying else 1
        return sum(
            self.setting.machine.seconds(s.kind, mesh.sizes[s.axis], s.nbytes, mesh.sizes, s.axis, times)
            for s in self.steps(held, before, after)
        )
