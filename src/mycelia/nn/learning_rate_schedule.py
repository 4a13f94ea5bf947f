"""Learning rates as functions of the step, computed inside the training graph.

Each schedule is a Cell called with the global step (an int32 Tensor) that returns the rate (float32).
Formulas are those of the field: exponential, natural exponential, inverse time, cosine (Loshchilov and
Hutter, 2017) and polynomial decay, and linear warm-up (Goyal et al., 2017).
"""

from __future__ import annotations

import math
from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.nn.cell import Cell
from mycelia.tensor import Tensor
from mycelia.tensor.tensor import check_bool


class LearningRateSchedule(Cell):
    """Base class: ``construct(global_step)`` returns the learning rate of the step.

    ``global_step`` is an int32 Tensor of one element, counted from 0; the rate is float32 of the same shape.

    >>> import mycelia as ms
    >>> class Halved(ms.nn.learning_rate_schedule.LearningRateSchedule):
    ...     def construct(self, global_step):
    ...         return 0.1 / (1 + global_step)
    >>> print(Halved()(ms.Tensor(1, ms.int32)))
    0.05
    """

    def construct(self, global_step: Tensor) -> Tensor:
        """The rate of a step; subclasses define it."""
        raise ArgumentTypeError(type(self).__name__, "construct", got="none", takes="a subclass that defines it")


def check_rate(where: str, argument: str, value: Any, *, zero: bool = False) -> float:
    """A float above 0 (or of at least 0), or an error by name."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="a float")
    if not value >= 0 or (value == 0 and not zero):
        limit = "of at least 0" if zero else "above 0"
        raise ArgumentValueError(where, argument, got=repr(value), takes=f"a number {limit}")
    return float(value)


def check_count(where: str, argument: str, value: Any) -> int:
    """An int above 0, or an error by name."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="an int")
    if value < 1:
        raise ArgumentValueError(where, argument, got=str(value), takes="an int above 0")
    return value


class _Decay(LearningRateSchedule):
    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        where = type(self).__name__
        self.learning_rate = check_rate(where, "learning_rate", learning_rate)
        self.decay_rate = check_rate(where, "decay_rate", decay_rate)
        self.decay_steps = check_count(where, "decay_steps", decay_steps)
        check_bool(where, "is_stair", is_stair)
        self.is_stair = is_stair

    def _exponent(self, global_step: Tensor) -> Tensor:
        p = global_step.astype(dt.float32) / float(self.decay_steps)
        return ops.floor(p) if self.is_stair else p


class ExponentialDecayLR(_Decay):
    """``learning_rate * decay_rate ** (step / decay_steps)``, the exponent floored if ``is_stair``.

    Args:
        learning_rate: the first rate, above 0.
        decay_rate: above 0.
        decay_steps: steps in which the rate is multiplied by ``decay_rate``.
        is_stair: multiply once every ``decay_steps`` steps.

    >>> import mycelia as ms
    >>> schedule = ms.nn.ExponentialDecayLR(0.1, 0.5, 2)
    >>> round(float(schedule(ms.Tensor(4, ms.int32))), 6)
    0.025
    """

    def construct(self, global_step: Tensor) -> Tensor:
        return self.learning_rate * ops.pow(self.decay_rate, self._exponent(global_step))


class NaturalExpDecayLR(_Decay):
    """``learning_rate * exp(-decay_rate * step)``.

    Args:
        learning_rate: the first rate, above 0.
        decay_rate: above 0.
        decay_steps: with ``is_stair``, steps between changes.
        is_stair: change once every ``decay_steps`` steps.

    >>> import mycelia as ms
    >>> round(float(ms.nn.NaturalExpDecayLR(0.1, 0.9, 4)(ms.Tensor(2, ms.int32))), 6)
    0.01653
    """

    def construct(self, global_step: Tensor) -> Tensor:
        step = global_step.astype(dt.float32)
        if self.is_stair:
            step = ops.floor(step / float(self.decay_steps)) * float(self.decay_steps)
        return self.learning_rate * ops.exp(-self.decay_rate * step)


class InverseDecayLR(_Decay):
    """``learning_rate / (1 + decay_rate * step / decay_steps)``, the quotient floored if ``is_stair``.

    Args:
        learning_rate: the first rate, above 0.
        decay_rate: above 0.
        decay_steps: steps after which the denominator has grown by ``decay_rate``.
        is_stair: change once every ``decay_steps`` steps.

    >>> import mycelia as ms
    >>> print(ms.nn.InverseDecayLR(0.1, 1.0, 4)(ms.Tensor(4, ms.int32)))
    0.05
    """

    def construct(self, global_step: Tensor) -> Tensor:
        return self.learning_rate / (1.0 + self.decay_rate * self._exponent(global_step))


class CosineDecayLR(LearningRateSchedule):
    """``min_lr + (max_lr - min_lr) * (1 + cos(pi * min(step, decay_steps) / decay_steps)) / 2``.

    Args:
        min_lr: the rate from ``decay_steps`` on, at least 0.
        max_lr: the first rate, above ``min_lr``.
        decay_steps: number of steps of the decay.

    >>> import mycelia as ms
    >>> round(float(ms.nn.CosineDecayLR(0.01, 0.1, 4)(ms.Tensor(2, ms.int32))), 6)
    0.055
    """

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__()
        where = type(self).__name__
        self.min_lr = check_rate(where, "min_lr", min_lr, zero=True)
        self.max_lr = check_rate(where, "max_lr", max_lr)
        self.decay_steps = check_count(where, "decay_steps", decay_steps)
        if self.min_lr >= self.max_lr:
            raise ArgumentValueError(where, "max_lr", got=repr(max_lr), takes=f"a value above min_lr, {min_lr}")

    def construct(self, global_step: Tensor) -> Tensor:
        step = ops.minimum(global_step.astype(dt.float32), float(self.decay_steps))
        return self.min_lr + 0.5 * (self.max_lr - self.min_lr) * (1.0 + ops.cos(step * (math.pi / self.decay_steps)))


class PolynomialDecayLR(LearningRateSchedule):
    """``(learning_rate - end) * (1 - step / decay_steps) ** power + end``.

    Args:
        learning_rate: the first rate, above 0.
        end_learning_rate: the last rate, at least 0.
        decay_steps: number of steps of the decay; the step stops there.
        power: above 0.
        update_decay_steps: stretch ``decay_steps`` to its next multiple instead.

    >>> import mycelia as ms
    >>> round(float(ms.nn.PolynomialDecayLR(0.1, 0.02, 4, 1.0)(ms.Tensor(2, ms.int32))), 6)
    0.06
    """

    def __init__(
        self, learning_rate: float, end_learning_rate: float, decay_steps: int, power: float,
        update_decay_steps: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        where = type(self).__name__
        self.learning_rate = check_rate(where, "learning_rate", learning_rate)
        self.end_learning_rate = check_rate(where, "end_learning_rate", end_learning_rate, zero=True)
        self.decay_steps = check_count(where, "decay_steps", decay_steps)
        self.power = check_rate(where, "power", power)
        check_bool(where, "update_decay_steps", update_decay_steps)
        self.update_decay_steps = update_decay_steps

    def construct(self, global_step: Tensor) -> Tensor:
        step = global_step.astype(dt.float32)
        steps: Any = float(self.decay_steps)
        if self.update_decay_steps:
            steps = steps * ops.maximum(ops.ceil(step / steps), 1.0)
        else:
            step = ops.minimum(step, steps)
        fraction = ops.pow(1.0 - step / steps, self.power)
        return (self.learning_rate - self.end_learning_rate) * fraction + self.end_learning_rate


class WarmUpLR(LearningRateSchedule):
    """``learning_rate * min(step, warmup_steps) / warmup_steps``.

    Args:
        learning_rate: the last rate, at least 0.
        warmup_steps: number of steps of the growth.

    >>> import mycelia as ms
    >>> print(ms.nn.WarmUpLR(0.1, 4)(ms.Tensor(2, ms.int32)))
    0.05
    """

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        where = type(self).__name__
        self.learning_rate = check_rate(where, "learning_rate", learning_rate, zero=True)
        self.warmup_steps = check_count(where, "warmup_steps", warmup_steps)

    def construct(self, global_step: Tensor) -> Tensor:
        step = ops.minimum(global_step.astype(dt.float32), float(self.warmup_steps))
        return self.learning_rate * step / float(self.warmup_steps)
