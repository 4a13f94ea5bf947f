"""Optimizers with a proximal step, which sets weights to exact zeros: FTRL and proximal Adagrad."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.nn.optim.groups import check_number
from mycelia.nn.optim.optimizer import Optimizer
from mycelia.tensor.tensor import check_bool


class FTRL(Optimizer):
    """Follow the regularized leader, proximal (McMahan et al., 2013).

    ``new = n + g**2``, ``z = z + g - (new**-lr_power - n**-lr_power) / lr * p``, ``n = new``, and ``p`` becomes
    ``(sign(z) l1 - z) / (n**-lr_power / lr + 2 l2)`` where ``|z| > l1``, else 0.

    Args:
        params: Parameters or groups (see :class:`Optimizer`); all ungrouped parameters are decayed.
        initial_accum: first value of ``n``, at least 0.
        learning_rate: a number above 0.
        lr_power: at most 0.
        l1: at least 0.
        l2: at least 0.
        use_locking: kept for compatibility.
        loss_scale: gradients are divided by it.
        weight_decay: decay added to the gradients.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: an argument out of range, a rate that changes, or a group with a rate of its own.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([0.0, 0.0]), name="w")
    >>> _ = ms.nn.FTRL([w], initial_accum=0.0, learning_rate=0.1, l1=1.0)((ms.Tensor([2.0, 0.5]),))
    >>> print(w.asnumpy().round(4))
    [-0.05  0.  ]
    """

    def __init__(
        self, params: Any, initial_accum: float = 0.1, learning_rate: Any = 0.001, lr_power: float = -0.5,
        l1: float = 0.0, l2: float = 0.0, use_locking: bool = False, loss_scale: float = 1.0, weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        if self.dynamic_lr or self.is_group_lr:
            raise ArgumentValueError("FTRL", "learning_rate", got="rates of steps or groups", takes="one number")
        check_number("FTRL", "learning_rate", learning_rate, positive=True)
        start = check_number("FTRL", "initial_accum", initial_accum)
        if isinstance(lr_power, bool) or not isinstance(lr_power, (int, float)):
            raise ArgumentTypeError("FTRL", "lr_power", got=f"{lr_power!r}", takes="a number of at most 0")
        if lr_power > 0:
            raise ArgumentValueError("FTRL", "lr_power", got=repr(lr_power), takes="a number of at most 0")
        self.l1, self.l2 = check_number("FTRL", "l1", l1), check_number("FTRL", "l2", l2)
        check_bool("FTRL", "use_locking", use_locking)
        self.lr, self.lr_power, self.use_locking = learning_rate, float(lr_power), use_locking
        if not self.is_group:
            self.decay_flags = (True,) * self.param_length
            self._decays = [self._decay(weight_decay)] * self.param_length
        self.moments = self.state("moments", start)
        self.linear = self.state("linear")

    def construct(self, grads: Any) -> Any:
        grads = self.prepared(grads)
        rates = self.rates()
        self.next_step()
        for param, moment, linear, g, lr in zip(self.parameters, self.moments, self.linear, grads, rates, strict=True):
            p, n, z, g = self.wide(param, moment, linear, g)
            new = n + g * g
            power, new_power = ops.pow(n, -self.lr_power), ops.pow(new, -self.lr_power)
            z = z + g - (new_power - power) / lr * p
            self.put(moment, new)
            self.put(linear, z)
            shrunk = (ops.sign(z) * self.l1 - z) / (new_power / lr + 2.0 * self.l2)
            self.put(param, ops.where(ops.abs(z) > self.l1, shrunk, 0.0))
        return True


class ProximalAdagrad(Optimizer):
    """Adagrad with a proximal step (Duchi and Singer, 2009).

    ``a = a + g**2``, ``r = lr / sqrt(a)``, ``q = p - r g``, and ``p`` becomes
    ``sign(q) max(|q| - r l1, 0) / (1 + r l2)``.

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        accum: first value of ``a``, at least 0.
        learning_rate: number, Tensor, sequence or schedule.
        l1: at least 0.
        l2: at least 0.
        use_locking: kept for compatibility.
        loss_scale: gradients are divided by it.
        weight_decay: decay added to the gradients.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = ms.nn.ProximalAdagrad([w], accum=0.0, learning_rate=0.1, l1=0.5)((ms.Tensor([1.0, -1.0]),))
    >>> print(w.asnumpy().round(4))
    [0.85 2.05]
    """

    def __init__(
        self, params: Any, accum: float = 0.1, learning_rate: Any = 0.001, l1: float = 0.0, l2: float = 0.0,
        use_locking: bool = False, loss_scale: float = 1.0, weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        start = check_number("ProximalAdagrad", "accum", accum)
        self.l1, self.l2 = check_number("ProximalAdagrad", "l1", l1), check_number("ProximalAdagrad", "l2", l2)
        check_bool("ProximalAdagrad", "use_locking", use_locking)
        self.accum = self.state("accum", start)

    def construct(self, grads: Any) -> Any:
        grads = self.prepared(grads)
        rates = self.rates()
        self.next_step()
        for param, accum, g, lr in zip(self.parameters, self.accum, grads, rates, strict=True):
            p, a, g = self.wide(param, accum, g)
            a = a + g * g
            self.put(accum, a)
            rate = lr / ops.sqrt(a)
            moved = p - rate * g
            if self.l1 > 0:
                moved = ops.sign(moved) * ops.maximum(ops.abs(moved) - rate * self.l1, 0.0)
            self.put(param, moved / (1.0 + rate * self.l2))
        return True
