"""Rprop: steps by the signs of gradients alone."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.nn.optim.groups import check_number
from mycelia.nn.optim.optimizer import Optimizer


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993; the form without weight backtracking).

    Each element has a step size of its own, ``learning_rate`` at first. It is multiplied by ``etas[1]`` where
    the gradient keeps its sign, and by ``etas[0]`` where the sign changes; there the element waits for a step.

    Args:
        params: Parameters or groups (see :class:`Optimizer`).
        learning_rate: number, Tensor, sequence or schedule.
        etas: factors of the step size, the first between 0 and 1, the second above 1.
        step_sizes: the smallest and the largest step size.
        weight_decay: decay added to the gradients.

    Raises:
        ArgumentTypeError: ``etas`` or ``step_sizes`` is no tuple.
        ArgumentValueError: an argument out of range.

    >>> import mycelia as ms
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    >>> _ = ms.nn.Rprop([w], learning_rate=0.1)((ms.Tensor([0.5, -3.0]),))
    >>> print(w.asnumpy().round(4))
    [0.9 2.1]
    """

    def __init__(
        self, params: Any, learning_rate: Any = 0.1, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0), weight_decay: Any = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, params, weight_decay)
        for name, pair in (("etas", etas), ("step_sizes", step_sizes)):
            if not isinstance(pair, tuple):
                raise ArgumentTypeError("Rprop", name, got=type(pair).__name__, takes="a tuple of two numbers")
            if len(pair) != 2:
                raise ArgumentValueError("Rprop", name, got=f"{len(pair)} numbers", takes="two")
        self.etaminus = check_number("Rprop", "etas[0]", etas[0], positive=True, below=1.0)
        self.etaplus = check_number("Rprop", "etas[1]", etas[1])
        if self.etaplus <= 1:
            raise ArgumentValueError("Rprop", "etas", got=repr(etas), takes="a second number above 1")
        self.step_size_min = check_number("Rprop", "step_sizes[0]", step_sizes[0])
        self.step_size_max = check_number("Rprop", "step_sizes[1]", step_sizes[1])
        if self.step_size_min > self.step_size_max:
            raise ArgumentValueError(
                "Rprop", "step_sizes", got=repr(step_sizes), takes="the smallest before the largest"
            )
        self.prev = self.state("prev")
        self.step_size = self.state("step_size")

    def construct(self, gradients: Any) -> Any:
        gradients = self.prepared(gradients)
        rates = self.rates()
        first = (self.global_step == 0).reshape(())
        self.next_step()
        rows = zip(self.parameters, self.prev, self.step_size, gradients, rates, strict=True)
        for param, prev, step_size, g, lr in rows:
            p, before, size, g = self.wide(param, prev, step_size, g)
            turn = g * before
            turned = turn < 0
            size = ops.where(first, lr, size) * ops.where(turn > 0, self.etaplus, ops.where(turned, self.etaminus, 1.0))
            size = size.clip(self.step_size_min, self.step_size_max)
            g = ops.where(turned, 0.0, g)
            self.put(step_size, size)
            self.put(prev, g)
            self.put(param, p - ops.sign(g) * size)
        return True
