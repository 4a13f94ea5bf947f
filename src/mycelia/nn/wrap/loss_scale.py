"""Training steps with a scaled loss: a step whose gradients overflow changes nothing but the scale.

Loss scaling follows Micikevicius et al. (2018).
"""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt, tree
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.frontend.jit import jit
from mycelia.nn.cell import Cell
from mycelia.nn.optim.groups import check_number
from mycelia.nn.wrap.train_step import TrainOneStepCell
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import set_value, value_in_graph
from mycelia.tensor.mode import is_staging
from mycelia.tensor.tensor import wrap


@jit
def _finite(tensors: tuple[Tensor, ...]) -> Any:
    result = ops.isfinite(tensors[0]).all()
    for t in tensors[1:]:
        result = ops.logical_and(result, ops.isfinite(t).all())
    return result


def all_finite(inputs: Any) -> Tensor:
    """Whether every element of every tensor of a nest is finite: a zero-dimensional bool Tensor.

    >>> import mycelia as ms
    >>> print(ms.amp.all_finite((ms.Tensor([1.0]), ms.Tensor([float("inf")]))))
    False
    """
    tensors = tuple([x for x in tree.leaves(inputs) if isinstance(x, Tensor) and x.dtype.is_inexact])
    return _finite(tensors) if tensors else Tensor(True)


@jit
def multiplied(inputs: Any, factor: Tensor) -> Any:
    """Every tensor of a nest times ``factor``, in its own dtype."""
    return tree.map_leaves(lambda x: x * ops.cast(factor, x.dtype) if isinstance(x, Tensor) else x, inputs)


def current(tensor: Tensor) -> Tensor:
    """What a tensor holds now, untouched by later writes to it."""
    return wrap(value_in_graph(tensor)) if is_staging() else tensor._snapshot()


class FixedLossScaleUpdateCell(Cell):
    """A loss scale that stays; ``construct(loss_scale, overflow)`` passes the overflow on.

    Args:
        loss_scale_value: the scale, above 0.

    >>> import mycelia as ms
    >>> ms.nn.FixedLossScaleUpdateCell(1024).get_loss_scale()
    1024.0
    """

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        self.loss_scale_value = check_number(
            "FixedLossScaleUpdateCell", "loss_scale_value", loss_scale_value, positive=True
        )

    def get_loss_scale(self) -> float:
        """The scale."""
        return self.loss_scale_value

    def construct(self, _: Any, overflow: Tensor) -> Tensor:
        return overflow


class DynamicLossScaleUpdateCell(Cell):
    """A loss scale that follows the gradients.

    On overflow it is divided by ``scale_factor`` (not below 1); after ``scale_window`` steps without overflow it is
    multiplied by it (as long as it stays finite). ``construct(loss_scale, overflow)`` stores the new scale.

    Args:
        loss_scale_value: the first scale, above 0.
        scale_factor: an int above 0.
        scale_window: steps without overflow before growing, above 0.

    >>> import mycelia as ms
    >>> cell = ms.nn.DynamicLossScaleUpdateCell(1024, scale_factor=2, scale_window=1000)
    >>> scale = ms.Parameter(ms.Tensor(1024.0), name="scale")
    >>> _ = cell(scale, ms.Tensor(True))
    >>> print(scale.asnumpy())
    512.0
    """

    def __init__(self, loss_scale_value: float, scale_factor: int, scale_window: int) -> None:
        super().__init__()
        where = "DynamicLossScaleUpdateCell"
        self.loss_scale_value = check_number(where, "loss_scale_value", loss_scale_value, positive=True)
        for name, n in (("scale_factor", scale_factor), ("scale_window", scale_window)):
            if isinstance(n, bool) or not isinstance(n, int) or n < 1:
                raise ArgumentValueError(where, name, got=repr(n), takes="an int above 0")
        self.scale_factor, self.scale_window = scale_factor, scale_window
        self.cur_iter = Parameter(Tensor(1, dt.int32), "current_iterator_step", requires_grad=False)
        self.last_overflow_iter = Parameter(Tensor(0, dt.int32), "last_overflow_iterator_step", requires_grad=False)

    def get_loss_scale(self) -> float:
        """The first scale."""
        return self.loss_scale_value

    def construct(self, loss_scale: Any, overflow: Tensor) -> Tensor:
        step = current(self.cur_iter)
        due = step - self.last_overflow_iter >= self.scale_window
        lower = ops.maximum(loss_scale / float(self.scale_factor), 1.0)
        higher = loss_scale * float(self.scale_factor)
        higher = ops.where(ops.logical_and(due, ops.isfinite(higher)), higher, loss_scale)
        set_value(self.last_overflow_iter, ops.where(ops.logical_or(overflow, due), step, self.last_overflow_iter))
        set_value(self.cur_iter, step + 1)
        set_value(loss_scale, ops.where(overflow, lower, higher))
        return overflow


class _UpdateUnless(Cell):
    """An optimizer's update, taken back where ``overflow`` holds; one graph, if the optimizer is one."""

    def __init__(self, optimizer: Any) -> None:
        super().__init__(auto_prefix=False)
        self._jit_requested = bool(getattr(optimizer, "_jit_requested", False))
        self.optimizer = optimizer

    def construct(self, overflow: Tensor, gradients: Any) -> Any:
        before = [(p, current(p)) for p in self.optimizer.get_parameters()]
        self.optimizer(gradients)
        restore(overflow, before)
        return True


def restore(overflow: Tensor, before: list[tuple[Parameter, Tensor]]) -> None:
    """Give parameters that were written since the value they had, where ``overflow`` holds."""
    for p, old in before:
        if current(p)._value is not old._value:
            set_value(p, ops.where(overflow, old, p))


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """One training step with a scaled loss.

    On overflow the parameters, the running statistics of the network and the optimizer's state keep their values.
    Subclasses that write their own ``construct`` find ``scale_sense``, ``get_overflow_status``,
    ``process_loss_scale`` and what :class:`TrainOneStepCell` has.

    Args:
        network: a Cell that returns the loss.
        optimizer: updates the parameters it was given.
        scale_sense: a Cell such as :class:`DynamicLossScaleUpdateCell`, or a Tensor with the scale.

    Returns:
        ``construct(*inputs)`` gives (loss, whether gradients overflowed, the scale used).

    Raises:
        ArgumentTypeError: ``scale_sense`` is neither a Cell nor a Tensor.
        ArgumentValueError: it is a Tensor of another shape than () or (1,).

    >>> import mycelia as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> with_loss = ms.nn.WithLossCell(net, ms.nn.MSELoss())
    >>> scale = ms.nn.DynamicLossScaleUpdateCell(2**12, 2, 1000)
    >>> step = ms.nn.TrainOneStepWithLossScaleCell(with_loss, ms.nn.SGD(net.trainable_params()), scale)
    >>> loss, overflow, used = step(ms.ops.ones((3, 2)), ms.ops.zeros((3, 1)))
    >>> print(overflow, used)
    False 4096.0
    """

    def __init__(self, network: Cell, optimizer: Any, scale_sense: Any) -> None:
        super().__init__(network, optimizer)
        where = "TrainOneStepWithLossScaleCell"
        self.loss_scaling_manager: Cell | None = None
        if isinstance(scale_sense, Cell):
            self.loss_scaling_manager = scale_sense
            first = Tensor(float(scale_sense.get_loss_scale()), dt.float32)
        elif isinstance(scale_sense, Tensor):
            if scale_sense.shape not in ((), (1,)):
                raise ArgumentValueError(
                    where, "scale_sense", got=f"shape {scale_sense.shape}", takes="shape () or (1,)"
                )
            first = Tensor(scale_sense.asnumpy(), dt.float32)
        else:
            raise ArgumentTypeError(where, "scale_sense", got=type(scale_sense).__name__, takes="a Cell or a Tensor")
        self.scale_sense = Parameter(first, "scale_sense", requires_grad=False)
        self.update_unless = _UpdateUnless(optimizer)

    def construct(self, *inputs: Any) -> Any:
        scale = current(self.scale_sense)
        updated = {id(p) for p in self.optimizer.get_parameters()}
        before = [(p, current(p)) for p in self.network.get_parameters() if id(p) not in updated]
        loss, gradients = self.loss_and_gradients(scale, *inputs)
        gradients = multiplied(gradients, 1.0 / scale)
        overflow = self.get_overflow_status(None, gradients)
        restore(overflow, before)
        self.update_unless(overflow, gradients)
        self.process_loss_scale(overflow)
        return loss, overflow, scale

    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> tuple[Tensor, Any]:
        """A status to hand to :meth:`get_overflow_status`, and ``compute_input`` as it is."""
        return Tensor([0] * 8, dt.int32), compute_input

    def get_overflow_status(self, status: Any, compute_output: Any) -> Tensor:
        """Whether some element of ``compute_output`` is NaN or infinite; ``status`` is kept for compatibility."""
        return ops.logical_not(all_finite(compute_output))

    def process_loss_scale(self, overflow: Tensor) -> Tensor:
        """Adjust the scale; returns the overflow."""
        if self.loss_scaling_manager is not None:
            self.loss_scaling_manager(self.scale_sense, overflow)
        return overflow

    def set_sense_scale(self, sens: Tensor) -> None:
        """Replace the scale.

        Raises:
            ArgumentTypeError: ``sens`` is not a Tensor.
        """
        if not isinstance(sens, Tensor):
            raise ArgumentTypeError("set_sense_scale", "sens", got=type(sens).__name__, takes="a Tensor")
        self.scale_sense.set_data(sens)
