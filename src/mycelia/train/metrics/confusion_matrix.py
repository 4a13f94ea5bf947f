"""The confusion matrix, and the rates that are made of its four counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from mycelia.tensor.tensor import check_bool
from mycelia.train.metrics.metric import Array, Metric, rearrange_inputs


class ConfusionMatrix(Metric):
    """How often a class (row) was taken for another (column).

    Args:
        num_classes: number of classes.
        normalize: ``"no_norm"``: counts; ``"target"``, ``"prediction"``, ``"all"``: divided by the sums of rows,
            of columns, or of everything (0 where a sum is 0).
        threshold: floating predictions of the labels' shape are class 1 from here on, else class 0.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: an unknown ``normalize``, or no class.

    >>> import numpy as np, mycelia as ms
    >>> ms.train.ConfusionMatrix(2)(np.array([1, 0, 1, 0]), np.array([1, 0, 0, 1]))
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(self, num_classes: int, normalize: str = "no_norm", threshold: float = 0.5) -> None:
        super().__init__()
        where = "ConfusionMatrix"
        if isinstance(num_classes, bool) or not isinstance(num_classes, int):
            raise ArgumentTypeError(where, "num_classes", got=repr(num_classes), takes="an int")
        if num_classes < 1:
            raise ArgumentValueError(where, "num_classes", got=str(num_classes), takes="an int above 0")
        if normalize not in ("target", "prediction", "all", "no_norm"):
            raise ArgumentValueError(
                where, "normalize", got=repr(normalize), takes="'target', 'prediction', 'all' or 'no_norm'"
            )
        if isinstance(threshold, bool) or not isinstance(threshold, float):
            raise ArgumentTypeError(where, "threshold", got=repr(threshold), takes="a float")
        self.num_classes, self.normalize, self.threshold = num_classes, normalize, threshold
        self.clear()

    def clear(self) -> None:
        self.confusion_matrix: Array = np.zeros((self.num_classes, self.num_classes))
        self._is_update = False

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._arrays(inputs, "predictions", "labels")
        if y_pred.ndim not in (y.ndim, y.ndim + 1):
            raise self._refuse(
                "labels", f"shape {y.shape}", f"as many axes as predictions of shape {y_pred.shape}, or one less"
            )
        if y_pred.ndim == y.ndim + 1:
            y_pred = y_pred.argmax(1)
        elif y_pred.dtype.kind == "f":
            y_pred = (y_pred >= self.threshold).astype(np.int64)
        if y_pred.shape != y.shape:
            raise self._refuse("labels", f"shape {y.shape}", f"the shape {y_pred.shape}, a label for each prediction")
        rows, columns = y.reshape(-1).astype(np.int64), y_pred.reshape(-1).astype(np.int64)
        for name, found in (("labels", rows), ("predictions", columns)):
            if found.size and not 0 <= found.min() <= found.max() < self.num_classes:
                wrong = found.min() if found.min() < 0 else found.max()
                raise self._refuse(name, f"the class {int(wrong)}", f"classes from 0 to {self.num_classes - 1}")
        counts = np.bincount(rows * self.num_classes + columns, minlength=self.num_classes**2)
        self.confusion_matrix = self.confusion_matrix + counts.reshape(self.num_classes, self.num_classes)
        self._is_update = True

    def eval(self) -> Array:
        self._check_seen(self._is_update)
        matrix = self.confusion_matrix
        if self.normalize == "no_norm":
            return matrix.copy()
        axis = {"target": 1, "prediction": 0, "all": None}[self.normalize]
        total = matrix.sum(axis=axis, keepdims=True)
        return np.divide(matrix, total, out=np.zeros_like(matrix), where=total != 0)


def _over(numerator: Any, denominator: Any) -> Array:
    """The quotient; NaN where the denominator is 0."""
    a, b = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    return np.divide(a, b, out=np.full(a.shape, np.nan), where=b != 0)


def _prevalence_threshold(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    tpr, tnr = _over(tp, tp + fn), _over(tn, tn + fp)
    return _over(np.sqrt(tpr * (1 - tnr)) + tnr - 1, tpr + tnr - 1)


def _correlation(tp: Array, fp: Array, tn: Array, fn: Array) -> Array:
    return _over(tp * tn - fp * fn, np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


#: The rates as functions of true positives, false positives, true negatives and false negatives.
_RATES: dict[str, Callable[[Array, Array, Array, Array], Array]] = {
    "tpr": lambda tp, fp, tn, fn: _over(tp, tp + fn),
    "tnr": lambda tp, fp, tn, fn: _over(tn, tn + fp),
    "ppv": lambda tp, fp, tn, fn: _over(tp, tp + fp),
    "npv": lambda tp, fp, tn, fn: _over(tn, tn + fn),
    "fnr": lambda tp, fp, tn, fn: _over(fn, tp + fn),
    "fpr": lambda tp, fp, tn, fn: _over(fp, fp + tn),
    "fdr": lambda tp, fp, tn, fn: _over(fp, fp + tp),
    "for": lambda tp, fp, tn, fn: _over(fn, fn + tn),
    "pt": _prevalence_threshold,
    "ts": lambda tp, fp, tn, fn: _over(tp, tp + fn + fp),
    "acc": lambda tp, fp, tn, fn: _over(tp + tn, tp + fp + tn + fn),
    "ba": lambda tp, fp, tn, fn: (_over(tp, tp + fn) + _over(tn, tn + fp)) / 2,
    "f1": lambda tp, fp, tn, fn: _over(2 * tp, 2 * tp + fn + fp),
    "mcc": _correlation,
    "fm": lambda tp, fp, tn, fn: np.sqrt(_over(tp, tp + fp) * _over(tp, tp + fn)),
    "bm": lambda tp, fp, tn, fn: _over(tp, tp + fn) + _over(tn, tn + fp) - 1,
    "mk": lambda tp, fp, tn, fn: _over(tp, tp + fp) + _over(tn, tn + fn) - 1,
}  # fmt: skip
_ALIASES = {
    "tpr": ("sensitivity", "recall", "hit_rate", "true_positive_rate"),
    "tnr": ("specificity", "selectivity", "true_negative_rate"),
    "ppv": ("precision", "positive_predictive_value"),
    "npv": ("negative_predictive_value",),
    "fnr": ("miss_rate", "false_negative_rate"),
    "fpr": ("fall_out", "false_positive_rate"),
    "fdr": ("false_discovery_rate",),
    "for": ("false_omission_rate",),
    "pt": ("prevalence_threshold",),
    "ts": ("threat_score", "critical_success_index", "csi"),
    "acc": ("accuracy",),
    "ba": ("balanced_accuracy",),
    "f1": ("f1_score",),
    "mcc": ("matthews_correlation_coefficient",),
    "fm": ("fowlkes_mallows_index",),
    "bm": ("informedness", "bookmaker_informedness"),
    "mk": ("markedness", "deltap"),
}  # fmt: skip
_NAMES = {name: short for short, names in _ALIASES.items() for name in (short, *names)}
_REDUCTIONS = ("none", "mean", "sum", "mean_batch", "sum_batch", "mean_channel", "sum_channel")


class ConfusionMatrixMetric(Metric):
    """A rate made of true and false positives and negatives, of binary predictions of shape (N, C, ...).

    Args:
        skip_channel: False leaves out the first channel (the background) if there are others.
        metric_name: which rate: ``"sensitivity"``, ``"specificity"``, ``"precision"``, ``"miss rate"``,
            ``"fall out"``, ``"f1 score"``, ``"accuracy"``, ``"balanced accuracy"``,
            ``"matthews correlation coefficient"``, ... or a short form such as ``"tpr"``.
        calculation_method: True takes the rate of each sample and channel (of inputs with more than two axes) and
            averages; False takes the rate of all counts together.
        decrease: with ``calculation_method``, how rates are put together: ``"mean"`` or ``"sum"``.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: an unknown ``decrease``.
        UnsupportedError: an unknown ``metric_name``.

    >>> import numpy as np, mycelia as ms
    >>> metric = ms.train.ConfusionMatrixMetric(metric_name="tpr")
    >>> metric(np.array([[[0], [1]], [[1], [0]]]), np.array([[[0], [1]], [[0], [1]]]))
    array([0.5])
    """

    def __init__(
        self, skip_channel: bool = True, metric_name: str = "sensitivity", calculation_method: bool = False,
        decrease: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__()
        where = "ConfusionMatrixMetric"
        check_bool(where, "skip_channel", skip_channel)
        check_bool(where, "calculation_method", calculation_method)
        if not isinstance(metric_name, str):
            raise ArgumentTypeError(where, "metric_name", got=type(metric_name).__name__, takes="a string")
        name = metric_name.replace(" ", "_").lower()
        if name not in _NAMES:
            raise UnsupportedError(where, "metric_name", got=repr(metric_name), takes=", ".join(sorted(_NAMES)))
        if decrease not in _REDUCTIONS:
            raise ArgumentValueError(where, "decrease", got=repr(decrease), takes=", ".join(map(repr, _REDUCTIONS)))
        if calculation_method and decrease not in ("mean", "sum"):
            raise ArgumentValueError(
                where, "decrease", got=repr(decrease), takes="'mean' or 'sum' with calculation_method"
            )
        self.skip_channel, self.metric_name = skip_channel, metric_name
        self.calculation_method, self.decrease = calculation_method, decrease
        self._rate = _RATES[_NAMES[name]]
        self.clear()

    def clear(self) -> None:
        self._counts: Array = np.zeros(4)
        self._sum, self._number = 0.0, 0.0
        self._is_update = False

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._arrays(inputs, "predictions", "labels")
        if y_pred.ndim < 2:
            raise self._refuse("predictions", f"shape {y_pred.shape}", "at least two axes: samples and channels")
        if y_pred.shape != y.shape:
            raise self._refuse("labels", f"shape {y.shape}", f"the shape of the predictions, {y_pred.shape}")
        for name, array in (("predictions", y_pred), ("labels", y)):
            if not ((array == 0) | (array == 1)).all():
                raise self._refuse(name, "other values", "0 and 1")
        apart = self.calculation_method and not (y_pred.ndim == 2 or (y_pred.ndim == 3 and y_pred.shape[-1] == 1))
        if not self.skip_channel and y.shape[1] > 1:
            y_pred, y = y_pred[:, 1:], y[:, 1:]
        guess, truth = (x.reshape(*x.shape[:2], -1).astype(bool) for x in (y_pred, y))
        cells = (guess & truth, guess & ~truth, ~guess & ~truth, ~guess & truth)
        counts = np.stack([c.sum(2) for c in cells]).astype(float)
        self._is_update = True
        if not apart:
            self._counts = self._counts + counts.sum((1, 2))
            return
        value, number = _put_together(self._rate(*counts), self.decrease)
        self._sum += value * number
        self._number += number

    def eval(self) -> Any:
        self._check_seen(self._is_update)
        if self._number:
            return self._sum / self._number
        if self.calculation_method and not self._counts.any():
            return float("nan")
        return self._rate(*[np.array([c]) for c in self._counts])


def _put_together(rates: Array, decrease: str) -> tuple[float, float]:
    """Rates of samples and channels as one, NaN left out, and how many took part."""
    known = ~np.isnan(rates)
    filled = np.where(known, rates, 0.0)
    if decrease == "sum":
        return float(filled.sum()), float(known.sum())
    per_sample = known.sum(1)
    means = np.divide(filled.sum(1), per_sample, out=np.zeros(len(rates)), where=per_sample > 0)
    samples = int((per_sample > 0).sum())
    return float(means.sum() / samples) if samples else 0.0, float(samples)
