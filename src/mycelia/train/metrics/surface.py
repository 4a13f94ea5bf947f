"""Distances between the surfaces of two masks: Hausdorff, mean and root mean square.

A surface is the voxels of a mask that one step of erosion takes away. The distances of one surface's voxels to the
nearest of the other's are read off a distance transform.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.tensor.tensor import check_bool
from mycelia.train.metrics.metric import Array, Metric, rearrange_inputs

_METRICS = ("euclidean", "chessboard", "taxicab")


class _SurfaceMetric(Metric):
    """Two surfaces, of the last update, and the distances between them."""

    def __init__(self, distance_metric: str) -> None:
        super().__init__()
        where = type(self).__name__
        if not isinstance(distance_metric, str):
            raise ArgumentTypeError(where, "distance_metric", got=type(distance_metric).__name__, takes="a string")
        if distance_metric not in _METRICS:
            raise ArgumentValueError(
                where, "distance_metric", got=repr(distance_metric), takes=", ".join(map(repr, _METRICS))
            )
        self.distance_metric = distance_metric
        self.clear()

    def clear(self) -> None:
        self._surfaces: tuple[Array, Array] | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take predictions and labels of one shape, and the label whose mask is meant; only the last update counts."""
        self._check_number(inputs, "predictions", "labels", "label index")
        y_pred, y = self._convert_data(inputs[0]), self._convert_data(inputs[1])
        label = inputs[2]
        if isinstance(label, bool) or not isinstance(label, (int, float)):
            raise self._refuse("label index", f"{label!r} ({type(label).__name__})", "an int or float")
        if not y_pred.size or y_pred.shape != y.shape:
            raise self._refuse("labels", f"shape {y.shape}", f"the shape of the predictions, {y_pred.shape}, not empty")
        if label not in y_pred and label not in y:
            raise self._refuse("label index", str(label), "a value of the predictions or labels")
        masks = [array if array.dtype == bool else array == label for array in (y_pred, y)]
        self._surfaces = (_surface(masks[0]), _surface(masks[1]))

    def _seen(self) -> tuple[Array, Array]:
        self._check_seen(self._surfaces is not None)
        assert self._surfaces is not None
        return self._surfaces

    def _distances(self, of: Array, to: Array) -> Array:
        """For each voxel of one surface the distance to the nearest of the other, infinite if that is empty."""
        from scipy import ndimage  # type: ignore[import-untyped]

        if not to.any():
            return np.full(int(of.sum()), np.inf)
        if self.distance_metric == "euclidean":
            transform = ndimage.distance_transform_edt(~to)
        else:
            transform = ndimage.distance_transform_cdt(~to, metric=self.distance_metric)
        return np.asarray(transform[of], float)


def _surface(mask: Array) -> Array:
    from scipy import ndimage

    return np.asarray(mask ^ ndimage.binary_erosion(mask))


class HausdorffDistance(_SurfaceMetric):
    """The largest distance of a voxel of one surface to the other surface.

    Args:
        distance_metric: ``"euclidean"``, ``"chessboard"`` or ``"taxicab"``.
        percentile: take this percentile of the distances, from 0 to 100, in place of the largest.
        directed: only from predictions to labels; else the larger of both directions.
        crop: kept for compatibility: the result does not depend on it.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: an argument out of range.

    >>> import numpy as np, mycelia as ms
    >>> metric = ms.train.HausdorffDistance()
    >>> metric.update(np.array([[3, 0, 1], [1, 3, 0], [1, 0, 2]]), np.array([[0, 2, 1], [1, 2, 1], [0, 0, 1]]), 0)
    >>> round(metric.eval(), 4)
    1.4142
    """

    def __init__(
        self, distance_metric: str = "euclidean", percentile: float | None = None, directed: bool | None = False,
        crop: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__(distance_metric)
        where = "HausdorffDistance"
        if percentile is not None:
            if isinstance(percentile, bool) or not isinstance(percentile, (int, float)):
                raise ArgumentTypeError(where, "percentile", got=repr(percentile), takes="a number or None")
            if not 0 <= percentile <= 100:
                raise ArgumentValueError(where, "percentile", got=repr(percentile), takes="a number from 0 to 100")
        for name, flag in (("directed", directed), ("crop", crop)):
            if flag is not None:
                check_bool(where, name, flag)
        self.percentile, self.directed, self.crop = percentile, directed, crop

    def eval(self) -> float:
        predicted, actual = self._seen()
        there = self._largest(predicted, actual)
        return there if self.directed else max(there, self._largest(actual, predicted))

    def _largest(self, of: Array, to: Array) -> float:
        distances = self._distances(of, to)
        if not distances.size:
            return float("inf")
        return float(distances.max() if self.percentile is None else np.percentile(distances, self.percentile))


class MeanSurfaceDistance(_SurfaceMetric):
    """The mean distance of the predicted surface's voxels to the actual surface.

    Args:
        symmetric: the mean of both directions.
        distance_metric: ``"euclidean"``, ``"chessboard"`` or ``"taxicab"``.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: an unknown ``distance_metric``.

    >>> import numpy as np, mycelia as ms
    >>> metric = ms.train.MeanSurfaceDistance()
    >>> metric.update(np.array([[3, 0, 1], [1, 3, 0], [1, 0, 2]]), np.array([[0, 2, 1], [1, 2, 1], [0, 0, 1]]), 0)
    >>> round(metric.eval(), 4)
    0.8047
    """

    def __init__(self, symmetric: bool = False, distance_metric: str = "euclidean") -> None:
        super().__init__(distance_metric)
        check_bool(type(self).__name__, "symmetric", symmetric)
        self.symmetric = symmetric

    def eval(self) -> float:
        predicted, actual = self._seen()
        there = self._mean(predicted, actual)
        return (there + self._mean(actual, predicted)) / 2 if self.symmetric else there

    def _mean(self, of: Array, to: Array) -> float:
        distances = self._distances(of, to)
        return float(distances.mean()) if distances.size else float("inf")


class RootMeanSquareDistance(_SurfaceMetric):
    """The root of the mean square of the distances of the predicted surface's voxels to the actual surface.

    Args:
        symmetric: take the mean of the mean squares of both directions.
        distance_metric: ``"euclidean"``, ``"chessboard"`` or ``"taxicab"``.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: an unknown ``distance_metric``.

    >>> import numpy as np, mycelia as ms
    >>> metric = ms.train.RootMeanSquareDistance()
    >>> metric.update(np.array([[3, 0, 1], [1, 3, 0], [1, 0, 2]]), np.array([[0, 2, 1], [1, 2, 1], [0, 0, 1]]), 0)
    >>> round(metric.eval(), 4)
    1.0
    """

    def __init__(self, symmetric: bool = False, distance_metric: str = "euclidean") -> None:
        super().__init__(distance_metric)
        check_bool(type(self).__name__, "symmetric", symmetric)
        self.symmetric = symmetric

    def eval(self) -> float:
        predicted, actual = self._seen()
        there = self._mean_square(predicted, actual)
        if self.symmetric:
            there = (there + self._mean_square(actual, predicted)) / 2
        return float(np.sqrt(there))

    def _mean_square(self, of: Array, to: Array) -> float:
        distances = self._distances(of, to)
        return float((distances**2).mean()) if distances.size else float("inf")
