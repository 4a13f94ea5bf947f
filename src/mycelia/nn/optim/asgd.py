"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError
from mycelia.nn.cell import ParameterTuple
from mycelia.nn.optim.optimizer import Optimizer
from mycelia.tensor import Parameter, Tensor


class ASGD(Optimizer):
    """Averaged SGD (Polyak and Juditsky, 1992; rates after Bottou, 2010).

    ``p = p (1 - lambd eta) - eta g`` with ``eta = lr / (1 + lambd lr t) ** alpha``; ``ax`` holds the mean of ``p``
    since step ``t0`` (before that, ``p`` itself).

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        learning_rate: number, Tensor, sequence or schedule.
        lambd: decay term.
        alpha: power of the rate's decay.
        t0: step at which averaging starts.
        weight_decay: decay added to the gradients.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = ms.nn.ASGD([w], learning_rate=0.1, lambd=0.0)((ms.Tensor([0.5, -3.0]),))
    >>> print(w.asnumpy().round(4))
    [0.95 2.3 ]
    """

    def __init__(
        self, params: Any, learning_rate: Any = 0.1, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay)
        for name, value in (("lambd", lambd), ("alpha", alpha), ("t0", t0)):
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ArgumentTypeError("ASGD", name, got=f"{value!r} ({type(value).__name__})", takes="a number")
        self.lambd, self.alpha, self.t0 = float(lambd), float(alpha), float(t0)
        self.mu = self._scalars("mu_", 1.0)
        self.eta = self._scalars("eta_", 0.0)
        self.ax = self.state("ax_")

    def _scalars(self, prefix: str, value: float) -> ParameterTuple:
        return ParameterTuple(
            [Parameter(Tensor(np.float32(value)), f"{prefix}{p.name}", requires_grad=False) for p in self.parameters]
        )

    def construct(self, gradients: Any) -> Any:
        gradients = self.prepared(gradients)
        rates = self.rates()
        self.next_step()
        t = self.global_step.reshape(()).astype(dt.float32)
        next_mu = 1.0 / ops.maximum(t - self.t0, 1.0)
        rows = zip(self.parameters, self.mu, self.eta, self.ax, gradients, rates, strict=True)
        for param, mu, eta, average, g, lr in rows:
            p, ax, g = self.wide(param, average, g)
            eta_now = ops.where(t == 1.0, lr, eta)
            p = p * (1.0 - eta_now * self.lambd) - eta_now * g
            self.put(param, p)
            self.put(average, ops.where(mu != 1.0, ax + (p - ax) * mu, p))
            self.put(eta, lr / ops.pow(1.0 + lr * t * self.lambd, self.alpha))
            self.put(mu, next_mu)
        return True
