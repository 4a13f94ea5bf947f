"""Optimizers that scale each element by the sizes of its gradients so far: Adagrad, Adadelta, RMSProp."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core.errors import ArgumentValueError
from mycelia.nn.optim.groups import check_number
from mycelia.nn.optim.optimizer import Optimizer
from mycelia.tensor.tensor import check_bool


class Adagrad(Optimizer):
    """Adagrad (Duchi et al., 2011): ``a = a + g**2``, ``p = p - lr * g / sqrt(a)``.

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        accum: first value of ``a``, at least 0.
        learning_rate: number, Tensor, sequence or schedule.
        update_slots: False keeps ``a`` as it is.
        loss_scale: gradients are divided by it.
        weight_decay: decay added to the gradients.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = ms.nn.Adagrad([w], accum=0.0, learning_rate=0.1)((ms.Tensor([0.5, -3.0]),))
    >>> print(w.asnumpy().round(4))
    [0.9 2.1]
    """

    def __init__(
        self, params: Any, accum: float = 0.1, learning_rate: Any = 0.001, update_slots: bool = True,
        loss_scale: float = 1.0, weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        start = check_number("Adagrad", "accum", accum)
        check_bool("Adagrad", "update_slots", update_slots)
        self.update_slots = update_slots
        self.accum = self.state("accum", start)

    def construct(self, grads: Any) -> Any:
        grads = self.prepared(grads)
        rates = self.rates()
        self.next_step()
        for param, accum, g, lr in zip(self.parameters, self.accum, grads, rates, strict=True):
            p, a, g = self.wide(param, accum, g)
            if self.update_slots:
                a = a + g * g
                self.put(accum, a)
            self.put(param, p - g * lr / ops.sqrt(a))
        return True


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012): steps scaled by the ratio of the running sizes of updates and gradients.

    ``a = rho a + (1 - rho) g**2``, ``update = sqrt((d + epsilon) / (a + epsilon)) * g``,
    ``d = rho d + (1 - rho) update**2``, ``p = p - lr * update``.

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        learning_rate: number, Tensor, sequence or schedule.
        rho: between 0 and 1.
        epsilon: at least 0.
        loss_scale: gradients are divided by it.
        weight_decay: decay added to the gradients.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = ms.nn.Adadelta([w], epsilon=1.0)((ms.Tensor([0.5, -3.0]),))
    >>> print(w.asnumpy().round(4))
    [0.5061 4.1764]
    """

    def __init__(
        self, params: Any, learning_rate: Any = 1.0, rho: float = 0.9, epsilon: float = 1e-6, loss_scale: float = 1.0,
        weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.rho = check_number("Adadelta", "rho", rho)
        if self.rho > 1:
            raise ArgumentValueError("Adadelta", "rho", got=repr(rho), takes="a number from 0 to 1")
        self.epsilon = check_number("Adadelta", "epsilon", epsilon)
        self.accum = self.state("accum")
        self.accum_update = self.state("accum_update")

    def construct(self, grads: Any) -> Any:
        grads = self.prepared(grads)
        rates = self.rates()
        self.next_step()
        rows = zip(self.parameters, self.accum, self.accum_update, grads, rates, strict=True)
        for param, accum, accum_update, g, lr in rows:
            p, a, d, g = self.wide(param, accum, accum_update, g)
            a = a * self.rho + g * g * (1.0 - self.rho)
            update = ops.sqrt((d + self.epsilon) / (a + self.epsilon)) * g
            self.put(accum, a)
            self.put(accum_update, d * self.rho + update * update * (1.0 - self.rho))
            self.put(param, p - update * lr)
        return True


class RMSProp(Optimizer):
    """RMSProp (Tieleman and Hinton, 2012).

    ``s = decay s + (1 - decay) g**2``, ``m = momentum m + lr g / sqrt(s + epsilon)``, ``p = p - m``; ``centered``
    subtracts from ``s`` the square of the running mean of the gradients (Graves, 2013).

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        learning_rate: number, Tensor, sequence or schedule.
        decay: at least 0.
        momentum: at least 0.
        epsilon: above 0.
        use_locking: kept for compatibility.
        centered: see above.
        loss_scale: gradients are divided by it.
        weight_decay: decay added to the gradients.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = ms.nn.RMSProp([w], learning_rate=0.1, decay=0.5)((ms.Tensor([1.0, -1.0]),))
    >>> print(w.asnumpy().round(4))
    [0.9 2.1]
    """

    def __init__(
        self, params: Any, learning_rate: Any = 0.1, decay: float = 0.9, momentum: float = 0.0, epsilon: float = 1e-10,
        use_locking: bool = False, centered: bool = False, loss_scale: float = 1.0, weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.decay = check_number("RMSProp", "decay", decay)
        self.momentum = check_number("RMSProp", "momentum", momentum)
        self.epsilon = check_number("RMSProp", "epsilon", epsilon, positive=True)
        check_bool("RMSProp", "use_locking", use_locking)
        check_bool("RMSProp", "centered", centered)
        self.centered = centered
        if centered:
            self.mg = self.state("mean_grad")
        self.ms = self.state("mean_square", "ones")
        self.moment = self.state("moment")

    def construct(self, gradients: Any) -> Any:
        gradients = self.prepared(gradients)
        rates = self.rates()
        self.next_step()
        rows = zip(self.parameters, self.ms, self.moment, gradients, rates, strict=True)
        for i, (param, mean_square, moment, g, lr) in enumerate(rows):
            p, s, m, g = self.wide(param, mean_square, moment, g)
            s = s * self.decay + g * g * (1.0 - self.decay)
            self.put(mean_square, s)
            if self.centered:
                (mean,) = self.wide(self.mg[i])
                mean = mean * self.decay + g * (1.0 - self.decay)
                self.put(self.mg[i], mean)
                s = s - mean * mean
            m = m * self.momentum + g * lr / ops.sqrt(s + self.epsilon)
            self.put(moment, m)
            self.put(param, p - m)
        return True
