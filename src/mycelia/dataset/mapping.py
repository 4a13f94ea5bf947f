"""``map``: operations on columns, sample by sample in line, in threads or in processes, or on whole blocks.

A transform that says so (``batches``) gives the same values on stacked samples as on each of them. Where
all operations are such and the rows below come as a :class:`~mycelia.dataset.run.Plan`, the node is a plan
itself, and a following ``batch`` computes whole batches.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.dataset import arguments, config, rows as row_values, seeds
from mycelia.dataset.batching import arrange
from mycelia.dataset.failures import SampleFailure, TransformError
from mycelia.dataset.fusion import Step, fused
from mycelia.dataset.memory import Aimed, Blocks
from mycelia.dataset.pipeline import Dataset, no_more, refuse_taken
from mycelia.dataset.rows import BadValue, Row
from mycelia.dataset.run import Plan, Run
from mycelia.dataset.transforms.base import Transform
from mycelia.dataset.workers import ProcessPool, ThreadPool, attempt, in_order


class MapTask:
    """A list of operations as a task of workers.

    Args:
        operations: functions and transforms.
        inputs: names of the columns the first one is given.
        outputs: how many columns the last one returns.
    """

    def __init__(self, operations: list[Callable[..., Any]], inputs: list[str], outputs: int) -> None:
        self.operations, self.inputs, self.outputs = operations, inputs, outputs
        self.steps = fused(operations)
        # A function may be marked with `transforms.not_random`; of any other one nothing is known.
        self.seeded = any(getattr(op, "random", True) for op in operations)
        self.foreign = any(getattr(op, "foreign", True) and getattr(op, "random", True) for op in operations)

    def run(self, key: int, sample: int, value: Row | Aimed, isolated: bool) -> Row:
        """The output columns for one sample."""
        row, place = (value.row, value.place) if isinstance(value, Aimed) else (value, None)
        if not self.seeded:
            return self._apply(row, sample, place)
        with seeds.of_sample(seeds.Stream(key), sample):
            if isolated and self.foreign:
                seeds.reseed_globals()
            return self._apply(row, sample, place)

    def _apply(self, row: Row, sample: int, place: np.ndarray | None) -> Row:
        values: tuple[Any, ...] = row
        done = 0
        try:
            for step in self.steps:
                if type(step) is Step:
                    last = done + step.length == len(self.operations)
                    made = step.apply(values, place if last else None)
                    if made is not None:
                        values, done = (made,), done + step.length
                        continue
                for operation in self.operations[done : done + (step.length if type(step) is Step else 1)]:
                    result = operation(*values)
                    values = result if type(result) is tuple else (result,)
                    done += 1
            if len(values) != self.outputs:
                raise BadValue(f"gave {len(values)} value(s) for {self.outputs} output column(s)")
            row = tuple([v if type(v) is np.ndarray and v.dtype.kind != "O" else row_values.column(v) for v in values])
        except Exception as error:
            raise self._failure(min(done, len(self.operations) - 1), sample, error) from error
        if place is not None and row[0] is not place and row[0].shape == place.shape and row[0].dtype == place.dtype:
            place[...] = row[0]
            row = (place,)
        return row

    def _failure(self, step: int, sample: int, error: BaseException) -> SampleFailure:
        name = operation_name(self.operations[step])
        total = len(self.operations)
        action = f"operation {name!r}" if total == 1 else f"operation {name!r} ({step + 1} of {total})"
        return SampleFailure(action, name, tuple(self.inputs), sample, error)

    def report(self, error: BaseException, sample: int) -> SampleFailure:
        """The failure that ``run`` raised."""
        return error if isinstance(error, SampleFailure) else self._failure(0, sample, error)

    def on_block(self, block: np.ndarray) -> np.ndarray:
        """The output column for stacked samples."""
        done = 0
        for step in self.steps:
            made = None
            if type(step) is Step:
                last = done + step.length == len(self.operations)
                made = step.on_block(block, last)
            operations = self.operations[done : done + (step.length if type(step) is Step else 1)]
            done += len(operations)
            if made is not None:
                block = made
                continue
            for operation in operations:
                assert isinstance(operation, Transform)
                block = operation.on_batch(block)
        return block


def operation_name(operation: Any) -> str:
    """What an operation is called in messages."""
    while isinstance(operation, functools.partial):
        operation = operation.func
    name = getattr(operation, "__qualname__", None) or type(operation).__qualname__
    return str(name).rpartition("<locals>.")[2]


def check_operations(where: str, operations: Any) -> list[Callable[..., Any]]:
    """One operation or a list of them, as a list."""
    found = list(operations) if isinstance(operations, (list, tuple)) else [operations]
    if not found:
        raise ArgumentValueError(where, "operations", got="an empty list", takes="at least one function or transform")
    for operation in found:
        if not callable(operation):
            raise ArgumentTypeError(where, "operations", got=repr(operation), takes="functions and transforms")
        if isinstance(operation, type):
            raise ArgumentTypeError(
                where, "operations", got=f"the class {operation.__name__}", takes="functions and transforms",
                hint=f"make one: {operation.__name__}(...)",
            )  # fmt: skip
    return found


class MapDataset(Dataset):
    """The result of :meth:`Dataset.map`."""

    def __init__(
        self,
        input_dataset: Dataset,
        operations: Any = None,
        input_columns: str | list[str] | None = None,
        output_columns: str | list[str] | None = None,
        num_parallel_workers: int | None = None,
        python_multiprocessing: bool = False,
        cache: Any = None,
        callbacks: Any = None,
        max_rowsize: Any = None,
        offload: bool | None = None,
    ) -> None:
        super().__init__((input_dataset,), num_parallel_workers)
        self.operations = check_operations("map", operations)
        self.python_multiprocessing = arguments.boolean("map", "python_multiprocessing", python_multiprocessing)
        no_more("map", "cache", cache)
        no_more("map", "callbacks", callbacks)
        no_more("map", "offload", offload or None)
        self.max_rowsize = max_rowsize
        present = input_dataset._columns()
        self._implicit = not input_columns
        self.input_columns = arguments.names("map", "input_columns", input_columns) if input_columns else present[:1]
        arguments.known_columns("map", "input_columns", self.input_columns, present)
        self.output_columns = self.input_columns
        if output_columns:
            self.output_columns = arguments.names("map", "output_columns", output_columns)
        kept = [name for name in present if name not in self.input_columns]
        refuse_taken("map", "output_columns", self.output_columns, kept)
        self._names = arrange(present, self.input_columns, self.output_columns)
        self._places = [present.index(name) for name in self.input_columns]
        # Where each column comes from: the outputs, then the input row.
        outputs = {name: i for i, name in enumerate(self.output_columns)}
        self._layout = [outputs[n] if n in outputs else len(outputs) + present.index(n) for n in self._names]
        self._task = MapTask(self.operations, self.input_columns, len(self.output_columns))

    def _columns(self) -> list[str]:
        return self._names

    def _light(self) -> bool:
        return not any(self._heavy(op) for op in self.operations) and super()._light()

    @staticmethod
    def _heavy(operation: Any) -> bool:
        return not isinstance(operation, Transform) or operation.heavy

    # Blocks.

    def _plannable(self, run: Run) -> bool:
        return (
            len(self.input_columns) == len(self.output_columns) == 1
            and all(isinstance(op, Transform) and op.batches for op in self.operations)
            and not self.python_multiprocessing
            and not config.debug_hooks()
            and config.get_error_samples_mode() == config.ErrorSamplesMode.RETURN
            and self.children[0]._plannable(run)
        )

    def _plan(self, run: Run) -> Plan:
        plan = self.children[0]._plan(run)
        place = self._places[0]

        def gather(wanted: np.ndarray) -> Row:
            row = plan.gather(wanted)
            try:
                made = self._task.on_block(row[place])
            except Exception as error:
                blamed = self._blame(row[place], wanted)
                raise blamed from (blamed.__cause__ or error)
            return (*row[:place], made, *row[place + 1 :])

        return Plan(plan.length, gather)

    def _blame(self, block: np.ndarray, numbers: np.ndarray) -> TransformError:
        """The error for the first sample of a block that fails by itself."""
        for number, value in zip(numbers.tolist(), block, strict=True):
            result = attempt(self._task, 0, number, (value,))
            if isinstance(result, SampleFailure):
                return self._error(result)
        return TransformError("map", message="operations fail on stacked samples only", location=self._location)

    def _error(self, failure: SampleFailure) -> TransformError:
        hint = None
        others = len(self.children[0]._columns()) - 1
        if self._implicit and others and isinstance(failure.cause, TypeError) and "argument" in str(failure.cause):
            hint = "without input_columns, operations are given the first column only"
        return failure.as_error("map", self._location, hint)

    # Rows.

    def _rows_into(self, run: Run, blocks: Callable[[str], Blocks]) -> Iterator[Row]:
        in_turn = config.get_error_samples_mode() == config.ErrorSamplesMode.RETURN and not config.debug_hooks()
        if len(self.output_columns) > 1 or self.python_multiprocessing or not in_turn:
            return self._open(run)
        return self._made(run, blocks(self.output_columns[0]))

    def _rows(self, run: Run) -> Iterator[Row]:
        return self._made(run, None)

    def _made(self, run: Run, blocks: Blocks | None) -> Iterator[Row]:
        hooks, mode = config.debug_hooks(), config.get_error_samples_mode()
        good: Row | None = None
        owed = 0
        for row, result in self._results(run, blocks):
            if isinstance(result, SampleFailure):
                if mode == config.ErrorSamplesMode.RETURN:
                    error = self._error(result)
                    raise error from error.__cause__
                if mode == config.ErrorSamplesMode.REPLACE:
                    if good is None:
                        owed += 1
                    else:
                        yield good
                continue
            both = result + row
            made = tuple([both[i] for i in self._layout])
            for hook in hooks:
                hook(made)
            if mode == config.ErrorSamplesMode.REPLACE:
                for _ in range(owed):
                    yield made
                good, owed = made, 0
            yield made

    def _results(self, run: Run, blocks: Blocks | None) -> Iterator[tuple[Row, Any]]:
        """Each row of the input with what the operations make of it, or a failure."""
        places, task = self._places, self._task
        key = run.stream(self).key
        make = self._pool_maker(run)

        def aimed(row: Row, sample: int) -> Row | Aimed:
            given = tuple([row[i] for i in places])
            place = blocks.place(sample) if blocks is not None else None
            return given if place is None else Aimed(given, place)

        if make is None:
            for sample, row in enumerate(self.children[0]._open(run)):
                yield row, attempt(task, key, sample, aimed(row, sample))
            return
        waiting: collections.deque[Row] = collections.deque()

        def inputs() -> Iterator[Row | Aimed]:
            for sample, row in enumerate(self.children[0]._open(run)):
                waiting.append(row)
                yield aimed(row, sample)

        for result in in_order(run.pool(self, make), key, inputs()):
            yield waiting.popleft(), result

    def _pool_maker(self, run: Run) -> Callable[[], Any] | None:
        if run.inline:
            return None
        workers, task = self.num_parallel_workers, self._task
        if self.python_multiprocessing:
            count = workers or config.get_num_parallel_workers()
            return (lambda: ProcessPool(task, count, "map")) if count > 1 else None
        if workers is None:
            # Threads by themselves only where they help and no user code would notice them.
            built_in = all(isinstance(op, Transform) and not op.foreign for op in self.operations)
            worth = built_in and any(self._heavy(op) for op in self.operations)
            workers = config.get_num_parallel_workers() if worth else 1
        count = workers
        return (lambda: ThreadPool(task, count)) if count > 1 else None
