"""What a schedule takes: an exact simulation of its events, and the one order that all ranks' instructions come from.

Each rank computes its list one by one. A stage's result is on its way as soon as it is computed, over a link between
two ranks that carries one message at a time in each direction; who computes is not kept by it. An event begins as soon
as what it needs is there, and events are taken by the time at which they begin.

The events so taken are a linear order in which everything comes after what it needs. A rank's instructions, sends and
receives among them, are that order without other ranks' events. Therefore they cannot wait for each other in a circle,
even if a send waits for its receiver: of the events that are not done, the first in the order can always be done.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from mycelia.core.errors import ArgumentValueError, StateError
from mycelia.parallel.pipeline.schedules import (
    BACKWARD,
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    COMPUTED,
    FORWARD,
    RECEIVE_ACTIVATION,
    RECEIVE_GRADIENT,
    SEND_ACTIVATION,
    SEND_GRADIENT,
    Instruction,
    Schedule,
)

#: From one stage to a later one.
Link = tuple[int, int]


@dataclass(frozen=True)
class Durations:
    """How long things take, in any unit of time; for each stage, or one number for all.

    Attributes:
        forward: of a micro-batch.
        backward_input: its gradient up to the inputs.
        backward_weight: its gradient up to the weights. A whole backward takes the sum of both.
        transfer: from one rank to another.
    """

    forward: float | Sequence[float] = 1.0
    backward_input: float | Sequence[float] = 1.0
    backward_weight: float | Sequence[float] = 1.0
    transfer: float = 0.0

    def of(self, kind: str, stage: int) -> float:
        """How long one computation takes."""
        if kind == BACKWARD:
            return self.of(BACKWARD_INPUT, stage) + self.of(BACKWARD_WEIGHT, stage)
        by_kind = {
            FORWARD: self.forward, BACKWARD_INPUT: self.backward_input, BACKWARD_WEIGHT: self.backward_weight
        }  # fmt: skip
        taken = by_kind[kind]
        return float(taken) if isinstance(taken, (int, float)) else float(taken[stage])


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes:
        instruction: what; for a transfer, what the sender does.
        rank: whose it is; the sender of a transfer.
        begin, end: when.
        to: the rank that a transfer goes to; -1 of what is computed.
    """

    instruction: Instruction
    rank: int
    begin: float
    end: float
    to: int = -1


@dataclass
class Timeline:
    """A simulated step.

    Attributes:
        schedule: what was simulated.
        events: in the order in which they begin; each comes after what it needs.
        makespan: the time from the first to the last.
        peak: for each rank, how many stages' activations of micro-batches it holds at most.
    """

    schedule: Schedule
    events: list[Event]
    makespan: float
    peak: list[int]
    busy: list[float] = field(default_factory=list)

    @property
    def bubble(self) -> list[float]:
        """For each rank the part of the time in which it computes nothing."""
        return [1.0 - b / self.makespan for b in self.busy]

    @property
    def bubble_ratio(self) -> float:
        """The part of all ranks' time in which they compute nothing."""
        return sum(self.bubble) / len(self.busy)

    @property
    def peak_activations(self) -> list[float]:
        """For each rank, how many micro-batches' activations it holds at most; a chunk is its part of one."""
        return [p / self.schedule.chunks for p in self.peak]

    def computed(self, rank: int) -> list[Instruction]:
        """What a rank computes, in order."""
        return [e.instruction for e in self.events if e.rank == rank and e.to < 0]

    def instructions(self, rank: int) -> list[Instruction]:
        """All that a rank does: its part of the events, then what it does once in a step."""
        steps: list[Instruction] = []
        for e in self.events:
            if e.rank == rank:
                steps.append(e.instruction)
            elif e.to == rank:
                sent = e.instruction
                kind = RECEIVE_ACTIVATION if sent.kind == SEND_ACTIVATION else RECEIVE_GRADIENT
                steps.append(Instruction(kind, sent.peer, sent.micro, sent.stage))
        return [*steps, *[i for i in self.schedule.lists[rank] if i.kind not in COMPUTED]]


def chain(stages: int) -> list[Link]:
    """Links from each stage to the next one."""
    return [(s, s + 1) for s in range(stages - 1)]


def simulate(
    schedule: Schedule, durations: Durations | None = None, links: Sequence[Link] | None = None,
    gradients: Sequence[Link] | None = None,
) -> Timeline:  # fmt: skip
    """Run a schedule on paper.

    Args:
        schedule: what each rank computes.
        durations: how long it takes; 1 each by default, and nothing to send.
        links: stages that give others something; by default each gives the next.
        gradients: those of the links that a gradient comes back on; by default all.

    Raises:
        ArgumentValueError: durations that are not one for each stage, or a link that does not go to a later stage.
        StateError: ranks wait for each other; says for what.

    >>> from mycelia.parallel.pipeline.schedules import schedule
    >>> made = simulate(schedule("1f1b", 4, 8))
    >>> made.makespan, round(made.bubble_ratio, 3), made.peak
    (33.0, 0.273, [4, 3, 2, 1])
    """
    durations = durations or Durations()
    links = chain(schedule.stages) if links is None else list(links)
    _check(schedule, durations, links)
    return _Simulation(schedule, durations, links, links if gradients is None else list(gradients)).run()


def _check(schedule: Schedule, durations: Durations, links: Sequence[Link]) -> None:
    for argument in ("forward", "backward_input", "backward_weight"):
        taken = getattr(durations, argument)
        if not isinstance(taken, (int, float)) and len(taken) != schedule.stages:
            raise ArgumentValueError(
                "simulate",
                argument,
                got=f"{len(taken)} numbers",
                takes=f"one, or one for each of {schedule.stages} stages",
            )
    for a, b in links:
        if not 0 <= a < b < schedule.stages:
            raise ArgumentValueError("simulate", "links", got=f"({a}, {b})", takes="from a stage to a later one")


class _Simulation:
    def __init__(
        self, schedule: Schedule, durations: Durations, links: Sequence[Link], gradients: Sequence[Link]
    ) -> None:
        self.schedule, self.durations = schedule, durations
        stages = range(schedule.stages)
        self.into = {s: [a for a, b in links if b == s] for s in stages}
        self.out_of = {s: [b for a, b in links if a == s] for s in stages}
        self.back_into = {s: [b for a, b in gradients if a == s] for s in stages}
        self.back_out_of = {s: [a for a, b in gradients if b == s] for s in stages}
        self.rank = [schedule.rank_of(s) for s in stages]
        self.lists = [[i for i in steps if i.kind in COMPUTED] for steps in schedule.lists]
        #: When something is at its stage: key (what, stage, micro-batch, from stage).
        self.there: dict[tuple[str, int, int, int], float] = {}
        self.free = [0.0] * schedule.ranks
        self.link_free: dict[tuple[int, int], float] = {}
        self.next = [0] * schedule.ranks
        self.queued = [False] * schedule.ranks
        self.queue: list[tuple[float, int, int, int, Event]] = []
        self.count = 0
        self.live = [0] * schedule.ranks
        self.peak = [0] * schedule.ranks
        self.busy = [0.0] * schedule.ranks

    def run(self) -> Timeline:
        events: list[Event] = []
        for rank in range(self.schedule.ranks):
            self._offer(rank)
        while self.queue:
            event = heapq.heappop(self.queue)[-1]
            events.append(event)
            self._done(event)
        waiting = [(rank, self.lists[rank][k]) for rank, k in enumerate(self.next) if k < len(self.lists[rank])]
        if waiting:
            lines = [f"rank {r} waits for {self._missing(i)} before {i}" for r, i in waiting]
            raise StateError(
                "pipeline",
                message=f"the ranks of schedule '{self.schedule.name}' wait for each other: " + "; ".join(lines),
            )
        return Timeline(self.schedule, events, max(self.free), self.peak, self.busy)

    def _needs(self, step: Instruction) -> list[tuple[str, int, int, int]]:
        s, m = step.stage, step.micro
        if step.kind == FORWARD:
            return [(FORWARD, s, m, a) for a in self.into[s]]
        if step.kind == BACKWARD_WEIGHT:
            return [(BACKWARD_INPUT, s, m, s)]
        return [(FORWARD, s, m, s), *[(BACKWARD, s, m, b) for b in self.back_into[s]]]

    def _missing(self, step: Instruction) -> str:
        missing = [n for n in self._needs(step) if n not in self.there]
        return ", ".join([f"{kind} of micro-batch {m} from stage {a}" for kind, _, m, a in missing]) or "nothing"

    def _offer(self, rank: int) -> None:
        """Queue a rank's next computation if all that it needs has happened."""
        if self.queued[rank] or self.next[rank] >= len(self.lists[rank]):
            return
        step = self.lists[rank][self.next[rank]]
        times = [self.there.get(need) for need in self._needs(step)]
        if any(t is None for t in times):
            return
        begin = max([self.free[rank], *[t for t in times if t is not None]])
        taken = self.durations.of(step.kind, step.stage)
        self.queued[rank] = True
        self._push(Event(step, rank, begin, begin + taken), 1)

    def _push(self, event: Event, after_transfers: int) -> None:
        self.count += 1
        heapq.heappush(self.queue, (event.begin, after_transfers, event.rank, self.count, event))

    def _done(self, event: Event) -> None:
        step = event.instruction
        if event.to >= 0:
            kind = FORWARD if step.kind == SEND_ACTIVATION else BACKWARD
            self.there[kind, step.peer, step.micro, step.stage] = event.end
            self._offer(event.to)
            return
        rank = event.rank
        self.free[rank] = event.end
        self.next[rank] += 1
        self.queued[rank] = False
        self.busy[rank] += event.end - event.begin
        s, m = step.stage, step.micro
        if step.kind == FORWARD:
            self.live[rank] += 1
            self.peak[rank] = max(self.peak[rank], self.live[rank])
            self.there[FORWARD, s, m, s] = event.end
            self._pass_on(event, SEND_ACTIVATION, FORWARD, self.out_of[s])
        else:
            if step.kind != BACKWARD_INPUT:
                self.live[rank] -= 1
            if step.kind != BACKWARD_WEIGHT:
                self.there[BACKWARD_INPUT, s, m, s] = event.end
                self._pass_on(event, SEND_GRADIENT, BACKWARD, self.back_out_of[s])
        self._offer(rank)

    def _pass_on(self, event: Event, kind: str, what: str, to: Sequence[int]) -> None:
        s, m = event.instruction.stage, event.instruction.micro
        for peer in to:
            there = self.rank[peer]
            if there == event.rank:
                self.there[what, peer, m, s] = event.end
                continue
            link = (event.rank, there)
            begin = max(event.end, self.link_free.get(link, 0.0))
            end = begin + self.durations.transfer
            self.link_free[link] = end
            self._push(Event(Instruction(kind, s, m, peer), event.rank, begin, end, there), 0)
