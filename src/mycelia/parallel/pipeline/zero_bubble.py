"""The schedule ``zero_bubble_v``: two stages to a rank, in the shape of a V, and backward in two parts.

P. Qi et al., "Zero Bubble Pipeline Parallelism" (arXiv 2401.10241) compute the gradients of weights where a rank would
wait. P. Qi et al., "Pipeline Parallelism with Controllable Memory" (arXiv 2405.15362) lay the stages from the first
rank to the last and back, so that the rank that starts first also ends the forward pass, and all ranks hold equally
many activations: no more than 1F1B does.

The order here is made by list scheduling, all parts taking one unit of time. A rank that is free takes the first of
these that is there, one micro-batch after the other:

1. if it holds as much as 1F1B would: a gradient of weights, which lets go of some;
2. the gradient of its first stage's inputs, the end of a micro-batch's way;
3. its second stage forward, then its first: what others wait for;
4. the gradient of its second stage's inputs;
5. a gradient of weights, of which there is nearly always one to fill a gap.

With at least as many micro-batches as ranks, the last rank then never waits once it has started: a step takes
``6 * micro_batches + ranks - 1`` units, the least there is, since work reaches the last rank after ``ranks - 1``.
"""

from __future__ import annotations

from mycelia.parallel.pipeline.schedules import BACKWARD_INPUT, BACKWARD_WEIGHT, FORWARD, Instruction


def zero_bubble_v(ranks: int, micro_batches: int) -> list[list[Instruction]]:
    """For each rank what it computes, in order."""
    listing = _Listing(ranks, micro_batches)
    while listing.left:
        listing.step()
    return listing.lists


class _Listing:
    def __init__(self, ranks: int, micro_batches: int) -> None:
        self.ranks, self.micro_batches = ranks, micro_batches
        self.last = 2 * ranks - 1
        never = 1 << 60
        #: When a stage has done a micro-batch forward, and backward up to its inputs.
        self.forward = [[never] * micro_batches for _ in range(2 * ranks)]
        self.backward = [[never] * micro_batches for _ in range(2 * ranks)]
        #: The next micro-batch of each kind and stage.
        self.next = {kind: [0] * (2 * ranks) for kind in (FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT)}
        self.held = [0] * ranks
        self.lists: list[list[Instruction]] = [[] for _ in range(ranks)]
        self.left = 6 * ranks * micro_batches
        self.now = 0

    def step(self) -> None:
        """One unit of time: what the ranks choose, none of them seeing what others begin in it."""
        chosen = [(rank, self._chosen(rank)) for rank in range(self.ranks)]
        self.now += 1
        for rank, choice in chosen:
            if choice is None:
                continue
            kind, stage = choice
            micro = self.next[kind][stage]
            self.next[kind][stage] += 1
            if kind == FORWARD:
                self.forward[stage][micro] = self.now
                self.held[rank] += 1
            elif kind == BACKWARD_INPUT:
                self.backward[stage][micro] = self.now
            else:
                self.held[rank] -= 1
            self.lists[rank].append(Instruction(kind, stage, micro))
            self.left -= 1

    def _chosen(self, rank: int) -> tuple[str, int] | None:
        first, second = rank, self.last - rank
        full = self.held[rank] >= 2 * self.ranks
        weights = self._weights(first, second)
        if full and weights is not None:
            return BACKWARD_WEIGHT, weights
        if self._can_backward(first):
            return BACKWARD_INPUT, first
        for stage in () if full else (second, first):
            if self._can_forward(stage):
                return FORWARD, stage
        if self._can_backward(second):
            return BACKWARD_INPUT, second
        return None if weights is None else (BACKWARD_WEIGHT, weights)

    def _weights(self, first: int, second: int) -> int | None:
        """The stage whose gradient of weights has been due the longest; None if none is."""
        done, due = self.next[BACKWARD_WEIGHT], self.next[BACKWARD_INPUT]
        stages = [s for s in (second, first) if done[s] < due[s]]
        return min(stages, key=lambda s: self.backward[s][done[s]]) if stages else None

    def _can_forward(self, stage: int) -> bool:
        micro = self.next[FORWARD][stage]
        if micro == self.micro_batches:
            return False
        return stage == 0 or self.forward[stage - 1][micro] <= self.now

    def _can_backward(self, stage: int) -> bool:
        micro = self.next[BACKWARD_INPUT][stage]
        if micro == self.micro_batches or self.forward[stage][micro] > self.now:
            return False
        return stage == self.last or self.backward[stage + 1][micro] <= self.now
