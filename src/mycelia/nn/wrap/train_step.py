"""Cells that put a network, a loss and an optimizer together: one step of training or of evaluation."""

from __future__ import annotations

from typing import Any

from mycelia.autodiff import grad, value_and_grad
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError
from mycelia.nn.cell import Cell
from mycelia.nn.optim.optimizer import Optimizer, check_number
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import set_value


class WithLossCell(Cell):
    """A network and its loss: ``construct(data, label) -> loss``.

    Args:
        backbone: the network.
        loss_fn: called with the network's output and the label.

    >>> import mycelia as ms
    >>> net = ms.nn.WithLossCell(ms.nn.Dense(2, 1), ms.nn.MSELoss())
    >>> net(ms.ops.ones((3, 2)), ms.ops.zeros((3, 1))).shape
    ()
    """

    def __init__(self, backbone: Any, loss_fn: Any) -> None:
        super().__init__(auto_prefix=False)
        for name, value in (("backbone", backbone), ("loss_fn", loss_fn)):
            if not callable(value):
                raise ArgumentTypeError("WithLossCell", name, got=type(value).__name__, takes="a Cell or function")
        self._backbone = backbone
        self._loss_fn = loss_fn

    def construct(self, data: Any, label: Any) -> Any:
        return self._loss_fn(self._backbone(data), label)

    @property
    def backbone_network(self) -> Any:
        """The network without its loss."""
        return self._backbone


class WithEvalCell(Cell):
    """Loss, output and label of a batch: ``construct(data, label) -> (loss, output, label)``.

    Args:
        network: the network.
        loss_fn: called with the network's output and the label.
        add_cast_fp32: convert output and label to float32 before the loss.
    """

    def __init__(self, network: Any, loss_fn: Any, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self._network = network
        self._loss_fn = loss_fn
        self.add_cast_fp32 = add_cast_fp32

    def construct(self, data: Any, label: Any) -> Any:
        outputs = self._network(data)
        if self.add_cast_fp32:
            outputs = outputs.astype(dt.float32)
            label = label.astype(dt.float32) if label.dtype.is_floating else label
        return self._loss_fn(outputs, label), outputs, label


class TrainOneStepCell(Cell):
    """One training step: forward, backward and update. In GRAPH_MODE it is one executable.

    Args:
        network: a Cell that returns the loss (see :class:`WithLossCell`).
        optimizer: updates the parameters it was given.
        sens: the cotangent of the loss (the loss scale).

    Returns:
        ``construct(*inputs)`` gives the loss.

    >>> import mycelia as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> step = ms.nn.TrainOneStepCell(ms.nn.WithLossCell(net, ms.nn.MSELoss()), ms.nn.SGD(net.trainable_params()))
    >>> step(ms.ops.ones((3, 2)), ms.ops.zeros((3, 1))).shape
    ()
    """

    def __init__(self, network: Cell, optimizer: Optimizer, sens: float = 1.0, return_grad: bool = False) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(network, Cell):
            raise ArgumentTypeError("TrainOneStepCell", "network", got=type(network).__name__, takes="a Cell")
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.sens = check_number("TrainOneStepCell", "sens", sens)
        self.return_grad = return_grad

    def construct(self, *inputs: Any) -> Any:
        loss, gradients = self.gradients(*inputs)
        self.optimizer(gradients)
        if self.return_grad:
            return loss, {p.name: g for p, g in zip(self.weights, gradients, strict=True)}
        return loss

    def gradients(self, *inputs: Any) -> Any:
        """The loss and the gradients of the weights, scaled by ``sens``."""
        if self.sens == 1.0:
            return value_and_grad(self.network, None, self.weights)(*inputs)

        def scaled(*flow: Any) -> Any:
            loss = self.network(*flow)
            return loss * self.sens, loss

        (_, loss), gradients = value_and_grad(scaled, None, self.weights, has_aux=True)(*inputs)
        return loss, gradients


class WithGradCell(Cell):
    """Gradients of a network's loss: ``construct(*inputs)`` gives one for each trainable parameter.

    Args:
        network: the network.
        loss_fn: called with the output and the label; without it the network returns the loss itself.
        sens: kept for compatibility.
    """

    def __init__(self, network: Any, loss_fn: Any = None, sens: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.network = network if loss_fn is None else WithLossCell(network, loss_fn)
        self.weights = tuple(network.trainable_params())
        self.network.set_train()

    def construct(self, *inputs: Any) -> Any:
        return grad(self.network, None, self.weights)(*inputs)


class ForwardValueAndGrad(Cell):
    """The loss of a network and its gradients.

    Args:
        network: returns the loss.
        weights: parameters to differentiate against, with ``get_by_list``.
        get_all: gradients of the inputs.
        get_by_list: gradients of the weights.
        sens_param: the last input is the cotangent of the loss.
    """

    def __init__(
        self, network: Any, weights: Any = None, get_all: bool = False, get_by_list: bool = False,
        sens_param: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(auto_prefix=False)
        self.network = network
        self.weights = weights
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def construct(self, *inputs: Any) -> Any:
        from mycelia.autodiff.api import Differentiated

        weights = self.weights if self.get_by_list else None
        positions = None if self.get_by_list and not self.get_all else 0
        return Differentiated(
            self.network, positions, weights, with_value=True, sens=self.sens_param, all_inputs=self.get_all
        )(*inputs)


class ParameterUpdate(Cell):
    """Overwrites a parameter: ``construct(value)`` stores it and returns it."""

    def __init__(self, param: Parameter) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(param, Parameter):
            raise ArgumentTypeError("ParameterUpdate", "param", got=type(param).__name__, takes="a Parameter")
        self._param = param

    def construct(self, x: Tensor) -> Tensor:
        set_value(self._param, x)
        return x
