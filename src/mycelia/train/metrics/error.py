"""Metrics of regression, and the mean loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.train.metrics.metric import Array, Metric, rearrange_inputs


class Loss(Metric):
    """The mean of the losses of the batches, each weighted alike.

    >>> import numpy as np, mycelia as ms
    >>> metric = ms.train.Loss()
    >>> metric.update(np.array(1.0))
    >>> metric.update(np.array([2.0, 4.0]))
    >>> metric.eval()
    2.0
    """

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum_loss = 0.0
        self._total_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        (loss,) = self._arrays(inputs, "loss")
        if loss.ndim > 1:
            raise self._refuse("loss", f"shape {loss.shape}", "a number or one axis")
        self._sum_loss += float(loss.mean())
        self._total_num += 1

    def eval(self) -> float:
        self._check_seen(self._total_num)
        return self._sum_loss / self._total_num


class _Error(Metric):
    """The sum of an error of all elements, divided by the number of samples (the length of the first axis)."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self._sum = 0.0
        self._samples_num = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._arrays(inputs, "predictions", "labels")
        if y_pred.size != y.size or not y.ndim:
            raise self._refuse("labels", f"shape {y.shape}", f"as many elements as predictions of shape {y_pred.shape}")
        self._sum += float(self._of(y.reshape(y_pred.shape) - y_pred))
        self._samples_num += y.shape[0]

    def _of(self, difference: Array) -> Any:
        raise NotImplementedError

    def eval(self) -> float:
        self._check_seen(self._samples_num)
        return self._sum / self._samples_num


class MAE(_Error):
    """The sum of absolute differences per sample.

    >>> import numpy as np, mycelia as ms
    >>> ms.train.MAE()(np.array([0.1, 0.2, 0.6, 0.9]), np.array([0.1, 0.25, 0.7, 0.9])).__round__(6)
    0.0375
    """

    def _of(self, difference: Array) -> Any:
        return np.abs(difference).sum()


class MSE(_Error):
    """The sum of squared differences per sample.

    >>> import numpy as np, mycelia as ms
    >>> ms.train.MSE()(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 1.0], [1.0, 4.0]]))
    2.5
    """

    def _of(self, difference: Array) -> Any:
        return (difference * difference).sum()
