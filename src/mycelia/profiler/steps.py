"""Which steps of a run are recorded."""

from __future__ import annotations

from enum import Enum
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError


class ProfilerAction(Enum):
    """What a profiler does during a step."""

    NONE = 0
    WARM_UP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class schedule:
    """Skips the first steps, then again and again waits, warms up and records.

    Args:
        wait: steps of a cycle in which nothing happens.
        active: steps of a cycle that are recorded; at the end of the last one ``on_trace_ready`` is called.
        warmup: steps between the two in which the profiler runs, but what it records is dropped.
        repeat: how many cycles; 0 for as many as there are.
        skip_first: steps before the first cycle.

    Raises:
        ArgumentTypeError: a number that is no int.
        ArgumentValueError: a negative number, or ``active`` below 1.

    >>> import mycelia as ms
    >>> plan = ms.profiler.schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    >>> [plan(step).name for step in range(6)]
    ['NONE', 'NONE', 'WARM_UP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """

    def __init__(self, *, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0) -> None:
        for name, value, least in (
            ("wait", wait, 0), ("active", active, 1), ("warmup", warmup, 0), ("repeat", repeat, 0),
            ("skip_first", skip_first, 0),
        ):  # fmt: skip
            if isinstance(value, bool) or not isinstance(value, int):
                raise ArgumentTypeError("schedule", name, got=repr(value), takes="an int")
            if value < least:
                raise ArgumentValueError("schedule", name, got=str(value), takes=f"an int from {least} on")
        self.wait, self.active, self.warmup, self.repeat, self.skip_first = wait, active, warmup, repeat, skip_first

    def __call__(self, step: int) -> ProfilerAction:
        """What is done in a step; the first is 0.

        Raises:
            ArgumentValueError: ``step`` is negative.
        """
        if step < 0:
            raise ArgumentValueError("schedule", "step", got=str(step), takes="an int from 0 on")
        step -= self.skip_first
        length = self.wait + self.warmup + self.active
        if step < 0 or (self.repeat and step >= self.repeat * length):
            return ProfilerAction.NONE
        place = step % length
        if place < self.wait:
            return ProfilerAction.NONE
        if place < self.wait + self.warmup:
            return ProfilerAction.WARM_UP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    def to_dict(self) -> dict[str, Any]:
        """The numbers by name."""
        return dict(self.__dict__)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value}" for name, value in self.__dict__.items())
        return f"schedule({numbers})"


def record_always(step: int) -> ProfilerAction:
    """The schedule of a profile that is given none."""
    return ProfilerAction.RECORD
