"""Adam and its kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia import ops
from mycelia.core.errors import ArgumentValueError, MissingKeyError
from mycelia.nn.optim.groups import check_number
from mycelia.nn.optim.optimizer import Optimizer
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.tensor import check_bool


def check_betas(where: str, beta1: Any, beta2: Any, eps: Any) -> tuple[float, float, float]:
    """The decay rates of the two moments and the term of the denominator, all positive, or an error by name."""
    return (
        check_number(where, "beta1", beta1, positive=True, below=1.0),
        check_number(where, "beta2", beta2, positive=True, below=1.0),
        check_number(where, "eps", eps, positive=True),
    )


def _power(name: str, shape: tuple[int, ...] = ()) -> Parameter:
    """A power of a decay rate, one before the first step."""
    return Parameter(Tensor(np.ones(shape, np.float32)), name, requires_grad=False)


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015).

    ``m = beta1 m + (1 - beta1) g``, ``v = beta2 v + (1 - beta2) g**2``,
    ``p = p - lr * sqrt(1 - beta2**t) / (1 - beta1**t) * m / (sqrt(v) + eps)``.

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        learning_rate: number, Tensor, sequence or schedule.
        beta1: between 0 and 1, exclusive.
        beta2: between 0 and 1, exclusive.
        eps: added to the denominator, above 0.
        use_locking: kept for compatibility.
        use_nesterov: use ``beta1 m + (1 - beta1) g`` in place of ``m`` (Dozat, 2016).
        weight_decay: decay added to the gradients (not the decoupled form).
        loss_scale: gradients are divided by it.
        use_amsgrad: divide by the largest ``v`` so far (Reddi et al., 2018).
        use_lazy: kept for compatibility: gradients are dense, so every element is updated.
        use_offload: kept for compatibility: the update runs where the parameters are.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: an argument out of range, or options that exclude each other.
        MissingKeyError: an unknown argument.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = ms.nn.Adam([w], learning_rate=0.1)((ms.Tensor([0.5, -3.0]),))
    >>> print(w.asnumpy().round(4))
    [0.9 2.1]
    """

    def __init__(
        self, params: Any, learning_rate: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
        use_locking: bool = False, use_nesterov: bool = False, weight_decay: Any = 0.0, loss_scale: float = 1.0,
        use_amsgrad: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        wrong = sorted(set(kwargs) - {"use_lazy", "use_offload"})
        if wrong:
            raise MissingKeyError("Adam", wrong[0], got=repr(kwargs[wrong[0]]), takes="no such argument")
        self.use_lazy, self.use_offload = kwargs.get("use_lazy", False), kwargs.get("use_offload", False)
        self.use_locking, self.use_nesterov, self.use_amsgrad = use_locking, use_nesterov, use_amsgrad
        for name in ("use_locking", "use_nesterov", "use_amsgrad", "use_lazy", "use_offload"):
            check_bool("Adam", name, getattr(self, name))
        if self.use_lazy + self.use_offload + use_amsgrad > 1:
            raise ArgumentValueError(
                "Adam", "use_amsgrad" if use_amsgrad else "use_lazy", got="True beside another of the three",
                takes="True for at most one of use_lazy, use_offload and use_amsgrad",
            )  # fmt: skip
        self.beta1, self.beta2, self.eps = check_betas("Adam", beta1, beta2, eps)
        self.beta1_power, self.beta2_power = _power("beta1_power"), _power("beta2_power")
        self.moment1 = self.state("moment1")
        self.moment2 = self.state("moment2")
        if use_amsgrad:
            self.vhat = self.state("vhat")

    def construct(self, gradients: Any) -> Any:
        gradients = self.prepared(gradients)
        rates = self.rates()
        self.next_step()
        self.put(self.beta1_power, self.beta1_power * self.beta1)
        self.put(self.beta2_power, self.beta2_power * self.beta2)
        correction = (ops.sqrt(1.0 - self.beta2_power) / (1.0 - self.beta1_power)).reshape(())
        rows = zip(self.parameters, self.moment1, self.moment2, gradients, rates, strict=True)
        for i, (param, moment1, moment2, g, lr) in enumerate(rows):
            p, m, v, g = self.wide(param, moment1, moment2, g)
            m = m * self.beta1 + g * (1.0 - self.beta1)
            v = v * self.beta2 + g * g * (1.0 - self.beta2)
            self.put(moment1, m)
            self.put(moment2, v)
            top = m * self.beta1 + g * (1.0 - self.beta1) if self.use_nesterov else m
            if self.use_amsgrad:
                (highest,) = self.wide(self.vhat[i])
                v = ops.maximum(highest, v)
                self.put(self.vhat[i], v)
            self.put(param, p - top * (lr * correction) / (ops.sqrt(v) + self.eps))
        return True


class _OlderAdam(Adam):
    """The older classes of Adam: fewer options, and powers of shape (1,)."""

    def __init__(
        self, params: Any, learning_rate: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
        use_locking: bool = False, use_nesterov: bool = False, weight_decay: Any = 0.0, loss_scale: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale)
        self.beta1_power, self.beta2_power = _power("beta1_power", (1,)), _power("beta2_power", (1,))


class LazyAdam(_OlderAdam):
    """The older name of ``Adam(use_lazy=True)``; gradients are dense here, so it updates as Adam does."""


class AdamOffload(_OlderAdam):
    """The older name of ``Adam(use_offload=True)``; the update runs where the parameters are."""


class AdamWeightDecay(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019) and without bias correction, as BERT is trained.

    ``p = p - lr * (m / (sqrt(v) + eps) + weight_decay * p)``.

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        learning_rate: number, Tensor, sequence or schedule.
        beta1: between 0 and 1, exclusive.
        beta2: between 0 and 1, exclusive.
        eps: added to the denominator, above 0.
        weight_decay: at least 0.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = ms.nn.AdamWeightDecay([w], 0.1, 0.5, 0.75, weight_decay=0.5)((ms.Tensor([1.0, 1.0]),))
    >>> print(w.asnumpy().round(4))
    [0.85 1.8 ]
    """

    def __init__(
        self, params: Any, learning_rate: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay)
        self.beta1, self.beta2, self.eps = check_betas("AdamWeightDecay", beta1, beta2, eps)
        self.moments1 = self.state("adam_m")
        self.moments2 = self.state("adam_v")

    def construct(self, gradients: Any) -> Any:
        self.check_gradients(gradients)
        decays, rates = self.decays(), self.rates()
        self.next_step()
        rows = zip(self.parameters, self.moments1, self.moments2, gradients, decays, rates, strict=True)
        for param, moment1, moment2, g, decay, lr in rows:
            p, m, v, g = self.wide(param, moment1, moment2, g)
            m = m * self.beta1 + g * (1.0 - self.beta1)
            v = v * self.beta2 + g * g * (1.0 - self.beta2)
            self.put(moment1, m)
            self.put(moment2, v)
            update = m / (ops.sqrt(v) + self.eps)
            self.put(param, p - (update if decay is None else update + p * decay) * lr)
        return True


class AdaMax(Optimizer):
    """AdaMax (Kingma and Ba, 2015): Adam with the infinity norm.

    ``u = max(beta2 u, |g|)``, ``p = p - lr / (1 - beta1**t) * m / (u + eps)``.

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        learning_rate: number, Tensor, sequence or schedule.
        beta1: between 0 and 1, exclusive.
        beta2: between 0 and 1, exclusive.
        eps: added to the denominator, above 0.
        weight_decay: decay added to the gradients.
        loss_scale: gradients are divided by it.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = ms.nn.AdaMax([w], learning_rate=0.1)((ms.Tensor([0.5, -3.0]),))
    >>> print(w.asnumpy().round(4))
    [0.9 2.1]
    """

    def __init__(
        self, params: Any, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08,
        weight_decay: Any = 0.0, loss_scale: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.beta1, self.beta2, self.eps = check_betas("AdaMax", beta1, beta2, eps)
        self.beta1_power = _power("beta1_power", (1,))
        self.moment1 = self.state("moment1")
        self.moment2 = self.state("moment2")

    def construct(self, gradients: Any) -> Any:
        gradients = self.prepared(gradients)
        rates = self.rates()
        self.next_step()
        self.put(self.beta1_power, self.beta1_power * self.beta1)
        correction = (1.0 / (1.0 - self.beta1_power)).reshape(())
        rows = zip(self.parameters, self.moment1, self.moment2, gradients, rates, strict=True)
        for param, moment1, moment2, g, lr in rows:
            p, m, u, g = self.wide(param, moment1, moment2, g)
            m = m * self.beta1 + g * (1.0 - self.beta1)
            u = ops.maximum(u * self.beta2, ops.abs(g))
            self.put(moment1, m)
            self.put(moment2, u)
            self.put(param, p - m / (u + self.eps) * (lr * correction))
        return True
