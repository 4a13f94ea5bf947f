"""Training: Model, callbacks, metrics, mixed precision, checkpoints."""

from mycelia.train.amp import (
    DynamicLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
    build_train_network,
)
from mycelia.train.callback import (
    Callback,
    CheckpointConfig,
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    ModelCheckpoint,
    ReduceLROnPlateau,
    RunContext,
    TimeMonitor,
)
from mycelia.train.checkpoint import (
    load_checkpoint,
    load_checkpoint_async,
    load_param_into_net,
    save_checkpoint,
)
from mycelia.train.metrics import (
    F1,
    MAE,
    MSE,
    Accuracy,
    Fbeta,
    Loss,
    Metric,
    Precision,
    Recall,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
    get_metric_fn,
    names,
)
from mycelia.train.model import Model

__all__ = [
    "F1", "MAE", "MSE", "Accuracy", "Callback", "CheckpointConfig", "DynamicLossScaleManager", "EarlyStopping",
    "Fbeta", "FixedLossScaleManager", "History", "LambdaCallback", "LearningRateScheduler", "Loss",
    "LossMonitor", "LossScaleManager", "Metric", "Model", "ModelCheckpoint", "Precision", "Recall",
    "ReduceLROnPlateau", "RunContext", "TimeMonitor", "Top1CategoricalAccuracy", "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy", "build_train_network", "get_metric_fn", "load_checkpoint", "load_checkpoint_async",
    "load_param_into_net", "names", "save_checkpoint",
]  # fmt: skip
