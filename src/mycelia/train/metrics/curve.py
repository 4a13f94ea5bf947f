"""The ROC curve and the area under a curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.train.metrics.metric import Array, Metric, rearrange_inputs


class ROC(Metric):
    """The receiver operating characteristic: false and true positive rates at every threshold.

    Args:
        class_num: number of classes, for predictions with an axis more than the labels; None or 1 otherwise.
        pos_label: the positive class of a binary problem; 1 by default.

    Returns:
        ``eval()`` gives (false positive rates, true positive rates, thresholds), arrays for a binary problem and lists
        of arrays, one per class against the others, for more classes. The first threshold is the largest score + 1.

    Raises:
        ArgumentTypeError: an argument is not an int.

    >>> import numpy as np, mycelia as ms
    >>> fpr, tpr, thresholds = ms.train.ROC(pos_label=1)(np.array([3, 1, 4, 2]), np.array([0, 1, 2, 3]))
    >>> print(fpr.round(2), tpr, thresholds)
    [0.   0.33 0.67 1.   1.  ] [0. 0. 0. 0. 1.] [5 4 3 2 1]
    """

    def __init__(self, class_num: int | None = None, pos_label: int | None = None) -> None:
        super().__init__()
        for name, value in (("class_num", class_num), ("pos_label", pos_label)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise ArgumentTypeError("ROC", name, got=f"{value!r} ({type(value).__name__})", takes="an int or None")
        self.class_num, self.pos_label = class_num, pos_label
        self.clear()

    def clear(self) -> None:
        self._scores: list[Array] = []
        self._labels: list[Array] = []

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._arrays(inputs, "predictions", "labels")
        if y_pred.ndim == y.ndim:
            if self.class_num not in (None, 1):
                raise self._refuse("predictions", f"shape {y_pred.shape}", f"an axis of {self.class_num} classes")
            if y_pred.shape != y.shape:
                raise self._refuse("labels", f"shape {y.shape}", f"the shape of the predictions, {y_pred.shape}")
            scores = y_pred.reshape(-1, 1)
        elif y_pred.ndim == y.ndim + 1:
            if self.pos_label is not None:
                raise self._refuse("predictions", f"an axis of classes with pos_label={self.pos_label}", "no pos_label")
            if y_pred.shape[1] != self.class_num or y_pred.shape[:1] + y_pred.shape[2:] != y.shape:
                raise self._refuse(
                    "predictions",
                    f"shape {y_pred.shape}",
                    f"{self.class_num} classes (class_num) for labels of shape {y.shape}",
                )
            scores = np.moveaxis(y_pred, 1, -1).reshape(-1, y_pred.shape[1])
        else:
            raise self._refuse(
                "labels", f"shape {y.shape}", f"as many axes as predictions of shape {y_pred.shape}, or one less"
            )
        if self._scores and self._scores[0].shape[1] != scores.shape[1]:
            raise self._refuse("predictions", f"{scores.shape[1]} classes", f"{self._scores[0].shape[1]}, as before")
        self._scores.append(scores)
        self._labels.append(y.reshape(-1))

    def eval(self) -> Any:
        self._check_seen(self._scores)
        scores, labels = np.concatenate(self._scores), np.concatenate(self._labels)
        if scores.shape[1] == 1:
            return _curve(scores[:, 0], labels == (1 if self.pos_label is None else self.pos_label))
        curves = [_curve(scores[:, c], labels == c) for c in range(scores.shape[1])]
        return tuple([list(part) for part in zip(*curves, strict=True)])


def _curve(scores: Array, positive: Array) -> tuple[Array, Array, Array]:
    """Rates at every distinct score, from the largest down."""
    for name, there in (("positive", positive.any()), ("negative", not positive.all())):
        if not there:
            raise ArgumentValueError(
                "ROC.eval", "labels", got=f"no {name} samples", takes="positive and negative samples"
            )
    order = np.argsort(-scores, kind="stable")
    scores, positive = scores[order], positive[order]
    last = np.append(np.nonzero(np.diff(scores))[0], scores.size - 1)  # of each run of equal scores
    true = np.cumsum(positive)[last]
    false = 1 + last - true
    start = np.zeros(1)
    return (
        np.concatenate([start, false / false[-1]]),
        np.concatenate([start, true / true[-1]]),
        np.concatenate([scores[:1] + 1, scores[last]]),
    )


def auc(x: Any, y: Any, reorder: bool = False) -> Any:
    """The area under a curve, by the trapezoidal rule.

    Args:
        x: an array of rising or of falling values, of shape (N,) or (N, 1).
        y: an array of as many values.
        reorder: sort the points by ``x`` (and ``y``) first.

    Raises:
        ArgumentTypeError: an argument is no NumPy array.
        ArgumentValueError: fewer than two points, unequal lengths, or ``x`` neither rises nor falls.

    >>> import numpy as np, mycelia as ms
    >>> float(ms.train.auc(np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0, 1.0])))
    0.75
    """
    columns = []
    for name, value in (("x", x), ("y", y)):
        if not isinstance(value, np.ndarray):
            raise ArgumentTypeError("auc", name, got=type(value).__name__, takes="a NumPy array")
        if value.ndim not in (1, 2) or (value.ndim == 2 and value.shape[1] != 1):
            raise ArgumentValueError("auc", name, got=f"shape {value.shape}", takes="shape (N,) or (N, 1)")
        columns.append(value.reshape(-1))
    x, y = columns
    if len(x) != len(y):
        raise ArgumentValueError("auc", "y", got=f"{len(y)} values", takes=f"{len(x)}, one for each of 'x'")
    if len(x) < 2:
        raise ArgumentValueError("auc", "x", got=f"{len(x)} values", takes="at least two points")
    if reorder:
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
    steps = np.diff(x)
    if (steps < 0).any() and (steps > 0).any():
        raise ArgumentValueError(
            "auc", "x", got="values that rise and fall", takes="rising or falling values", hint="or reorder=True"
        )
    return (-1.0 if (steps < 0).any() else 1.0) * np.trapezoid(y, x)
