"""``split``: parts of a dataset that have no rows in common, the same in every epoch.

Where the rows come from a source that can be indexed through nodes that keep every row, the parts are
samplers over that source. Elsewhere each part reads all rows, in one fixed order, and keeps its share.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.dataset import arguments, config, samplers, seeds
from mycelia.dataset.mapping import MapDataset
from mycelia.dataset.nodes import ProjectDataset, RenameDataset
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.rows import Row
from mycelia.dataset.run import Plan, Run
from mycelia.dataset.sources import MappableDataset


def part_sizes(total: int, sizes: Any) -> list[int]:
    """The number of rows of each part.

    Fractions are rounded, and what is lacking or left over goes to the first parts one by one.

    Raises:
        ArgumentTypeError, ArgumentValueError: see :meth:`Dataset.split`.
    """
    if not isinstance(sizes, (list, tuple)) or not sizes:
        raise ArgumentTypeError("split", "sizes", got=repr(sizes), takes="a list of row counts or of fractions")
    if all(isinstance(s, (int, np.integer)) and not isinstance(s, bool) for s in sizes):
        if min(sizes) < 1:
            raise ArgumentValueError("split", "sizes", got=str(list(sizes)), takes="positive ints")
        if sum(sizes) != total:
            raise ArgumentValueError(
                "split", "sizes", got=f"{list(sizes)}, together {sum(sizes)}", takes=f"{total} in all, the rows"
            )
        return [int(s) for s in sizes]
    fractions = [arguments.real("split", "sizes", s, 0.0, 1.0) for s in sizes]
    if any(isinstance(s, (int, np.integer)) for s in sizes):
        raise ArgumentTypeError("split", "sizes", got=str(list(sizes)), takes="either ints or floats")
    if abs(sum(fractions) - 1) > 1e-6:
        raise ArgumentValueError(
            "split", "sizes", got=f"fractions that add up to {sum(fractions):g}", takes="fractions that add up to 1"
        )
    counts = [round(fraction * total) for fraction in fractions]
    for i in range(abs(total - sum(counts))):
        counts[i % len(counts)] += 1 if total > sum(counts) else -1
    if min(counts) < 1:
        raise ArgumentValueError(
            "split",
            "sizes",
            got=f"{list(sizes)}, which gives {counts} of {total} rows",
            takes="a row at least for each part",
        )
    return counts


def split(dataset: Dataset, sizes: Sequence[int] | Sequence[float], randomize: bool) -> list[Dataset]:
    """See :meth:`Dataset.split`."""
    arguments.boolean("split", "randomize", randomize)
    counts = part_sizes(dataset.get_dataset_size(), sizes)
    bounds = np.cumsum([0, *counts]).tolist()
    source = _indexed_source(dataset)
    if source is not None:
        rows = _fixed_rows(source, randomize)
        parts = [rows[a:b] for a, b in itertools.pairwise(bounds)]
        shuffled = randomize or source.is_shuffled()
        kind = samplers.SubsetRandomSampler if shuffled else samplers.SubsetSampler
        return [_rebased(dataset, source, kind(part)) for part in parts]
    frozen = FrozenDataset(dataset.shuffle(max(bounds[-1], 2)) if randomize else dataset)
    return [frozen.skip(a).take(b - a) for a, b in itertools.pairwise(bounds)]


class FrozenDataset(Dataset):
    """The rows of a dataset, chosen and ordered in every epoch as in the first; transforms stay random."""

    def __init__(self, input_dataset: Dataset) -> None:
        super().__init__((input_dataset,))
        self._frozen_seed = config.base_seed()[0]

    def _rows(self, run: Run) -> Iterator[Row]:
        return self.children[0]._open(run)

    def _plannable(self, run: Run) -> bool:
        return self.children[0]._plannable(run)

    def _plan(self, run: Run) -> Plan:
        return self.children[0]._plan(run)


def _fixed_rows(source: MappableDataset, randomize: bool) -> np.ndarray:
    """The rows that the source gives, in one order."""
    stream = seeds.Stream.derive(config.get_seed() if source.is_sharded() else config.base_seed()[0])
    rows = source.sampler.order(samplers.Source(source._total(), stream, source._labels))
    if source.is_shuffled():
        rows = np.sort(rows)
    return stream.generator().permutation(rows) if randomize else rows


def _indexed_source(node: Dataset) -> MappableDataset | None:
    while isinstance(node, (MapDataset, ProjectDataset, RenameDataset)):
        node = node.children[0]
    return node if isinstance(node, MappableDataset) and node._indexed else None


def _rebased(node: Dataset, source: MappableDataset, sampler: samplers.BuiltinSampler) -> Dataset:
    """A copy of the nodes down to the source, whose rows ``sampler`` chooses."""
    other = copy.copy(node)
    other._epochs, other._count, other._first = (-1, 0), None, None
    if node is source:
        assert isinstance(other, MappableDataset)
        other.sampler = sampler
    else:
        other.children = (_rebased(node.children[0], source, sampler),)
    return other
