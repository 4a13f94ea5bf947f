"""Networks: Cell, layers, losses, optimizers, learning-rate schedules and training wrappers."""

import importlib as _importlib
from typing import Any

from mycelia.nn import layer, loss, optim, wrap
from mycelia.nn.cell import Cell, ParameterTuple
from mycelia.nn.dynamic_lr import *  # noqa: F403
from mycelia.nn.dynamic_lr import __all__ as _rates
from mycelia.nn.graph_cell import GraphCell
from mycelia.nn.initializer import no_init_parameters
from mycelia.nn.layers import *  # noqa: F403
from mycelia.nn.layers import __all__ as _layers
from mycelia.nn.learning_rate_schedule import (
    CosineDecayLR,
    ExponentialDecayLR,
    InverseDecayLR,
    LearningRateSchedule,
    NaturalExpDecayLR,
    PolynomialDecayLR,
    WarmUpLR,
)
from mycelia.nn.loss import *  # noqa: F403
from mycelia.nn.loss import __all__ as _losses
from mycelia.nn.optim import *  # noqa: F403
from mycelia.nn.optim import __all__ as _optimizers
from mycelia.nn.wrap import *  # noqa: F403
from mycelia.nn.wrap import __all__ as _wrappers

__all__ = [
    "Cell", "CosineDecayLR", "ExponentialDecayLR", "GraphCell", "InverseDecayLR", "LearningRateSchedule",
    "NaturalExpDecayLR", "ParameterTuple", "PolynomialDecayLR", "WarmUpLR", "layer", "loss", "no_init_parameters",
    "optim", "wrap",
]  # fmt: skip
__all__ += [*_layers, *_losses, *_optimizers, *_rates, *_wrappers]  # noqa: PLE0604

# Metrics stood here before they moved to `train`, which is a layer above.
_METRICS = frozenset({
    "Accuracy", "BleuScore", "ConfusionMatrix", "ConfusionMatrixMetric", "CosineSimilarity", "Dice", "F1", "Fbeta",
    "HausdorffDistance", "Loss", "MAE", "MSE", "MeanSurfaceDistance", "Metric", "OcclusionSensitivity", "Perplexity",
    "Precision", "ROC", "Recall", "RootMeanSquareDistance", "Top1CategoricalAccuracy", "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy", "auc", "get_metric_fn", "get_metrics", "names", "rearrange_inputs",
})  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _METRICS:
        return getattr(_importlib.import_module("mycelia.train.metrics"), name)
    raise AttributeError(f"module 'mycelia.nn' has no attribute '{name}'")
