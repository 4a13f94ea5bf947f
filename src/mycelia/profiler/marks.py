"""``mstx``: marks and ranges that a program sets itself."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.profiler.recording import Recording, Span

_recording: Recording | None = None
_open: dict[int, tuple[Recording, str, str, int]] = {}
_numbers = itertools.count(1)


def set_recording(recording: Recording | None) -> None:
    """Who is told of marks and ranges from now on; ranges that are open end with the recording."""
    global _recording
    for number in [n for n, (of, *_) in _open.items() if of is _recording]:
        _close(number)
    _recording = recording


def _close(number: int) -> None:
    held = _open.pop(number, None)
    if held is not None:
        of, domain, message, start = held
        of.spans.append(Span("lane", f"{domain}\0{message}", start, time.perf_counter_ns(), threading.get_ident()))


def _checked(where: str, message: Any, domain: Any) -> None:
    for name, value in (("message", message), ("domain", domain)):
        if not isinstance(value, str):
            raise ArgumentTypeError(where, name, got=repr(value), takes="a str")
        if not value:
            raise ArgumentValueError(where, name, got="an empty text", takes="a text")


class mstx:
    """Marks and ranges in the trace of a profile; nothing happens while none is recorded.

    >>> import mycelia as ms
    >>> from mycelia.profiler import mstx
    >>> with ms.profiler.profile() as prof:
    ...     number = mstx.range_start("reading")
    ...     mstx.range_end(number)
    """

    @staticmethod
    def mark(message: str, stream: Any = None, domain: str = "default") -> None:
        """A mark at this moment.

        Args:
            message: its text.
            stream: kept for compatibility.
            domain: the track it stands on.

        Raises:
            ArgumentTypeError: a text that is no str.
            ArgumentValueError: an empty text.
        """
        _checked("mstx.mark", message, domain)
        if _recording is not None:
            now = time.perf_counter_ns()
            _recording.spans.append(Span("lane", f"{domain}\0{message}", now, now, threading.get_ident()))

    @staticmethod
    def range_start(message: str, stream: Any = None, domain: str = "default") -> int:
        """Begin a range; its number, 0 while nothing is recorded.

        Args:
            message: its text.
            stream: kept for compatibility.
            domain: the track it stands on.

        Raises:
            ArgumentTypeError: a text that is no str.
            ArgumentValueError: an empty text.
        """
        _checked("mstx.range_start", message, domain)
        if _recording is None:
            return 0
        number = next(_numbers)
        _open[number] = (_recording, domain, message, time.perf_counter_ns())
        return number

    @staticmethod
    def range_end(range_id: int, domain: str = "default") -> None:
        """End a range, in whatever thread it was begun. A number that is not open is ignored.

        Raises:
            ArgumentTypeError: ``range_id`` is no int.
        """
        if isinstance(range_id, bool) or not isinstance(range_id, int):
            raise ArgumentTypeError(
                "mstx.range_end", "range_id", got=repr(range_id), takes="the int that range_start returned"
            )
        _close(range_id)
