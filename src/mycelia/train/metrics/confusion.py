"""Precision, recall and F-scores, per class or averaged over classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentValueError
from mycelia.train.metrics.metric import EvaluationBase, Metric


class _Counts(EvaluationBase):
    """True positives, predicted positives and actual positives of each class (or sample, if multilabel)."""

    def __init__(self, eval_type: str = "classification") -> None:
        super().__init__(eval_type)
        self.clear()

    def clear(self) -> None:
        self._true: Any = 0
        self._predicted: Any = 0
        self._actual: Any = 0
        self._classes = 0

    def update(self, *inputs: Any) -> None:
        y_pred, y = self.scores_and_classes(inputs)
        classes = y_pred.shape[1]
        if self._classes and classes != self._classes:
            raise ArgumentValueError(
                f"{type(self).__name__}.update", "y_pred", got=f"{classes} classes", takes=f"{self._classes}, as before"
            )
        if self._type == "classification":
            if y.size and (y.min() < 0 or y.max() >= classes):
                raise ArgumentValueError(
                    f"{type(self).__name__}.update",
                    "y",
                    got=f"class {int(y.max())}",
                    takes=f"classes from 0 to {classes - 1}",
                )
            eye = np.eye(classes, dtype=np.int64)
            guess, truth = eye[y_pred.argmax(1).reshape(-1)], eye[y.reshape(-1).astype(np.int64)]
            true, predicted, actual = (guess * truth).sum(0), guess.sum(0), truth.sum(0)
            self._true, self._predicted, self._actual = (
                self._true + true, self._predicted + predicted, self._actual + actual,
            )  # fmt: skip
        else:
            guess = np.swapaxes(y_pred, 1, -1).reshape(-1, classes).astype(np.int64)
            truth = np.swapaxes(y, 1, -1).reshape(-1, classes).astype(np.int64)
            rows = ((guess * truth).sum(1), guess.sum(1), truth.sum(1))
            if self._classes == 0:
                self._true, self._predicted, self._actual = rows
            else:
                self._true = np.concatenate([self._true, rows[0]])
                self._predicted = np.concatenate([self._predicted, rows[1]])
                self._actual = np.concatenate([self._actual, rows[2]])
        self._classes = classes


class Precision(_Counts):
    """True positives over predicted positives.

    Args:
        eval_type: ``"classification"`` or ``"multilabel"``.
    """

    def eval(self, average: bool = False) -> Any:
        """An array with one value per class, or their mean with ``average``."""
        self.seen(self._classes)
        values = self._true / np.maximum(self._predicted, 1e-20)
        return float(values.mean()) if average else values


class Recall(_Counts):
    """True positives over actual positives.

    Args:
        eval_type: ``"classification"`` or ``"multilabel"``.
    """

    def eval(self, average: bool = False) -> Any:
        """An array with one value per class, or their mean with ``average``."""
        self.seen(self._classes)
        values = self._true / np.maximum(self._actual, 1e-20)
        return float(values.mean()) if average else values


class Fbeta(Metric):
    """The weighted harmonic mean of precision and recall.

    Args:
        beta: weight of recall, above 0.
    """

    def __init__(self, beta: float) -> None:
        super().__init__()
        if isinstance(beta, bool) or not isinstance(beta, (int, float)) or beta <= 0:
            raise ArgumentValueError(type(self).__name__, "beta", got=repr(beta), takes="a number above 0")
        self.beta = beta
        self._counts = _Counts()

    def clear(self) -> None:
        self._counts.clear()

    def update(self, *inputs: Any) -> None:
        self._counts.update(*inputs)

    def eval(self, average: bool = False) -> Any:
        """An array with one value per class, or their mean with ``average``."""
        self.seen(self._counts._classes)
        square = self.beta**2
        denominator = square * self._counts._actual + self._counts._predicted
        values = (1 + square) * self._counts._true / np.maximum(denominator, 1e-20)
        return float(values.mean()) if average else values


class F1(Fbeta):
    """The harmonic mean of precision and recall."""

    def __init__(self) -> None:
        super().__init__(1.0)
