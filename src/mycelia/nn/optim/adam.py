"""Adam and its kin."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError
from mycelia.nn.optim.optimizer import Optimizer, check_number
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.tensor import check_bool


def _betas(where: str, beta1: Any, beta2: Any, eps: Any) -> tuple[float, float, float]:
    return (
        check_number(where, "beta1", beta1, positive=True, below=1.0),
        check_number(where, "beta2", beta2, positive=True, below=1.0),
        check_number(where, "eps", eps, positive=True),
    )


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

    >>> import mycelia as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> optimizer = ms.nn.Adam(net.trainable_params(), learning_rate=1e-3)
    """

    def __init__(
        self, params: Any, learning_rate: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
        use_locking: bool = False, use_nesterov: bool = False, weight_decay: Any = 0.0, loss_scale: float = 1.0,
        use_amsgrad: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        wrong = set(kwargs) - {"use_lazy", "use_offload"}
        if wrong:
            raise ArgumentValueError("Adam", sorted(wrong)[0], message=f"there is no argument '{sorted(wrong)[0]}'")
        self.beta1, self.beta2, self.eps = _betas("Adam", beta1, beta2, eps)
        for name, value in (("use_locking", use_locking), ("use_nesterov", use_nesterov), ("use_amsgrad", use_amsgrad)):
            check_bool("Adam", name, value)
        self.use_nesterov, self.use_amsgrad = use_nesterov, use_amsgrad
        self.beta1_power = Parameter(Tensor(1.0, dt.float32), "beta1_power", requires_grad=False)
        self.beta2_power = Parameter(Tensor(1.0, dt.float32), "beta2_power", requires_grad=False)
        self.moment1 = self.state("moment1")
        self.moment2 = self.state("moment2")
        if use_amsgrad:
            self.vhat = self.state("vhat")

    def construct(self, gradients: Any) -> Any:
        gradients = self.prepared(gradients)
        rates = self._rate_list()
        self.next_step()
        self.put(self.beta1_power, self.beta1_power * self.beta1)
        self.put(self.beta2_power, self.beta2_power * self.beta2)
        correction = ops.sqrt(1.0 - self.beta2_power) / (1.0 - self.beta1_power)
        for i, (p, m, v, g) in enumerate(zip(self.parameters, self.moment1, self.moment2, gradients, strict=True)):
            new_m = m * self.beta1 + g * (1.0 - self.beta1)
            new_v = v * self.beta2 + g * g * (1.0 - self.beta2)
            self.put(m, new_m)
            self.put(v, new_v)
            top = new_m * self.beta1 + g * (1.0 - self.beta1) if self.use_nesterov else new_m
            if self.use_amsgrad:
                new_v = ops.maximum(self.vhat[i], new_v)
                self.put(self.vhat[i], new_v)
            self.put(p, p - top * (rates[i] * correction) / (ops.sqrt(new_v) + self.eps))
        return True


class AdamWeightDecay(Optimizer):
    """Adam with decoupled weight decay and without bias correction (as BERT is trained).

    ``p = p - lr * (m / (sqrt(v) + eps) + weight_decay * p)``.

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        learning_rate: number, Tensor, sequence or schedule.
        beta1: between 0 and 1, exclusive.
        beta2: between 0 and 1, exclusive.
        eps: added to the denominator, above 0.
        weight_decay: at least 0.
    """

    def __init__(
        self, params: Any, learning_rate: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay)
        self.beta1, self.beta2, self.eps = _betas("AdamWeightDecay", beta1, beta2, eps)
        self.moments1 = self.state("adam_m")
        self.moments2 = self.state("adam_v")

    def construct(self, gradients: Any) -> Any:
        self.check_gradients(gradients)
        decays, rates = self._decay_list(), self._rate_list()
        self.next_step()
        rows = zip(self.parameters, self.moments1, self.moments2, gradients, decays, rates, strict=True)
        for p, m, v, g, decay, lr in rows:
            new_m = m * self.beta1 + g * (1.0 - self.beta1)
            new_v = v * self.beta2 + g * g * (1.0 - self.beta2)
            self.put(m, new_m)
            self.put(v, new_v)
            update = new_m / (ops.sqrt(new_v) + self.eps)
            self.put(p, p - (update if decay is None else update + p * decay) * lr)
        return True


class AdaMax(Optimizer):
    """AdaMax (Kingma and Ba, 2015): Adam with the infinity norm.

    ``u = max(beta2 u, |g|)``, ``p = p - lr / (1 - beta1**t) * m / (u + eps)``.
    """

    def __init__(
        self, params: Any, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08,
        weight_decay: Any = 0.0, loss_scale: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.beta1, self.beta2, self.eps = _betas("AdaMax", beta1, beta2, eps)
        self.beta1_power = Parameter(Tensor(1.0, dt.float32), "beta1_power", requires_grad=False)
        self.moment1 = self.state("moment1")
        self.moment2 = self.state("moment2")

    def construct(self, gradients: Any) -> Any:
        gradients = self.prepared(gradients)
        rates = self._rate_list()
        self.next_step()
        self.put(self.beta1_power, self.beta1_power * self.beta1)
        for p, m, u, g, lr in zip(self.parameters, self.moment1, self.moment2, gradients, rates, strict=True):
            new_m = m * self.beta1 + g * (1.0 - self.beta1)
            new_u = ops.maximum(u * self.beta2, ops.abs(g))
            self.put(m, new_m)
            self.put(u, new_u)
            self.put(p, p - new_m / (new_u + self.eps) * (lr / (1.0 - self.beta1_power)))
        return True


class Lamb(Optimizer):
    """LAMB (You et al., 2020): Adam's update scaled per layer by ``|p| / |update|``.

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        learning_rate: number, Tensor, sequence or schedule.
        beta1: between 0 and 1, exclusive.
        beta2: between 0 and 1, exclusive.
        eps: added to the denominator, above 0.
        weight_decay: decoupled decay.
    """

    def __init__(
        self, params: Any, learning_rate: Any, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay)
        self.beta1, self.beta2, self.eps = _betas("Lamb", beta1, beta2, eps)
        self.moments1 = self.state("lamb_m")
        self.moments2 = self.state("lamb_v")

    def construct(self, gradients: Any) -> Any:
        self.check_gradients(gradients)
        gradients = self.gradients_centralization(gradients)
        decays, rates = self._decay_list(), self._rate_list()
        self.next_step()
        t = self.global_step.reshape(()).astype(dt.float32)
        rows = zip(self.parameters, self.moments1, self.moments2, gradients, decays, rates, strict=True)
        for p, m, v, g, decay, lr in rows:
            new_m = m * self.beta1 + g * (1.0 - self.beta1)
            new_v = v * self.beta2 + g * g * (1.0 - self.beta2)
            self.put(m, new_m)
            self.put(v, new_v)
            unbiased_m = new_m / (1.0 - ops.pow(self.beta1, t))
            unbiased_v = new_v / (1.0 - ops.pow(self.beta2, t))
            update = unbiased_m / (ops.sqrt(unbiased_v) + self.eps)
            if decay is not None:
                update = update + p * decay
            p_norm, u_norm = ops.sqrt((p * p).sum()), ops.sqrt((update * update).sum())
            ratio = ops.where(ops.logical_and(p_norm > 0, u_norm > 0), p_norm / u_norm, 1.0)
            self.put(p, p - update * (ratio * lr))
        return True
