"""Cells around a network: loss, one training step, loss scaling."""

from mycelia.nn.wrap.loss_scale import (
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    TrainOneStepWithLossScaleCell,
)
from mycelia.nn.wrap.micro_batches import GradAccumulationCell, MicroBatchInterleaved, VirtualDatasetCellTriple
from mycelia.nn.wrap.train_step import (
    ForwardValueAndGrad,
    ParameterUpdate,
    TrainOneStepCell,
    WithEvalCell,
    WithGradCell,
    WithLossCell,
)

__all__ = [
    "DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell", "ForwardValueAndGrad", "GradAccumulationCell",
    "MicroBatchInterleaved", "ParameterUpdate", "TrainOneStepCell", "TrainOneStepWithLossScaleCell",
    "VirtualDatasetCellTriple", "WithEvalCell", "WithGradCell", "WithLossCell",
]  # fmt: skip
