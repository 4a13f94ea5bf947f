"""Pipeline stages: where a network is cut, what each stage does, and how long a step takes.

The forward part is cut where the work before reaches its share and few bytes cross. What is not forward goes where
the forward values and parameters that it uses are. A simulation then runs every stage's list of tasks, each as soon as
its stage is free and what it needs has come from its neighbour: GPipe (Y. Huang et al., 2019), all forward before all
backward; 1F1B (D. Narayanan et al., "PipeDream-Flush", 2021), which holds at most as many micro-batches as there are
stages to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mycelia.core.errors import ArgumentValueError
from mycelia.parallel.planner.layouts import Step, parts
from mycelia.parallel.planner.problem import Problem, recomputed
from mycelia.parallel.planner.units import FORWARD, UPDATE

#: The schedules that are searched.
SCHEDULES = ("gpipe", "1f1b")


@dataclass
class Stage:
    """One pipeline stage.

    Attributes:
        first, last: labels of its first and last forward unit.
        forward, backward: seconds for one micro-batch.
        once: seconds once in a step (summing gradients, the update).
        sent: seconds to send one micro-batch to the next stage, and its gradient back.
        static: bytes of state and of gradients that are added up, on one device.
        activations: bytes that one micro-batch leaves on one device for the backward pass.
        in_flight: how many micro-batches it holds at most.
        cut_bytes: bytes of one micro-batch that go to the next stage.
        block: bytes of the largest block that is computed again.
    """

    first: str
    last: str
    forward: float = 0.0
    backward: float = 0.0
    once: float = 0.0
    sent: float = 0.0
    static: float = 0.0
    activations: float = 0.0
    in_flight: int = 1
    cut_bytes: float = 0.0
    block: float = 0.0

    @property
    def peak(self) -> float:
        """Bytes of one device."""
        return self.static + self.activations * self.in_flight + self.block


def simulate(
    forward: Sequence[float], backward: Sequence[float], sent: Sequence[float], micro_batches: int, schedule: str
) -> float:
    """Seconds from the first task to the last of a pipeline.

    Args:
        forward, backward: seconds of one micro-batch, by stage.
        sent: seconds from each stage to the next one.
        micro_batches: how many there are.
        schedule: ``"gpipe"`` or ``"1f1b"``.

    Raises:
        ArgumentValueError: another schedule, or no micro-batch.

    >>> simulate([1.0] * 4, [2.0] * 4, [0.0] * 4, 8, "1f1b")
    33.0
    """
    if schedule not in SCHEDULES:
        raise ArgumentValueError("simulate", "schedule", got=repr(schedule), takes=" or ".join(map(repr, SCHEDULES)))
    if micro_batches < 1:
        raise ArgumentValueError("simulate", "micro_batches", got=str(micro_batches), takes="1 or more")
    stages = len(forward)
    lists = [_tasks(s, stages, micro_batches, schedule) for s in range(stages)]
    done: dict[tuple[int, str, int], float] = {}
    free = [0.0] * stages
    place = [0] * stages
    left = sum(map(len, lists))
    while left:
        for s in range(stages):
            while place[s] < len(lists[s]):
                kind, m = lists[s][place[s]]
                begin = free[s]
                if kind == "F" and s > 0:
                    needed = done.get((s - 1, "F", m))
                    link = sent[s - 1]
                elif kind == "B" and s < stages - 1:
                    needed = done.get((s + 1, "B", m))
                    link = sent[s]
                else:
                    needed, link = 0.0, 0.0
                if needed is None:
                    break
                begin = max(begin, needed + link)
                free[s] = begin + (forward[s] if kind == "F" else backward[s])
                done[s, kind, m] = free[s]
                place[s] += 1
                left -= 1
    return max(free)


def _tasks(stage: int, stages: int, micro_batches: int, schedule: str) -> list[tuple[str, int]]:
    """The list of one stage: forward and backward tasks with their micro-batches."""
    ahead = micro_batches if schedule == "gpipe" else min(stages - stage, micro_batches)
    tasks = [("F", m) for m in range(ahead)]
    for m in range(micro_batches):
        tasks.append(("B", m))
        if ahead + m < micro_batches:
            tasks.append(("F", ahead + m))
    return tasks


def held_micro_batches(stage: int, stages: int, micro_batches: int, schedule: str) -> int:
    """How many micro-batches a stage holds at once at most."""
    return micro_batches if schedule == "gpipe" else min(stages - stage, micro_batches)


def stage_of_units(problem: Problem, solution: Sequence[int], stages: int) -> list[int]:
    """The stage of each unit, balanced by the seconds of a micro-batch."""
    network = problem.network
    units = network.units
    forward = [u for u in range(network.inputs, len(units)) if units[u].phase == FORWARD]
    weight = {u: _seconds(problem, solution, u) for u in range(network.inputs, len(units))}
    # a forward unit stands for itself and for the backward work on what it uses
    anchor = _anchors(problem, forward)
    load = dict.fromkeys(forward, 0.0)
    for u, seconds in weight.items():
        if u in anchor and units[u].phase != UPDATE:
            load[anchor[u]] = load.get(anchor[u], 0.0) + seconds
    cuts = _cuts(problem, forward, load, stages)
    of_forward = {}
    stage = 0
    for k, u in enumerate(forward):
        if stage < len(cuts) and k >= cuts[stage]:
            stage += 1
        of_forward[u] = stage
    found = [0] * len(units)
    for u in range(network.inputs, len(units)):
        found[u] = of_forward.get(anchor.get(u, -1), stages - 1)
    for u in range(network.inputs):
        readers = [w for w, _ in network.values[units[u].slots[0]].consumers if w >= network.inputs]
        found[u] = min((found[w] for w in readers), default=0)
    for u in range(network.inputs, len(units)):
        if units[u].phase == UPDATE:
            states = [v for v in units[u].slots[: units[u].entering] if network.values[v].static]
            owners = [found[network.values[v].producer[0]] for v in states if _is_trained(problem, v)]
            if owners:
                found[u] = owners[0]
    for u in range(network.inputs):  # states of the optimizer stand where the update is
        held = network.values[units[u].slots[0]]
        readers = [w for w, _ in held.consumers if w >= network.inputs]
        if readers and all(units[w].phase == UPDATE for w in readers):
            found[u] = found[readers[0]]
    return found


def _is_trained(problem: Problem, value: int) -> bool:
    trained = problem.network.task.trained
    return not trained or problem.network.values[value].name in trained


def _seconds(problem: Problem, solution: Sequence[int], u: int) -> float:
    choice = problem.choices[u][solution[u]]
    return choice.compute + choice.comm


def _anchors(problem: Problem, forward: Sequence[int]) -> dict[int, int]:
    """For each unit the forward unit beside which it belongs: the last one whose value or parameter it uses."""
    network = problem.network
    units = network.units
    place = {u: k for k, u in enumerate(forward)}
    of_state: dict[int, int] = {}
    for u in forward:
        for v in units[u].slots[: units[u].entering]:
            if network.values[v].producer[0] < network.inputs:
                of_state.setdefault(v, u)
    found = {u: u for u in forward}
    for u in range(network.inputs, len(units)):
        if u in place:
            continue
        residuals, passed = [], []
        for v in units[u].slots[: units[u].entering]:
            made = network.values[v].producer[0]
            if made < network.inputs:
                if v in of_state and network.values[v].static:
                    residuals.append(of_state[v])
            elif made in place:
                residuals.append(made)
            elif made in found:
                passed.append(found[made])
        if residuals:
            found[u] = max(residuals, key=lambda w: place[w])
            if passed:
                found[u] = min(found[u], max(passed, key=lambda w: place[w]), key=lambda w: place[w])
        elif passed:
            found[u] = min(passed, key=lambda w: place[w])
    return found


def _cuts(problem: Problem, forward: Sequence[int], load: dict[int, float], stages: int) -> list[int]:
    """Places among the forward units before which stages 1, 2, ... begin."""
    network = problem.network
    place = {u: k for k, u in enumerate(forward)}
    crossing = [0.0] * (len(forward) + 1)
    for held in network.values:
        u = held.producer[0]
        if u not in place or held.static:
            continue
        last = max((place[w] for w, _ in held.consumers if w in place), default=place[u])
        for k in range(place[u] + 1, last + 1):
            crossing[k] += held.nbytes
    total = sum(load[u] for u in forward) or 1.0
    before = [0.0]
    for u in forward:
        before.append(before[-1] + load[u])
    machine, mesh = problem.setting.machine, problem.setting.mesh
    beta = machine.outermost[1] / mesh.devices
    cuts: list[int] = []
    for s in range(1, stages):
        wanted = total * s / stages
        low = cuts[-1] + 1 if cuts else 1
        high = len(forward) - (stages - 1 - s)
        among = range(low, max(low + 1, high))

        def miss(k: int, wanted: float = wanted) -> float:
            return abs(before[k] - wanted) + crossing[k] * beta

        cuts.append(min(among, key=miss))
    return cuts


def divide(problem: Problem, solution: Sequence[int], stages: int, schedule: str) -> list[Stage]:
    """The stages of a solution with their times and memory.

    The mesh of the problem is that of one stage; stages are joined by the machine's outermost link.
    """
    network, setting = problem.network, problem.setting
    units = network.units
    m = setting.micro_batches
    of_unit = stage_of_units(problem, solution, stages)
    made: list[Stage] = []
    for s in range(stages):
        mine = [u for u in range(network.inputs, len(units)) if of_unit[u] == s and units[u].phase == FORWARD]
        label = (units[mine[0]].name, units[mine[-1]].name) if mine else ("", "")
        made.append(Stage(*label, in_flight=held_micro_batches(s, stages, m, schedule)))
    for u in range(network.inputs, len(units)):
        unit, choice, stage = units[u], problem.choices[u][solution[u]], made[of_unit[u]]
        each = sum(_step_seconds(problem, step) for slot, step in choice.steps if _each(problem, u, slot))
        once = choice.comm - each
        if not unit.carrying:
            stage.once += choice.compute + once + each
        else:
            stage.once += once
            seconds = (choice.compute + each) / m
            _add(stage, unit.phase, seconds)
            stage.backward += (problem.runs(u) - 1.0) * seconds  # computed again before its backward work
    for move in problem.moves_of(solution):
        held = network.values[move.value]
        stage = made[of_unit[held.producer[0]]]
        if held.carrying:
            plain = problem.moves.seconds(held, move.before, move.after)
            _add(stage, move.phase, plain / m)
            stage.backward += (move.seconds - plain) / m
        else:
            stage.once += move.seconds
    _measure_memory(problem, solution, of_unit, made)
    _send(problem, solution, of_unit, made)
    return made


def _each(problem: Problem, u: int, slot: int) -> bool:
    """Whether a collective inside a unit happens for each micro-batch."""
    network = problem.network
    return slot < 0 or network.values[network.units[u].slots[slot]].carrying


def _step_seconds(problem: Problem, step: Step) -> float:
    setting = problem.setting
    sizes = setting.mesh.sizes
    return setting.machine.seconds(step.kind, sizes[step.axis], step.nbytes, sizes, step.axis, setting.micro_batches)


def _add(stage: Stage, phase: int, seconds: float) -> None:
    if phase == FORWARD:
        stage.forward += seconds
    else:
        stage.backward += seconds


def _measure_memory(problem: Problem, solution: Sequence[int], of_unit: Sequence[int], made: list[Stage]) -> None:
    """State, gradients that are added up, and what a micro-batch leaves for the backward pass."""
    network = problem.network
    m = problem.setting.micro_batches
    units = network.units
    again = recomputed(network, problem.setting.blocks) if problem.setting.blocks else {}
    block: dict[tuple[int, tuple[int, int]], float] = {}
    for v, held in enumerate(network.values):
        u, s = held.producer
        if u < 0 or not held.stored or held.renews is not None:
            continue
        nbytes = held.nbytes / parts(problem.layout(solution, u, s), problem.setting.mesh)
        stage = made[of_unit[u]]
        if held.static or (not held.carrying and units[u].carrying and units[u].phase != FORWARD):
            stage.static += nbytes
        elif held.carrying and (u < network.inputs or units[u].phase == FORWARD):
            if v in again:
                place = (of_unit[u], again[v])
                block[place] = block.get(place, 0.0) + nbytes / m
            elif any(units[w].phase != FORWARD for w, _ in held.consumers):
                stage.activations += nbytes / m
    for (s, _), nbytes in block.items():
        made[s].block = max(made[s].block, nbytes)


def _send(problem: Problem, solution: Sequence[int], of_unit: Sequence[int], made: list[Stage]) -> None:
    """Bytes and seconds between stages."""
    network, setting = problem.network, problem.setting
    alpha, beta = setting.machine.outermost
    for held in network.values:
        u, s = held.producer
        if u < network.inputs or held.static or network.units[u].phase != FORWARD or not held.carrying:
            continue
        last = max([of_unit[w] for w, _ in held.consumers if network.units[w].phase == FORWARD], default=of_unit[u])
        nbytes = held.nbytes / setting.micro_batches / parts(problem.layout(solution, u, s), setting.mesh)
        for between in range(of_unit[u], last):
            made[between].cut_bytes += nbytes
    for stage in made[:-1]:
        stage.sent = alpha + stage.cut_bytes * beta


def makespan(stages: Sequence[Stage], micro_batches: int, schedule: str) -> float:
    """Seconds of a step: the pipeline, and after it what every stage does once."""
    taken = simulate(
        [s.forward for s in stages], [s.backward for s in stages], [s.sent for s in stages], micro_batches, schedule
    )
    return taken + max(s.once for s in stages)
