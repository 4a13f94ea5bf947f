"""Sources whose rows are in memory or come from the user: ``NumpySlicesDataset`` and ``GeneratorDataset``."""

from __future__ import annotations

import builtins
import copy
import itertools
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from mycelia.core import dtypes
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, StateError, UnsupportedError
from mycelia.dataset import arguments, rows as row_values, samplers, seeds
from mycelia.dataset.batching import stack
from mycelia.dataset.failures import SampleFailure
from mycelia.dataset.pipeline import Dataset, no_more
from mycelia.dataset.rows import BadValue, Row
from mycelia.dataset.run import Plan, Run
from mycelia.dataset.workers import ProcessPool, ThreadPool, attempt, in_order

_HEAP_TYPE = 1 << 9


class MappableDataset(Dataset):
    """A source whose rows are numbered, so that a sampler can choose among them."""

    def __init__(
        self,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | samplers.Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__((), num_parallel_workers)
        where = type(self).__name__
        no_more(where, "cache", cache)
        self.sampler = samplers.choose_sampler(where, num_samples, num_shards, shard_id, shuffle, sampler)
        self._check_sampler(where, self.sampler)

    _has_classes: ClassVar[bool] = False

    @property
    def _indexed(self) -> bool:
        """Whether the sampler chooses the rows."""
        return True

    def _check_sampler(self, where: str, sampler: samplers.BuiltinSampler | None) -> None:
        while sampler is not None:
            if isinstance(sampler, samplers.PKSampler) and not self._has_classes:
                raise ArgumentValueError(
                    where,
                    "sampler",
                    got="a PKSampler",
                    takes="another sampler: the rows' classes are not known in advance",
                )
            sampler = sampler.child_sampler

    def _total(self) -> int:
        """The number of rows before sampling."""
        raise UnsupportedError(type(self).__name__, message="the source does not say how many rows it has")

    def _labels(self, name: str) -> np.ndarray:
        """The column ``name`` of all rows, for samplers that choose by class."""
        raise UnsupportedError(type(self).__name__, message=f"column {name!r} is not known in advance")

    def _order(self, run: Run) -> np.ndarray:
        stream = run.order(self, shared=self.sampler.is_sharded())
        return self.sampler.order(samplers.Source(self._total(), stream, self._labels))

    def _size(self) -> int | None:
        return self.sampler.count(self._total(), self._labels)

    def is_shuffled(self) -> bool:
        return self.sampler.is_shuffled()

    def is_sharded(self) -> bool:
        return self.sampler.is_sharded()

    def add_sampler(self, new_sampler: Any) -> None:
        """Let ``new_sampler`` choose among the rows that the sampler so far chose.

        Raises:
            ArgumentTypeError: neither a sampler nor an iterable of row numbers.
        """
        self._set_sampler("add_sampler", _over(samplers.as_sampler("add_sampler", new_sampler), self.sampler))

    def use_sampler(self, new_sampler: Any) -> None:
        """Replace the sampler; None goes back to the rows in order.

        Raises:
            ArgumentTypeError: neither a sampler nor an iterable of row numbers.
        """
        wanted = samplers.SequentialSampler() if new_sampler is None else new_sampler
        self._set_sampler("use_sampler", samplers.as_sampler("use_sampler", wanted))

    def _set_sampler(self, where: str, sampler: samplers.BuiltinSampler) -> None:
        self._check_sampler(where, sampler)
        self.sampler, self._count, self._first = sampler, None, None


def _over(upper: samplers.BuiltinSampler, lower: samplers.BuiltinSampler) -> samplers.BuiltinSampler:
    top = copy.copy(upper)
    top.child_sampler = lower if upper.child_sampler is None else _over(upper.child_sampler, lower)
    return top


class ArraysDataset(MappableDataset):
    """A source whose columns are arrays with one entry per row."""

    def _arrays(self) -> list[np.ndarray]:
        """The columns."""
        raise UnsupportedError(type(self).__name__, message="the source has no arrays")

    def _total(self) -> int:
        return len(self._arrays()[0])

    def _plannable(self, run: Run) -> bool:
        return True

    def _plan(self, run: Run) -> Plan:
        arrays, order = self._arrays(), self._order(run)

        def gather(wanted: np.ndarray) -> Row:
            numbers = order[wanted]
            return tuple([array[numbers] for array in arrays])

        return Plan(len(order), gather)

    def _labels(self, name: str) -> np.ndarray:
        columns = self._columns()
        arguments.known_columns("PKSampler", "class_column", [name], columns)
        return self._arrays()[columns.index(name)]


class NumpySlicesDataset(ArraysDataset):
    """Rows that are slices of arrays along their first axis.

    Args:
        data: a dict from column name to array or list; a tuple of arrays or lists, one per column; or one
            array or list. The columns have the same length.
        column_names: names of the columns; by default the keys, or ``column_0``, ``column_1``, ...
        num_samples: how many rows at most.
        num_parallel_workers: accepted and not needed.
        shuffle: whether to shuffle; the default is True.
        sampler: which rows and in which order; excludes ``shuffle``, ``num_samples`` and the shards.
        num_shards, shard_id: give one of several equal shares.

    Raises:
        ArgumentTypeError: data that are no arrays, or objects in them.
        ArgumentValueError: no rows, columns of different length, or a wrong number of names.

    >>> import mycelia.dataset as ds
    >>> data = ds.NumpySlicesDataset({"x": [[1, 2], [3, 4]], "y": [0.5, 1.5]}, shuffle=False)
    >>> [(x.tolist(), float(y)) for x, y in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [([1, 2], 0.5), ([3, 4], 1.5)]
    """

    def __init__(
        self,
        data: Any,
        column_names: str | list[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id)
        where = "NumpySlicesDataset"
        if isinstance(data, dict):
            names, values = [str(name) for name in data], list(data.values())
        elif isinstance(data, tuple):
            names, values = [f"column_{i}" for i in range(len(data))], list(data)
        else:
            names, values = ["column_0"], [data]
        if column_names is not None:
            given = arguments.names(where, "column_names", column_names)
            if len(given) != len(values):
                raise ArgumentValueError(
                    where, "column_names", got=f"{len(given)} names", takes=f"{len(values)}, one per column"
                )
            names = given
        if not values:
            raise ArgumentValueError(where, "data", got="no columns", takes="at least one column")
        columns = [_slices(where, name, value) for name, value in builtins.zip(names, values, strict=True)]
        lengths = {name: len(column) for name, column in builtins.zip(names, columns, strict=True)}
        if len(set(lengths.values())) > 1:
            raise ArgumentValueError(where, "data", got=f"columns of length {lengths}", takes="columns of one length")
        if not len(columns[0]):
            raise ArgumentValueError(where, "data", got="no rows", takes="at least one row")
        self._names, self._data = names, columns

    def _columns(self) -> list[str]:
        return self._names

    def _total(self) -> int:
        return len(self._data[0])

    def _arrays(self) -> list[np.ndarray]:
        return [column for column in self._data if isinstance(column, np.ndarray)]

    def _plannable(self, run: Run) -> bool:
        return len(self._arrays()) == len(self._data)

    def _rows(self, run: Run) -> Iterator[Row]:
        for number in self._order(run).tolist():
            yield tuple([np.array(column[number]) for column in self._data])


def _slices(where: str, name: str, value: Any) -> np.ndarray | list[np.ndarray]:
    """A column as one array, or, if its rows differ in shape, as a list of arrays."""
    text = f"{type(value).__name__} for column {name!r}"
    if isinstance(value, (str, bytes)) or not (
        isinstance(value, Sequence) or hasattr(value, "__array__") or hasattr(value, "asnumpy")
    ):
        raise ArgumentTypeError(where, "data", got=text, takes="an array or a list for each column")
    try:
        column = row_values.column(value)
    except BadValue:
        try:
            return [row_values.column(item) for item in value]
        except BadValue as error:
            raise ArgumentTypeError(where, "data", got=f"{text}: {error}", takes="numbers or strings") from None
    if not column.ndim:
        raise ArgumentTypeError(where, "data", got=f"a number for column {name!r}", takes="an array or a list")
    return column


class _SourceTask:
    """Random access to the user's source as a task of workers."""

    def __init__(self, source: Any, names: list[str], types_: list[np.dtype[Any]] | None) -> None:
        self.source, self.names, self.types = source, names, types_

    def run(self, key: int, sample: int, value: Any, isolated: bool) -> Row:
        with seeds.of_sample(seeds.Stream(key), sample):
            if isolated:
                seeds.reseed_globals()
            return self.check(self.source[value])

    def check(self, value: Any) -> Row:
        """What the source gave, as a row."""
        row = row_values.source_row(value)
        if len(row) != len(self.names):
            raise BadValue(f"gave {len(row)} value(s) for {len(self.names)} column(s) {self.names}")
        if self.types is not None:
            for name, array, wanted in builtins.zip(self.names, row, self.types, strict=True):
                if array.dtype != wanted and not array.dtype.kind == wanted.kind == "U":
                    raise DTypeError(
                        "GeneratorDataset", "column_types", got=f"{array.dtype} in column {name!r}", takes=str(wanted)
                    )
        return row

    def report(self, error: BaseException, sample: int) -> SampleFailure:
        """The failure of the source on a sample."""
        return SampleFailure("the source", "source", (), sample, error)


class _BatchTask(_SourceTask):
    """Random access to groups of rows, put together by ``collate_fn``."""

    def __init__(self, source: Any, names: list[str], types_: list[np.dtype[Any]] | None, collate: Any) -> None:
        super().__init__(source, names, types_)
        self.collate = collate

    def run(self, key: int, sample: int, value: Any, isolated: bool) -> Row:
        with seeds.of_sample(seeds.Stream(key), sample):
            if isolated:
                seeds.reseed_globals()
            rows = [row_values.source_row(self.source[i]) for i in value]
            if self.collate is not None:
                return self.check(self.collate([row[0] if len(row) == 1 else row for row in rows]))
            columns = list(builtins.zip(*rows, strict=True))
            names = self.names if len(self.names) == len(columns) else [str(i) for i in range(len(columns))]
            made = [stack(c, n, "GeneratorDataset", 0, None) for c, n in builtins.zip(columns, names, strict=True)]
            return self.check(tuple(made))


class GeneratorDataset(MappableDataset):
    """Rows that Python code of the user's gives.

    Args:
        source: an object with ``__getitem__`` and ``__len__`` (random access, also a list); a function
            that returns an iterator, such as a generator function; or an iterable. A row is a tuple or
            list with one value per column, or a single value for one column.
        column_names: names of the columns.
        column_types: the dtype of each column, which rows are checked against.
        schema: not supported; name the columns instead.
        num_samples: how many rows at most.
        num_parallel_workers: workers that read a random-access source; the result does not depend on it.
        shuffle: whether to shuffle; the default is True for random access. Other sources keep their order.
        sampler: which rows and in which order; for random access only, as are shards.
        num_shards, shard_id: give one of several equal shares.
        python_multiprocessing: with more than one worker, use processes rather than threads.
        max_rowsize: accepted and not needed; rows of any size pass.
        batch_sampler: an iterable of lists of row numbers; each list becomes one row that stacks theirs.
        collate_fn: makes one row of the list of rows of ``batch_sampler``, in place of stacking.

    Raises:
        ArgumentTypeError: a source that can be neither indexed, called nor iterated.
        ArgumentValueError: no column names, or arguments that exclude each other.
        TransformError: while iterating, when the source fails; it names the sample.

    >>> import mycelia.dataset as ds
    >>> def squares():
    ...     for i in range(3):
    ...         yield i, i * i
    >>> data = ds.GeneratorDataset(squares, ["i", "square"])
    >>> [(int(i), int(s)) for i, s in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [(0, 0), (1, 1), (2, 4)]
    """

    def __init__(
        self,
        source: Any,
        column_names: str | list[str] | None = None,
        column_types: Any = None,
        schema: Any = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        python_multiprocessing: bool = True,
        max_rowsize: Any = None,
        batch_sampler: Any = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        where = "GeneratorDataset"
        self.max_rowsize = max_rowsize
        self.source = source
        self._random = _is_random_access(source)
        self._played: Iterator[Any] | None = None
        self._began = False
        if not self._random:
            self._check_sequential(source, sampler, num_shards, batch_sampler)
        if batch_sampler is not None:
            others = {"num_samples": num_samples, "shuffle": shuffle, "sampler": sampler, "num_shards": num_shards}
            clash = [name for name, value in others.items() if value is not None]
            if clash:
                raise ArgumentValueError(
                    where, "batch_sampler", got=f"one together with {', '.join(clash)}", takes="either one or the other"
                )
            if isinstance(batch_sampler, type) or not hasattr(batch_sampler, "__iter__"):
                raise ArgumentTypeError(where, "batch_sampler", got=repr(batch_sampler), takes="an iterable of lists")
        if collate_fn is not None and (batch_sampler is None or not callable(collate_fn)):
            raise ArgumentValueError(
                where, "collate_fn", got=repr(collate_fn), takes="a function beside a batch_sampler"
            )
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id)
        no_more(where, "schema", schema)
        if not column_names:
            raise ArgumentValueError(where, "column_names", got=repr(column_names), takes="a name for each column")
        self._names = arguments.names(where, "column_names", column_names)
        self.python_multiprocessing = arguments.boolean(where, "python_multiprocessing", python_multiprocessing)
        self._limit = arguments.optional_integer(where, "num_samples", num_samples, 0) or None
        self.batch_sampler, self.collate_fn = batch_sampler, collate_fn
        kinds = _column_types(where, column_types, len(self._names))
        if batch_sampler is None:
            self._task = _SourceTask(source, self._names, kinds)
        else:
            self._task = _BatchTask(source, self._names, kinds, collate_fn)
            if iter(batch_sampler) is batch_sampler:
                self.batch_sampler = list(batch_sampler)

    @staticmethod
    def _check_sequential(source: Any, sampler: Any, num_shards: Any, batch_sampler: Any) -> None:
        where = "GeneratorDataset"
        if hasattr(source, "__getitem__") and not callable(source) and not hasattr(source, "__iter__"):
            raise ArgumentTypeError(
                where, "source", got=f"a {type(source).__name__} without __len__", takes="random access with __len__"
            )
        if not callable(source) and not hasattr(source, "__iter__") and not hasattr(source, "__next__"):
            raise ArgumentTypeError(
                where, "source", got=f"{source!r} ({type(source).__name__})",
                takes="an object with __getitem__ and __len__, a function that returns an iterator, or an iterable",
            )  # fmt: skip
        for name, value in (("sampler", sampler), ("num_shards", num_shards), ("batch_sampler", batch_sampler)):
            if value is not None:
                raise ArgumentValueError(
                    where, name, got="a value for a source without random access", takes="None",
                    hint="give the source __getitem__ and __len__",
                )  # fmt: skip

    def _columns(self) -> list[str]:
        return self._names

    def _light(self) -> bool:
        return False

    @property
    def _indexed(self) -> bool:
        return self._random and self.batch_sampler is None

    def _total(self) -> int:
        total = len(self.source)
        if not total:
            raise ArgumentValueError(
                "GeneratorDataset",
                "source",
                got="a source of length 0",
                takes="at least one row",
                location=self._location,
            )
        return total

    def _size(self) -> int | None:
        if self.batch_sampler is not None:
            return len(self.batch_sampler) if hasattr(self.batch_sampler, "__len__") else None
        if self._random:
            return super()._size()
        if hasattr(self.source, "__len__"):
            total = len(self.source)
            return total if self._limit is None else min(total, self._limit)
        return None

    def is_shuffled(self) -> bool:
        return self._indexed and super().is_shuffled()

    def _rows(self, run: Run) -> Iterator[Row]:
        results = self._accessed(run) if self._random else self._read(run)
        for result in results:
            if isinstance(result, SampleFailure):
                raise result.as_error("GeneratorDataset", self._location) from result.cause
            yield result

    def _accessed(self, run: Run) -> Iterator[Any]:
        task, workers = self._task, self.num_parallel_workers or 1
        if self.batch_sampler is not None:
            total = self._total()
            stream = run.stream(self)
            wanted: Iterable[Any] = (_group(group, total, self._location) for group in self.batch_sampler)
        else:
            wanted, stream = self._order(run).tolist(), run.again(self)
        if workers == 1 or run.inline:
            return (attempt(task, stream.key, sample, value) for sample, value in enumerate(wanted))
        if self.python_multiprocessing:
            pool = run.pool(self, lambda: ProcessPool(task, workers, "GeneratorDataset"))
        else:
            pool = run.pool(self, lambda: ThreadPool(task, workers))
        return in_order(pool, stream.key, wanted)

    def _read(self, run: Run) -> Iterator[Any]:
        """Rows of a source without random access, or a failure."""
        stream = run.stream(self)
        try:
            values = self._start()
        except Exception as error:
            yield self._task.report(error, 0)
            return
        for sample in itertools.count() if self._limit is None else range(self._limit):
            try:
                with seeds.of_sample(stream, sample):
                    value = next(values)
            except StopIteration:
                if sample == 0 and self._exhausted():
                    yield self._task.report(
                        StateError(
                            "GeneratorDataset", message="the iterator has been read to its end and cannot start again",
                            hint="pass a function that returns a new iterator", location=self._location,
                        ), 0,
                    )  # fmt: skip
                return
            except Exception as error:
                yield self._task.report(error, sample)
                return
            try:
                row = self._task.check(value)
            except Exception as error:
                yield self._task.report(error, sample)
                return
            self._began = True
            yield row

    def _exhausted(self) -> bool:
        return self._began and not callable(self.source) and iter(self.source) is self.source

    def _start(self) -> Iterator[Any]:
        """An iterator at the first row.

        What a generator or another of Python's own iterators gives is kept, so that it can be read again.
        """
        source = self.source
        if not _is_users_class(source) and hasattr(source, "__next__"):
            if self._played is None:
                self._played = iter(source)
            given, self._played = itertools.tee(self._played)
            return given
        if callable(source):
            made = source()
            if not hasattr(made, "__iter__") and not hasattr(made, "__next__") and not hasattr(made, "__getitem__"):
                raise BadValue(f"is a function that returned {made!r}; it should return an iterator")
            return iter(made) if not hasattr(made, "__next__") else made
        return iter(source) if hasattr(source, "__iter__") else source


def _is_users_class(value: Any) -> bool:
    """Whether the class of ``value`` is written in Python; its ``__iter__`` may then start anew."""
    return bool(type(value).__flags__ & _HEAP_TYPE) and not isinstance(value, types.GeneratorType)


def _is_random_access(source: Any) -> bool:
    if isinstance(source, type):
        return False
    if isinstance(source, dict):
        raise ArgumentTypeError(
            "GeneratorDataset", "source", got="a dict", takes="random access by row number",
            hint="NumpySlicesDataset takes a dict of columns",
        )  # fmt: skip
    return hasattr(source, "__getitem__") and hasattr(source, "__len__")


def _column_types(where: str, column_types: Any, count: int) -> list[np.dtype[Any]] | None:
    if column_types is None:
        return None
    found = list(column_types) if isinstance(column_types, (list, tuple)) else [column_types]
    if len(found) != count:
        raise ArgumentValueError(where, "column_types", got=f"{len(found)} dtypes", takes=f"{count}, one per column")
    return [dtypes.as_dtype(kind, where, "column_types").np for kind in found]


def _group(group: Any, total: int, location: Any) -> list[int]:
    numbers = [int(i) for i in group]
    for number in numbers:
        if not 0 <= number < total:
            raise ArgumentValueError(
                "GeneratorDataset",
                "batch_sampler",
                got=f"row number {number}",
                takes=f"0 to {total - 1}",
                location=location,
            )
    return numbers
