"""What a Model reads of a data set: passes over rows of tensors, and words for what is wrong with a row."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mycelia.core import tree
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, MyceliaError, StateError
from mycelia.tensor import Tensor

Row = tuple[Any, ...]


def check_dataset(where: str, argument: str, dataset: Any) -> None:
    """Refuse what has no rows.

    Raises:
        ArgumentTypeError: it is no dataset and not iterable.
        ArgumentValueError: it is known to be empty.
    """
    readable = hasattr(dataset, "create_tuple_iterator") or isinstance(dataset, Iterable)
    if isinstance(dataset, (str, bytes, Tensor, np.ndarray)) or not readable:
        raise ArgumentTypeError(
            where, argument, got=type(dataset).__name__, takes="a dataset, or an iterable of rows of arrays"
        )
    if size_of(dataset) == 0:
        raise no_rows(where, argument)


def no_rows(where: str, argument: str) -> ArgumentValueError:
    """The error for an empty data set."""
    return ArgumentValueError(
        where, argument, got="a data set without rows", takes="at least one batch",
        hint="does drop_remainder drop the only batch?",
    )  # fmt: skip


def size_of(dataset: Any) -> int | None:
    """The number of rows of one pass; None if it cannot be told in advance."""
    size = getattr(dataset, "get_dataset_size", None)
    if size is None:
        return len(dataset) if hasattr(dataset, "__len__") else None
    try:
        return int(size())
    except StateError:  # a generator that can be read only once
        return None


class Rows:
    """Passes over a data set.

    Args:
        where: the caller, for messages.
        argument: what the caller calls the data set.
        dataset: a dataset, or an iterable of tuples, lists, dicts or single arrays.
        passes: how many passes are wanted at most; None for any number.
    """

    def __init__(self, where: str, argument: str, dataset: Any, passes: int | None = 1) -> None:
        self.where, self.argument = where, argument
        self._dataset, self._iterator = dataset, None
        self.names: list[str] = []
        maker = getattr(dataset, "create_tuple_iterator", None)
        if maker is not None:
            self._iterator = maker(num_epochs=passes or -1)
            ahead = getattr(self._iterator, "prepare_ahead", None)
            if ahead is not None:  # rows, tensors included, are made while a step runs
                ahead()
            if hasattr(dataset, "get_col_names"):
                self.names = [str(n) for n in dataset.get_col_names()]
        self._first: list[str] = []
        self._number = self._passes = 0

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *exc: object) -> None:
        stop = getattr(self._iterator, "stop", None)
        if stop is not None:
            stop()

    def one_pass(self) -> Iterator[Row]:
        """The rows of the next pass, their columns as tensors.

        Raises:
            ArgumentTypeError: a column holds no numbers.
            ArgumentValueError: there are no rows.
        """
        self._number, self._passes = 0, self._passes + 1
        for row in self._dataset if self._iterator is None else self._iterator:
            self._number += 1
            yield self._columns(row)
        if not self._number:
            if self._passes == 1:
                raise no_rows(self.where, self.argument)
            raise ArgumentValueError(
                self.where, self.argument, got=f"no rows in pass {self._passes}", takes="rows in every pass",
                hint="a generator gives its rows once; give a list or a dataset",
            )  # fmt: skip

    def endless(self) -> Iterator[Row]:
        """Rows of one pass after another."""
        while True:
            yield from self.one_pass()

    def _columns(self, row: Any) -> Row:
        if isinstance(row, dict):
            self.names = [str(k) for k in row]
            items = list(row.values())
        else:
            items = list(row) if isinstance(row, (tuple, list)) else [row]
        columns = tuple([self._column(i, x) for i, x in enumerate(items)])
        if not self._first:
            self._first = [_description(x) for x in columns]
        return columns

    def _column(self, index: int, value: Any) -> Any:
        if isinstance(value, Tensor):
            return value
        nested = isinstance(value, (tuple, list, dict))
        if nested and any(isinstance(x, (Tensor, np.ndarray)) for x in tree.leaves(value)):
            return tree.map_leaves(lambda x: self._column(index, x), value)
        array = value if isinstance(value, np.ndarray) else np.asarray(value) if np.isscalar(value) else None
        if array is not None and array.dtype.kind in "OUSMm":
            raise ArgumentTypeError(
                self.where, self.argument, got=f"elements of dtype {array.dtype} in {self._name(index)}",
                takes="numbers", hint="map the column to numbers, or leave it out with project",
            )  # fmt: skip
        try:
            return Tensor(value)
        except MyceliaError as error:
            raise ArgumentTypeError(
                self.where,
                self.argument,
                got=f"{error.got or type(value).__name__} in {self._name(index)}",
                takes="numbers",
            ) from None

    def _name(self, index: int) -> str:
        return f"column {index}" + (f" ('{self.names[index]}')" if index < len(self.names) else "")

    def check_count(self, row: Row, network: Any, loss_fn: Any) -> None:
        """Refuse rows that do not fit the inputs of the network (or the network and its loss) in number.

        Raises:
            ArgumentValueError: too many or too few columns.
        """
        if loss_fn is not None:
            if len(row) == 2:
                return
            takes = "2 columns, data and label, as there is a loss_fn"
            hint = "make a Cell of all columns that returns the loss, and give no loss_fn; or choose two columns"
        else:
            try:
                inspect.signature(network.construct).bind(*row)
                return
            except TypeError:
                inputs = ", ".join(inspect.signature(network.construct).parameters)
                takes, hint = f"the inputs of {type(network).__name__}.construct: {inputs}", None
        names = f" ({', '.join(self.names)})" if self.names else ""
        raise ArgumentValueError(
            self.where, self.argument, got=f"rows of {len(row)} columns{names}", takes=takes, hint=hint
        )

    def explain(self, error: BaseException, row: Row) -> None:
        """Add to an error which row it happened at, and how its columns differ from the first row's."""
        parts = []
        for i, value in enumerate(row):
            now = _description(value)
            first = self._first[i] if i < len(self._first) else now
            parts.append(f"{self._name(i)} is {now}" + ("" if now == first else f", in the first row it was {first}"))
        error.add_note(f"  at row {self._number} of '{self.argument}': " + "; ".join(parts))


def _description(value: Any) -> str:
    """Dtype and shape of a column: ``float32[4, 2]``."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).lower()}{list(value.shape)}"
    return "(" + ", ".join([_description(x) for x in tree.leaves(value)]) + ")"
