"""How stages give each other tensors: between processes, or within one.

Between processes, a thread sends and receives, one transfer after another, in the order in which the rank's
instructions ask for it: a transfer waits for the other rank, and the rank goes on computing meanwhile. The orders of
all ranks are parts of one (:mod:`~mycelia.parallel.pipeline.simulate`), so no transfer waits for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from mycelia.core import cluster
from mycelia.ir.types import TensorType
from mycelia.ops.collectives import all_reduce, broadcast, transfers
from mycelia.tensor.tensor import wrap

#: What is sent: ``"activation"`` or ``"gradient"``, from stage, to stage, micro-batch.
Message = tuple[str, int, int, int]


class Transport(Protocol):
    """What a rank sends and receives with."""

    def send(self, message: Message, to: int, arrays: Sequence[Any]) -> None:
        """Send arrays to a rank of the pipeline."""

    def receive(self, message: Message, source: int, types: Sequence[TensorType]) -> Future[list[Any]]:
        """Arrays from a rank of the pipeline."""

    def drain(self) -> None:
        """Return when all that was asked for is done."""


class Mailbox:
    """Transfers among ranks that one process plays, one after the other."""

    def __init__(self) -> None:
        self._arrays: dict[Message, list[Any]] = {}

    def send(self, message: Message, to: int, arrays: Sequence[Any]) -> None:
        self._arrays[message] = list(arrays)

    def receive(self, message: Message, source: int, types: Sequence[TensorType]) -> Future[list[Any]]:
        done: Future[list[Any]] = Future()
        done.set_result(self._arrays.pop(message))
        return done

    def drain(self) -> None:
        assert not self._arrays, "something that was sent was not received"


class Wire:
    """Transfers between processes.

    Args:
        ranks: the processes of this pipeline, by their places in it.
    """

    def __init__(self, ranks: Sequence[int]) -> None:
        self._ranks = tuple(ranks)
        self._me = cluster.place().rank
        self._thread = ThreadPoolExecutor(1, "pipeline-transfers")
        self._sent: list[Future[None]] = []

    def send(self, message: Message, to: int, arrays: Sequence[Any]) -> None:
        steps = [(self._me, self._ranks[to], tuple(a.shape), wrap(a).dtype) for a in arrays]

        def run() -> None:
            done = transfers([wrap(a) for a in arrays], steps)
            done[0]._value.block_until_ready()

        self._sent.append(self._thread.submit(run))

    def receive(self, message: Message, source: int, types: Sequence[TensorType]) -> Future[list[Any]]:
        steps = [(self._ranks[source], self._me, t.shape, t.dtype) for t in types]

        def run() -> list[Any]:
            arrays = [x._value for x in transfers([], steps)]
            arrays[-1].block_until_ready()
            return arrays

        return self._thread.submit(run)

    def drain(self) -> None:
        sent, self._sent = self._sent, []
        for future in sent:
            future.result()


def summed(array: Any, ranks: tuple[int, ...]) -> Any:
    """The sum of processes' arrays, at each of them."""
    return array if len(ranks) == 1 else all_reduce(wrap(array), "sum", ranks)._value


def copied(array: Any, root: int, ranks: tuple[int, ...]) -> Any:
    """One process's array, at each of some."""
    return array if len(ranks) == 1 else broadcast(wrap(array), ranks.index(root), ranks)._value
