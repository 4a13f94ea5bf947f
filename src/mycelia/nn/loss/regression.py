"""Losses of numbers: differences, likelihoods of normal and Poisson distributions."""

from __future__ import annotations

import math
from typing import Any

from mycelia import ops
from mycelia.core.errors import ArgumentValueError
from mycelia.nn.layers import arguments as arg
from mycelia.nn.loss.base import LossBase


class L1Loss(LossBase):
    """``|logits - labels|``.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        logits: a tensor.
        labels: a tensor that broadcasts with it.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> import mycelia as ms
    >>> print(ms.nn.L1Loss()(ms.Tensor([1.0, 2.0]), ms.Tensor([2.0, 5.0])))
    2.0
    """

    def construct(self, logits: Any, labels: Any) -> Any:
        x, y = self._pair(logits, labels)
        return ops.l1_loss(x, y, self.reduction)


class L1LossExt(L1Loss):
    """:class:`L1Loss` under another name.

    >>> import mycelia as ms
    >>> print(ms.nn.L1LossExt("sum")(ms.Tensor([1.0, 2.0]), ms.Tensor([2.0, 5.0])))
    4.0
    """


class MAELoss(LossBase):
    """Mean absolute error; :class:`L1Loss` under another name.

    >>> import mycelia as ms
    >>> print(ms.nn.MAELoss()(ms.Tensor([1.0, 2.0]), ms.Tensor([2.0, 5.0])))
    2.0
    """

    def construct(self, logits: Any, label: Any) -> Any:
        x, y = self._pair(logits, label, ("logits", "label"))
        return ops.l1_loss(x, y, self.reduction)


class MSELoss(LossBase):
    """``(logits - labels) ** 2``.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        logits: a tensor.
        labels: a tensor that broadcasts with it.

    Raises:
        ShapeError: the shapes do not broadcast.

    >>> import mycelia as ms
    >>> print(ms.nn.MSELoss()(ms.Tensor([1.0, 2.0]), ms.Tensor([2.0, 5.0])))
    5.0
    """

    def construct(self, logits: Any, labels: Any) -> Any:
        x, y = self._pair(logits, labels)
        return ops.mse_loss(x, y, self.reduction)


class RMSELoss(LossBase):
    """Root of the mean squared error.

    >>> import mycelia as ms
    >>> print(ms.nn.RMSELoss()(ms.Tensor([3.0, 4.0]), ms.Tensor([0.0, 0.0])))
    3.535534
    """

    def __init__(self) -> None:
        super().__init__()
        self.MSELoss = MSELoss()

    def construct(self, logits: Any, label: Any) -> Any:
        return ops.sqrt(self.MSELoss(logits, label))


class SmoothL1Loss(LossBase):
    """``d ** 2 / (2 * beta)`` for differences d up to ``beta``, ``|d| - beta / 2`` beyond.

    Args:
        beta: where the two meet, at least 0 (0 is :class:`L1Loss`).
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    >>> import mycelia as ms
    >>> print(ms.nn.SmoothL1Loss()(ms.Tensor([0.5, 3.0]), ms.Tensor([0.0, 0.0])))
    [0.125 2.5  ]
    """

    def __init__(self, beta: float = 1.0, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.beta = arg.number("SmoothL1Loss", "beta", beta)
        arg.ordered("SmoothL1Loss", "beta", 0, beta)

    def construct(self, logits: Any, labels: Any) -> Any:
        x, y = self._pair(logits, labels)
        return ops.smooth_l1_loss(x, y, self.beta, self.reduction)


class HuberLoss(LossBase):
    """``d ** 2 / 2`` for differences d up to ``delta``, ``delta * (|d| - delta / 2)`` beyond.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        delta: where the two meet, a positive number.

    >>> import mycelia as ms
    >>> print(ms.nn.HuberLoss("none", 2.0)(ms.Tensor([1.0, 3.0]), ms.Tensor([0.0, 0.0])))
    [0.5 4. ]
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        if arg.number("HuberLoss", "delta", delta) <= 0:
            raise ArgumentValueError("HuberLoss", "delta", got=str(delta), takes="a positive number")
        self.delta = delta

    def construct(self, logits: Any, labels: Any) -> Any:
        x, y = self._pair(logits, labels)
        return ops.huber_loss(x, y, self.reduction, self.delta)


class GaussianNLLLoss(LossBase):
    """Negative logarithm of a normal density: ``(log(var) + (logits - labels) ** 2 / var) / 2``.

    Args:
        full: add the constant ``log(2 * pi) / 2``.
        eps: variances are raised to this.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Inputs:
        logits: means.
        labels: values, of the same shape.
        var: variances, of the same shape, or with a last axis of length 1, or without it.

    Raises:
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> print(ms.nn.GaussianNLLLoss()(ms.Tensor([1.0]), ms.Tensor([3.0]), ms.Tensor([1.0])))
    2.0
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        arg.flag("GaussianNLLLoss", "full", full)
        self.full = full
        if arg.number("GaussianNLLLoss", "eps", eps) <= 0:
            raise ArgumentValueError("GaussianNLLLoss", "eps", got=str(eps), takes="a positive number")
        self.eps = eps

    def construct(self, logits: Any, labels: Any, var: Any) -> Any:
        return ops.gaussian_nll_loss(logits, labels, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(LossBase):
    """Negative logarithm of a Poisson probability: ``exp(input) - target * input``.

    Args:
        log_input: ``input`` is the logarithm of the rate; False: the rate, ``input - target * log(input + eps)``.
        full: add Stirling's approximation of ``log(target!)`` where the target is above 1.
        eps: added to rates before their logarithm.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    >>> import mycelia as ms
    >>> print(ms.nn.PoissonNLLLoss()(ms.Tensor([0.0]), ms.Tensor([3.0])))
    1.0
    """

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        arg.flag("PoissonNLLLoss", "log_input", log_input)
        arg.flag("PoissonNLLLoss", "full", full)
        self.log_input, self.full = log_input, full
        if arg.number("PoissonNLLLoss", "eps", eps) <= 0:
            raise ArgumentValueError("PoissonNLLLoss", "eps", got=str(eps), takes="a positive number")
        self.eps = eps

    def construct(self, input: Any, target: Any) -> Any:
        x, y = self._pair(input, target, ("input", "target"))
        loss: Any = ops.exp(x) - y * x if self.log_input else x - y * ops.log(x + self.eps)
        if self.full:
            safe = ops.maximum(y, 1)
            stirling = safe * ops.log(safe) - safe + 0.5 * ops.log(2 * math.pi * safe)
            loss = loss + ops.where(y > 1, stirling, 0.0)
        return self._reduced(loss)
