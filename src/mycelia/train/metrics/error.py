"""Metrics of regression: mean absolute and mean squared error."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentValueError
from mycelia.train.metrics.metric import Metric


class _Error(Metric):
    """The sum over samples of an error of all their elements, divided by the number of samples."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum = 0.0
        self._count = 0

    def update(self, *inputs: Any) -> None:
        y_pred, y = self.arrays(inputs, 2)
        if y_pred.shape != y.shape:
            raise ArgumentValueError(
                f"{type(self).__name__}.update",
                "y",
                got=f"shape {y.shape}",
                takes=f"the shape of the predictions, {y_pred.shape}",
            )
        self._sum += float(self.of(y_pred - y))
        self._count += y.shape[0] if y.ndim else 1

    def of(self, difference: np.ndarray[Any, Any]) -> Any:
        """The error of a difference."""
        return difference

    def eval(self) -> float:
        self.seen(self._count)
        return self._sum / self._count


class MAE(_Error):
    """Sum of absolute differences per sample."""

    def of(self, difference: np.ndarray[Any, Any]) -> Any:
        return np.abs(difference).sum()


class MSE(_Error):
    """Sum of squared differences per sample."""

    def of(self, difference: np.ndarray[Any, Any]) -> Any:
        return (difference * difference).sum()
