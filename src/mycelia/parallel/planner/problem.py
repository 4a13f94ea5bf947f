"""The planning problem: every unit takes one of its choices; what that costs and how much memory it takes.

The cost of a solution is the sum over units of computing and of collectives inside, and over values of bringing them
to the layouts in which they are used. Units of one phase (forward, backward, update) that use a value in the same
layout share it; between the phases it is brought there again, so that it need not be kept.

Memory is what state takes all the time, and what each value takes from its making to its last use, in the layout in
which it was made, and, while a unit runs, the copies of its operands that were brought to another layout.

Recomputing (T. Chen et al., "Training deep nets with sublinear memory cost", 2016) divides the forward part into
blocks. A value that does not leave its block is let go of after its last forward use and is there again from the first
to the last backward use of its block; the forward work is done twice.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mycelia.core.errors import ArgumentValueError
from mycelia.parallel.planner.costs import Choice, Moves, Setting, choices_of
from mycelia.parallel.planner.layouts import Layout, Step, layout_of, parts
from mycelia.parallel.planner.units import FORWARD, UPDATE, Held, Network

#: Phase of storing the new value of an input in the layout of the old one.
STORE = 3


@dataclass(frozen=True)
class Move:
    """A value brought to another layout, for the units of one phase.

    Attributes:
        value: its number.
        phase: of those who use it.
        before, after: the layouts.
        seconds: for all micro-batches.
    """

    value: int
    phase: int
    before: Layout
    after: Layout
    seconds: float


class Problem:
    """Units with their choices on one mesh.

    Args:
        network: units and values.
        setting: mesh, machine and micro-batches.
        pins: layouts that are given: by name of an input or label or number of a node (its first output), as a
            ``PartitionSpec`` has it.

    Raises:
        ArgumentValueError: a pin names nothing, or asks for what the unit cannot do.
    """

    def __init__(self, network: Network, setting: Setting, pins: Mapping[str | int, Sequence[object]] | None = None):
        self.network, self.setting = network, setting
        self.moves = Moves(setting)
        self.choices: list[list[Choice]] = []
        known: dict[Hashable, list[Choice]] = {}
        for unit in network.units:
            if unit.key not in known:
                known[unit.key] = choices_of(network, unit, setting)
            self.choices.append(known[unit.key])
        self.pinned: dict[int, int] = {}
        self._again: dict[int, tuple[int, int]] = recomputed(network, setting.blocks) if setting.blocks else {}
        for what, spec in (pins or {}).items():
            self._pin(what, spec)

    def _pin(self, what: str | int, spec: Sequence[object]) -> None:
        found = find_unit(self.network, what)
        if found is None:
            raise ArgumentValueError(
                "plan", "pins", got=f"a layout for {what!r}", takes="names of inputs, and labels or numbers of nodes"
            )
        u, slot = found
        wanted = layout_of(spec, self.setting.mesh, "plan")
        kept = [c for c in self.choices[u] if c.layouts[slot] == wanted]
        if not kept:
            shape = self.network.values[self.network.units[u].slots[slot]].type.shape
            raise ArgumentValueError(
                "plan", "pins", got=f"{tuple(spec)} for {what!r} of shape {shape}",
                takes=f"layouts that it can have on {self.setting.mesh}",
                hint="dimensions have to divide evenly, and the operator has to be able to work on parts of them",
            )  # fmt: skip
        self.choices[u] = kept
        self.pinned[u] = len(self.pinned)

    # cost ----------------------------------------------------------------------------------------------------

    def uses(self, value: int) -> Iterator[tuple[int, int, int]]:
        """Phase, unit and slot of each use of a value; storing the new value of an input is one."""
        held = self.network.values[value]
        for u, s in held.consumers:
            if held.renews == u and s == 0:
                yield STORE, u, s
            else:
                yield self.network.units[u].phase, u, s

    def runs(self, u: int) -> float:
        """How often a unit runs for one micro-batch."""
        unit = self.network.units[u]
        return 2.0 if self.setting.blocks and unit.phase == FORWARD and unit.carrying else 1.0

    def move_seconds(self, phase: int, held: Held, before: Layout, after: Layout) -> float:
        """How long bringing a value to another layout takes for the units of a phase."""
        again = 2.0 if self.setting.blocks and phase == FORWARD and held.carrying else 1.0
        return again * self.moves.seconds(held, before, after)

    def layout(self, solution: Sequence[int], unit: int, slot: int) -> Layout:
        """The layout of a slot under a solution (a choice for each unit)."""
        return self.choices[unit][solution[unit]].layouts[slot]

    def moves_of(self, solution: Sequence[int]) -> Iterator[Move]:
        """What is brought to another layout."""
        for v, held in enumerate(self.network.values):
            u, s = held.producer
            if u < 0:
                continue
            before = self.layout(solution, u, s)
            wanted = dict.fromkeys((phase, self.layout(solution, w, t)) for phase, w, t in self.uses(v))
            for phase, after in wanted:
                if after != before:
                    yield Move(v, phase, before, after, self.move_seconds(phase, held, before, after))

    def cost(self, solution: Sequence[int]) -> float:
        """Seconds of a solution."""
        own = 0.0
        for u, i in enumerate(solution):
            choice = self.choices[u][i]
            own += self.runs(u) * (choice.compute + choice.comm)
        return own + sum(move.seconds for move in self.moves_of(solution))

    # memory --------------------------------------------------------------------------------------------------

    def share(self, held: Held) -> float:
        """The part of a value's bytes that is held at once: of the micro-batches in flight."""
        if not held.carrying:
            return 1.0
        return min(1.0, self.setting.in_flight / self.setting.micro_batches)

    def lifetimes(self, value: int) -> list[tuple[int, int]]:
        """When a value is there: first and last times of one or two stretches."""
        held = self.network.values[value]
        first, last = self.lifetime(held)
        if value not in self._again:
            return [(first, last)]
        forward = max([u for u, _ in held.consumers if self.network.units[u].phase == FORWARD], default=first)
        begin, end = self._again[value]
        return [(first, forward), (max(begin, forward + 1), max(end, last))]

    def lifetime(self, held: Held) -> tuple[int, int]:
        """When a value is there; gradients that are added up over micro-batches are there all the time."""
        end = len(self.network.units) - 1
        if held.static:
            return 0, end
        u, _ = held.producer
        if self.setting.micro_batches > 1 and not held.carrying and u >= 0:
            unit = self.network.units[u]
            if unit.carrying and unit.phase != FORWARD:
                return 0, end
        return held.born, held.last

    def held_bytes(self, held: Held, layout: Layout) -> float:
        """Bytes that one device holds of a value."""
        if not held.stored or held.renews is not None:
            return 0.0
        return held.nbytes * self.share(held) / parts(layout, self.setting.mesh)

    def copy_bytes(self, held: Held, layout: Layout) -> float:
        """Bytes of a copy in another layout, of one micro-batch."""
        times = self.setting.micro_batches if held.carrying else 1
        return held.nbytes / times / parts(layout, self.setting.mesh)

    def memory(self, solution: Sequence[int]) -> np.ndarray:
        """Bytes of one device while each unit runs."""
        count = len(self.network.units)
        change = np.zeros(count + 1)
        for v, held in enumerate(self.network.values):
            u, s = held.producer
            if u < 0:
                continue
            nbytes = self.held_bytes(held, self.layout(solution, u, s))
            for born, last in self.lifetimes(v):
                change[born] += nbytes
                change[last + 1] -= nbytes
        level = np.cumsum(change)[:count]
        for u in range(self.network.inputs, count):
            level[u] += sum(self._copies(solution, u))
        return level

    def _copies(self, solution: Sequence[int], u: int) -> Iterator[float]:
        unit = self.network.units[u]
        for s, v in enumerate(unit.slots[: unit.entering]):
            held = self.network.values[v]
            if held.producer[0] >= 0:
                after = self.layout(solution, u, s)
                if self.layout(solution, *held.producer) != after:
                    yield self.copy_bytes(held, after)

    def static_bytes(self, solution: Sequence[int]) -> float:
        """Bytes of state on one device."""
        return sum(
            self.held_bytes(held, self.layout(solution, *held.producer)) for held in self.network.values if held.static
        )

    # collectives ---------------------------------------------------------------------------------------------

    def collectives(self, solution: Sequence[int]) -> Iterator[tuple[str, Step, bool, float]]:
        """Where, what, whether once for each micro-batch, and seconds in all, of each collective."""
        machine, mesh = self.setting.machine, self.setting.mesh
        for u, i in enumerate(solution):
            unit, choice = self.network.units[u], self.choices[u][i]
            for slot, step in choice.steps:
                each = slot < 0 or self.network.values[unit.slots[slot]].carrying
                times = self.setting.micro_batches if each else 1
                n = mesh.sizes[step.axis]
                yield unit.name, step, each, machine.seconds(step.kind, n, step.nbytes, mesh.sizes, step.axis, times)
        for move in self.moves_of(solution):
            held = self.network.values[move.value]
            times = self.setting.micro_batches if held.carrying else 1
            for step in self.moves.steps(held, move.before, move.after):
                n = mesh.sizes[step.axis]
                taken = machine.seconds(step.kind, n, step.nbytes, mesh.sizes, step.axis, times)
                yield f"layout of {held.name}", step, held.carrying, taken


def recomputed(network: Network, blocks: int) -> dict[int, tuple[int, int]]:
    """The values that are computed again, with the first and last time of their block's backward work."""
    forward = [u for u in range(network.inputs, len(network.units)) if network.units[u].phase == FORWARD]
    block = {u: k * blocks // max(1, len(forward)) for k, u in enumerate(forward)}
    inside: dict[int, list[int]] = {}
    span: dict[int, tuple[int, int]] = {}
    for v, held in enumerate(network.values):
        u = held.producer[0]
        if u not in block or held.static or not held.carrying:
            continue
        later = [w for w, _ in held.consumers if network.units[w].phase != FORWARD]
        if not later:
            continue
        b = block[u]
        first, last = span.get(b, (min(later), max(later)))
        span[b] = (min(first, *later), max(last, *later))
        if all(block[w] == b for w, _ in held.consumers if w in block):
            inside.setdefault(b, []).append(v)
    return {v: span[b] for b, values in inside.items() for v in values}


def find_unit(network: Network, what: str | int) -> tuple[int, int] | None:
    """Unit and slot of an input by name, or of a node by label or number."""
    if isinstance(what, str) and what in network.task.names:
        return network.task.names.index(what), 0
    labels = network.task.labels
    node = what if isinstance(what, int) else labels.index(what) if what in labels else -1
    if not 0 <= node < len(labels):
        return None
    for u, unit in enumerate(network.units):
        if node in unit.nodes:
            outs = {network.of_value[v] for v in network.task.graph.nodes[node].outputs}
            slot = next((s for s in range(unit.entering, len(unit.slots)) if unit.slots[s] in outs), unit.entering)
            return u, slot
    return None


__all__ = ["STORE", "UPDATE", "Move", "Problem", "find_unit"]
