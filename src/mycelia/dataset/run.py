"""One run of a pipeline: its seed, its workers, and the two ways rows are made.

Rows come from generators that pull on each other. Where a part of the pipeline is only index arithmetic
over arrays in memory and transforms that also work on stacked samples, it makes a :class:`Plan` instead:
the number of rows, and a function that gives any of them stacked. ``batch`` then asks for whole batches at
once; the values are the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mycelia.dataset import config, seeds
from mycelia.dataset.rows import Row
from mycelia.dataset.workers import Pool

if TYPE_CHECKING:
    from mycelia.dataset.pipeline import Dataset

_PLAN_ROWS = 64


@dataclass(frozen=True, slots=True)
class Plan:
    """Rows that can be had stacked.

    Attributes:
        length: how many rows.
        gather: gives, for an array of row numbers, one array per column whose first axis is the rows.
    """

    length: int
    gather: Callable[[np.ndarray], Row]

    def rows(self) -> Iterator[Row]:
        """The rows one by one."""
        for block in self.blocks(_PLAN_ROWS):
            for i in range(len(block[0])):
                yield tuple([column[i, ...] for column in block])

    def blocks(self, size: int) -> Iterator[Row]:
        """The rows ``size`` at a time."""
        for start in range(0, self.length, size):
            yield self.gather(np.arange(start, min(start + size, self.length)))


class Run:
    """The state behind one iterator over a pipeline.

    Args:
        root: the last node.
        counted: False for a run that only looks (shapes, sizes); it does not advance the epochs.
        seed: in place of the seed of the process.

    Attributes:
        one_pass: ``repeat`` without count makes one pass (to count rows).
        looking: only the first row is wanted; no workers are started for it.
        epoch_in_run: number of the epoch in this run, from 0.
        closed: set when the run has ended.
    """

    def __init__(self, root: Dataset, *, counted: bool = True, seed: int | None = None) -> None:
        self.root, self._counted = root, counted
        self._places = {id(node): place for place, node in enumerate(_postorder(root))}
        self._frozen: dict[int, int] = {}
        for node in _postorder(root):
            if node._frozen_seed is not None:
                self._frozen.update((self._places[id(n)], node._frozen_seed) for n in _postorder(node))
        self._passes: dict[int, int] = {}
        self._pools: dict[int, Pool] = {}
        self._fixed, self._seed, self._epoch = seed, 0, 0
        self.one_pass = False
        self.looking = False
        self.epoch_in_run = -1
        self.closed = threading.Event()
        self._at_close: list[Callable[[], None]] = []

    def start_epoch(self) -> None:
        """Begin the next epoch; each epoch of a dataset has random decisions of its own."""
        seed, generation = config.base_seed()
        self._seed = seed if self._fixed is None else self._fixed
        self._epoch = self.root._next_epoch(generation) if self._counted else 0
        self._passes.clear()
        self.epoch_in_run += 1

    def stream(self, node: Dataset) -> seeds.Stream:
        """The random decisions of ``node`` about values, in the pass that begins now."""
        place = self._places[id(node)]
        self._passes[place] = self._passes.get(place, 0) + 1
        return self.again(node, 0)

    def order(self, node: Dataset, *, shared: bool = False) -> seeds.Stream:
        """The random decisions of ``node`` about which rows and in which order, in the pass that begins now.

        Args:
            node: a node of the pipeline.
            shared: the decisions have to be the same in all processes of a distributed run, also when no
                seed has been set.
        """
        stream, place = self.stream(node), self._places[id(node)]
        if place in self._frozen:
            return seeds.Stream.derive(self._frozen[place], 0, place, self._passes[place])
        if shared and not config.seed_is_set():
            return seeds.Stream.derive(config.DEFAULT_SEED, self._epoch, place, self._passes[place])
        return stream

    def again(self, node: Dataset, purpose: int = 1) -> seeds.Stream:
        """More random decisions of ``node`` in the pass that has begun; ``purpose`` tells several apart."""
        place = self._places[id(node)]
        return seeds.Stream.derive(self._seed, self._epoch, place, self._passes[place], purpose)

    def pool(self, node: Dataset, make: Callable[[], Pool]) -> Pool:
        """The workers of ``node`` in this run; made when first asked for."""
        key = self._places[id(node)]
        if key not in self._pools:
            self._pools[key] = make()
            if self.closed.is_set():
                self._pools[key].close()
        return self._pools[key]

    def at_close(self, action: Callable[[], None]) -> None:
        """Call ``action`` when the run is closed."""
        self._at_close.append(action)

    def close(self) -> None:
        """End all workers and threads of the run; calling it again does nothing."""
        self.closed.set()
        for action in self._at_close:
            action()
        for pool in list(self._pools.values()):
            pool.close()

    @property
    def inline(self) -> bool:
        """Whether everything happens row by row in the calling thread."""
        return self.looking or config.get_debug_mode()


def _postorder(root: Dataset) -> list[Any]:
    order: list[Any] = []
    seen: set[int] = set()

    def visit(node: Dataset) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        for child in node.children:
            visit(child)
        order.append(node)

    visit(root)
    return order
