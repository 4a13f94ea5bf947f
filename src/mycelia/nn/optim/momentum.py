"""Stochastic gradient descent, with and without momentum."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError
from mycelia.nn.optim.optimizer import Optimizer, check_number
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
        rates = self._rate_list()
        self.next_step()
        for p, v, g, lr in zip(self.parameters, self.moments, gradients, rates, strict=True):
            new = v * self.momentum + g
            self.put(v, new)
            step = g + new * self.momentum if self.use_nesterov else new
            self.put(p, p - step * lr)
        return True


class SGD(Optimizer):
    """Stochastic gradient descent: ``v = momentum * v + (1 - dampening) * g; p = p - lr * v``.

    The first step takes ``v = g``. With ``nesterov``: ``p = p - lr * (g + momentum * v)``.

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
        rates = self._rate_list()
        first = (self.global_step == 0).reshape(())
        self.next_step()
        for p, v, g, lr in zip(self.parameters, self.accum, gradients, rates, strict=True):
            if self._plain:
                self.put(p, p - g * lr)
                continue
            new = ops.where(first, g, v * self.momentum + g * (1.0 - self.dampening))
            self.put(v, new)
            step = g + new * self.momentum if self.nesterov else new
            self.put(p, p - step * lr)
        return True


class LARS(Optimizer):
    """Layer-wise adaptive rate scaling (You et al., 2017) around another optimizer.

    Args:
        optimizer: a ``Momentum`` or ``SGD``.
        epsilon: added to the denominator.
        coefficient: trust coefficient.
        use_clip: clip the local rate to the global one.
        lars_filter: which parameters are scaled; by default all but LayerNorm's and biases.
    """

    def __init__(
        self, optimizer: Optimizer, epsilon: float = 1e-5, coefficient: float = 1e-3, use_clip: bool = False,
        lars_filter: Any = lambda p: "LayerNorm" not in p.name and "bias" not in p.name,
    ) -> None:  # fmt: skip
        super().__init__(0.0, list(optimizer.parameters))
        self.optimizer = optimizer
        self.epsilon = check_number("LARS", "epsilon", epsilon)
        self.coefficient = check_number("LARS", "coefficient", coefficient)
        check_bool("LARS", "use_clip", use_clip)
        self.use_clip = use_clip
        self._scaled = [bool(lars_filter(p)) for p in self.parameters]

    def construct(self, gradients: Any) -> Any:
        self.check_gradients(gradients)
        decays = self.optimizer._decay_list()
        rates = self.optimizer._rate_list()
        out = []
        for p, g, d, lr, scaled in zip(self.parameters, gradients, decays, rates, self._scaled, strict=True):
            if not scaled:
                out.append(g)
                continue
            decay = 0.0 if d is None else d
            g = g * (1.0 / self.optimizer.loss_scale)
            p_norm, g_norm = ops.sqrt((p * p).sum()), ops.sqrt((g * g).sum())
            ratio = self.coefficient * p_norm / (g_norm + decay * p_norm + self.epsilon)
            ratio = ops.where(ops.logical_and(p_norm > 0, g_norm > 0), ratio, 1.0)
            if self.use_clip:
                ratio = ops.minimum(ratio / lr, 1.0)
            out.append((g + p * decay) * ratio * self.optimizer.loss_scale)
        decay_before = self.optimizer._decays
        self.optimizer.__dict__["_decays"] = [
            None if scaled else d for d, scaled in zip(decay_before, self._scaled, strict=True)
        ]  # fmt: skip
        try:
            self.optimizer.construct(tuple(out))
        finally:
            self.optimizer.__dict__["_decays"] = decay_before
        return True

