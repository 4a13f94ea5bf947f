"""Optimizers that scale each element by the history of its gradients: Adagrad, Adadelta, RMSProp and others."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core.errors import ArgumentValueError
from mycelia.nn.optim.optimizer import Optimizer, check_number
from mycelia.tensor.tensor import check_bool


class Adagrad(Optimizer):
    """Adagrad (Duchi et al., 2011): ``a = a + g**2; p = p - lr * g / sqrt(a)``; ``accum`` is a's first value."""

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
        rates = self._rate_list()
        self.next_step()
        for p, a, g, lr in zip(self.parameters, self.accum, grads, rates, strict=True):
            new = a + g * g if self.update_slots else a
            if self.update_slots:
                self.put(a, new)
            self.put(p, p - g * lr / ops.sqrt(new))
        return True


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012): steps scaled by the ratio of the running sizes of updates and gradients."""

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
        rates = self._rate_list()
        self.next_step()
        for p, a, d, g, lr in zip(self.parameters, self.accum, self.accum_update, grads, rates, strict=True):
            new_a = a * self.rho + g * g * (1.0 - self.rho)
            update = ops.sqrt((d + self.epsilon) / (new_a + self.epsilon)) * g
            self.put(a, new_a)
            self.put(d, d * self.rho + update * update * (1.0 - self.rho))
            self.put(p, p - update * lr)
        return True


class RMSProp(Optimizer):
    """RMSProp (Tieleman and Hinton, 2012): ``s = decay s + (1 - decay) g**2``,
    ``m = momentum m + lr g / sqrt(s + epsilon)``, ``p = p - m``; ``centered`` subtracts the squared mean
    gradient from ``s`` (Graves, 2013)."""

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
        self.ms = self.state("mean_square", "ones" if not centered else "zeros")
        self.moment = self.state("moment")
        if centered:
            self.mg = self.state("mean_grad")

    def construct(self, gradients: Any) -> Any:
        gradients = self.prepared(gradients)
        rates = self._rate_list()
        self.next_step()
        for i, (p, s, m, g) in enumerate(zip(self.parameters, self.ms, self.moment, gradients, strict=True)):
            new_s = s * self.decay + g * g * (1.0 - self.decay)
            self.put(s, new_s)
            spread = new_s
            if self.centered:
                mean = self.mg[i] * self.decay + g * (1.0 - self.decay)
                self.put(self.mg[i], mean)
                spread = new_s - mean * mean
            new_m = m * self.momentum + g * rates[i] / ops.sqrt(spread + self.epsilon)
            self.put(m, new_m)
            self.put(p, p - new_m)
        return True
