"""Training: Model, callbacks, metrics, mixed precision, checkpoints."""

from mycelia.train.amp import (
    DynamicLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
    build_train_network,
)
from mycelia.train.callback import (
    BackupAndRestore,
    Callback,
    CheckpointConfig,
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    ModelCheckpoint,
    OnRequestExit,
    ReduceLROnPlateau,
    RunContext,
    TimeMonitor,
)
from mycelia.train.checkpoint import (
    async_ckpt_thread_status,
    load_checkpoint,
    load_checkpoint_async,
    load_param_into_net,
    save_checkpoint,
)
from mycelia.train.metrics import (
    F1,
    MAE,
    MSE,
    ROC,
    Accuracy,
    BleuScore,
    ConfusionMatrix,
    ConfusionMatrixMetric,
    CosineSimilarity,
    Dice,
    Fbeta,
    HausdorffDistance,
    Loss,
    MeanSurfaceDistance,
    Metric,
    OcclusionSensitivity,
    Perplexity,
    Precision,
    Recall,
    RootMeanSquareDistance,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
    auc,
    get_metric_fn,
    names,
    rearrange_inputs,
)
from mycelia.train.model import Model

__all__ = [
    "F1", "MAE", "MSE", "ROC", "Accuracy", "BackupAndRestore", "BleuScore", "Callback", "CheckpointConfig",
    "ConfusionMatrix", "ConfusionMatrixMetric", "CosineSimilarity", "Dice", "DynamicLossScaleManager", "EarlyStopping",
    "Fbeta", "FixedLossScaleManager", "HausdorffDistance", "History", "LambdaCallback", "LearningRateScheduler", "Loss",
    "LossMonitor", "LossScaleManager", "MeanSurfaceDistance", "Metric", "Model", "ModelCheckpoint",
    "OcclusionSensitivity", "OnRequestExit", "Perplexity", "Precision", "Recall", "ReduceLROnPlateau",
    "RootMeanSquareDistance", "RunContext", "TimeMonitor", "Top1CategoricalAccuracy", "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy", "async_ckpt_thread_status", "auc", "build_train_network", "get_metric_fn",
    "load_checkpoint", "load_checkpoint_async", "load_param_into_net", "names", "rearrange_inputs", "save_checkpoint",
]  # fmt: skip
