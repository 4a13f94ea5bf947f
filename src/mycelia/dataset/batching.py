"""Nodes that stack rows: ``batch``, ``padded_batch`` and ``bucket_batch_by_length``."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    ShapeError,
    SourceLocation,
)
from mycelia.dataset import arguments, rows as row_values, seeds
from mycelia.dataset.failures import SampleFailure
from mycelia.dataset.memory import Blocks, aligned_empty
from mycelia.dataset.pipeline import Dataset, refuse_taken
from mycelia.dataset.rows import BadValue, Row, describe
from mycelia.dataset.run import Plan, Run
from mycelia.dataset.workers import ProcessPool, ThreadPool, attempt, in_order


class BatchInfo:
    """What a batch size function and ``per_batch_map`` are told about the batch.

    Args:
        epoch: number of the epoch of this iterator, from 0.
        batch: number of the batch in the epoch, from 0.
    """

    __slots__ = ("_batch", "_epoch")

    def __init__(self, epoch: int, batch: int) -> None:
        self._epoch, self._batch = epoch, batch

    def get_epoch_num(self) -> int:
        """The number of the epoch, from 0."""
        return self._epoch

    def get_batch_num(self) -> int:
        """The number of the batch in the epoch, from 0."""
        return self._batch


BatchSize = int | Callable[[BatchInfo], int]


def _check_size(where: str, size: Any) -> BatchSize:
    if callable(size):
        return size
    return arguments.integer(where, "batch_size", size, 1)


def stack(
    values: Sequence[np.ndarray], column: str, where: str, first: int, location: SourceLocation | None
) -> np.ndarray:
    """Stack the values of one column; ``first`` is the number of the first row, for messages.

    Raises:
        ShapeError: shapes differ.
        DTypeError: dtypes differ.
    """
    shape, dtype = values[0].shape, values[0].dtype
    text = dtype.kind in "US"
    for number, value in enumerate(values):
        if value.shape != shape:
            raise ShapeError(
                where,
                message=f"rows of column {column!r} differ in shape: row {first} has {shape}, row {first + number} has "
                f"{value.shape}",
                hint="pad them with .padded_batch(...), or make their shapes equal with .map(...) before",
                location=location,
            )
        if value.dtype != dtype and not (text and value.dtype.kind == dtype.kind):
            raise DTypeError(
                where,
                message=f"rows of column {column!r} differ in dtype: row {first} has {dtype}, row {first + number} has "
                f"{value.dtype}",
                hint=f"convert them before: .map(transforms.TypeCast(...), {column!r})",
                location=location,
            )
    if text or not shape:
        return np.array(values)
    stacked = aligned_empty((len(values), *shape), dtype)
    for i, value in enumerate(values):
        stacked[i] = value
    return stacked


class _Batches(Dataset):
    """What the nodes that stack rows share: how rows are collected."""

    def __init__(
        self, where: str, input_dataset: Dataset, batch_size: Any, drop_remainder: bool, workers: int | None
    ) -> None:
        super().__init__((input_dataset,), workers)
        self._where = where
        self.batch_size = _check_size(where, batch_size)
        self.drop_remainder = arguments.boolean(where, "drop_remainder", drop_remainder)

    def _groups(self, run: Run) -> Iterator[tuple[int, BatchInfo, list[Row]]]:
        """The number of the first row, the info and the rows of each batch."""
        yield from self._grouped(run, self.children[0]._open(run))

    def _grouped(self, run: Run, source: Iterator[Row]) -> Iterator[tuple[int, BatchInfo, list[Row]]]:
        """As :meth:`_groups`, of these rows."""
        start = 0
        for number in itertools.count():
            info = BatchInfo(run.epoch_in_run, number)
            size = self.batch_size if isinstance(self.batch_size, int) else self._ask(self.batch_size, info)
            rows = list(itertools.islice(source, size))
            if not rows or (len(rows) < size and self.drop_remainder):
                return
            yield start, info, rows
            if len(rows) < size:
                return
            start += size

    def _ask(self, function: Callable[[BatchInfo], int], info: BatchInfo) -> int:
        size = function(info)
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            kind = ArgumentValueError if isinstance(size, int) else ArgumentTypeError
            raise kind(
                self._where, "batch_size", got=f"a function that gave {size!r} for batch {info.get_batch_num()}",
                takes="a positive int", location=self._location,
            )  # fmt: skip
        return int(size)

    def _size(self) -> int | None:
        size = self.children[0]._size()
        if size is None or not isinstance(self.batch_size, int):
            return None
        return size // self.batch_size if self.drop_remainder else -(-size // self.batch_size)

    def get_batch_size(self) -> int:
        """As :meth:`Dataset.get_batch_size`; of a batch size function, what it gives for the first batch."""
        return self.batch_size if isinstance(self.batch_size, int) else self._ask(self.batch_size, BatchInfo(0, 0))


class _PerBatch:
    """``per_batch_map`` as a task of workers."""

    def __init__(self, function: Callable[..., Any], names: list[str], outputs: int) -> None:
        self.function, self.names, self.outputs = function, names, outputs

    def run(self, key: int, sample: int, value: Any, isolated: bool) -> list[Any]:
        columns, info = value
        with seeds.of_sample(seeds.Stream(key), sample):
            if isolated:
                seeds.reseed_globals()
            result = self.function(*columns, info)
        made = result if isinstance(result, tuple) else (result,)
        if len(made) != self.outputs:
            raise BadValue(f"gave {len(made)} columns where {self.outputs} are named in output_columns")
        return [
            [row_values.column(v) for v in values] if isinstance(values, (list, tuple)) else row_values.column(values)
            for values in made
        ]

    def report(self, error: BaseException, sample: int) -> SampleFailure:
        return SampleFailure("per_batch_map", "per_batch_map", tuple(self.names), sample, error)


class BatchDataset(_Batches):
    """The result of :meth:`Dataset.batch`."""

    def __init__(
        self,
        input_dataset: Dataset,
        batch_size: BatchSize,
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        per_batch_map: Callable[..., Any] | None = None,
        input_columns: str | list[str] | None = None,
        output_columns: str | list[str] | None = None,
        python_multiprocessing: bool = False,
        max_rowsize: Any = None,
    ) -> None:
        super().__init__("batch", input_dataset, batch_size, drop_remainder, num_parallel_workers)
        if per_batch_map is not None and not callable(per_batch_map):
            raise ArgumentTypeError("batch", "per_batch_map", got=repr(per_batch_map), takes="a function")
        self.per_batch_map, self.max_rowsize = per_batch_map, max_rowsize
        self.python_multiprocessing = arguments.boolean("batch", "python_multiprocessing", python_multiprocessing)
        present = input_dataset._columns()
        if per_batch_map is None and (input_columns or output_columns):
            raise ArgumentValueError(
                "batch", "input_columns" if input_columns else "output_columns",
                got="column names without per_batch_map",
                takes="nothing unless per_batch_map is given", hint="rename columns with .rename(...)",
            )  # fmt: skip
        self.input_columns = arguments.names("batch", "input_columns", input_columns) if input_columns else present
        arguments.known_columns("batch", "input_columns", self.input_columns, present)
        self.output_columns = self.input_columns
        if output_columns:
            self.output_columns = arguments.names("batch", "output_columns", output_columns)
        kept = [name for name in present if name not in self.input_columns]
        refuse_taken("batch", "output_columns", self.output_columns, kept)
        self._names = arrange(present, self.input_columns, self.output_columns)
        self._kept = kept

    def _columns(self) -> list[str]:
        return self._names

    def _light(self) -> bool:
        return self.per_batch_map is None and super()._light()

    def _rows(self, run: Run) -> Iterator[Row]:
        if self.per_batch_map is not None:
            return self._mapped(run)
        size = self.batch_size
        child = self.children[0]
        if isinstance(size, int) and child._plannable(run):
            return self._whole(child._plan(run), size)
        return self._stacked(run)

    def _whole(self, plan: Plan, size: int) -> Iterator[Row]:
        length = plan.length - plan.length % size if self.drop_remainder else plan.length
        return Plan(length, plan.gather).blocks(size)

    def _stacked(self, run: Run) -> Iterator[Row]:
        names, size = self._names, self.batch_size
        made: dict[str, Blocks] = {}
        child = self.children[0]
        if isinstance(size, int):
            source = child._rows_into(run, lambda name: made.setdefault(name, Blocks(size)))
        else:
            source = child._open(run)
        for number, (start, _, rows) in enumerate(self._grouped(run, source)):
            batch = []
            for column, name in zip(zip(*rows, strict=True), names, strict=True):
                blocks = made.get(name)
                whole = blocks.collect(number, column) if blocks is not None else None
                batch.append(stack(column, name, "batch", start, self._location) if whole is None else whole)
            yield tuple(batch)

    def _fresh(self) -> bool:
        return self.per_batch_map is None

    def _mapped(self, run: Run) -> Iterator[Row]:
        assert self.per_batch_map is not None
        present = self.children[0]._columns()
        task = _PerBatch(self.per_batch_map, self.input_columns, len(self.output_columns))
        starts: list[tuple[int, dict[str, tuple[np.ndarray, ...]]]] = []

        def inputs() -> Iterator[Any]:
            for start, info, rows in self._groups(run):
                columns = dict(zip(present, zip(*rows, strict=True), strict=True))
                starts.append((start, columns))
                yield [list(columns[name]) for name in self.input_columns], info

        stream = run.stream(self)
        for result in self._results(run, task, stream.key, inputs()):
            start, columns = starts.pop(0)
            if isinstance(result, SampleFailure):
                raise result.as_error("batch", self._location) from result.cause
            values = dict(zip(self.output_columns, result, strict=True))
            for name in self._kept:
                values[name] = list(columns[name])
            yield tuple([self._column(values[name], name, start) for name in self._names])

    def _column(self, values: Any, name: str, start: int) -> np.ndarray:
        if isinstance(values, np.ndarray):
            return values
        if not values:
            raise ShapeError(
                "batch", message=f"per_batch_map gave no rows for column {name!r}", location=self._location
            )
        return stack(values, name, "batch", start, self._location)

    def _results(self, run: Run, task: _PerBatch, key: int, inputs: Iterable[Any]) -> Iterator[Any]:
        workers = self.num_parallel_workers or 1
        if workers == 1 or run.inline:
            return (attempt(task, key, number, value) for number, value in enumerate(inputs))
        if self.python_multiprocessing:
            return in_order(run.pool(self, lambda: ProcessPool(task, workers, "batch")), key, inputs)
        return in_order(run.pool(self, lambda: ThreadPool(task, workers)), key, inputs)


def arrange(present: list[str], inputs: list[str], outputs: list[str]) -> list[str]:
    """Order of the columns after ``inputs`` have become ``outputs``.

    The same number of them takes the places of the inputs; otherwise they come first.
    """
    if len(inputs) == len(outputs):
        becomes = dict(zip(inputs, outputs, strict=True))
        return [becomes.get(name, name) for name in present]
    return [*outputs, *(name for name in present if name not in inputs)]


PadInfo = dict[str, tuple[Any, Any]]


def check_pad_info(where: str, pad_info: Any, present: list[str]) -> PadInfo | None:
    """``pad_info`` with an entry for each column that is to be padded, or None."""
    if pad_info is None:
        return None
    if not isinstance(pad_info, dict):
        raise ArgumentTypeError(where, "pad_info", got=repr(pad_info), takes="a dict from column to (shape, value)")
    if not pad_info:
        return {name: (None, None) for name in present}
    arguments.known_columns(where, "pad_info", pad_info, present)
    for name, entry in pad_info.items():
        if not isinstance(entry, tuple) or len(entry) != 2:
            raise ArgumentTypeError(where, "pad_info", got=f"{entry!r} for column {name!r}", takes="(shape, value)")
        shape = entry[0]
        if shape is None:
            continue
        if not isinstance(shape, (list, tuple)):
            raise ArgumentTypeError(
                where, "pad_info", got=f"shape {shape!r} for column {name!r}", takes="a list of lengths, or None"
            )
        for length in shape:
            if length is not None:
                arguments.integer(where, "pad_info", length, -1)
                if length == 0:
                    raise ArgumentValueError(
                        where, "pad_info", got=f"a length of 0 for column {name!r}", takes="1 or more"
                    )
    return dict(pad_info)


def pad_stack(
    values: Sequence[np.ndarray],
    column: str,
    entry: tuple[Any, Any],
    where: str,
    first: int,
    location: SourceLocation | None,
) -> np.ndarray:
    """Stack the values of one column, padded (or cut) to one shape."""
    shape, fill = entry
    ndim, dtype = values[0].ndim, values[0].dtype
    for number, value in enumerate(values):
        if value.ndim != ndim or (value.dtype != dtype and not value.dtype.kind == dtype.kind in "US"):
            raise ShapeError(
                where, message=f"rows of column {column!r} cannot be padded to one shape: row {first} has "
                f"{describe(values[0])}, row {first + number} has {describe(value)}", location=location,
            )  # fmt: skip
    if shape is not None and len(shape) != ndim:
        raise ShapeError(
            where, "pad_info", got=f"shape {list(shape)} for column {column!r}", takes=f"{ndim} lengths, as row "
            f"{first} has {describe(values[0])}", location=location,
        )  # fmt: skip
    longest = [max(v.shape[axis] for v in values) for axis in range(ndim)]
    wanted = longest if shape is None else [
        longest[axis] if length in (None, -1) else length for axis, length in enumerate(shape)
    ]  # fmt: skip
    if dtype.kind in "US":
        default: Any = "" if dtype.kind == "U" else b""
        fill = default if fill is None else fill
        if not isinstance(fill, (str, bytes)):
            raise ArgumentTypeError(
                where, "pad_info", got=f"value {fill!r} for column {column!r} of strings", takes="a string"
            )
        fill = fill.encode() if dtype.kind == "S" and isinstance(fill, str) else fill
        dtype = np.result_type(np.asarray(fill), *values)
    elif isinstance(fill, (str, bytes)):
        raise ArgumentTypeError(where, "pad_info", got=f"value {fill!r} for column {column!r}", takes="a number")
    stacked = np.full((len(values), *wanted), 0 if fill is None else fill, dtype)
    for i, value in enumerate(values):
        part = tuple(slice(0, min(a, b)) for a, b in zip(value.shape, wanted, strict=True))
        place: tuple[Any, ...] = (i, *part)
        stacked[place] = value[part]
    return stacked


class PaddedBatchDataset(_Batches):
    """The result of :meth:`Dataset.padded_batch`."""

    def __init__(
        self,
        input_dataset: Dataset,
        batch_size: BatchSize,
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        pad_info: PadInfo | None = None,
    ) -> None:
        super().__init__("padded_batch", input_dataset, batch_size, drop_remainder, num_parallel_workers)
        self.pad_info = check_pad_info("padded_batch", pad_info, input_dataset._columns())

    def _fresh(self) -> bool:
        return True

    def _rows(self, run: Run) -> Iterator[Row]:
        for start, _, rows in self._groups(run):
            yield _padded(rows, self._columns(), self.pad_info, "padded_batch", start, self._location)


def _padded(
    rows: list[Row], names: list[str], pad_info: PadInfo | None, where: str, first: int, location: SourceLocation | None
) -> Row:
    made = []
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        if pad_info is not None and name in pad_info:
            made.append(pad_stack(values, name, pad_info[name], where, first, location))
        else:
            made.append(stack(values, name, where, first, location))
    return tuple(made)


class BucketBatchByLengthDataset(Dataset):
    """The result of :meth:`Dataset.bucket_batch_by_length`."""

    def __init__(
        self,
        input_dataset: Dataset,
        column_names: str | list[str],
        bucket_boundaries: list[int],
        bucket_batch_sizes: list[int],
        element_length_function: Callable[..., int] | None = None,
        pad_info: PadInfo | None = None,
        pad_to_bucket_boundary: bool = False,
        drop_remainder: bool = False,
    ) -> None:
        super().__init__((input_dataset,))
        where = "bucket_batch_by_length"
        present = input_dataset._columns()
        self.column_names = arguments.names(where, "column_names", column_names)
        arguments.known_columns(where, "column_names", self.column_names, present)
        for name, value in (("bucket_boundaries", bucket_boundaries), ("bucket_batch_sizes", bucket_batch_sizes)):
            if not isinstance(value, (list, tuple)) or not value:
                raise ArgumentTypeError(where, name, got=repr(value), takes="a list of positive ints")
            for item in value:
                arguments.integer(where, name, item, 1)
        if any(a >= b for a, b in itertools.pairwise(bucket_boundaries)):
            raise ArgumentValueError(where, "bucket_boundaries", got=str(bucket_boundaries), takes="increasing ints")
        if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
            raise ArgumentValueError(
                where, "bucket_batch_sizes", got=f"{len(bucket_batch_sizes)} sizes",
                takes=f"{len(bucket_boundaries) + 1}, one more than boundaries",
            )  # fmt: skip
        if element_length_function is None and len(self.column_names) != 1:
            raise ArgumentValueError(
                where, "element_length_function", got="None", takes="a function, as there are several columns"
            )
        if element_length_function is not None and not callable(element_length_function):
            raise ArgumentTypeError(
                where, "element_length_function", got=repr(element_length_function), takes="a function"
            )
        self.bucket_boundaries, self.bucket_batch_sizes = list(bucket_boundaries), list(bucket_batch_sizes)
        self.element_length_function = element_length_function
        self.pad_info = check_pad_info(where, {} if pad_info is None else pad_info, present)
        self.pad_to_bucket_boundary = arguments.boolean(where, "pad_to_bucket_boundary", pad_to_bucket_boundary)
        self.drop_remainder = arguments.boolean(where, "drop_remainder", drop_remainder)

    def _length(self, values: list[np.ndarray], sample: int) -> int:
        try:
            if self.element_length_function is None:
                return len(values[0])
            return int(self.element_length_function(*values))
        except Exception as error:
            name = "element_length_function"
            failure = SampleFailure(name, name, tuple(self.column_names), sample, error)
            raise failure.as_error("bucket_batch_by_length", self._location) from error

    def _rows(self, run: Run) -> Iterator[Row]:
        names = self._columns()
        places = [names.index(name) for name in self.column_names]
        buckets: list[list[Row]] = [[] for _ in self.bucket_batch_sizes]
        firsts = [0] * len(buckets)
        for sample, row in enumerate(self.children[0]._open(run)):
            number = bisect.bisect_right(self.bucket_boundaries, self._length([row[i] for i in places], sample))
            if not buckets[number]:
                firsts[number] = sample
            buckets[number].append(row)
            if len(buckets[number]) == self.bucket_batch_sizes[number]:
                yield self._batch(buckets[number], number, firsts[number])
                buckets[number] = []
        if not self.drop_remainder:
            for number, rows in enumerate(buckets):
                if rows:
                    yield self._batch(rows, number, firsts[number])

    def _batch(self, rows: list[Row], number: int, first: int) -> Row:
        where, info = "bucket_batch_by_length", self.pad_info or {}
        if self.pad_to_bucket_boundary:
            if number == len(self.bucket_boundaries):
                raise ArgumentValueError(
                    where, "pad_to_bucket_boundary", got="a row longer than the last boundary", takes="shorter rows",
                    location=self._location,
                )  # fmt: skip
            length = self.bucket_boundaries[number] - 1
            info = {
                name: ([length if n in (None, -1) else n for n in shape or [None] * row.ndim], fill)
                for name, row in zip(self._columns(), rows[0], strict=True)
                if name in info
                for shape, fill in [info[name]]
            }
        return _padded(rows, self._columns(), info, where, first, self._location)

    def _size(self) -> int | None:
        return None
