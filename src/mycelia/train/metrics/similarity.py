"""Metrics of likeness: the Dice coefficient and the cosine similarity of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.tensor.tensor import check_bool
from mycelia.train.metrics.metric import Array, Metric, rearrange_inputs


class Dice(Metric):
    """The Dice coefficient ``2 |X Y| / (|X|**2 + |Y|**2)``, the mean over the batches.

    Args:
        smooth: added to the denominator, above 0.

    Raises:
        ArgumentTypeError: ``smooth`` is not a number.
        ArgumentValueError: it is not above 0.

    >>> import numpy as np, mycelia as ms
    >>> round(ms.train.Dice()(np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), np.array([[0, 1], [1, 0], [0, 1]])), 4)
    0.614
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        if isinstance(smooth, bool) or not isinstance(smooth, (int, float)):
            raise ArgumentTypeError("Dice", "smooth", got=repr(smooth), takes="a number")
        if not smooth > 0:
            raise ArgumentValueError("Dice", "smooth", got=repr(smooth), takes="a number above 0")
        self.smooth = smooth
        self.clear()

    def clear(self) -> None:
        self._sum, self._batches = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        y_pred, y = self._arrays(inputs, "predictions", "labels")
        if y_pred.shape != y.shape:
            raise self._refuse("labels", f"shape {y.shape}", f"the shape of the predictions, {y_pred.shape}")
        a, b = y_pred.reshape(-1).astype(float), y.reshape(-1).astype(float)
        self._sum += float(2 * a @ b / (a @ a + b @ b + self.smooth))
        self._batches += 1

    def eval(self) -> float:
        self._check_seen(self._batches)
        return self._sum / self._batches


class CosineSimilarity(Metric):
    """The similarity of every two rows of the last batch.

    Args:
        similarity: ``"cosine"``, or ``"dot"`` for products that are not normalized.
        reduction: ``"none"`` gives the matrix, ``"mean"`` and ``"sum"`` those of its rows.
        zero_diagonal: set the diagonal to 0.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: an unknown ``similarity`` or ``reduction``.

    >>> import numpy as np, mycelia as ms
    >>> ms.train.CosineSimilarity()(np.array([[1.0, 0.0], [3.0, 4.0]]))
    array([[0. , 0.6],
           [0.6, 0. ]])
    """

    def __init__(self, similarity: str = "cosine", reduction: str = "none", zero_diagonal: bool = True) -> None:
        super().__init__()
        where = "CosineSimilarity"
        for name, value, known in (
            ("similarity", similarity, ("dot", "cosine")),
            ("reduction", reduction, ("none", "sum", "mean")),
        ):
            if not isinstance(value, str):
                raise ArgumentTypeError(where, name, got=type(value).__name__, takes="a string")
            if value not in known:
                raise ArgumentValueError(where, name, got=repr(value), takes=", ".join(map(repr, known)))
        check_bool(where, "zero_diagonal", zero_diagonal)
        self.similarity, self.reduction, self.zero_diagonal = similarity, reduction, zero_diagonal
        self.clear()

    def clear(self) -> None:
        self._matrix: Array | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        (rows,) = self._arrays(inputs, "rows")
        if rows.ndim != 2:
            raise self._refuse("rows", f"shape {rows.shape}", "two axes")
        if self.similarity == "cosine":
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self._matrix = rows @ rows.T

    def eval(self) -> Array:
        self._check_seen(self._matrix is not None)
        assert self._matrix is not None
        matrix = self._matrix.copy()
        if self.zero_diagonal:
            np.fill_diagonal(matrix, 0)
        if self.reduction == "none":
            return matrix
        return np.asarray(matrix.mean(-1) if self.reduction == "mean" else matrix.sum(-1))
