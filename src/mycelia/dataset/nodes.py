"""Nodes that choose, order and join rows and columns without changing values."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.dataset import arguments
from mycelia.dataset.failures import SampleFailure
from mycelia.dataset.pipeline import Dataset, check_dataset, refuse_taken
from mycelia.dataset.rows import BadValue, Row, describe
from mycelia.dataset.run import Plan, Run

T = TypeVar("T")
_DRAWS = 4096


def buffered_shuffle(items: Iterable[T], size: int, generator: np.random.Generator) -> Iterator[T]:
    """Give items in random order, each drawn from a buffer of ``size`` that the next item refills."""
    source = iter(items)
    buffer = list(itertools.islice(source, size))
    draws: Iterator[int] = iter(())
    for item in source:
        place = next(draws, -1)
        if place < 0:
            draws = iter(generator.integers(0, size, _DRAWS).tolist())
            place = next(draws)
        given, buffer[place] = buffer[place], item
        yield given
    for place in generator.permutation(len(buffer)).tolist():
        yield buffer[place]


class ShuffleDataset(Dataset):
    """The result of :meth:`Dataset.shuffle`."""

    def __init__(self, input_dataset: Dataset, buffer_size: int) -> None:
        super().__init__((input_dataset,))
        self.buffer_size = arguments.integer("shuffle", "buffer_size", buffer_size, 2)

    def _fresh(self) -> bool:
        return all(child._fresh() for child in self.children)

    def _rows(self, run: Run) -> Iterator[Row]:
        return buffered_shuffle(self.children[0]._open(run), self.buffer_size, run.order(self).generator())

    def _plannable(self, run: Run) -> bool:
        return self.children[0]._plannable(run)

    def _plan(self, run: Run) -> Plan:
        plan = self.children[0]._plan(run)
        numbers = buffered_shuffle(range(plan.length), self.buffer_size, run.order(self).generator())
        order = np.fromiter(numbers, np.int64, plan.length)
        return Plan(plan.length, lambda wanted: plan.gather(order[wanted]))

    def is_shuffled(self) -> bool:
        return True


class RepeatDataset(Dataset):
    """The result of :meth:`Dataset.repeat`."""

    def __init__(self, input_dataset: Dataset, count: int | None) -> None:
        super().__init__((input_dataset,))
        self.count = -1 if count is None else _count("repeat", count)

    def _fresh(self) -> bool:
        return all(child._fresh() for child in self.children)

    def _rows(self, run: Run) -> Iterator[Row]:
        passes = itertools.count() if self.count < 0 and not run.one_pass else range(abs(self.count))
        for _ in passes:
            empty = True
            for row in self.children[0]._open(run):
                empty = False
                yield row
            if empty:
                return

    def _plannable(self, run: Run) -> bool:
        return self.count > 0 and self.children[0]._plannable(run)

    def _plan(self, run: Run) -> Plan:
        plans = [self.children[0]._plan(run)]
        length = plans[0].length

        def gather(wanted: np.ndarray) -> Row:
            passes, numbers = np.divmod(wanted, length)
            while len(plans) <= passes.max():
                plans.append(self.children[0]._plan(run))
            if passes[0] == passes[-1] and (passes == passes[0]).all():
                return plans[passes[0]].gather(numbers)
            parts = [(passes == p).nonzero()[0] for p in np.unique(passes)]
            blocks = [plans[passes[at[0]]].gather(numbers[at]) for at in parts]
            back = np.argsort(np.concatenate(parts), kind="stable")
            return tuple([np.concatenate(columns)[back] for columns in builtins.zip(*blocks, strict=True)])

        return Plan(length * self.count, gather)

    def _size(self) -> int | None:
        size = self.children[0]._size()
        return size if size is None or self.count < 0 else size * self.count

    def get_dataset_size(self) -> int:
        """As :meth:`Dataset.get_dataset_size`; of a repetition without end, the rows of one pass."""
        return self.children[0].get_dataset_size() * max(self.count, 1)

    def get_repeat_count(self) -> int:
        return self.count


class TakeDataset(Dataset):
    """The result of :meth:`Dataset.take`."""

    def __init__(self, input_dataset: Dataset, count: int) -> None:
        super().__init__((input_dataset,))
        self.count = _count("take", count)

    def _fresh(self) -> bool:
        return all(child._fresh() for child in self.children)

    def _rows(self, run: Run) -> Iterator[Row]:
        rows = self.children[0]._open(run)
        return rows if self.count < 0 else itertools.islice(rows, self.count)

    def _plannable(self, run: Run) -> bool:
        return self.children[0]._plannable(run)

    def _plan(self, run: Run) -> Plan:
        plan = self.children[0]._plan(run)
        return plan if self.count < 0 else Plan(min(self.count, plan.length), plan.gather)

    def _size(self) -> int | None:
        size = self.children[0]._size()
        if self.count < 0 or size is None:
            return size
        return self.count if endless(self.children[0]) and size else min(self.count, size)


class SkipDataset(Dataset):
    """The result of :meth:`Dataset.skip`."""

    def __init__(self, input_dataset: Dataset, count: int) -> None:
        super().__init__((input_dataset,))
        self.count = arguments.integer("skip", "count", count, 0)

    def _fresh(self) -> bool:
        return all(child._fresh() for child in self.children)

    def _rows(self, run: Run) -> Iterator[Row]:
        return itertools.islice(self.children[0]._open(run), self.count, None)

    def _plannable(self, run: Run) -> bool:
        return self.children[0]._plannable(run)

    def _plan(self, run: Run) -> Plan:
        plan = self.children[0]._plan(run)
        return Plan(max(plan.length - self.count, 0), lambda wanted: plan.gather(wanted + self.count))

    def _size(self) -> int | None:
        size = self.children[0]._size()
        return None if size is None else max(size - self.count, 0)


class ZipDataset(Dataset):
    """The result of :func:`mycelia.dataset.zip` and :meth:`Dataset.zip`.

    Args:
        datasets: a tuple of at least two datasets whose column names differ.
    """

    def __init__(self, datasets: tuple[Dataset, ...]) -> None:
        if not isinstance(datasets, tuple):
            raise ArgumentTypeError("zip", "datasets", got=type(datasets).__name__, takes="a tuple of datasets")
        if len(datasets) < 2:
            raise ArgumentValueError("zip", "datasets", got=f"{len(datasets)} of them", takes="at least two datasets")
        super().__init__([check_dataset("zip", "datasets", d) for d in datasets])
        taken: list[str] = []
        for dataset in datasets:
            for name in dataset._columns():
                if name in taken:
                    raise ArgumentValueError(
                        "zip", "datasets", got=f"column {name!r} twice", takes="datasets with different column names",
                        hint=f'rename it before: .rename("{name}", "{name}_2")',
                    )  # fmt: skip
            taken += dataset._columns()
        self._names = taken

    def _columns(self) -> list[str]:
        return self._names

    def _fresh(self) -> bool:
        return all(child._fresh() for child in self.children)

    def _rows(self, run: Run) -> Iterator[Row]:
        for rows in builtins.zip(*[child._open(run) for child in self.children], strict=False):
            yield tuple(itertools.chain.from_iterable(rows))

    def _plannable(self, run: Run) -> bool:
        return all(child._plannable(run) for child in self.children)

    def _plan(self, run: Run) -> Plan:
        plans = [child._plan(run) for child in self.children]

        def gather(wanted: np.ndarray) -> Row:
            return tuple(itertools.chain.from_iterable([plan.gather(wanted) for plan in plans]))

        return Plan(min(plan.length for plan in plans), gather)

    def _size(self) -> int | None:
        sizes = [child._size() for child in self.children]
        known = [size for size in sizes if size is not None]
        return min(known) if len(known) == len(sizes) else None


class ConcatDataset(Dataset):
    """The result of :meth:`Dataset.concat` and of ``+``.

    Args:
        datasets: a list of datasets with the same column names; rows keep their order.
    """

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        super().__init__([check_dataset("concat", "datasets", d) for d in datasets])
        first = self.children[0]._columns()
        for child in self.children[1:]:
            if child._columns() != first:
                raise ArgumentValueError(
                    "concat", "datasets", got=f"one with the columns {child._columns()}", takes=f"the columns {first}"
                )

    def _fresh(self) -> bool:
        return all(child._fresh() for child in self.children)

    def _rows(self, run: Run) -> Iterator[Row]:
        first: Row | None = None
        for number, child in enumerate(self.children):
            for count, row in enumerate(child._open(run)):
                if first is None:
                    first = row
                elif count == 0:
                    self._agree(first, row, number)
                yield row

    def _agree(self, first: Row, row: Row, number: int) -> None:
        for name, a, b in builtins.zip(self._columns(), first, row, strict=True):
            text = f"dataset {number} with {describe(b)} in column {name!r}"
            if a.dtype != b.dtype and a.dtype.kind not in "US":
                raise DTypeError(
                    "concat", "datasets", got=text, takes=f"{a.dtype} as in the first one", location=self._location,
                    hint=f'convert it before: .map(transforms.TypeCast({a.dtype.name!r}), "{name}")',
                )  # fmt: skip
            if a.ndim != b.ndim:
                raise ShapeError(
                    "concat", "datasets", got=text, takes=f"{a.ndim} axes as in the first one", location=self._location
                )

    def _size(self) -> int | None:
        sizes = [child._size() for child in self.children]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None


class FilterDataset(Dataset):
    """The result of :meth:`Dataset.filter`."""

    def __init__(
        self,
        input_dataset: Dataset,
        predicate: Callable[..., Any],
        input_columns: str | list[str] | None = None,
        num_parallel_workers: int | None = None,
    ) -> None:
        super().__init__((input_dataset,), num_parallel_workers)
        if not callable(predicate):
            raise ArgumentTypeError("filter", "predicate", got=repr(predicate), takes="a function of columns")
        self.predicate = predicate
        present = input_dataset._columns()
        self.input_columns = present if not input_columns else arguments.names("filter", "input_columns", input_columns)
        arguments.known_columns("filter", "input_columns", self.input_columns, present)

    def _rows(self, run: Run) -> Iterator[Row]:
        present = self.children[0]._columns()
        places = [present.index(name) for name in self.input_columns]
        for sample, row in enumerate(self.children[0]._open(run)):
            try:
                keep = _truth(self.predicate(*[row[i] for i in places]))
            except Exception as error:
                failure = SampleFailure("the predicate", "predicate", tuple(self.input_columns), sample, error)
                raise failure.as_error("filter", self._location) from error
            if keep:
                yield row

    def _size(self) -> int | None:
        return None

    def _light(self) -> bool:
        return False


def _truth(value: Any) -> bool:
    if value is None:
        raise BadValue("got None; is a return statement missing?")
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    if isinstance(value, np.ndarray) and value.size != 1:
        raise BadValue(f"got an array of {value.size} truth values; reduce it with .all() or .any()")
    return bool(value)


class ProjectDataset(Dataset):
    """The result of :meth:`Dataset.project`."""

    def __init__(self, input_dataset: Dataset, columns: str | list[str]) -> None:
        super().__init__((input_dataset,))
        self.columns = arguments.names("project", "columns", columns)
        present = input_dataset._columns()
        arguments.known_columns("project", "columns", self.columns, present)
        self._places = [present.index(name) for name in self.columns]

    def _columns(self) -> list[str]:
        return self.columns

    def _pick(self, row: Row) -> Row:
        return tuple([row[i] for i in self._places])

    def _fresh(self) -> bool:
        return all(child._fresh() for child in self.children)

    def _rows(self, run: Run) -> Iterator[Row]:
        return builtins.map(self._pick, self.children[0]._open(run))

    def _plannable(self, run: Run) -> bool:
        return self.children[0]._plannable(run)

    def _plan(self, run: Run) -> Plan:
        plan = self.children[0]._plan(run)
        return Plan(plan.length, lambda wanted: self._pick(plan.gather(wanted)))


class RenameDataset(Dataset):
    """The result of :meth:`Dataset.rename`."""

    def __init__(self, input_dataset: Dataset, input_columns: str | list[str], output_columns: str | list[str]) -> None:
        super().__init__((input_dataset,))
        old = arguments.names("rename", "input_columns", input_columns)
        new = arguments.names("rename", "output_columns", output_columns)
        if len(old) != len(new):
            raise ArgumentValueError(
                "rename",
                "output_columns",
                got=f"{len(new)} names",
                takes=f"{len(old)} names, one for each input column",
            )
        present = input_dataset._columns()
        arguments.known_columns("rename", "input_columns", old, present)
        refuse_taken("rename", "output_columns", new, [name for name in present if name not in old])
        becomes = dict(builtins.zip(old, new, strict=True))
        self._names = [becomes.get(name, name) for name in present]

    def _columns(self) -> list[str]:
        return self._names

    def _fresh(self) -> bool:
        return all(child._fresh() for child in self.children)

    def _rows(self, run: Run) -> Iterator[Row]:
        return self.children[0]._open(run)

    def _plannable(self, run: Run) -> bool:
        return self.children[0]._plannable(run)

    def _plan(self, run: Run) -> Plan:
        return self.children[0]._plan(run)


class FlatMapDataset(Dataset):
    """The result of :meth:`Dataset.flat_map`."""

    def __init__(self, input_dataset: Dataset, func: Callable[..., Dataset]) -> None:
        super().__init__((input_dataset,))
        if not callable(func):
            raise ArgumentTypeError("flat_map", "func", got=repr(func), takes="a function that gives a dataset")
        self.func = func
        self._names: list[str] | None = None

    def _columns(self) -> list[str]:
        if self._names is None:
            self._names = self._make(self.children[0]._first_row())._columns()
        return self._names

    def _make(self, row: Sequence[np.ndarray]) -> Dataset:
        made = self.func(*row)
        if not isinstance(made, Dataset):
            raise ArgumentTypeError(
                "flat_map", "func", got=f"a function that gives {made!r}", takes="a function that gives a dataset",
                location=self._location,
            )  # fmt: skip
        return made

    def _rows(self, run: Run) -> Iterator[Row]:
        key = run.stream(self).key
        for sample, row in enumerate(self.children[0]._open(run)):
            inner = Run(self._make(row), counted=False, seed=(key + sample) % 2**62)
            inner.one_pass = run.one_pass
            try:
                inner.start_epoch()
                yield from inner.root._open(inner)
            finally:
                inner.close()

    def _size(self) -> int | None:
        return None

    def _light(self) -> bool:
        return False


def zip(datasets: tuple[Dataset, ...]) -> ZipDataset:
    """Set the columns of several datasets beside each other, as far as the shortest goes.

    Args:
        datasets: a tuple of at least two datasets whose column names differ.

    Raises:
        ArgumentTypeError: not a tuple of datasets.
        ArgumentValueError: fewer than two, or a column name occurs twice.

    >>> import mycelia.dataset as ds
    >>> a = ds.NumpySlicesDataset({"a": [1, 2, 3]}, shuffle=False)
    >>> b = ds.NumpySlicesDataset({"b": [5, 6]}, shuffle=False)
    >>> [(int(x), int(y)) for x, y in ds.zip((a, b)).create_tuple_iterator(num_epochs=1, output_numpy=True)]
    [(1, 5), (2, 6)]
    """
    return ZipDataset(datasets)


def _count(where: str, value: Any) -> int:
    number = arguments.integer(where, "count", value)
    if number == 0 or number < -1:
        raise ArgumentValueError(where, "count", got=str(number), takes="-1 or a positive int")
    return number


def endless(node: Dataset) -> bool:
    """Whether one pass over ``node`` has no end because of a ``repeat`` without count."""
    if isinstance(node, TakeDataset) and node.count > 0:
        return False
    if isinstance(node, RepeatDataset) and node.count < 0:
        return True
    if isinstance(node, ZipDataset):
        return all(endless(child) for child in node.children)
    return any(endless(child) for child in node.children)
