"""What the host did while a profile was being recorded.

A :class:`Recording` collects what the hooks (:mod:`mycelia.profiler.hooks`) tell: each call of an operator or of a
compiled graph, the user's line it came from, compilations, named ranges and steps. Times are nanoseconds of
``time.perf_counter_ns``. Appending to a list is atomic, so threads need no lock.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from mycelia.core.errors import is_users
from mycelia.ir.graph import Graph
from mycelia.profiler.memory import Memory


class Line(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str = ""

    @property
    def short(self) -> str:
        """``FILE:LINE`` with the file's name only."""
        return f"{self.file.replace(chr(92), '/').rpartition('/')[2]}:{self.line}"


#: The operators and lines of recorded steps, in order.
Tape = tuple["tuple[str, Line | None] | None", ...]


def line_at(frame: FrameType | None) -> Line | None:
    """The innermost line of the user's at a frame or outwards of it."""
    fallback: Line | None = None
    while frame is not None:
        code = frame.f_code
        if is_users(code.co_filename):
            found = Line(code.co_filename, frame.f_lineno, code.co_name)
            if code.co_filename[:1] != "<":
                return found
            fallback = fallback or found
        frame = frame.f_back
    return fallback


def stack_at(frame: FrameType | None) -> list[str]:
    """The user's lines from a frame outwards."""
    lines = []
    while frame is not None:
        code = frame.f_code
        if is_users(code.co_filename):
            lines.append(f"{code.co_filename}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return lines


@dataclass(slots=True, eq=False)
class Launch:
    """One call of a compiled program: an operator that ran at once, or a graph.

    Attributes:
        name: of the operator or graph.
        start: nanoseconds.
        end: nanoseconds; the program may still be running then.
        thread: the identifier of the calling thread.
        program: what was called: a function of ``jax.jit``, or an ``Executable``.
        types: the types of the arguments of a function of ``jax.jit``, which choose one of its programs.
        line: the user's line.
        forward: the operator whose derivative this belongs to; its line is ``line``.
        graph: for a graph, the one that was called; graphs that compute the same share an executable.
        tape: for a compiled backward pass, the names and lines of the steps it differentiates.
        stack: the lines that led there, if they were asked for.
    """

    name: str
    start: int
    end: int
    thread: int
    program: Any
    types: tuple[Any, ...]
    line: Line | None
    forward: str | None = None
    graph: Graph | None = None
    tape: Tape | None = None
    stack: list[str] | None = None


class Span(NamedTuple):
    """A stretch of time in a thread. Kinds: ``step``, ``range``, ``compile``, ``mark``, ``lane``."""

    kind: str
    name: str
    start: int
    end: int
    thread: int


class _Origin(threading.local):
    """The forward operator whose rule is being applied in a thread: its name and line."""

    operator: str | None = None
    line: Line | None = None


class Recording:
    """One stretch of recording.

    Args:
        with_stack: keep the lines that led to each call.
        memory: keeps count of arrays, or None.
    """

    def __init__(self, with_stack: bool = False, memory: Memory | None = None) -> None:
        self.with_stack, self.memory = with_stack, memory
        self.launches: list[Launch] = []
        self.spans: list[Span] = []
        self.threads: dict[int, str] = {}
        self.origin = _Origin()
        self.pending: deque[Any] = deque()
        self.forward_lines: dict[int, tuple[str, Line | None]] = {}
        self.tapes: dict[Tape, Tape] = {}
        self.start = self.end = time.perf_counter_ns()

    def thread(self) -> int:
        """The identifier of the calling thread, whose name is noted."""
        ident = threading.get_ident()
        if ident not in self.threads:
            self.threads[ident] = threading.current_thread().name
        return ident

    def span(self, kind: str, name: str, start: int, end: int) -> None:
        """Note a stretch of the calling thread's time."""
        self.spans.append(Span(kind, name, start, end, self.thread()))

    def hold(self, array: Any) -> None:
        """Keep a result until it is computed: a program whose results are dropped still runs."""
        pending = self.pending
        pending.append(array)
        while pending and (pending[0].is_deleted() or pending[0].is_ready()):
            pending.popleft()

    def range(self, name: str) -> Range:
        """A context whose time is noted."""
        return Range(self, name)

    @property
    def seconds(self) -> float:
        """How long was recorded."""
        return (self.end - self.start) / 1e9


class Range:
    """The context made by :meth:`Recording.range`."""

    __slots__ = ("name", "recording", "start")

    def __init__(self, recording: Recording, name: str) -> None:
        self.recording, self.name = recording, name

    def __enter__(self) -> None:
        self.start = time.perf_counter_ns()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.recording.span("range", self.name, self.start, time.perf_counter_ns())
