"""Learning rates and weight decays as Cells of the step: what an optimizer makes of numbers and sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia import ops
from mycelia.core.errors import ArgumentValueError
from mycelia.nn.cell import Cell
from mycelia.nn.learning_rate_schedule import LearningRateSchedule
from mycelia.tensor import Parameter, Tensor


class RateTable(LearningRateSchedule):
    """The i-th step takes the i-th value of a list; steps past the end take the last."""

    def __init__(self, values: np.ndarray[Any, Any], name: str) -> None:
        super().__init__()
        if values.ndim != 1 or not values.size:
            raise ArgumentValueError(
                "Optimizer", "learning_rate", got=f"a sequence of shape {values.shape}", takes="one value per step"
            )
        if not (values >= 0).all():
            raise ArgumentValueError(
                "Optimizer", "learning_rate", got=f"the rate {values.min()}", takes="rates of at least 0"
            )
        self.learning_rate = Parameter(Tensor(values), name, requires_grad=False)

    def construct(self, global_step: Tensor) -> Tensor:
        index = global_step.reshape(()).clip(0, self.learning_rate.shape[0] - 1)
        return self.learning_rate[index]


class FixedRate(LearningRateSchedule):
    """One rate for all steps, among schedules."""

    def __init__(self, learning_rate: Parameter) -> None:
        super().__init__()
        self.learning_rate = learning_rate

    def construct(self, global_step: Tensor) -> Tensor:
        return ops.identity(self.learning_rate)


class ScaledDecay(Cell):
    """A weight decay that follows the step, times the loss scale."""

    def __init__(self, weight_decay: Cell, loss_scale: float) -> None:
        super().__init__()
        self.weight_decay = weight_decay
        self.loss_scale = loss_scale

    def construct(self, global_step: Tensor) -> Any:
        decay = self.weight_decay(global_step)
        return decay if self.loss_scale == 1.0 else decay * self.loss_scale
