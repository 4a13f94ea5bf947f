"""One contender's program: what every framework's side makes of a workload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

JOBS = ("train", "infer")
PRECISIONS = ("f32", "bf16")


class NotMeasuredError(Exception):
    """This framework cannot do what is asked, or what would run is not what was to be measured."""


@dataclass
class Program:
    """A step that is ready to be timed.

    Attributes:
        step: does the job once, from call to finished result. A training step is forward, mean cross-entropy,
            backward and update; inference is one forward in evaluation mode.
        value: a number of the last step that is the same in all frameworks: the loss, or the mean square of the
            logits.
        parameters: how many numbers are trained.
        flops: the floating-point operations of one step, if this contender can count them.
        version: the framework's version.
    """

    step: Callable[[], None]
    value: Callable[[], float]
    parameters: int
    version: str
    flops: Callable[[], int | None] = lambda: None


@dataclass
class Last:
    """Keeps what the last step gave."""

    result: Any = None
