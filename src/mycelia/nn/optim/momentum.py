"""Stochastic gradient descent, with and without momentum."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError
from mycelia.nn.optim.groups import check_number
from mycelia.nn.optim.optimizer import Optimizer
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.tensor import check_bool


class Momentum(Optimizer):
    """Momentum (Polyak, 1964): ``v = momentum * v + g; p = p - lr * v``.

    With ``use_nesterov``: ``p = p - lr * (g + momentum * v)`` (Sutskever et al., 2013).

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        learning_rate: number, Tensor, sequence or schedule.
        momentum: at least 0.
        weight_decay: decay added to the gradients.
        loss_scale: gradients are divided by it.
        use_nesterov: look ahead.

    >>> import mycelia as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> optimizer = ms.nn.Momentum(net.trainable_params(), learning_rate=0.1, momentum=0.9)
    """

    def __init__(
        self, params: Any, learning_rate: Any, momentum: float, weight_decay: Any = 0.0, loss_scale: float = 1.0,
        use_nesterov: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        value = check_number("Momentum", "momentum", momentum)
        check_bool("Momentum", "use_nesterov", use_nesterov)
        self.momentum = Parameter(Tensor(value, dt.float32), "momentum", requires_grad=False)
        self.use_nesterov = use_nesterov
        self.moments = self.state("moments")

    def construct(self, gradients: Any) -> Any:
        gradients = self.prepared(gradients)
        rates = self.rates()
        self.next_step()
        for param, moment, g, lr in zip(self.parameters, self.moments, gradients, rates, strict=True):
            p, v, g = self.wide(param, moment, g)
            v = v * self.momentum + g
            self.put(moment, v)
            step = g + v * self.momentum if self.use_nesterov else v
            self.put(param, p - step * lr)
        return True


class SGD(Optimizer):
    """Stochastic gradient descent: ``v = momentum * v + (1 - dampening) * g; p = p - lr * v``.

    The first step takes ``v = g``: ``stat`` holds ones until then. With ``nesterov``:
    ``p = p - lr * (g + momentum * v)``.

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        learning_rate: number, Tensor, sequence or schedule.
        momentum: at least 0.
        dampening: at least 0; must be 0 with ``nesterov``.
        weight_decay: decay added to the gradients.
        nesterov: look ahead; needs momentum.
        loss_scale: gradients are divided by it.

    >>> import mycelia as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> optimizer = ms.nn.SGD(net.trainable_params(), learning_rate=0.1)
    """

    def __init__(
        self, params: Any, learning_rate: Any = 0.1, momentum: float = 0.0, dampening: float = 0.0,
        weight_decay: Any = 0.0, nesterov: bool = False, loss_scale: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        value = check_number("SGD", "momentum", momentum)
        self.dampening = check_number("SGD", "dampening", dampening)
        check_bool("SGD", "nesterov", nesterov)
        if nesterov and (value == 0 or self.dampening != 0):
            raise ArgumentValueError(
                "SGD", "nesterov", got=f"True with momentum={momentum} and dampening={dampening}",
                takes="a momentum above 0 and no dampening",
            )  # fmt: skip
        self.nesterov = nesterov
        self._plain = value == 0
        self.momentum = Parameter(Tensor(value, dt.float32), "momentum", requires_grad=False)
        self.accum = self.state("accum")
        self.stat = self.state("stat", "ones")

    def construct(self, gradients: Any) -> Any:
        gradients = self.prepared(gradients)
        rates = self.rates()
        self.next_step()
        for param, accum, first, g, lr in zip(self.parameters, self.accum, self.stat, gradients, rates, strict=True):
            p, v, g = self.wide(param, accum, g)
            if self._plain:
                self.put(param, p - g * lr)
                continue
            v = ops.where(first > 0, g, v * self.momentum + g * (1.0 - self.dampening))
            self.put(accum, v)
            self.put(first, ops.zeros_like(first))
            step = g + v * self.momentum if self.nesterov else v
            self.put(param, p - step * lr)
        return True
