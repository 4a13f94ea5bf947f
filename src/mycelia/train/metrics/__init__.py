"""Metrics of evaluation, and their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, MissingKeyError
from mycelia.train.metrics.classification import (
    F1,
    Accuracy,
    Fbeta,
    Precision,
    Recall,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
)
from mycelia.train.metrics.confusion_matrix import ConfusionMatrix, ConfusionMatrixMetric
from mycelia.train.metrics.curve import ROC, auc
from mycelia.train.metrics.error import MAE, MSE, Loss
from mycelia.train.metrics.metric import EvaluationBase, Metric, rearrange_inputs
from mycelia.train.metrics.occlusion import OcclusionSensitivity
from mycelia.train.metrics.similarity import CosineSimilarity, Dice
from mycelia.train.metrics.surface import HausdorffDistance, MeanSurfaceDistance, RootMeanSquareDistance
from mycelia.train.metrics.text import BleuScore, Perplexity

__all__ = [
    "F1", "MAE", "MSE", "ROC", "Accuracy", "BleuScore", "ConfusionMatrix", "ConfusionMatrixMetric", "CosineSimilarity",
    "Dice", "EvaluationBase", "Fbeta", "HausdorffDistance", "Loss", "MeanSurfaceDistance", "Metric",
    "OcclusionSensitivity", "Perplexity", "Precision", "Recall", "RootMeanSquareDistance", "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "auc", "get_metric_fn", "get_metrics", "names",
    "rearrange_inputs",
]  # fmt: skip

_BY_NAME: dict[str, Callable[..., Any]] = {
    "accuracy": Accuracy, "acc": Accuracy, "precision": Precision, "recall": Recall, "F1": F1, "dice": Dice, "roc": ROC,
    "auc": auc, "bleu_score": BleuScore, "cosine_similarity": CosineSimilarity,
    "occlusion_sensitivity": OcclusionSensitivity, "topk": TopKCategoricalAccuracy,
    "hausdorff_distance": HausdorffDistance, "top_1_accuracy": Top1CategoricalAccuracy,
    "top_5_accuracy": Top5CategoricalAccuracy, "mae": MAE, "mse": MSE, "loss": Loss,
    "mean_surface_distance": MeanSurfaceDistance, "root_mean_square_distance": RootMeanSquareDistance,
    "perplexity": Perplexity, "confusion_matrix": ConfusionMatrix, "confusion_matrix_metric": ConfusionMatrixMetric,
}  # fmt: skip


def names() -> list[str]:
    """The names that stand for metrics, sorted.

    >>> import mycelia as ms
    >>> ms.train.names()[:3]
    ['F1', 'acc', 'accuracy']
    """
    return sorted(_BY_NAME)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Any:
    """The metric of a name, made with the given arguments (``"auc"``: the area under a curve).

    Raises:
        MissingKeyError: an unknown name.

    >>> import mycelia as ms
    >>> type(ms.train.get_metric_fn("precision", eval_type="multilabel")).__name__
    'Precision'
    """
    if name not in _BY_NAME:
        raise MissingKeyError("get_metric_fn", "name", got=repr(name), takes=", ".join(map(repr, names())))
    return _BY_NAME[name](*args, **kwargs)


def get_metrics(metrics: Any) -> dict[str, Metric]:
    """Metrics by name: of None, of a dict of metrics, or of a set or list of names.

    Raises:
        ArgumentTypeError: something else.
        ArgumentValueError: an unknown name, or that of a metric that needs arguments.
    """
    if metrics is None:
        return {}
    if isinstance(metrics, dict):
        for name, metric in metrics.items():
            if not isinstance(name, str) or not isinstance(metric, Metric):
                raise ArgumentTypeError(
                    "Model",
                    "metrics",
                    got=f"{name!r}: {type(metric).__name__}",
                    takes="a dict of names and Metric objects",
                )
        return dict(metrics)
    if not isinstance(metrics, (set, list, tuple)):
        raise ArgumentTypeError(
            "Model",
            "metrics",
            got=type(metrics).__name__,
            takes="a set of names, or a dict of names and Metric objects",
        )
    found: dict[str, Metric] = {}
    for name in metrics:
        if not isinstance(name, str):
            raise ArgumentTypeError("Model", "metrics", got=f"an element of type {type(name).__name__}", takes="names")
        if name not in _BY_NAME:
            raise ArgumentValueError("Model", "metrics", got=repr(name), takes=", ".join(map(repr, names())))
        if name in ("auc", "topk", "confusion_matrix"):
            raise ArgumentValueError(
                "Model", "metrics", got=repr(name), takes="names of metrics without arguments",
                hint="give a dict, e.g. {'top_3': TopKCategoricalAccuracy(3)}",
            )  # fmt: skip
        found[name] = _BY_NAME[name]()
    return found
