"""Schedules of a pipeline: what each rank computes, in order.

A network is cut into *stages*, which stand one behind the other; a rank holds ``chunks`` of them. For each micro-batch
a stage runs forward, and later backward, either whole or in two parts: the gradient of its inputs, which the stage
before waits for, and that of its weights, which nobody waits for.

- ``gpipe`` (Y. Huang et al., 2019): all micro-batches forward, then all backward.
- ``1f1b`` (D. Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", 2021): a rank goes forward until the
  last stage can start backward, then takes turns. It holds at most as many micro-batches as there are stages to come.
- ``interleaved`` (D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters", 2021): each
  rank holds stages ``rank``, ``rank + ranks``, ...; micro-batches go in groups through a rank's first stage, then its
  second. Waiting is shorter by the number of chunks.
- ``zero_bubble_v`` (:mod:`~mycelia.parallel.pipeline.zero_bubble`): two stages in the shape of a V.

Sends and receives are not part of a schedule: :mod:`~mycelia.parallel.pipeline.simulate` places them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError

FORWARD: Final = "forward"
#: The whole gradient of a stage.
BACKWARD: Final = "backward"
#: Its two parts.
BACKWARD_INPUT: Final = "backward_input"
BACKWARD_WEIGHT: Final = "backward_weight"
SEND_ACTIVATION: Final = "send_activation"
RECEIVE_ACTIVATION: Final = "receive_activation"
SEND_GRADIENT: Final = "send_gradient"
RECEIVE_GRADIENT: Final = "receive_gradient"
REDUCE_GRADIENTS: Final = "reduce_gradients"
UPDATE: Final = "update"
#: What is computed for a micro-batch.
COMPUTED: Final = (FORWARD, BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT)

NAMES: Final = ("gpipe", "1f1b", "interleaved", "zero_bubble_v")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One thing that a rank does.

    Attributes:
        kind: one of this module's constants.
        stage: the stage that it belongs to; -1 for all of a rank's.
        micro: the micro-batch; -1 for all.
        peer: the stage that it sends to or gets from; -1 if it does not.
    """

    kind: str
    stage: int = -1
    micro: int = -1
    peer: int = -1

    def __str__(self) -> str:
        parts = [self.kind]
        if self.stage >= 0:
            parts.append(f"stage {self.stage}")
        if self.micro >= 0:
            parts.append(f"micro-batch {self.micro}")
        if self.peer >= 0:
            parts.append(f"{'to' if self.kind.startswith('send') else 'from'} {self.peer}")
        return " ".join(parts)


@dataclass(frozen=True)
class Schedule:
    """What the ranks of a pipeline compute.

    Attributes:
        name: of the schedule.
        ranks: how many there are.
        micro_batches: into how many parts a batch is cut.
        chunks: how many stages a rank holds.
        lists: for each rank its computations in order, then the reduction of gradients and the update.
    """

    name: str
    ranks: int
    micro_batches: int
    chunks: int
    lists: tuple[tuple[Instruction, ...], ...]

    @property
    def stages(self) -> int:
        """How many stages the network is cut into."""
        return self.ranks * self.chunks

    @property
    def in_two_parts(self) -> bool:
        """Whether the gradients of inputs and of weights are computed apart."""
        return self.name == "zero_bubble_v"

    def rank_of(self, stage: int) -> int:
        """The rank that holds a stage."""
        return rank_of(self.name, self.ranks, stage)

    def stages_of(self, rank: int) -> list[int]:
        """The stages that a rank holds, in the order of its chunks."""
        return [s for s in range(self.stages) if self.rank_of(s) == rank]


def rank_of(name: str, ranks: int, stage: int) -> int:
    """The rank that holds a stage: round and round, or down and up again in the shape of a V."""
    lap, place = divmod(stage, ranks)
    return ranks - 1 - place if name == "zero_bubble_v" and lap % 2 else place


def stage_at(name: str, ranks: int, rank: int, chunk: int) -> int:
    """The stage that is the ``chunk``-th of a rank."""
    return chunk * ranks + (ranks - 1 - rank if name == "zero_bubble_v" and chunk % 2 else rank)


def chunks_of(name: str, chunks: int | None = None) -> int:
    """How many stages a rank holds under a schedule.

    Raises:
        ArgumentValueError: an unknown schedule, or a number that it does not take.
    """
    if name not in NAMES:
        hint = (
            "sequence pipelines cut a sequence, which needs attention over earlier parts"
            if "seq" in str(name)
            else None
        )
        raise ArgumentValueError(
            "pipeline", "scheduler", got=repr(name), takes=" or ".join(f'"{n}"' for n in NAMES), hint=hint
        )
    usual = 1 if name in ("gpipe", "1f1b") else 2
    if chunks is None:
        return usual
    if name != "interleaved" and chunks != usual:
        raise ArgumentValueError("pipeline", "chunks", got=str(chunks), takes=f"{usual}, which {name} is made of")
    if chunks < 2 and name == "interleaved":
        raise ArgumentValueError("pipeline", "chunks", got=str(chunks), takes="2 or more", hint='or take "1f1b"')
    return chunks


def schedule(name: str, ranks: int, micro_batches: int, chunks: int | None = None) -> Schedule:
    """The schedule of a pipeline, for any number of ranks and micro-batches.

    Args:
        name: ``"gpipe"``, ``"1f1b"``, ``"interleaved"`` or ``"zero_bubble_v"``.
        ranks: how many there are.
        micro_batches: into how many parts a batch is cut.
        chunks: how many stages a rank holds; 2 by default for ``interleaved``, and no choice for the others.

    Raises:
        ArgumentTypeError: a number that is no int.
        ArgumentValueError: an unknown schedule, a number below 1, or of chunks that the schedule does not take.

    >>> [str(i) for i in schedule("1f1b", 2, 2).lists[1]][:4]
    ['forward stage 1 micro-batch 0', 'backward stage 1 micro-batch 0', 'forward stage 1 micro-batch 1', \
'backward stage 1 micro-batch 1']
    """
    for argument, value in (("stages", ranks), ("micro_batches", micro_batches), ("chunks", chunks)):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise ArgumentTypeError("pipeline", argument, got=repr(value), takes="an int")
        if value < 1:
            raise ArgumentValueError("pipeline", argument, got=str(value), takes="1 or more")
    held = chunks_of(name, chunks)
    if name == "zero_bubble_v":
        from mycelia.parallel.pipeline.zero_bubble import zero_bubble_v

        lists = zero_bubble_v(ranks, micro_batches)
    elif name == "interleaved":
        lists = [_interleaved(rank, ranks, micro_batches, held) for rank in range(ranks)]
    else:
        lists = [_alternating(name, rank, ranks, micro_batches) for rank in range(ranks)]
    end = (Instruction(REDUCE_GRADIENTS), Instruction(UPDATE))
    return Schedule(name, ranks, micro_batches, held, tuple([(*steps, *end) for steps in lists]))


def _alternating(name: str, rank: int, ranks: int, micro_batches: int) -> list[Instruction]:
    """GPipe, which is all forward first, and 1F1B."""
    ahead = micro_batches if name == "gpipe" else min(ranks - rank, micro_batches)
    return _turns([(rank, m) for m in range(micro_batches)], [(rank, m) for m in range(micro_batches)], ahead)


def _interleaved(rank: int, ranks: int, micro_batches: int, chunks: int) -> list[Instruction]:
    """Groups of as many micro-batches as there are ranks go through one chunk after the other.

    What is left over joins the last group: a smaller one would be back at the first rank before that is free.
    """
    starts = list(range(0, max(micro_batches - ranks, 0) + 1, ranks))
    groups = [range(a, b) for a, b in zip(starts, [*starts[1:], micro_batches], strict=True)]
    forward = [(stage_at("interleaved", ranks, rank, c), m) for group in groups for c in range(chunks) for m in group]
    backward = [
        (stage_at("interleaved", ranks, rank, c), m) for group in groups for c in reversed(range(chunks)) for m in group
    ]
    longest = max(map(len, groups))
    ahead = min((ranks - rank - 1) * 2 + (chunks - 1) * longest + 1, len(forward))
    return _turns(forward, backward, ahead)


def _turns(forward: Sequence[tuple[int, int]], backward: Sequence[tuple[int, int]], ahead: int) -> list[Instruction]:
    """Some forward, then one backward and one forward in turns."""
    steps = [Instruction(FORWARD, *at) for at in forward[:ahead]]
    for k, at in enumerate(backward):
        steps.append(Instruction(BACKWARD, *at))
        if ahead + k < len(forward):
            steps.append(Instruction(FORWARD, *forward[ahead + k]))
    return steps
