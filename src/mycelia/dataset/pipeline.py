"""The base of all datasets: a node of a pipeline, with the methods that chain further nodes.

A pipeline is a tree of nodes; each call of a method makes a new node over the old one and changes
nothing. Nodes know their columns from the start, so wrong names are refused where they are written. Rows
are made when an iterator asks for them (see :mod:`mycelia.dataset.run`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    SourceLocation,
    StateError,
    UnsupportedError,
    user_location,
)
from mycelia.dataset import arguments
from mycelia.dataset.memory import Blocks
from mycelia.dataset.rows import Row
from mycelia.dataset.run import Plan, Run

if TYPE_CHECKING:
    from mycelia.dataset.iterators import DictIterator, TupleIterator


class Dataset:
    """A node of a pipeline; see the datasets (:class:`~mycelia.dataset.GeneratorDataset`, ...).

    Iterating over it gives one pass of lists of tensors, one tensor per column.

    >>> import mycelia.dataset as ds
    >>> data = ds.NumpySlicesDataset({"x": [1, 2, 3]}, shuffle=False).map(lambda x: x * 10).batch(2)
    >>> [row["x"].tolist() for row in data.create_dict_iterator(num_epochs=1, output_numpy=True)]
    [[10, 20], [30]]
    """

    def __init__(self, children: Sequence[Dataset] = (), num_parallel_workers: int | None = None) -> None:
        where = type(self).__name__
        self.children: tuple[Dataset, ...] = tuple(children)
        self.num_parallel_workers = arguments.optional_integer(where, "num_parallel_workers", num_parallel_workers, 1)
        self._location: SourceLocation | None = user_location()
        self._frozen_seed: int | None = None
        self._epochs = (-1, 0)
        self._count: int | None = None
        self._first: list[np.ndarray] | None = None

    # What a node implements.

    def _columns(self) -> list[str]:
        """Names of the columns, in order."""
        return self.children[0]._columns()

    def _rows(self, run: Run) -> Iterator[Row]:
        """One pass over the rows."""
        raise UnsupportedError(type(self).__name__, message="this dataset gives no rows")

    def _plannable(self, run: Run) -> bool:
        """Whether :meth:`_plan` can be asked; says the same throughout a run."""
        return False

    def _plan(self, run: Run) -> Plan:
        """One pass over the rows, as a plan."""
        raise UnsupportedError(type(self).__name__, message="this dataset has no plan")

    def _size(self) -> int | None:
        """The number of rows of one pass if it can be told without making them."""
        return self.children[0]._size()

    def _light(self) -> bool:
        """Whether rows cost so little that a thread that prepares them ahead would cost more."""
        return all(child._light() for child in self.children)

    # What nodes and iterators use.

    def _open(self, run: Run) -> Iterator[Row]:
        """One pass over the rows, by the faster way."""
        if self._plannable(run):
            return self._plan(run).rows()
        return self._rows(run)

    def _rows_into(self, run: Run, blocks: Callable[[str], Blocks]) -> Iterator[Row]:
        return self._open(run)  # values of a column may be written where ``blocks`` of its name says

    def _fresh(self) -> bool:
        return False  # whether the arrays of a row belong to nobody else, so that a tensor may share their memory

    def _next_epoch(self, generation: int) -> int:
        before, count = self._epochs
        number = count if before == generation else 0
        self._epochs = generation, number + 1
        return number

    def _first_row(self) -> list[np.ndarray]:
        """The first row, without counting an epoch."""
        if self._first is None:
            run = Run(self, counted=False)
            run.looking = True
            run.start_epoch()
            rows = self._open(run)
            try:
                row = next(rows, None)
            finally:
                _close(rows)
                run.close()
            if row is None:
                raise StateError(type(self).__name__, message="the dataset has no rows, so their shapes are unknown")
            self._first = list(row)
        return self._first

    # Operations.

    def map(
        self,
        operations: Any,
        input_columns: str | list[str] | None = None,
        output_columns: str | list[str] | None = None,
        num_parallel_workers: int | None = None,
        python_multiprocessing: bool = False,
        cache: Any = None,
        callbacks: Any = None,
        max_rowsize: Any = None,
        offload: bool | None = None,
    ) -> MapDataset:
        """Apply operations to columns of every row.

        Args:
            operations: a function or transform, or a list of them; each is given what the one before
                returned. A function that returns a tuple gives several columns.
            input_columns: what the first operation is given; the first column by default.
            output_columns: names of what the last one returns; by default the names of the input columns.
                If there are more or fewer of them, they come first and the untouched columns follow.
            num_parallel_workers: workers that share the samples; their number never changes the result.
                By default expensive built-in transforms are given threads, and all else runs in line.
            python_multiprocessing: use worker processes rather than threads.
            max_rowsize: accepted and not needed; rows of any size pass.

        Raises:
            ArgumentValueError: an unknown column, or output names that are there already.
            ArgumentTypeError: an operation that cannot be called.
            UnsupportedError: ``cache`` or ``callbacks`` is given.
            TransformError: while iterating, when an operation fails; it names operation, column and sample.

        >>> import mycelia.dataset as ds
        >>> data = ds.NumpySlicesDataset({"x": [1, 2]}, shuffle=False)
        >>> data = data.map(lambda x: (x, x * x), output_columns=["x", "square"])
        >>> [(int(x), int(y)) for x, y in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [(1, 1), (2, 4)]
        """
        from mycelia.dataset.mapping import MapDataset

        return MapDataset(
            self, operations, input_columns, output_columns, num_parallel_workers, python_multiprocessing, cache,
            callbacks, max_rowsize, offload,
        )  # fmt: skip

    def batch(
        self,
        batch_size: int | Callable[[Any], int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        per_batch_map: Callable[..., Any] | None = None,
        input_columns: str | list[str] | None = None,
        output_columns: str | list[str] | None = None,
        python_multiprocessing: bool = False,
        max_rowsize: Any = None,
    ) -> BatchDataset:
        """Stack rows along a new first axis.

        Args:
            batch_size: rows per batch, or a function of a ``BatchInfo`` that gives it for each batch.
            drop_remainder: leave out a last batch that is smaller.
            num_parallel_workers: workers that run ``per_batch_map``.
            per_batch_map: a function of one list of arrays per input column and a ``BatchInfo``; returns
                one list of arrays, or one stacked array, per output column.
            input_columns: what ``per_batch_map`` is given; all columns by default.
            output_columns: names of what it returns; the names of the input columns by default.
            python_multiprocessing: run ``per_batch_map`` in worker processes.
            max_rowsize: accepted and not needed.

        Raises:
            ArgumentValueError, ArgumentTypeError: a batch size that is not a positive int.
            ShapeError: while iterating, when rows to be stacked differ in shape.
            DTypeError: while iterating, when they differ in dtype.

        >>> import mycelia.dataset as ds
        >>> data = ds.NumpySlicesDataset(list(range(5)), shuffle=False).batch(2, drop_remainder=True)
        >>> data.get_dataset_size()
        2
        """
        from mycelia.dataset.batching import BatchDataset

        return BatchDataset(
            self, batch_size, drop_remainder, num_parallel_workers, per_batch_map, input_columns, output_columns,
            python_multiprocessing, max_rowsize,
        )  # fmt: skip

    def padded_batch(
        self,
        batch_size: int | Callable[[Any], int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        pad_info: dict[str, tuple[Any, Any]] | None = None,
    ) -> PaddedBatchDataset:
        """Stack rows after padding them to one shape.

        Args:
            batch_size, drop_remainder, num_parallel_workers: as for :meth:`batch`.
            pad_info: for a column, the shape to pad to (None or -1 for the longest of the batch; longer
                rows are cut) and the value to pad with; ``{}`` pads every column to the longest with
                zeros, None pads nothing.

        Raises:
            ArgumentValueError: an unknown column, or a shape of another rank.

        >>> import numpy as np
        >>> import mycelia.dataset as ds
        >>> data = ds.GeneratorDataset([np.ones(1), np.ones(2)], ["x"], shuffle=False)
        >>> data = data.padded_batch(2, pad_info={"x": ([3], 7)})
        >>> next(data.create_dict_iterator(output_numpy=True))["x"]
        array([[1., 7., 7.],
               [1., 1., 7.]])
        """
        from mycelia.dataset.batching import PaddedBatchDataset

        return PaddedBatchDataset(self, batch_size, drop_remainder, num_parallel_workers, pad_info)

    def bucket_batch_by_length(
        self,
        column_names: str | list[str],
        bucket_boundaries: list[int],
        bucket_batch_sizes: list[int],
        element_length_function: Callable[..., int] | None = None,
        pad_info: dict[str, tuple[Any, Any]] | None = None,
        pad_to_bucket_boundary: bool = False,
        drop_remainder: bool = False,
    ) -> BucketBatchByLengthDataset:
        """Collect rows of similar length, and batch each collection when it is full.

        Args:
            column_names: what ``element_length_function`` is given.
            bucket_boundaries: n increasing positive ints; bucket i holds lengths from boundary i-1 up to,
                but not including, boundary i.
            bucket_batch_sizes: n + 1 batch sizes.
            element_length_function: length of a row; by default the first axis of the one column.
            pad_info: as for :meth:`padded_batch`; by default every column is padded with zeros.
            pad_to_bucket_boundary: pad unspecified axes to the boundary less one, instead of the longest.
            drop_remainder: leave out the batches that are not full at the end.

        Raises:
            ArgumentValueError: boundaries that do not increase, or a wrong number of batch sizes.
        """
        from mycelia.dataset.batching import BucketBatchByLengthDataset

        return BucketBatchByLengthDataset(
            self, column_names, bucket_boundaries, bucket_batch_sizes, element_length_function, pad_info,
            pad_to_bucket_boundary, drop_remainder,
        )  # fmt: skip

    def shuffle(self, buffer_size: int) -> ShuffleDataset:
        """Shuffle rows through a buffer: each row given is drawn from ``buffer_size`` rows.

        Args:
            buffer_size: an int of at least 2; the number of rows shuffles completely.

        Raises:
            ArgumentTypeError, ArgumentValueError: not such an int.
        """
        from mycelia.dataset.nodes import ShuffleDataset

        return ShuffleDataset(self, buffer_size)

    def repeat(self, count: int | None = None) -> RepeatDataset:
        """Give the rows ``count`` times over; without end for -1 or None.

        Raises:
            ArgumentTypeError, ArgumentValueError: ``count`` is neither -1 nor a positive int.
        """
        from mycelia.dataset.nodes import RepeatDataset

        return RepeatDataset(self, count)

    def take(self, count: int = -1) -> TakeDataset:
        """Give the first ``count`` rows; all of them for -1.

        Raises:
            ArgumentTypeError, ArgumentValueError: ``count`` is neither -1 nor a positive int.
        """
        from mycelia.dataset.nodes import TakeDataset

        return TakeDataset(self, count)

    def skip(self, count: int) -> SkipDataset:
        """Leave out the first ``count`` rows.

        Raises:
            ArgumentTypeError, ArgumentValueError: ``count`` is not an int of at least 0.
        """
        from mycelia.dataset.nodes import SkipDataset

        return SkipDataset(self, count)

    def zip(self, datasets: Dataset | tuple[Dataset, ...]) -> ZipDataset:
        """Set the columns of other datasets beside these, as far as the shortest goes.

        Raises:
            ArgumentValueError: a column name occurs twice.
        """
        from mycelia.dataset.nodes import ZipDataset

        others = datasets if isinstance(datasets, tuple) else (datasets,)
        return ZipDataset((self, *others))

    def concat(self, datasets: Dataset | list[Dataset]) -> ConcatDataset:
        """Give the rows of other datasets, with the same columns, after these.

        Raises:
            ArgumentValueError: other column names.
        """
        from mycelia.dataset.nodes import ConcatDataset

        others = datasets if isinstance(datasets, (list, tuple)) else [datasets]
        return ConcatDataset([self, *others])

    def __add__(self, datasets: Dataset) -> ConcatDataset:
        return self.concat(datasets)

    def filter(
        self,
        predicate: Callable[..., Any],
        input_columns: str | list[str] | None = None,
        num_parallel_workers: int | None = None,
    ) -> FilterDataset:
        """Give the rows for which ``predicate`` is true.

        Args:
            predicate: a function of the input columns.
            input_columns: what it is given; all columns by default.

        Raises:
            ArgumentValueError: an unknown column.
            TransformError: while iterating, when the predicate fails or gives no truth value.

        >>> import mycelia.dataset as ds
        >>> data = ds.NumpySlicesDataset(list(range(6)), shuffle=False).filter(lambda x: x % 2 == 0)
        >>> [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [0, 2, 4]
        """
        from mycelia.dataset.nodes import FilterDataset

        return FilterDataset(self, predicate, input_columns, num_parallel_workers)

    def project(self, columns: str | list[str]) -> ProjectDataset:
        """Keep these columns, in this order.

        Raises:
            ArgumentValueError: an unknown column, or one named twice.
        """
        from mycelia.dataset.nodes import ProjectDataset

        return ProjectDataset(self, columns)

    def rename(self, input_columns: str | list[str], output_columns: str | list[str]) -> RenameDataset:
        """Give columns other names.

        Raises:
            ArgumentValueError: an unknown column, or a new name that is taken.
        """
        from mycelia.dataset.nodes import RenameDataset

        return RenameDataset(self, input_columns, output_columns)

    def split(self, sizes: Sequence[int] | Sequence[float], randomize: bool = True) -> list[Dataset]:
        """Split the rows into parts that have none in common.

        Args:
            sizes: the numbers of rows, which add up to all rows; or fractions that add up to 1.
            randomize: draw the rows of the parts at random.

        The parts are the same in every epoch. Where that takes it, shuffles before the split give one order
        in all epochs; shuffle the parts to have it change.

        Raises:
            ArgumentValueError: sizes that do not add up, or a part without rows.
        """
        from mycelia.dataset.splitting import split

        return split(self, sizes, randomize)

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Give what ``apply_func`` makes of this dataset.

        Raises:
            ArgumentTypeError: it is not a function, or does not give a dataset.
        """
        if not callable(apply_func):
            raise ArgumentTypeError("apply", "apply_func", got=repr(apply_func), takes="a function of a dataset")
        result = apply_func(self)
        if not isinstance(result, Dataset):
            raise ArgumentTypeError("apply", "apply_func", got=f"a function that gives {result!r}", takes="a dataset")
        return result

    def flat_map(self, func: Callable[[np.ndarray], Dataset]) -> FlatMapDataset:
        """Give, for every row, the rows of the dataset that ``func`` makes of its columns.

        Raises:
            ArgumentTypeError: ``func`` is not a function, or, while iterating, gives no dataset.
        """
        from mycelia.dataset.nodes import FlatMapDataset

        return FlatMapDataset(self, func)

    # Iterators.

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> DictIterator:
        """An iterator over dicts from column name to tensor; each pass of a ``for`` loop is an epoch.

        Args:
            num_epochs: how many passes it allows; -1 for any number.
            output_numpy: give NumPy arrays instead of tensors.
            do_copy: accepted and not needed; the arrays are the caller's own.

        Raises:
            ArgumentTypeError, ArgumentValueError: ``num_epochs`` is neither -1 nor a positive int.
        """
        from mycelia.dataset.iterators import DictIterator

        return DictIterator(self, num_epochs, output_numpy, do_copy)

    def create_tuple_iterator(
        self,
        columns: str | list[str] | None = None,
        num_epochs: int = -1,
        output_numpy: bool = False,
        do_copy: bool = False,
    ) -> TupleIterator:
        """An iterator over lists of tensors, one for each column.

        Args:
            columns: which columns, in which order; all by default.
            num_epochs, output_numpy, do_copy: as for :meth:`create_dict_iterator`.

        Raises:
            ArgumentValueError: an unknown column.
        """
        from mycelia.dataset.iterators import TupleIterator

        return TupleIterator(self, columns, num_epochs, output_numpy, do_copy)

    def __iter__(self) -> Iterator[Any]:
        return self.create_tuple_iterator(num_epochs=1)

    def __len__(self) -> int:
        return self.get_dataset_size()

    # Questions.

    def get_dataset_size(self) -> int:
        """The number of rows (batches, after ``batch``) of one pass.

        Where it cannot be told in advance (a generator, a filter), one pass is made to count it, once; of
        rows without end, that does not return.
        """
        size = self._size()
        if size is not None:
            return size
        if self._count is None:
            from mycelia.dataset.nodes import endless

            run = Run(self, counted=False)
            run.one_pass = endless(self)
            run.start_epoch()
            try:
                self._count = sum(1 for _ in self._open(run))
            finally:
                run.close()
        return self._count

    def get_col_names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._columns())

    def output_shapes(self, estimate: bool = False) -> list[list[int | None]]:
        """The shape of each column in the first row.

        Args:
            estimate: look at all rows, and give None for an axis whose length varies.

        Raises:
            StateError: there are no rows.
        """
        if not estimate:
            return [list(column.shape) for column in self._first_row()]
        run = Run(self, counted=False)
        run.start_epoch()
        shapes: list[list[int | None]] | None = None
        try:
            for row in self._open(run):
                if shapes is None:
                    shapes = [list(column.shape) for column in row]
                for shape, column in zip(shapes, row, strict=True):
                    if len(shape) != column.ndim:
                        raise StateError("output_shapes", message="the rows of a column differ in their number of axes")
                    for axis, length in enumerate(column.shape):
                        if shape[axis] != length:
                            shape[axis] = None
        finally:
            run.close()
        if shapes is None:
            raise StateError("output_shapes", message="the dataset has no rows, so their shapes are unknown")
        return shapes

    def output_types(self) -> list[np.dtype[Any]]:
        """The NumPy dtype of each column in the first row; of text without its length.

        Raises:
            StateError: there are no rows.
        """
        found = [column.dtype for column in self._first_row()]
        return [np.dtype(dtype.kind) if dtype.kind in "US" else dtype for dtype in found]

    def get_batch_size(self) -> int:
        """Rows per batch, 1 before any ``batch``."""
        return self.children[0].get_batch_size() if self.children else 1

    def get_repeat_count(self) -> int:
        """The count of the last ``repeat``, 1 before any."""
        return self.children[0].get_repeat_count() if self.children else 1

    def num_classes(self) -> int | None:
        """The number of classes of a source that knows them, else None."""
        return self.children[0].num_classes() if self.children else None

    def get_class_indexing(self) -> dict[str, int]:
        """From class name to label, of a source that has them; else empty."""
        return self.children[0].get_class_indexing() if self.children else {}

    def is_shuffled(self) -> bool:
        """Whether any node shuffles."""
        return any(child.is_shuffled() for child in self.children)

    def is_sharded(self) -> bool:
        """Whether any source gives one shard of its rows only."""
        return any(child.is_sharded() for child in self.children)

    def reset(self) -> None:
        """Get ready for the next epoch. Every pass starts anew by itself, so this changes nothing."""


def _close(rows: Iterator[Row]) -> None:
    close = getattr(rows, "close", None)
    if close is not None:
        close()


def check_dataset(where: str, argument: str, value: Any) -> Dataset:
    """``value`` as a dataset."""
    if not isinstance(value, Dataset):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="a dataset")
    return value


def no_more(where: str, name: str, value: Any) -> None:
    """Refuse an argument of MindSpore's that this engine has no use for."""
    if value is not None:
        raise UnsupportedError(where, message=f"argument '{name}' is not supported", hint="leave it out")


def refuse_taken(where: str, argument: str, new: Sequence[str], kept: Sequence[str]) -> None:
    """Refuse new column names that are there already."""
    for name in new:
        if name in kept:
            raise ArgumentValueError(
                where, argument, got=repr(name), takes=f"names other than the columns that stay: {', '.join(kept)}"
            )


if TYPE_CHECKING:
    from mycelia.dataset.batching import BatchDataset, BucketBatchByLengthDataset, PaddedBatchDataset
    from mycelia.dataset.mapping import MapDataset
    from mycelia.dataset.nodes import (
        ConcatDataset,
        FilterDataset,
        FlatMapDataset,
        ProjectDataset,
        RenameDataset,
        RepeatDataset,
        ShuffleDataset,
        SkipDataset,
        TakeDataset,
        ZipDataset,
    )
