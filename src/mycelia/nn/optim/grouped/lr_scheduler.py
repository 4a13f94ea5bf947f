"""Schedules that set the rates in an optimizer's ``param_groups``, one ``step()`` after another.

They run in Python, between the steps of the training; the optimizer reads its rates from Parameters, so that no graph
is made anew. Rates are computed in double precision from the number of the step, so that they do not drift. If another
schedule (or the user) has changed a rate meanwhile, the change is kept as a factor.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, MissingKeyError, StateError
from mycelia.nn.optim.grouped.optimizer import Optimizer, number
from mycelia.tensor import Tensor

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler",
    "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR",
    "StepLR",
]  # fmt: skip


def _check_optimizer(where: str, optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise ArgumentTypeError(
            where,
            "optimizer",
            got=type(optimizer).__name__,
            takes="an optimizer with param_groups (experimental.optim)",
        )


def _check_int(where: str, name: str, value: Any, least: int = 1) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentTypeError(where, name, got=f"{value!r} ({type(value).__name__})", takes="an int")
    if value < least:
        raise ArgumentValueError(where, name, got=str(value), takes=f"an int of at least {least}")


def _rate(group: Any) -> float:
    return float(group["lr"].asnumpy())


class LRScheduler:
    """Base class: ``get_lr`` gives the rates of all groups for ``last_epoch``.

    A rate is ``base_lr * factor(epoch)``: a subclass defines ``factor``, or ``get_lr`` itself.

    Args:
        optimizer: one of ``experimental.optim``.
        last_epoch: the step to go on from; -1 to start.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: ``last_epoch`` below -1.
        MissingKeyError: a group has no ``initial_lr`` to go on from.

    >>> import mycelia as ms
    >>> from mycelia.experimental.optim import SGD, lr_scheduler
    >>> class Halved(lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [rate / 2**self.last_epoch for rate in self.base_lrs]
    >>> optimizer = SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=0.5)
    >>> scheduler = Halved(optimizer)
    >>> scheduler.step()
    >>> print(scheduler.get_last_lr()[0])
    0.25
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        where = type(self).__name__
        _check_optimizer(where, optimizer)
        _check_int(where, "last_epoch", last_epoch, -1)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _rate(group))
            elif "initial_lr" not in group:
                raise MissingKeyError(
                    where, "last_epoch", got=f"{last_epoch} without 'initial_lr' in group {i}", takes="-1"
                )
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._factors = [1.0] * len(self.base_lrs)  # of changes from outside
        self._set_before = list(self.base_lrs)
        if last_epoch >= 0:
            self._set_before = self.get_lr()
        self.step()

    def factor(self, epoch: int) -> float:
        """What the first rate is multiplied by at a step."""
        raise StateError(type(self).__name__, message="the class defines neither 'factor' nor 'get_lr'")

    def get_lr(self) -> list[Any]:
        """The rates for ``last_epoch``."""
        factor = self.factor(self.last_epoch)
        return [base * factor * other for base, other in zip(self.base_lrs, self._factors, strict=True)]

    def get_last_lr(self) -> list[Tensor]:
        """The rates now."""
        return [rate.value() for rate in self.optimizer.lrs]

    def step(self, epoch: int | None = None) -> None:
        """Go one step on, or to a step, and set the rates."""
        if epoch is None:
            self.last_epoch += 1
            for i, (group, before) in enumerate(zip(self.optimizer.param_groups, self._set_before, strict=True)):
                now = _rate(group)
                if before and np.float32(before) != np.float32(now):
                    self._factors[i] *= now / before
        else:
            self.last_epoch = int(epoch)
            self._factors = [1.0] * len(self.base_lrs)
        self._set(self.get_lr())

    def _set(self, rates: Sequence[Any]) -> None:
        self._set_before = [float(rate.asnumpy()) if isinstance(rate, Tensor) else float(rate) for rate in rates]
        for group, rate in zip(self.optimizer.param_groups, self._set_before, strict=True):
            group["lr"] = rate


class StepLR(LRScheduler):
    """``base_lr * gamma ** (step // step_size)``.

    Args:
        optimizer: one of ``experimental.optim``.
        step_size: steps between changes.
        gamma: the factor of a change.
        last_epoch: the step to go on from; -1 to start.

    >>> import mycelia as ms
    >>> from mycelia.experimental.optim import SGD, lr_scheduler
    >>> optimizer = SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=0.5)
    >>> scheduler = lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     scheduler.step()
    >>> print(scheduler.get_last_lr()[0])
    0.125
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        _check_int("StepLR", "step_size", step_size)
        number("StepLR", "gamma", gamma, lambda v: True, "a number")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return float(self.gamma ** (epoch // self.step_size))


class MultiStepLR(LRScheduler):
    """``base_lr * gamma ** n`` with ``n`` the number of milestones reached.

    Args:
        optimizer: one of ``experimental.optim``.
        milestones: a list of steps.
        gamma: the factor of a change.
        last_epoch: the step to go on from; -1 to start.

    >>> import mycelia as ms
    >>> from mycelia.experimental.optim import SGD, lr_scheduler
    >>> optimizer = SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=0.5)
    >>> scheduler = lr_scheduler.MultiStepLR(optimizer, [1, 3], 0.5)
    >>> scheduler.step()
    >>> print(scheduler.get_last_lr()[0])
    0.25
    """

    def __init__(self, optimizer: Optimizer, milestones: list[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        if not isinstance(milestones, list):
            raise ArgumentTypeError("MultiStepLR", "milestones", got=type(milestones).__name__, takes="a list of ints")
        for milestone in milestones:
            _check_int("MultiStepLR", "milestones", milestone, 0)
        number("MultiStepLR", "gamma", gamma, lambda v: True, "a number")
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return float(self.gamma ** bisect_right(sorted(self.milestones.elements()), epoch))


class ExponentialLR(LRScheduler):
    """``base_lr * gamma ** step``.

    Args:
        optimizer: one of ``experimental.optim``.
        gamma: the factor of a step.
        last_epoch: the step to go on from; -1 to start.

    >>> import mycelia as ms
    >>> from mycelia.experimental.optim import SGD, lr_scheduler
    >>> optimizer = SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=0.5)
    >>> scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    >>> scheduler.step()
    >>> print(scheduler.get_last_lr()[0])
    0.25
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        number("ExponentialLR", "gamma", gamma, lambda v: True, "a number")
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return float(self.gamma**epoch)


class LinearLR(LRScheduler):
    """``base_lr`` times a factor that goes from one value to another in ``total_iters`` steps.

    Args:
        optimizer: one of ``experimental.optim``.
        start_factor: above 0, at most 1.
        end_factor: from 0 to 1.
        total_iters: steps of the change.
        last_epoch: the step to go on from; -1 to start.

    >>> import mycelia as ms
    >>> from mycelia.experimental.optim import SGD, lr_scheduler
    >>> optimizer = SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=0.5)
    >>> scheduler = lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)
    >>> scheduler.step()
    >>> print(scheduler.get_last_lr()[0])
    0.375
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        number("LinearLR", "start_factor", start_factor, lambda v: 0 < v <= 1, "a number above 0, at most 1")
        number("LinearLR", "end_factor", end_factor, lambda v: 0 <= v <= 1, "a number from 0 to 1")
        _check_int("LinearLR", "total_iters", total_iters)
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        done = min(self.total_iters, epoch) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * done


class ConstantLR(LRScheduler):
    """``base_lr * factor`` for ``total_iters`` steps, then ``base_lr``.

    Args:
        optimizer: one of ``experimental.optim``.
        factor: from 0 to 1.
        total_iters: number of steps.
        last_epoch: the step to go on from; -1 to start.

    >>> import mycelia as ms
    >>> from mycelia.experimental.optim import SGD, lr_scheduler
    >>> optimizer = SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=0.5)
    >>> print(lr_scheduler.ConstantLR(optimizer, 0.5).get_last_lr()[0])
    0.25
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        number("ConstantLR", "factor", factor, lambda v: 0 <= v <= 1, "a number from 0 to 1")
        _check_int("ConstantLR", "total_iters", total_iters, 0)
        self._factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return 1.0 if epoch >= self.total_iters else self._factor


class PolynomialLR(LRScheduler):
    """``base_lr * (1 - step / total_iters) ** power``, 0 from ``total_iters`` on.

    Args:
        optimizer: one of ``experimental.optim``.
        total_iters: steps of the decay.
        power: at least 0.
        last_epoch: the step to go on from; -1 to start.

    >>> import mycelia as ms
    >>> from mycelia.experimental.optim import SGD, lr_scheduler
    >>> optimizer = SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=0.5)
    >>> scheduler = lr_scheduler.PolynomialLR(optimizer, 4)
    >>> scheduler.step()
    >>> print(scheduler.get_last_lr()[0])
    0.375
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        _check_int("PolynomialLR", "total_iters", total_iters)
        number("PolynomialLR", "power", power, lambda v: v >= 0, "a number of at least 0")
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        return float((1.0 - min(self.total_iters, epoch) / self.total_iters) ** self.power)


class _ByFunction(LRScheduler):
    """A function of the step for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        where = type(self).__name__
        _check_optimizer(where, optimizer)
        groups = len(optimizer.param_groups)
        given = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(given) != groups:
            raise ArgumentValueError(
                where, "lr_lambda", got=f"{len(given)} functions", takes=f"one for each of {groups} groups"
            )
        for fn in given:
            if not callable(fn):
                raise ArgumentTypeError(where, "lr_lambda", got=type(fn).__name__, takes="a function")
        self.lr_lambdas: list[Callable[[int], float]] = given
        super().__init__(optimizer, last_epoch)


class LambdaLR(_ByFunction):
    """``base_lr * lr_lambda(step)``.

    Args:
        optimizer: one of ``experimental.optim``.
        lr_lambda: a function of the step, or one for each group.
        last_epoch: the step to go on from; -1 to start.

    >>> import mycelia as ms
    >>> from mycelia.experimental.optim import SGD, lr_scheduler
    >>> optimizer = SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=0.5)
    >>> scheduler = lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    >>> scheduler.step()
    >>> print(scheduler.get_last_lr()[0])
    0.25
    """

    def get_lr(self) -> list[Any]:
        return [base * fn(self.last_epoch) for base, fn in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_ByFunction):
    """The rate times ``lr_lambda(step)`` at each step.

    Args:
        optimizer: one of ``experimental.optim``.
        lr_lambda: a function of the step, or one for each group.
        last_epoch: the step to go on from; -1 to start.

    >>> import mycelia as ms
    >>> from mycelia.experimental.optim import SGD, lr_scheduler
    >>> optimizer = SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=0.5)
    >>> scheduler = lr_scheduler.MultiplicativeLR(optimizer, lambda step: 0.5)
    >>> scheduler.step()
    >>> print(scheduler.get_last_lr()[0])
    0.25
    """

    def get_lr(self) -> list[Any]:
        rates = [_rate(group) for group in self.optimizer.param_groups]
        if self.last_epoch == 0:
            return rates
        return [rate * fn(self.last_epoch) for rate, fn in zip(rates, self.lr_lambdas, strict=True)]


class CosineAnnealingLR(LRScheduler):
    """``eta_min + (base_lr - eta_min) * (1 + cos(pi step / T_max)) / 2`` (Loshchilov and Hutter, 2017).

    Args:
        optimizer: one of ``experimental.optim``.
        T_max: steps from the largest to the smallest rate.
        eta_min: the smallest rate.
        last_epoch: the step to go on from; -1 to start.

    >>> import mycelia as ms
    >>> from mycelia.experimental.optim import SGD, lr_scheduler
    >>> optimizer = SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=0.5)
    >>> scheduler = lr_scheduler.CosineAnnealingLR(optimizer, 2)
    >>> scheduler.step()
    >>> print(scheduler.get_last_lr()[0])
    0.25
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        _check_int("CosineAnnealingLR", "T_max", T_max)
        number("CosineAnnealingLR", "eta_min", eta_min, lambda v: True, "a number")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that starts again after ``T_0`` steps, then ``T_0 * T_mult``, ... (Loshchilov and Hutter, 2017).

    Args:
        optimizer: one of ``experimental.optim``.
        T_0: steps up to the first restart.
        T_mult: how much longer each period is than the one before.
        eta_min: the smallest rate.
        last_epoch: the step to go on from; -1 to start.

    >>> import mycelia as ms
    >>> from mycelia.experimental.optim import SGD, lr_scheduler
    >>> optimizer = SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=0.5)
    >>> scheduler = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2)
    >>> scheduler.step(2)
    >>> print(scheduler.get_last_lr()[0])
    0.5
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0, last_epoch: int = -1
    ) -> None:
        where = "CosineAnnealingWarmRestarts"
        _check_int(where, "T_0", T_0)
        _check_int(where, "T_mult", T_mult)
        number(where, "eta_min", eta_min, lambda v: True, "a number")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Go one step on, or to a step, whole or not."""
        at = self.last_epoch + 1 if epoch is None else epoch
        if at < 0:
            raise ArgumentValueError(type(self).__name__, "epoch", got=str(epoch), takes="a number of at least 0")
        self._at = at
        self.last_epoch = math.floor(at)
        self._set(self.get_lr())

    def get_lr(self) -> list[float]:
        at, period = self._at, self.T_0
        if self.T_mult == 1:
            at %= period
        while at >= period:
            at, period = at - period, period * self.T_mult
        share = (1 + math.cos(math.pi * at / period)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CyclicLR(LRScheduler):
    """Rates that go up and down between two bounds (Smith, 2017).

    Args:
        optimizer: one of ``experimental.optim``.
        base_lr: lower bound, or one for each group.
        max_lr: upper bound, or one for each group.
        step_size_up: steps upwards.
        step_size_down: steps downwards; as many by default.
        mode: ``"triangular"``, ``"triangular2"`` (half the height each cycle) or ``"exp_range"``
            (``gamma ** step`` of the height).
        gamma: see ``mode``.
        scale_fn: a function to scale the height with, in place of ``mode``.
        scale_mode: ``"cycle"`` or ``"iterations"``: what ``scale_fn`` is a function of.
        last_epoch: the step to go on from; -1 to start.

    >>> import mycelia as ms
    >>> from mycelia.experimental.optim import SGD, lr_scheduler
    >>> optimizer = SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=0.5)
    >>> scheduler = lr_scheduler.CyclicLR(optimizer, 0.25, 0.75, step_size_up=2)
    >>> scheduler.step()
    >>> print(scheduler.get_last_lr()[0])
    0.5
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", last_epoch: int = -1,
    ) -> None:  # fmt: skip
        where = "CyclicLR"
        _check_optimizer(where, optimizer)
        shapes: dict[str, Callable[[float], float]] = {
            "triangular": lambda x: 1.0, "triangular2": lambda x: 0.5 ** (x - 1), "exp_range": lambda x: gamma**x,
        }  # fmt: skip
        if scale_fn is None and mode not in shapes:
            raise ArgumentValueError(where, "mode", got=repr(mode), takes=", ".join(map(repr, shapes)))
        if scale_mode not in ("cycle", "iterations"):
            raise ArgumentValueError(where, "scale_mode", got=repr(scale_mode), takes="'cycle' or 'iterations'")
        self.mode, self.gamma, self.max_lrs = mode, gamma, self._each(optimizer, "max_lr", max_lr)
        self.scale_fn = shapes[mode] if scale_fn is None else scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        lower = self._each(optimizer, "base_lr", base_lr)
        self._lower = lower
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lower

    @staticmethod
    def _each(optimizer: Optimizer, name: str, value: Any) -> list[float]:
        groups = len(optimizer.param_groups)
        given = list(value) if isinstance(value, (list, tuple)) else [value] * groups
        if len(given) != groups:
            raise ArgumentValueError(
                "CyclicLR", name, got=f"{len(given)} rates", takes=f"one for each of {groups} groups"
            )
        return [float(v) for v in given]

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        return [low + (high - low) * height for low, high in zip(self._lower, self.max_lrs, strict=True)]


class SequentialLR:
    """One scheduler after another.

    Args:
        optimizer: the optimizer of all the schedulers.
        schedulers: a list of schedulers.
        milestones: the steps at which the next one starts, one less than schedulers.
        last_epoch: the step to go on from; -1 to start.

    Raises:
        ArgumentValueError: a scheduler of another optimizer, or another number of milestones.

    >>> import mycelia as ms
    >>> from mycelia.experimental.optim import SGD, lr_scheduler
    >>> optimizer = SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=0.5)
    >>> parts = [lr_scheduler.ConstantLR(optimizer, 0.5, 9), lr_scheduler.ExponentialLR(optimizer, 0.5)]
    >>> scheduler = lr_scheduler.SequentialLR(optimizer, parts, [1])
    >>> scheduler.step()
    >>> print(scheduler.get_last_lr()[0])
    0.5
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[Any], milestones: list[int], last_epoch: int = -1
    ) -> None:
        where = "SequentialLR"
        _check_optimizer(where, optimizer)
        for i, scheduler in enumerate(schedulers):
            if getattr(scheduler, "optimizer", None) is not optimizer:
                raise ArgumentValueError(
                    where, "schedulers", got=f"another optimizer at {i}", takes="schedulers of 'optimizer'"
                )
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentValueError(
                where,
                "milestones",
                got=f"{len(milestones)} steps",
                takes=f"one less than the {len(schedulers)} schedulers",
            )
        self.optimizer, self._schedulers, self.milestones = optimizer, list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        self._schedulers[0].step(0)

    def step(self) -> None:
        """Go one step on and set the rates."""
        self.last_epoch += 1
        current = bisect_right(self.milestones, self.last_epoch)
        if current and self.milestones[current - 1] == self.last_epoch:
            self._schedulers[current].step(0)
        else:
            self._schedulers[current].step()

    def get_last_lr(self) -> list[Tensor]:
        """The rates now."""
        return [rate.value() for rate in self.optimizer.lrs]


class ReduceLROnPlateau:
    """Multiplies the rates by ``factor`` when a value has stopped getting better.

    Args:
        optimizer: one of ``experimental.optim``.
        mode: ``"min"`` or ``"max"``: what is better.
        factor: below 1.
        patience: steps without improvement that are let pass.
        threshold: a smaller change is none.
        threshold_mode: ``"rel"`` (a share of the best value) or ``"abs"``.
        cooldown: steps to wait after lowering.
        min_lr: never below this, or one for each group.
        eps: a smaller change of a rate is not made.

    >>> import mycelia as ms
    >>> from mycelia.experimental.optim import SGD, lr_scheduler
    >>> optimizer = SGD([ms.Parameter(ms.Tensor([1.0]), name="w")], lr=0.5)
    >>> scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    >>> for loss in (1.0, 1.0):
    ...     scheduler.step(loss)
    >>> print(scheduler.get_last_lr()[0])
    0.25
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        where = "ReduceLROnPlateau"
        _check_optimizer(where, optimizer)
        number(where, "factor", factor, lambda v: v < 1, "a number below 1")
        if mode not in ("min", "max"):
            raise ArgumentValueError(where, "mode", got=repr(mode), takes="'min' or 'max'")
        if threshold_mode not in ("rel", "abs"):
            raise ArgumentValueError(where, "threshold_mode", got=repr(threshold_mode), takes="'rel' or 'abs'")
        groups = len(optimizer.param_groups)
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * groups
        if len(self.min_lrs) != groups:
            raise ArgumentValueError(
                where, "min_lr", got=f"{len(self.min_lrs)} rates", takes=f"one for each of {groups} groups"
            )
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.last_epoch = self.wait = self.cooldown_counter = 0

    def step(self, metrics: Any) -> None:
        """Take the value of a step into account."""
        value = float(metrics.asnumpy() if isinstance(metrics, Tensor) else metrics)
        self.last_epoch += 1
        if self._improves(value):
            self.best, self.wait = value, 0
        else:
            self.wait += 1
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self.wait > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                now = _rate(group)
                lower = max(now * self.factor, float(least))
                if now > lower + self.eps:
                    group["lr"] = lower
            self.cooldown_counter, self.wait = self.cooldown, 0

    def in_cooldown(self) -> bool:
        """Whether the rates were lowered a short time ago."""
        return self.cooldown_counter > 0

    def _improves(self, value: float) -> bool:
        margin = self.threshold if self.threshold_mode == "abs" or math.isinf(self.best) else self.threshold * self.best
        return value < self.best - margin if self.mode == "min" else value > self.best + margin

    def get_last_lr(self) -> list[Tensor]:
        """The rates now."""
        return [rate.value() for rate in self.optimizer.lrs]
