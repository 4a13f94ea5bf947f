"""Iterators over a pipeline: epochs, preparation ahead in a thread, tensors at the edge.

Where the rows cost something, a thread makes them while the caller works, tensors on the device included, and keeps a
bounded number of them ready. Random decisions are keyed (:mod:`mycelia.dataset.seeds`) and an epoch begins when the
caller asks for its first row, so rows and their order are those of the caller's own thread. An error of the pipeline
is raised where the row that failed would have come.
"""

from __future__ import annotations

import collections
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mycelia.core.errors import ArgumentValueError, StateError
from mycelia.dataset import arguments, config
from mycelia.dataset.pipeline import Dataset, _close
from mycelia.dataset.rows import Row
from mycelia.dataset.run import Run

if TYPE_CHECKING:
    from mycelia.tensor import Tensor

_BYTES_AHEAD = 256 * 2**20
_JOIN_SECONDS = 0.5


class Ahead:
    """Rows that a thread prepares while the caller works.

    Args:
        start: makes the iterator of rows; called in the thread.
        depth: how many rows are kept ready at most, and at most 256 MiB of them.
        finish: what to make of each row, in the thread; None leaves it.
    """

    def __init__(
        self, start: Callable[[], Iterator[Row]], depth: int, finish: Callable[[Row], Any] | None = None
    ) -> None:
        self._state = _Shared(depth)
        self._thread = threading.Thread(
            target=_produce, args=(self._state, start, finish), name="mycelia-dataset-ahead", daemon=True
        )
        self._thread.start()

    def __iter__(self) -> Ahead:
        return self

    def __next__(self) -> Any:
        state = self._state
        with state.change:
            while not state.ready and not state.ended:
                state.change.wait()
            if state.ready:
                row, size = state.ready.popleft()
                state.bytes -= size
                state.change.notify_all()
                return row
            error, state.error = state.error, None
        if error is not None:
            raise error
        raise StopIteration

    def close(self) -> None:
        """End the thread; wait a moment for it, unless it is the caller."""
        state = self._state
        with state.change:
            state.stopped = state.ended = True
            state.ready.clear()
            state.change.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_SECONDS)


class _Shared:
    def __init__(self, depth: int) -> None:
        self.change = threading.Condition()
        self.ready: collections.deque[tuple[Any, int]] = collections.deque()
        self.depth, self.bytes = depth, 0
        self.ended = self.stopped = False
        self.error: BaseException | None = None


def _produce(state: _Shared, start: Callable[[], Iterator[Row]], finish: Callable[[Row], Any] | None) -> None:
    rows: Iterator[Row] = iter(())
    try:
        rows = start()
        for row in rows:
            size = sum(column.nbytes for column in row)
            made = row if finish is None else finish(row)
            del row  # the caller's from here on
            with state.change:
                while not state.stopped and state.ready and (
                    len(state.ready) >= state.depth or state.bytes + size > _BYTES_AHEAD
                ):  # fmt: skip
                    state.change.wait()
                if state.stopped:
                    return
                state.ready.append((made, size))
                state.bytes += size
                state.change.notify_all()
            del made
    except BaseException as error:  # it is raised where the rows are read
        state.error = error
    finally:
        _close(rows)
        with state.change:
            state.ended = True
            state.change.notify_all()


def _finished(rows: Iterator[Row], finish: Callable[[Row], Any]) -> Iterator[Any]:
    try:
        for row in rows:
            yield finish(row)
    finally:
        _close(rows)


class _Session:
    """What an iterator owns and its finalizer ends."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.rows: Any = None

    def end_pass(self) -> None:
        rows, self.rows = self.rows, None
        if rows is not None:
            _close(rows)

    def end(self) -> None:
        self.run.close()
        rows, self.rows = self.rows, None
        if isinstance(rows, Ahead):
            rows.close()


def tensor_of(array: np.ndarray, fresh: bool) -> Tensor:
    """A tensor of a column; it shares the memory if that is ``fresh``, so that nobody else can change it."""
    from mycelia.tensor import Tensor

    if not fresh or array.dtype.kind not in "biufc" or not array.dtype.isnative:
        return Tensor(array)
    import jax

    from mycelia.tensor.mode import is_staging
    from mycelia.tensor.tensor import wrap

    return Tensor(array) if is_staging() else wrap(jax.device_put(array))


class _Finish:
    """What an iterator makes of the columns of a row: a list of tensors or of arrays.

    Args:
        places: which columns, in order; None for all.
        numpy: leave them arrays.
        fresh: the arrays belong to nobody else.
    """

    def __init__(self, places: list[int] | None, numpy: bool, fresh: bool) -> None:
        self.places, self.numpy, self.fresh = places, numpy, fresh

    def __call__(self, row: Row) -> list[Any]:
        chosen = list(row) if self.places is None else [row[i] for i in self.places]
        if self.numpy:
            return chosen
        return [column if column.dtype.kind in "US" else tensor_of(column, self.fresh) for column in chosen]


class _DatasetIterator:
    """What the iterators share; see :meth:`Dataset.create_dict_iterator`."""

    _method = "create_dict_iterator"

    def __init__(self, dataset: Dataset, num_epochs: int, output_numpy: bool, do_copy: bool) -> None:
        where = self._method
        number = arguments.integer(where, "num_epochs", num_epochs)
        if number == 0 or number < -1:
            raise ArgumentValueError(where, "num_epochs", got=str(number), takes="-1 or a positive int")
        self._dataset, self._epochs, self._begun = dataset, number, 0
        self._over = ""
        self._numpy = arguments.boolean(where, "output_numpy", output_numpy)
        self._places: list[int] | None = None
        self._always_ahead = False
        arguments.boolean(where, "do_copy", do_copy)
        self._session = _Session(Run(dataset))
        self._finalizer = weakref.finalize(self, self._session.end)

    def __iter__(self) -> Any:
        return self

    def prepare_ahead(self) -> None:
        """Make rows in a thread from the next epoch on, however little they cost; for loops that must not wait."""
        self._always_ahead = True

    def _next_row(self) -> list[Any]:
        session = self._session
        if session.rows is None:
            self._start_epoch()
        try:
            row: list[Any] = next(session.rows)
        except StopIteration:
            session.end_pass()
            if self._begun == self._epochs:
                self._end(f"has given its {self._epochs} epoch(s)")
            raise
        except BaseException:
            self._end("has ended with an error")
            raise
        return row

    def _start_epoch(self) -> None:
        if self._over:
            raise StateError(
                self._method,
                message=f"the iterator {self._over}",
                hint="make a new iterator, or make it with more num_epochs (-1 for any number)",
            )
        session, dataset = self._session, self._dataset
        run = session.run
        run.start_epoch()
        self._begun += 1
        finish = _Finish(self._places, self._numpy, dataset._fresh())
        if run.inline or (dataset._light() and not self._always_ahead) or self._staging():
            session.rows = _finished(dataset._open(run), finish)
        else:
            session.rows = Ahead(lambda: dataset._open(run), config.get_prefetch_size(), finish)

    def _staging(self) -> bool:
        """Whether the tensors become constants of a graph, which the thread that builds it has to make."""
        if self._numpy:
            return False
        from mycelia.tensor.mode import is_staging

        return is_staging()

    def get_col_names(self) -> list[str]:
        """Names of the columns, in order."""
        return self._dataset.get_col_names()

    def _end(self, how: str) -> None:
        self._over = how
        self._finalizer()

    def stop(self) -> None:
        """End the iterator, and the threads and processes behind it."""
        self._end(self._over or "has been stopped")

    def release(self) -> None:
        """As :meth:`stop`."""
        self.stop()


class DictIterator(_DatasetIterator):
    """Gives each row as a dict from column name to tensor; see :meth:`Dataset.create_dict_iterator`."""

    def __init__(
        self, dataset: Dataset, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> None:
        super().__init__(dataset, num_epochs, output_numpy, do_copy)
        self._names = dataset.get_col_names()

    def __next__(self) -> dict[str, Any]:
        return dict(zip(self._names, self._next_row(), strict=True))


class TupleIterator(_DatasetIterator):
    """Gives each row as a list of tensors; see :meth:`Dataset.create_tuple_iterator`."""

    _method = "create_tuple_iterator"

    def __init__(
        self,
        dataset: Dataset,
        columns: str | list[str] | None = None,
        num_epochs: int = -1,
        output_numpy: bool = False,
        do_copy: bool = False,
    ) -> None:
        super().__init__(dataset, num_epochs, output_numpy, do_copy)
        if columns:
            present = dataset.get_col_names()
            wanted = arguments.names(self._method, "columns", columns)
            arguments.known_columns(self._method, "columns", wanted, present)
            self._places = [present.index(name) for name in wanted]

    def __next__(self) -> list[Any]:
        return self._next_row()
