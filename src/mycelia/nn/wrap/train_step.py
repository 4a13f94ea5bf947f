"""Cells that put a network, a loss and an optimizer together: one step of training or of evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia import ops
from mycelia.autodiff.api import Differentiated, GradOperation, value_and_grad
from mycelia.core import dtypes as dt, tree
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.nn.cell import Cell, ParameterTuple
from mycelia.nn.layers.reshaping import Identity
from mycelia.nn.optim.groups import check_number
from mycelia.nn.optim.optimizer import Optimizer
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import set_value
from mycelia.tensor.tensor import check_bool


def in_float32(nest: Any) -> Any:
    """The floating tensors of a nest as float32."""
    return tree.map_leaves(
        lambda x: ops.cast(x, dt.float32) if isinstance(x, Tensor) and x.dtype.is_floating else x, nest
    )


def _check_callable(where: str, **given: Any) -> None:
    for name, value in given.items():
        if not callable(value):
            raise ArgumentTypeError(where, name, got=type(value).__name__, takes="a Cell or function")


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
        _check_callable("WithLossCell", backbone=backbone, loss_fn=loss_fn)
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

    >>> import mycelia as ms
    >>> net = ms.nn.WithEvalCell(ms.nn.Dense(2, 1), ms.nn.MSELoss())
    >>> [x.shape for x in net(ms.ops.ones((3, 2)), ms.ops.zeros((3, 1)))]
    [(), (3, 1), (3, 1)]
    """

    def __init__(self, network: Any, loss_fn: Any, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        _check_callable("WithEvalCell", network=network, loss_fn=loss_fn)
        check_bool("WithEvalCell", "add_cast_fp32", add_cast_fp32)
        self._network = network
        self._loss_fn = loss_fn
        self.add_cast_fp32 = add_cast_fp32

    def construct(self, data: Any, label: Any) -> Any:
        outputs = self._network(data)
        if self.add_cast_fp32:
            outputs, label = in_float32(outputs), in_float32(label)
        return self._loss_fn(outputs, label), outputs, label


class TrainOneStepCell(Cell):
    """One training step: forward, backward and update. In GRAPH_MODE it is one executable.

    Subclasses that write their own ``construct`` find ``network``, ``optimizer``, ``weights``, ``grad`` (gradients
    of the weights, the cotangent of the loss as the last input), ``grad_no_sens``, ``grad_reducer`` and ``sens``.

    Args:
        network: a Cell that returns the loss (see :class:`WithLossCell`).
        optimizer: updates the parameters it was given.
        sens: the cotangent of the loss (the loss scale); not 0.
        return_grad: give the gradients too.

    Returns:
        ``construct(*inputs)`` gives the loss; with ``return_grad``, the loss and a dict of gradients by
        parameter name.

    Raises:
        ArgumentTypeError: ``network`` is not a Cell, or ``optimizer`` has no parameters.
        ArgumentValueError: ``sens`` is not above 0.

    >>> import mycelia as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> step = ms.nn.TrainOneStepCell(ms.nn.WithLossCell(net, ms.nn.MSELoss()), ms.nn.SGD(net.trainable_params()))
    >>> step(ms.ops.ones((3, 2)), ms.ops.zeros((3, 1))).shape
    ()
    """

    def __init__(self, network: Cell, optimizer: Any, sens: float | None = None, return_grad: bool = False) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(network, Cell):
            raise ArgumentTypeError("TrainOneStepCell", "network", got=type(network).__name__, takes="a Cell")
        if not isinstance(optimizer, Optimizer) and not (callable(optimizer) and hasattr(optimizer, "parameters")):
            raise ArgumentTypeError("TrainOneStepCell", "optimizer", got=type(optimizer).__name__, takes="an Optimizer")
        check_bool("TrainOneStepCell", "return_grad", return_grad)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.sense_flag = sens is not None
        self.sens = 1.0 if sens is None else check_number("TrainOneStepCell", "sens", sens, positive=True)
        self.return_grad = return_grad
        self.weights_name = [p.name for p in self.weights]
        self.grad = GradOperation(get_by_list=True, sens_param=True)
        self.grad_no_sens = GradOperation(get_by_list=True)
        self.reducer_flag = False
        self.grad_reducer = Identity()
        self.parallel_mode = "stand_alone"

    def construct(self, *inputs: Any) -> Any:
        loss, gradients = self.loss_and_gradients(self.sens, *inputs)
        self.optimizer(gradients)
        if self.return_grad:
            return loss, dict(zip(self.weights_name, gradients, strict=True))
        return loss

    def loss_and_gradients(self, sens: Any, *inputs: Any) -> Any:
        """The loss and the gradients of ``sens`` times the loss against the weights."""
        if isinstance(sens, float) and sens == 1.0:
            loss, gradients = value_and_grad(self.network, None, self.weights)(*inputs)
        else:
            factor = sens.astype if isinstance(sens, Tensor) else lambda dtype: sens

            def scaled(*flow: Any) -> Any:
                loss = self.network(*flow)
                return loss * factor(loss.dtype), loss

            (_, loss), gradients = value_and_grad(scaled, None, self.weights, has_aux=True)(*inputs)
        return loss, self.grad_reducer(gradients)


class WithGradCell(Cell):
    """Gradients of a network's loss: ``construct(*inputs)`` gives one for each trainable parameter.

    Args:
        network: the network.
        loss_fn: called with the output and the label; without it the network returns the loss itself.
        sens: the cotangent of the loss, a number or a Tensor of its shape; ones without it.

    >>> import mycelia as ms
    >>> net = ms.nn.WithGradCell(ms.nn.Dense(2, 1), ms.nn.MSELoss())
    >>> [g.shape for g in net(ms.ops.ones((3, 2)), ms.ops.zeros((3, 1)))]
    [(1, 2), (1,)]
    """

    def __init__(self, network: Any, loss_fn: Any = None, sens: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.loss_fn = loss_fn
        self.network_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)
        self.weights = ParameterTuple(network.trainable_params())
        self.sens = sens
        self.network_with_loss.set_train()

    def construct(self, *inputs: Any) -> Any:
        flow = inputs if self.sens is None else (*inputs, self.sens)
        return Differentiated(self.network_with_loss, None, self.weights, sens=self.sens is not None)(*flow)


class ForwardValueAndGrad(Cell):
    """The loss of a network and its gradients: ``construct(*inputs) -> (loss, gradients)``.

    Args:
        network: returns the loss; a Cell or function.
        weights: parameters to differentiate against, with ``get_by_list``.
        get_all: gradients of all inputs rather than of the first.
        get_by_list: gradients of the weights.
        sens_param: the last input is the cotangent of the loss.

    Raises:
        ArgumentTypeError: an argument of the wrong type.

    >>> import mycelia as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> both = ms.nn.ForwardValueAndGrad(net, net.trainable_params(), get_by_list=True)
    >>> loss, gradients = both(ms.ops.ones((3, 2)))
    >>> loss.shape, len(gradients)
    ((3, 1), 2)
    """

    def __init__(
        self, network: Callable[..., Any], weights: Any = None, get_all: bool = False, get_by_list: bool = False,
        sens_param: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(auto_prefix=False)
        _check_callable("ForwardValueAndGrad", network=network)
        for name, flag in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            check_bool("ForwardValueAndGrad", name, flag)
        if get_by_list and not isinstance(weights, (tuple, list)):
            raise ArgumentTypeError(
                "ForwardValueAndGrad", "weights", got=type(weights).__name__, takes="a tuple or list of Parameters"
            )
        self.network = network
        if isinstance(network, Cell):
            network.set_grad()
        self.weights = tuple(weights) if isinstance(weights, list) else weights
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def construct(self, *inputs: Any) -> Any:
        weights = self.weights if self.get_by_list else None
        positions = None if self.get_by_list and not self.get_all else 0
        return Differentiated(
            self.network, positions, weights, with_value=True, sens=self.sens_param, all_inputs=self.get_all
        )(*inputs)


class ParameterUpdate(Cell):
    """Overwrites a parameter: ``construct(value)`` stores it and returns it.

    Args:
        param: the parameter.

    Raises:
        ArgumentTypeError: ``param`` is not a Parameter.
        ArgumentValueError: at the call, the value has another shape.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
    >>> _ = ms.nn.ParameterUpdate(w)(ms.Tensor([2.0]))
    >>> print(w.asnumpy())
    [2.]
    """

    def __init__(self, param: Parameter) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(param, Parameter):
            raise ArgumentTypeError("ParameterUpdate", "param", got=type(param).__name__, takes="a Parameter")
        self._param = param

    def construct(self, x: Tensor) -> Tensor:
        if x.shape != self._param.shape:
            raise ArgumentValueError(
                "ParameterUpdate",
                "x",
                got=f"shape {x.shape}",
                takes=f"the shape of '{self._param.name}', {self._param.shape}",
            )
        set_value(self._param, x.astype(self._param.dtype) if x.dtype is not self._param.dtype else x)
        return x
