"""Metrics of classification: accuracy, precision, recall, F-scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.tensor.tensor import check_bool
from mycelia.train.metrics.metric import Array, EvaluationBase, Metric, classes_of, rearrange_inputs


class Accuracy(EvaluationBase):
    """The share of right predictions.

    Args:
        eval_type: ``"classification"``: the largest score is that of the label; ``"multilabel"``: a whole row
            of 0 and 1 is right.

    >>> import numpy as np, mycelia as ms
    >>> metric = ms.train.Accuracy()
    >>> metric.update(np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), np.array([1, 0, 1]))
    >>> round(metric.eval(), 4)
    0.6667
    """

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__(eval_type)
        self.clear()

    def clear(self) -> None:
        self._correct_num = self._total_num = self._class_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._scores_and_labels(inputs)
        right = y_pred.argmax(1) == y if self._type == "classification" else (y_pred == y).all(1)
        self._correct_num += int(right.sum())
        self._total_num += right.size

    def eval(self) -> float:
        self._check_seen(self._total_num)
        return self._correct_num / self._total_num


class _Counts(EvaluationBase):
    """True positives, and positives of each class; of each sample in a multilabel evaluation."""

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__(eval_type)
        self.clear()

    def clear(self) -> None:
        self._class_num = 0
        self._true: Array | float = 0.0
        self._predicted: Array | float = 0.0
        self._actual: Array | float = 0.0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        first = self._class_num == 0
        y_pred, y = self._scores_and_labels(inputs)
        if self._type == "classification":
            eye = np.eye(self._class_num)
            guess, truth = eye[y_pred.argmax(1).reshape(-1)], eye[y.reshape(-1).astype(np.int64)]
            self._true = self._true + (guess * truth).sum(0)
            self._predicted, self._actual = self._predicted + guess.sum(0), self._actual + truth.sum(0)
            return
        guess, truth = (np.moveaxis(x, 1, -1).reshape(-1, self._class_num) for x in (y_pred, y))
        rows = ((guess * truth).sum(1), guess.sum(1), truth.sum(1))
        if not first:
            before = (self._true, self._predicted, self._actual)
            rows = tuple(np.concatenate(pair) for pair in zip(before, rows, strict=True))  # type: ignore[assignment]
        self._true, self._predicted, self._actual = rows

    def _ratio(self, total: Any, average: bool) -> Any:
        check_bool(type(self).__name__, "average", average)
        self._check_seen(self._class_num)
        values = self._true / np.maximum(total, np.finfo(float).tiny)
        return float(values.mean()) if average else values


class Precision(_Counts):
    """True positives over predicted positives.

    Args:
        eval_type: ``"classification"`` (one value per class) or ``"multilabel"`` (one value per sample).

    >>> import numpy as np, mycelia as ms
    >>> metric = ms.train.Precision()
    >>> metric.update(np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), np.array([1, 0, 1]))
    >>> metric.eval()
    array([0.5, 1. ])
    """

    def eval(self, average: bool = False) -> Any:
        """An array of values, or their mean with ``average``."""
        return self._ratio(self._predicted, average)


class Recall(_Counts):
    """True positives over actual positives.

    Args:
        eval_type: ``"classification"`` (one value per class) or ``"multilabel"`` (one value per sample).

    >>> import numpy as np, mycelia as ms
    >>> metric = ms.train.Recall()
    >>> metric.update(np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), np.array([1, 0, 1]))
    >>> metric.eval()
    array([1. , 0.5])
    """

    def eval(self, average: bool = False) -> Any:
        """An array of values, or their mean with ``average``."""
        return self._ratio(self._actual, average)


class Fbeta(Metric):
    """The weighted harmonic mean of precision and recall, for each class.

    Args:
        beta: weight of recall, above 0.

    >>> import numpy as np, mycelia as ms
    >>> metric = ms.train.Fbeta(1)
    >>> metric.update(np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), np.array([1, 0, 1]))
    >>> metric.eval()
    array([0.66666667, 0.66666667])
    """

    def __init__(self, beta: float) -> None:
        super().__init__()
        if isinstance(beta, bool) or not isinstance(beta, (int, float)):
            raise ArgumentTypeError(
                type(self).__name__, "beta", got=f"{beta!r} ({type(beta).__name__})", takes="a number"
            )
        if not beta > 0:
            raise ArgumentValueError(type(self).__name__, "beta", got=repr(beta), takes="a number above 0")
        self.beta = beta
        self._counts = Precision()

    def clear(self) -> None:
        self._counts.clear()

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        self._counts.update(*inputs)

    def eval(self, average: bool = False) -> Any:
        """An array with one value per class, or their mean with ``average``."""
        check_bool(type(self).__name__, "average", average)
        counts, square = self._counts, self.beta**2
        self._check_seen(counts._class_num)
        values = (
            (1 + square) * counts._true / np.maximum(square * counts._actual + counts._predicted, np.finfo(float).tiny)
        )
        return float(values.mean()) if average else values


class F1(Fbeta):
    """The harmonic mean of precision and recall, for each class.

    >>> import numpy as np, mycelia as ms
    >>> metric = ms.train.F1()
    >>> metric.update(np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), np.array([1, 0, 1]))
    >>> round(metric.eval(average=True), 4)
    0.6667
    """

    def __init__(self) -> None:
        super().__init__(1.0)


class TopKCategoricalAccuracy(Metric):
    """The share of labels among the ``k`` largest scores.

    Args:
        k: an int above 0.

    >>> import numpy as np, mycelia as ms
    >>> metric = ms.train.TopKCategoricalAccuracy(2)
    >>> metric.update(np.array([[0.2, 0.5, 0.3], [0.3, 0.1, 0.6], [0.9, 0.6, 0.7]]), np.array([2, 2, 1]))
    >>> round(metric.eval(), 4)
    0.6667
    """

    def __init__(self, k: int) -> None:
        super().__init__()
        if isinstance(k, bool) or not isinstance(k, int):
            raise ArgumentTypeError(type(self).__name__, "k", got=f"{k!r} ({type(k).__name__})", takes="an int")
        if k < 1:
            raise ArgumentValueError(type(self).__name__, "k", got=str(k), takes="an int above 0")
        self.k = k
        self.clear()

    def clear(self) -> None:
        self._correct_num = self._samples_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._arrays(inputs, "predictions", "labels")
        y = classes_of(y_pred, y).reshape(-1)
        if y_pred.ndim != 2 or y_pred.shape[0] != y.shape[0]:
            raise self._refuse(
                "labels", f"{y.shape[0]} labels", f"one for each row of the predictions of shape {y_pred.shape}"
            )
        best = np.argsort(-y_pred, axis=1, kind="stable")[:, : self.k]
        self._correct_num += int((best == y[:, None]).any(1).sum())
        self._samples_num += y.shape[0]

    def eval(self) -> float:
        self._check_seen(self._samples_num)
        return self._correct_num / self._samples_num


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """The share of labels with the largest score.

    >>> import numpy as np, mycelia as ms
    >>> ms.train.Top1CategoricalAccuracy()(np.array([[0.2, 0.5], [0.3, 0.1]]), np.array([1, 1]))
    0.5
    """

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """The share of labels among the five largest scores.

    >>> import numpy as np, mycelia as ms
    >>> ms.train.Top5CategoricalAccuracy()(np.arange(12).reshape(2, 6), np.array([1, 0]))
    0.5
    """

    def __init__(self) -> None:
        super().__init__(5)
