"""Adam and its kin, with options in ``param_groups``."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia import ops
from mycelia.nn.optim.grouped.optimizer import Group, Optimizer, betas, flags, not_negative
from mycelia.tensor import Tensor


class _Moments(Optimizer):
    """Two running moments."""

    states: tuple[tuple[str, str, Any], ...] = (("exp_avg", "exp_avg", 0.0), ("exp_avg_sq", "exp_avg_sq", 0.0))

    def check_options(self, group: Group) -> None:
        betas(group, self._where)

    def moments(self, index: int, g: Tensor, group: Group) -> tuple[Any, Any]:
        """The moments after a gradient, which are stored."""
        beta1, beta2 = group["betas"]
        m, v = self.wide(self.exp_avg[index], self.exp_avg_sq[index])
        m, v = m * beta1 + g * (1.0 - beta1), v * beta2 + g * g * (1.0 - beta2)
        self.put(self.exp_avg[index], m)
        self.put(self.exp_avg_sq[index], v)
        return m, v


class Adam(_Moments):
    """Adam (Kingma and Ba, 2015): ``p = p - lr / (1 - beta1**t) * m / (sqrt(v) / sqrt(1 - beta2**t) + eps)``.

    Args:
        params: Parameters or groups.
        lr: at least 0.
        betas: rates of the moments, from 0 to below 1.
        eps: added to the denominator.
        weight_decay: decay added to the gradients.
        amsgrad: divide by the largest ``v`` so far (Reddi et al., 2018).
        maximize: go up instead of down.

    >>> import mycelia as ms
    >>> from mycelia.experimental import optim
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = optim.Adam([w], lr=0.1)((ms.Tensor([0.5, -3.0]),))
    >>> print(w.asnumpy().round(4))
    [0.9 2.1]
    """

    states = (*_Moments.states, ("max_exp_avg_sq", "max_exp_avg_sq", 0.0))
    counter = ("state_step", (), np.int32)
    _coupled = True

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        super().__init__(params, {**options, "maximize": maximize})

    def check_options(self, group: Group) -> None:
        super().check_options(group)
        flags(group, self._where, "amsgrad", "maximize")

    def construct(self, gradients: Any) -> Any:
        rows = self.rows(gradients, decayed=self._coupled)
        t = self.count()
        for i, param, p, g, lr, group in rows:
            beta1, beta2 = group["betas"]
            if not self._coupled and group["weight_decay"]:
                p = p * (1.0 - lr * float(group["weight_decay"]))
            m, v = self.moments(i, g, group)
            if group["amsgrad"]:
                (largest,) = self.wide(self.max_exp_avg_sq[i])
                v = ops.maximum(largest, v)
                self.put(self.max_exp_avg_sq[i], v)
            size = ops.sqrt(v) / ops.sqrt(1.0 - ops.pow(beta2, t)) + group["eps"]
            self.put(param, p - m / size * (lr / (1.0 - ops.pow(beta1, t))))
        return True


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019): ``p = p (1 - lr weight_decay)`` before the step.

    Args:
        params: Parameters or groups.
        lr: at least 0.
        betas: rates of the moments, from 0 to below 1.
        eps: added to the denominator.
        weight_decay: at least 0.
        amsgrad: divide by the largest ``v`` so far.
        maximize: go up instead of down.

    >>> import mycelia as ms
    >>> from mycelia.experimental import optim
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = optim.AdamW([w], lr=0.1, weight_decay=0.5)((ms.Tensor([0.5, -3.0]),))
    >>> print(w.asnumpy().round(4))
    [0.85 2.  ]
    """

    _coupled = False

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class Adamax(Optimizer):
    """Adamax (Kingma and Ba, 2015): ``u = max(beta2 u, |g| + eps)``, ``p = p - lr / (1 - beta1**t) * m / u``.

    Args:
        params: Parameters or groups.
        lr: at least 0.
        betas: rates of ``m`` and ``u``, from 0 to below 1.
        eps: at least 0.
        weight_decay: decay added to the gradients.
        maximize: go up instead of down.

    >>> import mycelia as ms
    >>> from mycelia.experimental import optim
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = optim.Adamax([w], lr=0.1)((ms.Tensor([0.5, -3.0]),))
    >>> print(w.asnumpy().round(4))
    [0.9 2.1]
    """

    states = (("exp_avg", "exp_avg", 0.0), ("exp_inf", "exp_inf", 0.0))

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, options)

    def check_options(self, group: Group) -> None:
        betas(group, self._where)
        flags(group, self._where, "maximize")

    def construct(self, gradients: Any) -> Any:
        rows = self.rows(gradients)
        t = self.count()
        for i, param, p, g, lr, group in rows:
            beta1, beta2 = group["betas"]
            m, u = self.wide(self.exp_avg[i], self.exp_inf[i])
            m, u = m * beta1 + g * (1.0 - beta1), ops.maximum(u * beta2, ops.abs(g) + group["eps"])
            self.put(self.exp_avg[i], m)
            self.put(self.exp_inf[i], u)
            self.put(param, p - m / u * (lr / (1.0 - ops.pow(beta1, t))))
        return True


class NAdam(_Moments):
    """Adam with Nesterov momentum (Dozat, 2016).

    Args:
        params: Parameters or groups.
        lr: at least 0.
        betas: rates of the moments, from 0 to below 1.
        eps: added to the denominator.
        weight_decay: decay added to the gradients.
        momentum_decay: how fast the momentum approaches ``beta1``.

    >>> import mycelia as ms
    >>> from mycelia.experimental import optim
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = optim.NAdam([w], lr=0.1)((ms.Tensor([0.5, -3.0]),))
    >>> print(w.asnumpy().round(4))
    [0.8944 2.1056]
    """

    states = (*_Moments.states, ("mu_product", "mu_product_", 1.0))

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, momentum_decay: float = 4e-3,
    ) -> None:  # fmt: skip
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**options, "momentum_decay": momentum_decay})

    def check_options(self, group: Group) -> None:
        super().check_options(group)
        not_negative(group, self._where, "momentum_decay")

    def construct(self, gradients: Any) -> Any:
        rows = self.rows(gradients)
        t = self.count()
        for i, param, p, g, lr, group in rows:
            (beta1, beta2), decay = group["betas"], group["momentum_decay"]
            mu = beta1 * (1.0 - 0.5 * ops.pow(0.96, t * decay))
            mu_next = beta1 * (1.0 - 0.5 * ops.pow(0.96, (t + 1.0) * decay))
            product = self.mu_product[i] * mu
            self.put(self.mu_product[i], product)
            m, v = self.moments(i, g, group)
            size = ops.sqrt(v / (1.0 - ops.pow(beta2, t))) + group["eps"]
            ahead = m * (lr * mu_next / (1.0 - product * mu_next))
            self.put(param, p - (g * (lr * (1.0 - mu) / (1.0 - product)) + ahead) / size)
        return True


class RAdam(_Moments):
    """Adam with a rectified rate while the second moment is uncertain (Liu et al., 2020).

    Args:
        params: Parameters or groups.
        lr: at least 0.
        betas: rates of the moments, from 0 to below 1.
        eps: added to the denominator.
        weight_decay: decay added to the gradients.

    >>> import mycelia as ms
    >>> from mycelia.experimental import optim
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = optim.RAdam([w], lr=0.1)((ms.Tensor([0.5, -3.0]),))
    >>> print(w.asnumpy().round(4))
    [0.95 2.3 ]
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def construct(self, gradients: Any) -> Any:
        rows = self.rows(gradients)
        t = self.count()
        for i, param, p, g, lr, group in rows:
            beta1, beta2 = group["betas"]
            m, v = self.moments(i, g, group)
            unbiased = m / (1.0 - ops.pow(beta1, t))
            rest = 1.0 - ops.pow(beta2, t)
            longest = 2.0 / (1.0 - beta2) - 1.0
            length = longest - 2.0 * t * ops.pow(beta2, t) / rest
            known = ops.maximum(length, 5.0)
            scale = longest / ((longest - 4.0) * (longest - 2.0))
            rectified = ops.sqrt((known - 4.0) * (known - 2.0) / known * scale)
            adaptive = rectified * ops.sqrt(rest) / (ops.sqrt(v) + group["eps"])
            self.put(param, p - unbiased * lr * ops.where(length > 5.0, adaptive, 1.0))
        return True
