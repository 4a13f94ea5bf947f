"""Callbacks of training and evaluation."""

from mycelia.train.callback.base import Callback, RunContext
from mycelia.train.callback.checkpoint import CheckpointConfig, ModelCheckpoint
from mycelia.train.callback.monitors import (
    History,
    LambdaCallback,
    LearningRateScheduler,
    LossMonitor,
    TimeMonitor,
)
from mycelia.train.callback.stopping import EarlyStopping, ReduceLROnPlateau

__all__ = [
    "Callback", "CheckpointConfig", "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler",
    "LossMonitor", "ModelCheckpoint", "ReduceLROnPlateau", "RunContext", "TimeMonitor",
]  # fmt: skip
