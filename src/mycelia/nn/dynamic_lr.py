"""Learning rates as lists, one number per step, that change from epoch to epoch.

The same decays as in :mod:`mycelia.nn.learning_rate_schedule`, but computed before the training and by the epoch:
``epoch = floor(step / step_per_epoch)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.nn.learning_rate_schedule import check_count, check_rate
from mycelia.tensor.tensor import check_bool

__all__ = [
    "cosine_decay_lr", "exponential_decay_lr", "inverse_decay_lr", "natural_exp_decay_lr", "piecewise_constant_lr",
    "polynomial_decay_lr", "warmup_lr",
]  # fmt: skip


def _counts(where: str, **counts: Any) -> None:
    for name, value in counts.items():
        check_count(where, name, value)


def _by_epoch(total_step: int, step_per_epoch: int, rate: Callable[[int], float]) -> list[float]:
    return [rate(step // step_per_epoch) for step in range(total_step)]


def _decayed(
    where: str, rate: Callable[[float, float, float], float], learning_rate: Any, decay_rate: Any, total_step: Any,
    step_per_epoch: Any, decay_epoch: Any, is_stair: Any,
) -> list[float]:  # fmt: skip
    """``rate(learning_rate, decay_rate, epochs / decay_epoch)`` of each step, the quotient floored if ``is_stair``."""
    first, factor = check_rate(where, "learning_rate", learning_rate), check_rate(where, "decay_rate", decay_rate)
    _counts(where, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)
    check_bool(where, "is_stair", is_stair)
    return _by_epoch(
        total_step, step_per_epoch, lambda e: rate(first, factor, e // decay_epoch if is_stair else e / decay_epoch)
    )


def exponential_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:  # fmt: skip
    """``learning_rate * decay_rate ** (epoch / decay_epoch)`` for each step.

    Args:
        learning_rate: the first rate, above 0.
        decay_rate: above 0.
        total_step: number of steps.
        step_per_epoch: number of steps in an epoch.
        decay_epoch: epochs in which the rate is multiplied by ``decay_rate``.
        is_stair: multiply once every ``decay_epoch`` epochs.

    >>> import mycelia as ms
    >>> ms.nn.exponential_decay_lr(0.1, 0.5, total_step=6, step_per_epoch=2, decay_epoch=1)
    [0.1, 0.1, 0.05, 0.05, 0.025, 0.025]
    """
    return _decayed(
        "exponential_decay_lr", lambda lr, rate, x: lr * rate**x, learning_rate, decay_rate, total_step, step_per_epoch,
        decay_epoch, is_stair,
    )  # fmt: skip


def natural_exp_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:  # fmt: skip
    """``learning_rate * exp(-decay_rate * epoch)`` for each step.

    Args:
        learning_rate: the first rate, above 0.
        decay_rate: above 0.
        total_step: number of steps.
        step_per_epoch: number of steps in an epoch.
        decay_epoch: with ``is_stair``, epochs between changes.
        is_stair: change once every ``decay_epoch`` epochs.

    >>> import mycelia as ms
    >>> [round(x, 4) for x in ms.nn.natural_exp_decay_lr(0.1, 0.9, 6, 2, 1)]
    [0.1, 0.1, 0.0407, 0.0407, 0.0165, 0.0165]
    """
    return _decayed(
        "natural_exp_decay_lr", lambda lr, rate, x: lr * math.exp(-rate * x * decay_epoch), learning_rate, decay_rate,
        total_step, step_per_epoch, decay_epoch, is_stair,
    )  # fmt: skip


def inverse_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:  # fmt: skip
    """``learning_rate / (1 + decay_rate * epoch / decay_epoch)`` for each step.

    Args:
        learning_rate: the first rate, above 0.
        decay_rate: above 0.
        total_step: number of steps.
        step_per_epoch: number of steps in an epoch.
        decay_epoch: epochs after which the denominator has grown by ``decay_rate``.
        is_stair: change once every ``decay_epoch`` epochs.

    >>> import mycelia as ms
    >>> ms.nn.inverse_decay_lr(0.1, 1.0, 6, 2, 1)[::2]
    [0.1, 0.05, 0.03333333333333333]
    """
    return _decayed(
        "inverse_decay_lr", lambda lr, rate, x: lr / (1 + rate * x), learning_rate, decay_rate, total_step,
        step_per_epoch, decay_epoch, is_stair,
    )  # fmt: skip


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """``min_lr + (max_lr - min_lr) * (1 + cos(pi * epoch / decay_epoch)) / 2`` for each step.

    Args:
        min_lr: the rate from ``decay_epoch`` on, at least 0.
        max_lr: the first rate, above ``min_lr``.
        total_step: number of steps.
        step_per_epoch: number of steps in an epoch.
        decay_epoch: number of epochs of the decay.

    >>> import mycelia as ms
    >>> [round(x, 4) for x in ms.nn.cosine_decay_lr(0.01, 0.1, 6, 2, 2)]
    [0.1, 0.1, 0.055, 0.055, 0.01, 0.01]
    """
    where = "cosine_decay_lr"
    low, high = check_rate(where, "min_lr", min_lr, zero=True), check_rate(where, "max_lr", max_lr)
    _counts(where, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)
    if low >= high:
        raise ArgumentValueError(where, "max_lr", got=repr(max_lr), takes=f"a value above min_lr, {min_lr}")

    def rate(epoch: int) -> float:
        return low + 0.5 * (high - low) * (1 + math.cos(math.pi * min(epoch, decay_epoch) / decay_epoch))

    return _by_epoch(total_step, step_per_epoch, rate)


def polynomial_decay_lr(
    learning_rate: float, end_learning_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int,
    power: float, update_decay_epoch: bool = False,
) -> list[float]:  # fmt: skip
    """``(learning_rate - end) * (1 - epoch / decay_epoch) ** power + end`` for each step.

    Args:
        learning_rate: the first rate, above 0.
        end_learning_rate: the last rate, at least 0.
        total_step: number of steps.
        step_per_epoch: number of steps in an epoch.
        decay_epoch: number of epochs of the decay; the epoch stops there.
        power: above 0.
        update_decay_epoch: stretch ``decay_epoch`` to its next multiple instead.

    >>> import mycelia as ms
    >>> [round(x, 4) for x in ms.nn.polynomial_decay_lr(0.1, 0.02, 6, 2, 2, 1.0)]
    [0.1, 0.1, 0.06, 0.06, 0.02, 0.02]
    """
    where = "polynomial_decay_lr"
    first, last = (
        check_rate(where, "learning_rate", learning_rate),
        check_rate(where, "end_learning_rate", end_learning_rate, zero=True),
    )
    power = check_rate(where, "power", power)
    _counts(where, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)
    check_bool(where, "update_decay_epoch", update_decay_epoch)

    def rate(epoch: int) -> float:
        epochs = decay_epoch
        if update_decay_epoch:
            epochs *= max(math.ceil(epoch / decay_epoch), 1)
        return (first - last) * (1 - min(epoch, epochs) / epochs) ** power + last

    return _by_epoch(total_step, step_per_epoch, rate)


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """``learning_rate * min(epoch, warmup_epoch) / warmup_epoch`` for each step.

    Args:
        learning_rate: the last rate, at least 0.
        total_step: number of steps.
        step_per_epoch: number of steps in an epoch.
        warmup_epoch: number of epochs of the growth.

    >>> import mycelia as ms
    >>> ms.nn.warmup_lr(0.1, 6, 2, 2)
    [0.0, 0.0, 0.05, 0.05, 0.1, 0.1]
    """
    where = "warmup_lr"
    last = check_rate(where, "learning_rate", learning_rate, zero=True)
    _counts(where, total_step=total_step, step_per_epoch=step_per_epoch, warmup_epoch=warmup_epoch)
    return _by_epoch(total_step, step_per_epoch, lambda epoch: last * min(epoch, warmup_epoch) / warmup_epoch)


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """``learning_rates[i]`` up to step ``milestone[i]``.

    Args:
        milestone: growing numbers of steps.
        learning_rates: a rate for each.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: unequal lengths, or milestones that fall.

    >>> import mycelia as ms
    >>> ms.nn.piecewise_constant_lr([2, 5], [0.1, 0.05])
    [0.1, 0.1, 0.05, 0.05, 0.05]
    """
    where = "piecewise_constant_lr"
    for name, value in (("milestone", milestone), ("learning_rates", learning_rates)):
        if not isinstance(value, (tuple, list)):
            raise ArgumentTypeError(where, name, got=type(value).__name__, takes="a tuple or list")
    if len(milestone) != len(learning_rates):
        raise ArgumentValueError(
            where,
            "learning_rates",
            got=f"{len(learning_rates)} rates",
            takes=f"one for each of the {len(milestone)} milestones",
        )
    made: list[float] = []
    for i, (end, rate) in enumerate(zip(milestone, learning_rates, strict=True)):
        _counts(where, **{f"milestone[{i}]": end})
        rate = check_rate(where, f"learning_rates[{i}]", rate, zero=True)
        if end < len(made):
            raise ArgumentValueError(
                where, f"milestone[{i}]", got=str(end), takes=f"at least {len(made)}, the milestone before it"
            )
        made += [rate] * (end - len(made))
    return made
