"""Metrics of evaluation, and their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.train.metrics.confusion import F1, Fbeta, Precision, Recall
from mycelia.train.metrics.error import MAE, MSE
from mycelia.train.metrics.metric import (
    Accuracy,
    Loss,
    Metric,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
)

_BY_NAME: dict[str, Callable[[], Metric]] = {
    "accuracy": Accuracy, "acc": Accuracy, "precision": Precision, "recall": Recall, "F1": F1, "loss": Loss, "mae": MAE,
    "mse": MSE, "top_1_accuracy": Top1CategoricalAccuracy, "top_5_accuracy": Top5CategoricalAccuracy,
}  # fmt: skip


def names() -> list[str]:
    """The names that stand for metrics."""
    return list(_BY_NAME)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Metric:
    """The metric of a name, made with the given arguments."""
    if name not in _BY_NAME:
        raise ArgumentValueError("get_metric_fn", "name", got=repr(name), takes=", ".join(map(repr, _BY_NAME)))
    return _BY_NAME[name](*args, **kwargs)


def get_metrics(metrics: Any) -> dict[str, Metric]:
    """Metrics by name, of a name, a dict of metrics, or a list or set of names."""
    if metrics is None:
        return {}
    if isinstance(metrics, str):
        metrics = [metrics]
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
    if isinstance(metrics, (set, list, tuple)):
        found: dict[str, Metric] = {}
        for item in metrics:
            if isinstance(item, str):
                found[item] = get_metric_fn(item)
            elif isinstance(item, Metric):
                found[type(item).__name__] = item
            else:
                raise ArgumentTypeError(
                    "Model", "metrics", got=f"an element of type {type(item).__name__}", takes="names"
                )
        return found
    raise ArgumentTypeError("Model", "metrics", got=type(metrics).__name__, takes="a dict, set or list")


__all__ = [
    "F1", "MAE", "MSE", "Accuracy", "Fbeta", "Loss", "Metric", "Precision", "Recall", "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "get_metric_fn", "get_metrics", "names",
]  # fmt: skip
