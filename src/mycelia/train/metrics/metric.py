"""The base of metrics."""

from __future__ import annotations

import functools
from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError
from mycelia.tensor import Tensor

Array = np.ndarray[Any, Any]


def rearrange_inputs(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates ``update(self, *inputs)`` of a metric: only the inputs chosen by ``set_indexes`` are passed on.

    >>> import mycelia as ms
    >>> class Last(ms.train.Metric):
    ...     def clear(self): self.seen = None
    ...     @ms.train.rearrange_inputs
    ...     def update(self, *inputs): self.seen = inputs
    ...     def eval(self): return self.seen
    >>> Last().set_indexes([2, 0])("a", "b", "c")
    ('c', 'a')
    """

    @functools.wraps(func)
    def update(self: Metric, *inputs: Any) -> Any:
        indexes = self.indexes
        if not indexes:
            return func(self, *inputs)
        if max(indexes) >= len(inputs):
            raise ArgumentValueError(
                f"{type(self).__name__}.set_indexes", "indexes", got=str(indexes),
                takes=f"positions of the {len(inputs)} inputs given to update",
            )  # fmt: skip
        return func(self, *[inputs[i] for i in indexes])

    return update


class Metric(metaclass=ABCMeta):
    """Base of metrics: ``clear()``, then ``update(...)`` per batch, then ``eval()``.

    Calling a metric does the three for one batch.

    >>> import numpy as np, mycelia as ms
    >>> class Bias(ms.train.Metric):
    ...     def clear(self): self.total, self.count = 0.0, 0
    ...     def update(self, *inputs):
    ...         prediction, label = map(self._convert_data, inputs)
    ...         self.total, self.count = self.total + (prediction - label).sum(), self.count + label.size
    ...     def eval(self): return float(self.total / self.count)
    >>> Bias()(ms.Tensor([1.0, 2.0]), np.array([0.5, 1.5]))
    0.5
    """

    _indexes: list[int] | None = None

    @abstractmethod
    def clear(self) -> None:
        """Forget everything seen."""

    @abstractmethod
    def update(self, *inputs: Any) -> None:
        """Take a batch into account."""

    @abstractmethod
    def eval(self) -> Any:
        """The value over all batches seen since ``clear``."""

    @property
    def indexes(self) -> list[int] | None:
        """Which inputs ``update`` takes; None for all."""
        return self._indexes

    def set_indexes(self, indexes: list[int]) -> Metric:
        """Choose which of the evaluation network's outputs ``update`` takes; returns the metric.

        Raises:
            ArgumentValueError: ``indexes`` is no list of ints.
        """
        if not isinstance(indexes, list) or not all(isinstance(i, int) and not isinstance(i, bool) for i in indexes):
            raise ArgumentValueError(
                f"{type(self).__name__}.set_indexes", "indexes", got=repr(indexes), takes="a list of ints"
            )
        self._indexes = indexes
        return self

    def __call__(self, *inputs: Any) -> Any:
        self.clear()
        self.update(*inputs)
        return self.eval()

    def _convert_data(self, data: Any) -> Array:
        """A Tensor, list or array as a NumPy array.

        Raises:
            ArgumentTypeError: it is something else.
        """
        if isinstance(data, Tensor):
            return data.asnumpy()
        if isinstance(data, (list, np.ndarray, np.generic)):
            return np.asarray(data)
        raise ArgumentTypeError(
            f"{type(self).__name__}.update", "inputs", got=type(data).__name__, takes="a Tensor, list or NumPy array"
        )

    def _arrays(self, inputs: tuple[Any, ...], *names: str) -> list[Array]:
        """Exactly the named inputs, as NumPy arrays.

        Raises:
            ArgumentTypeError: an input that is no array.
            ArgumentValueError: another number of inputs.
        """
        self._check_number(inputs, *names)
        return [self._convert_data(x) for x in inputs]

    def _check_number(self, inputs: tuple[Any, ...], *names: str) -> None:
        if len(inputs) != len(names):
            raise ArgumentValueError(
                f"{type(self).__name__}.update",
                "inputs",
                got=f"{len(inputs)} inputs",
                takes=f"{len(names)}: {', '.join(names)}",
            )

    def _refuse(self, argument: str, got: str, takes: str) -> ArgumentValueError:
        return ArgumentValueError(f"{type(self).__name__}.update", argument, got=got, takes=takes)

    def _check_seen(self, seen: Any) -> None:
        """Refuse to evaluate before the first batch.

        Raises:
            StateError: ``seen`` is 0 or False.
        """
        if not seen:
            raise StateError(f"{type(self).__name__}.eval", message="no samples were seen", hint="call update() first")


class EvaluationBase(Metric):
    """Base of classification metrics.

    Args:
        eval_type: ``"classification"``: predictions of shape (N, C, ...) and labels of shape (N, ...), or one-hot
            of the predictions' shape; ``"multilabel"``: predictions and labels of shape (N, C, ...), 0 or 1.

    Raises:
        ArgumentTypeError: another ``eval_type``.
    """

    def __init__(self, eval_type: str) -> None:
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            raise ArgumentTypeError(
                type(self).__name__, "eval_type", got=repr(eval_type), takes="'classification' or 'multilabel'"
            )
        self._type = eval_type
        self._class_num = 0

    def _scores_and_labels(self, inputs: tuple[Any, ...]) -> tuple[Array, Array]:
        """Predictions and labels with their shapes and values checked; one-hot labels become class indices."""
        y_pred, y = self._arrays(inputs, "predictions", "labels")
        if self._type == "multilabel":
            if y_pred.shape != y.shape:
                raise self._refuse("labels", f"shape {y.shape}", f"the shape of the predictions, {y_pred.shape}")
            for name, array in (("predictions", y_pred), ("labels", y)):
                if not ((array == 0) | (array == 1)).all():
                    raise self._refuse(name, "other values", "0 and 1 in a multilabel evaluation")
        else:
            y = classes_of(y_pred, y)
            if y_pred.ndim != y.ndim + 1 or y_pred.shape[:1] + y_pred.shape[2:] != y.shape:
                raise self._refuse(
                    "labels",
                    f"shape {y.shape}",
                    f"class indices or one-hot rows for predictions of shape {y_pred.shape}",
                )
        if self._class_num not in (0, y_pred.shape[1]):
            raise self._refuse(
                "predictions", f"{y_pred.shape[1]} classes", f"{self._class_num}, as in the batches before"
            )
        if self._type == "classification" and y.size and not 0 <= y.min() <= y.max() < y_pred.shape[1]:
            wrong = y.min() if y.min() < 0 else y.max()
            raise self._refuse("labels", f"the class {int(wrong)}", f"classes from 0 to {y_pred.shape[1] - 1}")
        self._class_num = y_pred.shape[1]
        return y_pred, y


def classes_of(y_pred: Array, y: Array) -> Array:
    """Labels as class indices, if they are one-hot along axis 1 of as many axes as the predictions."""
    if y_pred.ndim == y.ndim > 1 and ((y == 0) | (y == 1)).all() and (y.sum(1) == 1).all():
        return np.asarray(y.argmax(1))
    return y
