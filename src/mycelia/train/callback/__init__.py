"""Callbacks of training and evaluation."""

from mycelia.train.callback.base import (
    Callback,
    CallbackList as _CallbackManager,
    RunContext,
    RunState as _InternalCallbackParam,
)
from mycelia.train.callback.checkpoint import CheckpointConfig, ModelCheckpoint
from mycelia.train.callback.monitors import (
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    TimeMonitor,
)
from mycelia.train.callback.resuming import BackupAndRestore, OnRequestExit
from mycelia.train.callback.stopping import EarlyStopping, ReduceLROnPlateau

__all__ = [
    "BackupAndRestore", "Callback", "CheckpointConfig", "EarlyStopping", "History", "LambdaCallback",
    "LearningRateScheduler", "LossMonitor", "ModelCheckpoint", "OnRequestExit", "ReduceLROnPlateau", "RunContext",
    "TimeMonitor", "_CallbackManager", "_InternalCallbackParam",
]  # fmt: skip
