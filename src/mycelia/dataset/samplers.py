"""Samplers: which rows of a random-access source are given, and in which order.

A sampler turns a number of rows into an array of row numbers, once per epoch. With a child sampler it
chooses among the rows that the child chose.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from mycelia.dataset import arguments
from mycelia.dataset.seeds import Stream


class Shuffle(enum.StrEnum):
    """How far a source shuffles: everything, file order only, within files, or with a changing subset."""

    GLOBAL = "global"
    FILES = "files"
    INFILE = "infile"
    PARTIAL = "partial"
    ADAPTIVE = "adaptive"


class Source:
    """What a sampler may ask of the source.

    Args:
        size: the number of rows.
        stream: random decisions of this epoch; shared by all processes if the rows are sharded.
        labels: gives the column a :class:`PKSampler` groups by; None if the source has none.
    """

    def __init__(self, size: int, stream: Stream, labels: Callable[[str], np.ndarray] | None = None) -> None:
        self.size, self.stream, self.labels = size, stream, labels


class BuiltinSampler:
    """Base of the samplers.

    Args:
        num_samples: how many rows at most; all by default.

    Raises:
        ArgumentTypeError, ArgumentValueError: ``num_samples`` is neither None nor an int of at least 0.
    """

    shuffles: ClassVar[bool] = False

    def __init__(self, num_samples: int | None = None) -> None:
        where = type(self).__name__
        # 0 is MindSpore's other way to say "all".
        self.num_samples = arguments.optional_integer(where, "num_samples", num_samples, 0) or None
        self.child_sampler: BuiltinSampler | None = None

    def add_child(self, sampler: Any) -> None:
        """Let ``sampler`` choose first, and this one among its rows.

        Raises:
            ArgumentTypeError: neither a sampler nor an iterable of row numbers.
            ArgumentValueError: there is a child already.
        """
        if self.child_sampler is not None:
            raise ArgumentValueError(type(self).__name__, message="the sampler has a child already")
        self.child_sampler = as_sampler("add_child", sampler)

    def get_child(self) -> BuiltinSampler | None:
        """The child sampler, or None."""
        return self.child_sampler

    def get_num_samples(self) -> int | None:
        """How many rows at most; None for all."""
        child = self.child_sampler.get_num_samples() if self.child_sampler is not None else None
        given = [n for n in (self.num_samples, child) if n is not None]
        return min(given) if given else None

    def is_shuffled(self) -> bool:
        """Whether it, or its child, gives rows in random order."""
        return self.shuffles or (self.child_sampler is not None and self.child_sampler.is_shuffled())

    def is_sharded(self) -> bool:
        """Whether it, or its child, gives one shard of the rows."""
        return self.child_sampler is not None and self.child_sampler.is_sharded()

    def order(self, source: Source) -> np.ndarray:
        """The numbers of the rows to give, as int64."""
        if self.child_sampler is None:
            return self._choose(source)
        chosen = self.child_sampler.order(source)
        return chosen[self._choose(Source(len(chosen), source.stream, _reordered(source, chosen)))]

    def count(self, size: int, labels: Callable[[str], np.ndarray] | None = None) -> int:
        """How many of ``size`` rows it gives."""
        return len(self.order(Source(size, Stream(0), labels)))

    def _choose(self, source: Source) -> np.ndarray:
        raise UnsupportedError(type(self).__name__, message="a sampler says which rows it chooses")

    def _limit(self, size: int) -> int:
        return size if self.num_samples is None else min(size, self.num_samples)


def _reordered(source: Source, chosen: np.ndarray) -> Callable[[str], np.ndarray] | None:
    labels = source.labels
    if labels is None:
        return None
    return lambda name: labels(name)[chosen]


class SequentialSampler(BuiltinSampler):
    """Rows in their order.

    Args:
        start_index: the first row, 0 by default.
        num_samples: how many rows at most; all by default.

    Raises:
        ArgumentValueError: a negative argument, or, while iterating, a start beyond the last row.

    >>> import mycelia.dataset as ds
    >>> data = ds.NumpySlicesDataset(list(range(6)), sampler=ds.SequentialSampler(2, 3))
    >>> [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [2, 3, 4]
    """

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.start_index = arguments.optional_integer("SequentialSampler", "start_index", start_index, 0) or 0

    def _choose(self, source: Source) -> np.ndarray:
        if self.start_index >= source.size > 0:
            raise ArgumentValueError(
                "SequentialSampler", "start_index", got=str(self.start_index), takes=f"less than the {source.size} rows"
            )
        return np.arange(self.start_index, self.start_index + self._limit(source.size - self.start_index))


class RandomSampler(BuiltinSampler):
    """Rows in random order.

    Args:
        replacement: draw each row from all rows, so that some come twice and some not at all.
        num_samples: how many rows; all by default. Without replacement, at most all.
        shuffle: how far to shuffle; the sources of this package have no files to tell apart, so all
            kinds are ``Shuffle.GLOBAL``.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    shuffles = True

    def __init__(
        self, replacement: bool = False, num_samples: int | None = None, shuffle: Shuffle = Shuffle.GLOBAL
    ) -> None:
        super().__init__(num_samples)
        self.replacement = arguments.boolean("RandomSampler", "replacement", replacement)
        if not isinstance(shuffle, Shuffle):
            raise ArgumentTypeError("RandomSampler", "shuffle", got=repr(shuffle), takes="a Shuffle")
        self.shuffle = shuffle

    def _choose(self, source: Source) -> np.ndarray:
        generator = source.stream.generator()
        if self.replacement:
            return generator.integers(0, source.size, self.num_samples or source.size)
        return generator.permutation(source.size)[: self._limit(source.size)]


def _indices(where: str, indices: Any) -> np.ndarray:
    if isinstance(indices, (int, np.integer)) and not isinstance(indices, bool):
        indices = [indices]
    if not isinstance(indices, Iterable) or isinstance(indices, (str, bytes, dict)):
        raise ArgumentTypeError(where, "indices", got=repr(indices), takes="row numbers")
    found = list(indices)
    for index in found:
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
            raise ArgumentTypeError(where, "indices", got=f"{index!r} among them", takes="row numbers as ints")
    return np.array(found, np.int64).reshape(-1)


def _within(where: str, numbers: np.ndarray, size: int) -> np.ndarray:
    outside = (numbers < 0) | (numbers >= size)
    if outside.any():
        raise ArgumentValueError(
            where, "indices", got=f"{numbers[outside][0]} among them", takes=f"row numbers from 0 to {size - 1}"
        )
    return numbers


class SubsetSampler(BuiltinSampler):
    """The rows of a list, in its order.

    Args:
        indices: row numbers; one may stand more than once.
        num_samples: how many rows at most; all by default.

    Raises:
        ArgumentTypeError: not ints.
        ArgumentValueError: while iterating, a number that is no row.
    """

    def __init__(self, indices: Any, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.indices = _indices(type(self).__name__, indices)

    def _choose(self, source: Source) -> np.ndarray:
        numbers = _within(type(self).__name__, self.indices, source.size)
        return numbers[: self._limit(len(numbers))]


class SubsetRandomSampler(SubsetSampler):
    """The rows of a list, in random order.

    Args:
        indices: row numbers.
        num_samples: how many rows at most; all by default.

    Raises:
        ArgumentTypeError: not ints.
        ArgumentValueError: while iterating, a number that is no row.
    """

    shuffles = True

    def _choose(self, source: Source) -> np.ndarray:
        numbers = source.stream.generator().permutation(_within(type(self).__name__, self.indices, source.size))
        return numbers[: self._limit(len(numbers))]


class WeightedRandomSampler(BuiltinSampler):
    """The first rows, each drawn with its weight.

    Draws without replacement use the keys of Efraimidis and Spirakis, "Weighted random sampling with a
    reservoir" (2006).

    Args:
        weights: one number of at least 0 for each of the first rows; they need not add up to 1.
        num_samples: how many draws; by default as many as there are rows.
        replacement: draw each time from all rows.

    Raises:
        ArgumentTypeError: weights that are not numbers.
        ArgumentValueError: a negative weight, only zeros, or, while iterating, more weights than rows or
            more draws without replacement than positive weights.
    """

    shuffles = True

    def __init__(self, weights: Any, num_samples: int | None = None, replacement: bool = True) -> None:
        super().__init__(num_samples)
        where = "WeightedRandomSampler"
        self.weights = np.array(arguments.reals(where, "weights", weights), np.float64)
        if not len(self.weights) or (self.weights < 0).any() or not self.weights.any():
            raise ArgumentValueError(
                where, "weights", got=str(list(weights))[:80], takes="numbers of at least 0, one of them positive"
            )
        self.replacement = arguments.boolean(where, "replacement", replacement)

    def _choose(self, source: Source) -> np.ndarray:
        where, weights = "WeightedRandomSampler", self.weights
        if len(weights) > source.size:
            raise ArgumentValueError(
                where, "weights", got=f"{len(weights)} of them", takes=f"at most {source.size}, the rows"
            )
        generator = source.stream.generator()
        if self.replacement:
            return generator.choice(len(weights), self.num_samples or source.size, p=weights / weights.sum())
        positive = np.flatnonzero(weights)
        wanted = len(positive) if self.num_samples is None else self.num_samples
        if wanted > len(positive):
            raise ArgumentValueError(
                where, "num_samples", got=str(wanted), takes=f"at most {len(positive)}, the positive weights"
            )
        keys = generator.exponential(size=len(positive)) / weights[positive]
        return positive[np.argsort(keys)[:wanted]]


class DistributedSampler(BuiltinSampler):
    """One of several equal shares of the rows, for one of several processes.

    Args:
        num_shards: how many shares.
        shard_id: which one, from 0.
        shuffle: shuffle all rows before they are shared out, in the same way in every process.
        num_samples: how many rows at most; all of the share by default.
        offset: the share that the first row falls to; -1 for share 0, and rows from the start fill the
            last round so that all shares have the same size.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.

    >>> import mycelia.dataset as ds
    >>> data = ds.NumpySlicesDataset(list(range(7)), sampler=ds.DistributedSampler(3, 1, shuffle=False))
    >>> [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [1, 4, 0]
    """

    def __init__(
        self, num_shards: int, shard_id: int, shuffle: bool = True, num_samples: int | None = None, offset: int = -1
    ) -> None:
        super().__init__(num_samples)
        where = "DistributedSampler"
        self.num_shards = arguments.integer(where, "num_shards", num_shards, 1)
        self.shard_id = arguments.integer(where, "shard_id", shard_id, 0, self.num_shards - 1)
        self.shuffle = arguments.boolean(where, "shuffle", shuffle)
        self.offset = arguments.integer(where, "offset", offset, -1)

    def is_shuffled(self) -> bool:
        return self.shuffle or super().is_shuffled()

    def is_sharded(self) -> bool:
        return True

    def set_offset(self, offset: int) -> None:
        """Set the share that the first row falls to."""
        self.offset = arguments.integer("set_offset", "offset", offset, -1)

    def _choose(self, source: Source) -> np.ndarray:
        size, shards = source.size, self.num_shards
        rows = source.stream.generator().permutation(size) if self.shuffle else np.arange(size)
        if self.offset < 0:
            places = (self.shard_id + shards * np.arange(-(-size // shards))) % max(size, 1)
        else:
            places = np.arange((self.shard_id - self.offset) % shards, size, shards)
        return rows[places][: self._limit(len(places))]


class PKSampler(BuiltinSampler):
    """For each class, ``num_val`` of its rows.

    Args:
        num_val: rows per class; a class with fewer gives some of them more than once.
        num_class: how many classes; all by default.
        shuffle: take the classes in random order.
        class_column: the column that tells the class.
        num_samples: how many rows at most; all by default.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        UnsupportedError: while iterating, if the source cannot give the column in advance.
    """

    def __init__(
        self,
        num_val: int,
        num_class: int | None = None,
        shuffle: bool = False,
        class_column: str = "label",
        num_samples: int | None = None,
    ) -> None:
        super().__init__(num_samples)
        self.num_val = arguments.integer("PKSampler", "num_val", num_val, 1)
        self.num_class = arguments.optional_integer("PKSampler", "num_class", num_class, 1)
        self.shuffle = arguments.boolean("PKSampler", "shuffle", shuffle)
        if not isinstance(class_column, str):
            raise ArgumentTypeError("PKSampler", "class_column", got=repr(class_column), takes="a column name")
        self.class_column = class_column

    def is_shuffled(self) -> bool:
        return self.shuffle or super().is_shuffled()

    def _choose(self, source: Source) -> np.ndarray:
        if source.labels is None:
            raise UnsupportedError("PKSampler", message="this dataset does not know the classes of its rows in advance")
        labels = source.labels(self.class_column)
        generator = source.stream.generator()
        classes = np.unique(labels)
        if self.num_class is not None:
            if self.num_class > len(classes):
                raise ArgumentValueError(
                    "PKSampler", "num_class", got=str(self.num_class), takes=f"at most {len(classes)}, the classes"
                )
            classes = classes[: self.num_class]
        if self.shuffle:
            classes = generator.permutation(classes)
        chosen = []
        for name in classes:
            members = np.flatnonzero(labels == name)
            chosen.append(generator.choice(members, self.num_val, replace=len(members) < self.num_val))
        rows = np.concatenate(chosen) if chosen else np.empty(0, np.int64)
        return rows[: self._limit(len(rows))]


class Sampler(BuiltinSampler):
    """Base of samplers that users write: override ``__iter__``, which gives row numbers.

    Args:
        num_samples: how many rows at most; all by default.

    >>> import mycelia.dataset as ds
    >>> class Backwards(ds.Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> data = ds.NumpySlicesDataset([5, 6, 7], sampler=Backwards())
    >>> [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [7, 6, 5]
    """

    def __init__(self, num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        self.dataset_size = 0

    def __iter__(self) -> Iterator[int]:
        raise UnsupportedError(type(self).__name__, message="a sampler overrides __iter__")

    def get_indices(self) -> np.ndarray:
        """The row numbers of one epoch."""
        return _indices(type(self).__name__, itertools.islice(iter(self), self.num_samples))

    def reset(self) -> None:
        """Nothing to do: each epoch calls ``__iter__`` anew."""

    def _choose(self, source: Source) -> np.ndarray:
        self.dataset_size = source.size
        numbers = _indices(type(self).__name__, itertools.islice(iter(self), self.num_samples))
        return _within(type(self).__name__, numbers, source.size)


class IterSampler(Sampler):
    """An iterable of row numbers as a sampler.

    Args:
        sampler: the iterable; of an iterator that can be read once, the numbers are kept.
        num_samples: how many rows at most; all by default.
    """

    def __init__(self, sampler: Iterable[int], num_samples: int | None = None) -> None:
        super().__init__(num_samples)
        once = iter(sampler) is sampler and not callable(getattr(sampler, "__getitem__", None))
        self.sampler = list(sampler) if once else sampler

    def __iter__(self) -> Iterator[int]:
        return iter(self.sampler)


def as_sampler(where: str, sampler: Any) -> BuiltinSampler:
    """A sampler, or an iterable of row numbers, as a sampler."""
    if isinstance(sampler, BuiltinSampler):
        return sampler
    if isinstance(sampler, type) or not (isinstance(sampler, Iterable) or hasattr(sampler, "__getitem__")):
        raise ArgumentTypeError(where, "sampler", got=repr(sampler), takes="a sampler or an iterable of row numbers")
    return IterSampler(sampler)


def choose_sampler(
    where: str, num_samples: Any, num_shards: Any, shard_id: Any, shuffle: Any, sampler: Any
) -> BuiltinSampler:
    """The sampler that the usual arguments of a source ask for.

    Raises:
        ArgumentValueError: a sampler together with one of the other arguments, or half of a sharding.
    """
    if isinstance(shuffle, Shuffle):
        shuffle = True
    if shuffle is not None:
        arguments.boolean(where, "shuffle", shuffle)
    number = arguments.optional_integer(where, "num_samples", num_samples, 0) or None
    if (num_shards is None) != (shard_id is None):
        missing = "num_shards" if num_shards is None else "shard_id"
        raise ArgumentValueError(where, missing, got="None", takes="an int: num_shards and shard_id go together")
    if num_shards is not None:
        shards = arguments.integer(where, "num_shards", num_shards, 1)
        arguments.integer(where, "shard_id", shard_id, 0, shards - 1)
    if sampler is not None:
        others = {"num_samples": number, "num_shards": num_shards, "shuffle": shuffle}
        clash = [name for name, value in others.items() if value is not None]
        if clash:
            raise ArgumentValueError(
                where, "sampler", got=f"a sampler together with {', '.join(clash)}", takes="either one or the other",
                hint="give the sampler these arguments instead",
            )  # fmt: skip
        return as_sampler(where, sampler)
    if num_shards is not None:
        return DistributedSampler(num_shards, shard_id, True if shuffle is None else shuffle, number)
    if shuffle is None or shuffle:
        return RandomSampler(num_samples=number)
    return SequentialSampler(num_samples=number)
