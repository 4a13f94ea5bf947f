"""Training steps with a scaled loss: a step whose gradients overflow changes nothing but the scale."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.autodiff import value_and_grad
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.nn.cell import Cell
from mycelia.nn.optim.optimizer import check_number
from mycelia.nn.wrap.train_step import TrainOneStepCell
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import set_value


class FixedLossScaleUpdateCell(Cell):
    """A loss scale that stays; ``construct(loss_scale, overflow)`` passes the overflow on."""

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        self.loss_scale_value = check_number("FixedLossScaleUpdateCell", "loss_scale_value", loss_scale_value, positive=True)

    def get_loss_scale(self) -> float:
        """The scale."""
        return self.loss_scale_value

    def construct(self, _: Any, overflow: Tensor) -> Tensor:
        return overflow


class DynamicLossScaleUpdateCell(Cell):
    """A loss scale divided by ``scale_factor`` on overflow (not below 1) and multiplied by it after
    ``scale_window`` steps without; ``construct(loss_scale, overflow)`` stores the new scale.

    Args:
        loss_scale_value: the first scale.
        scale_factor: an int above 1.
        scale_window: steps without overflow before growing.
    """

    def __init__(self, loss_scale_value: float, scale_factor: int, scale_window: int) -> None:
        super().__init__()
        where = "DynamicLossScaleUpdateCell"
        self.loss_scale_value = check_number(where, "loss_scale_value", loss_scale_value, positive=True)
        self.scale_factor, self.scale_window = scale_factor, scale_window
        for name, n in (("scale_factor", scale_factor), ("scale_window", scale_window)):
            if isinstance(n, bool) or not isinstance(n, int) or n < 1:
                raise ArgumentValueError(where, name, got=repr(n), takes="an int above 0")
        self.good_steps = Parameter(Tensor(0, dt.int32), "good_steps", requires_grad=False)

    def get_loss_scale(self) -> float:
        """The first scale."""
        return self.loss_scale_value

    def construct(self, loss_scale: Any, overflow: Tensor) -> Tensor:
        good = ops.where(overflow, ops.zeros_like(self.good_steps), self.good_steps + 1)
        grown = good >= self.scale_window
        lower = ops.maximum(loss_scale / float(self.scale_factor), 1.0)
        higher = loss_scale * float(self.scale_factor)
        higher = ops.where(ops.isfinite(higher), higher, loss_scale)
        set_value(self.good_steps, ops.where(grown, ops.zeros_like(good), good).astype(dt.int32))
        set_value(loss_scale, ops.where(overflow, lower, ops.where(grown, higher, loss_scale)))
        return overflow


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """One training step with a scaled loss.

    Args:
        network: a Cell that returns the loss.
        optimizer: updates the parameters it was given.
        scale_sense: a Cell such as :class:`DynamicLossScaleUpdateCell`, or a Tensor with the scale.

    Returns:
        ``construct(*inputs)`` gives (loss, whether gradients overflowed, the scale used). On overflow
        parameters and the optimizer's state keep their values.
    """

    def __init__(self, network: Cell, optimizer: Any, scale_sense: Any) -> None:
        super().__init__(network, optimizer)
        self.loss_scaling_manager: Cell | None = None
        if isinstance(scale_sense, Cell):
            self.loss_scaling_manager = scale_sense
            first = Tensor(float(scale_sense.get_loss_scale()), dt.float32)  # type: ignore[operator]
        elif isinstance(scale_sense, Tensor):
            if scale_sense.size != 1:
                raise ArgumentValueError(
                    "TrainOneStepWithLossScaleCell", "scale_sense", got=f"shape {scale_sense.shape}", takes="one element"
                )
            first = Tensor(scale_sense.asnumpy().reshape(()), dt.float32)
        else:
            raise ArgumentTypeError(
                "TrainOneStepWithLossScaleCell", "scale_sense", got=type(scale_sense).__name__, takes="a Cell or a Tensor"
            )
        self.scale_sense = Parameter(first, "scale_sense", requires_grad=False)

    def construct(self, *inputs: Any) -> Any:
        scale = self.scale_sense.value()

        def scaled(*flow: Any) -> Any:
            loss = self.network(*flow)
            return loss * scale.astype(loss.dtype), loss

        (_, loss), gradients = value_and_grad(scaled, None, self.weights, has_aux=True)(*inputs)
        gradients = tuple(g * (1.0 / scale).astype(g.dtype) for g in gradients)
        overflow = self.get_overflow_status(gradients)
        self.update_unless(overflow, gradients)
        overflow = self.process_loss_scale(overflow)
        return loss, overflow, scale

    def get_overflow_status(self, gradients: Any) -> Tensor:
        """Whether some element of the gradients is NaN or infinite."""
        finite = None
        for g in gradients:
            one = ops.isfinite(g).all()
            finite = one if finite is None else ops.logical_and(finite, one)
        return ops.logical_not(finite)

    def process_loss_scale(self, overflow: Tensor) -> Tensor:
        """Adjust the scale; returns the overflow."""
        if self.loss_scaling_manager is not None:
            return self.loss_scaling_manager(self.scale_sense, overflow)
        return overflow

    def update_unless(self, overflow: Tensor, gradients: Any) -> None:
        """Let the optimizer update, then take its writes back where ``overflow`` holds."""
        touched = list(self.optimizer.get_parameters()) + [
            p for p in self.weights if all(p is not q for q in self.optimizer.get_parameters())
        ]  # fmt: skip
        before = [p.value() for p in touched]
        self.optimizer(tuple(ops.where(overflow, ops.zeros_like(g), g) for g in gradients))
        for p, old in zip(touched, before, strict=True):
            set_value(p, ops.where(overflow, old, p))

    def set_sense_scale(self, sens: Tensor) -> None:
        """Replace the scale."""
        self.scale_sense.set_data(sens)
