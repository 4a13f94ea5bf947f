"""The base of metrics, and the metrics of loss and classification."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError
from mycelia.tensor import Tensor


class Metric(metaclass=ABCMeta):
    """Base of metrics: ``clear()``, then ``update(...)`` per batch, then ``eval()``."""

    def __init__(self) -> None:
        self.indexes: list[int] | None = None

    @abstractmethod
    def clear(self) -> None:
        """Forget everything seen."""

    @abstractmethod
    def update(self, *inputs: Any) -> None:
        """Take a batch into account."""

    @abstractmethod
    def eval(self) -> Any:
        """The value over all batches seen since ``clear``."""

    def set_indexes(self, indexes: list[int]) -> Metric:
        """Choose which of the evaluation network's outputs are given to ``update``; returns the metric."""
        if not isinstance(indexes, list) or not all(isinstance(i, int) and not isinstance(i, bool) for i in indexes):
            raise ArgumentValueError(
                f"{type(self).__name__}.set_indexes", "indexes", got=repr(indexes), takes="a list of ints"
            )
        self.indexes = indexes
        return self

    def __call__(self, *inputs: Any) -> Any:
        """The value over one batch alone."""
        self.clear()
        self.update(*inputs)
        return self.eval()

    def arrays(self, inputs: tuple[Any, ...], count: int) -> list[np.ndarray[Any, Any]]:
        """Exactly ``count`` inputs as NumPy arrays.

        Raises:
            ArgumentValueError: another number of inputs.
            ArgumentTypeError: an input that is no array.
        """
        name = f"{type(self).__name__}.update"
        if len(inputs) != count:
            raise ArgumentValueError(name, "inputs", got=f"{len(inputs)} inputs", takes=f"{count}")
        found = []
        for i, x in enumerate(inputs):
            if isinstance(x, Tensor):
                found.append(x.asnumpy())
            elif isinstance(x, (np.ndarray, list, tuple, int, float, np.generic)):
                found.append(np.asarray(x))
            else:
                raise ArgumentTypeError(name, f"input {i}", got=type(x).__name__, takes="a Tensor, list or array")
        return found

    def seen(self, count: float) -> None:
        """Refuse to evaluate before the first batch.

        Raises:
            StateError: ``count`` is 0.
        """
        if not count:
            raise StateError(f"{type(self).__name__}.eval", message="no samples were seen", hint="call update() first")


class EvaluationBase(Metric):
    """Base of classification metrics.

    Args:
        eval_type: ``"classification"`` (class indices or one-hot rows) or ``"multilabel"`` (rows of 0 and 1).
    """

    def __init__(self, eval_type: str) -> None:
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            raise ArgumentValueError(
                type(self).__name__, "eval_type", got=repr(eval_type), takes='"classification" or "multilabel"'
            )
        self._type = eval_type

    def scores_and_classes(self, inputs: tuple[Any, ...]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Predictions and labels with their shapes checked; one-hot labels become class indices."""
        y_pred, y = self.arrays(inputs, 2)
        name = f"{type(self).__name__}.update"
        if self._type == "multilabel":
            if y_pred.shape != y.shape:
                raise ArgumentValueError(
                    name, "y", got=f"shape {y.shape}", takes=f"the shape of the predictions, {y_pred.shape}"
                )
            return y_pred, y
        if y_pred.ndim == y.ndim and _is_one_hot(y):
            y = y.argmax(1)
        if y_pred.ndim != y.ndim + 1 or y_pred.shape[:1] + y_pred.shape[2:] != y.shape:
            raise ArgumentValueError(
                name,
                "y",
                got=f"shape {y.shape}",
                takes=f"class indices or one-hot rows for predictions of shape {y_pred.shape}",
            )
        return y_pred, y


def _is_one_hot(y: np.ndarray[Any, Any]) -> bool:
    return y.ndim > 1 and bool((np.sort(y, 1)[:, :-1] == 0).all()) and bool((y.max(1) == 1).all())


class Accuracy(EvaluationBase):
    """The share of right predictions.

    Args:
        eval_type: ``"classification"``: the largest score is the label's class; ``"multilabel"``: the whole
            row of 0 and 1 is right.

    >>> import numpy as np
    >>> from mycelia.train import Accuracy
    >>> metric = Accuracy()
    >>> metric.update(np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), np.array([1, 0, 1]))
    >>> round(metric.eval(), 4)
    0.6667
    """

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__(eval_type)
        self.clear()

    def clear(self) -> None:
        self._correct = self._total = self._classes = 0

    def update(self, *inputs: Any) -> None:
        y_pred, y = self.scores_and_classes(inputs)
        if self._classes == 0:
            self._classes = y_pred.shape[1]
        elif y_pred.shape[1] != self._classes:
            raise ArgumentValueError(
                "Accuracy.update",
                "y_pred",
                got=f"{y_pred.shape[1]} classes",
                takes=f"{self._classes}, as the batches before",
            )
        if self._type == "classification":
            right = y_pred.argmax(1) == y
        else:
            width = y_pred.ndim - 1
            rows = (y_pred == y).swapaxes(1, width).reshape(-1, self._classes)
            right = rows.all(1)
        self._correct += int(right.sum())
        self._total += right.size

    def eval(self) -> float:
        self.seen(self._total)
        return self._correct / self._total


class Loss(Metric):
    """The mean of the losses of the batches, each weighted alike."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum = 0.0
        self._count = 0

    def update(self, *inputs: Any) -> None:
        (loss,) = self.arrays(inputs, 1)
        self._sum += float(loss.mean())
        self._count += 1

    def eval(self) -> float:
        self.seen(self._count)
        return self._sum / self._count


class TopKCategoricalAccuracy(Metric):
    """The share of labels among the ``k`` largest scores; k is an int above 0."""

    def __init__(self, k: int) -> None:
        super().__init__()
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise ArgumentValueError(type(self).__name__, "k", got=repr(k), takes="an int above 0")
        self.k = k
        self.clear()

    def clear(self) -> None:
        self._correct = self._total = 0

    def update(self, *inputs: Any) -> None:
        y_pred, y = self.arrays(inputs, 2)
        if y_pred.ndim == y.ndim and _is_one_hot(y):
            y = y.argmax(1)
        if y_pred.shape[:1] != y.shape[:1]:
            raise ArgumentValueError(
                f"{type(self).__name__}.update",
                "y",
                got=f"{y.shape[0]} labels",
                takes=f"one for each of the {y_pred.shape[0]} rows",
            )
        best = np.argsort(-y_pred, axis=1, kind="stable")[:, : self.k]
        self._correct += int((best == y[:, None]).any(1).sum())
        self._total += y.shape[0]

    def eval(self) -> float:
        self.seen(self._total)
        return self._correct / self._total


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """The share of labels with the largest score."""

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """The share of labels among the five largest scores."""

    def __init__(self) -> None:
        super().__init__(5)
