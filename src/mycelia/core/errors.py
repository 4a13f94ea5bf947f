"""Typed errors that name the argument, what it got, what it takes, and the user's line.

Every error a user can cause derives from :class:`MyceliaError` and from the builtin a Python
programmer would catch (``TypeError``, ``ValueError``, ``RuntimeError``, ...). When one is built, the
call stack is walked outwards to the first frame that is neither this package nor the engine below
it; that file, line and source text become part of the message, so that it reads the same whether the
operator ran at once or was being staged into a graph. The instruction the frame is at tells the columns,
too (PEP 657): the expression concerned is underlined.

Tracebacks that leave the package at one of its doors (a compiled function, a Cell, a gradient) lose the
frames of this package and of the engine; ``MYCELIA_TRACEBACK=full`` in the environment keeps them.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType, TracebackType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_ENGINE = tuple(f"{os.sep}{name}{os.sep}" for name in ("jax", "jaxlib"))


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """One line of the user's program: file name, 1-based line number, function.

    ``column`` and ``end_column`` (0-based, in UTF-8 bytes, as Python counts them) say which expression of the
    line, where that is known; an expression of several lines ends with its first. Locations are equal
    whatever their columns.
    """

    file: str
    line: int
    function: str
    column: int | None = field(default=None, compare=False)
    end_column: int | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """The source text of the line, stripped; empty when the source is not available."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def carets(self) -> str:
        """``^^^`` under the expression, to stand below :attr:`text`; empty where it is not known."""
        raw = linecache.getline(self.file, self.line).rstrip()
        if self.column is None or not raw:
            return ""
        data = raw.encode()
        if self.column >= len(data):
            return ""
        end = len(data) if self.end_column is None else min(self.end_column, len(data))
        before = data[: self.column].decode(errors="replace")
        under = data[self.column : end].decode(errors="replace")
        indent = len(raw) - len(raw.lstrip())
        return " " * (len(before) - indent) + "^" * len(under) if len(before) >= indent else ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}, in {self.function}"

    def render(self) -> str:
        """``at FILE:LINE, in FUNCTION`` with the line itself below it, the expression underlined."""
        text, carets = self.text, self.carets
        return f"  at {self}" + (f"\n    {text}" if text else "") + (f"\n    {carets}" if carets else "")


@cache
def is_users(file: str) -> bool:
    """Whether a file is neither this package, nor the engine, nor the standard library."""
    if file.startswith((_PACKAGE, "<frozen")) or any(part in file for part in _ENGINE):
        return False
    return not file.startswith(_STANDARD) or "site-packages" in file or "dist-packages" in file


_positions_of: OrderedDict[int, tuple[CodeType, tuple[tuple[int | None, int | None, int | None, int | None], ...]]]
_positions_of = OrderedDict()
_KEPT_CODES = 1024


def span_of(code: CodeType, instruction: int) -> tuple[int | None, int | None, int | None, int | None]:
    """First line, last line, first column, last column of the source of an instruction."""
    held = _positions_of.get(id(code))
    if held is None or held[0] is not code:
        held = _positions_of[id(code)] = (code, tuple(code.co_positions()))
        if len(_positions_of) > _KEPT_CODES:
            _positions_of.popitem(last=False)
    index = instruction // 2
    return held[1][index] if 0 <= index < len(held[1]) else (None, None, None, None)


def location_of(frame: FrameType, instruction: int | None = None) -> SourceLocation:
    """Where a frame is, or was at an instruction of its code (the ``tb_lasti`` of a traceback)."""
    code = frame.f_code
    first, last, column, end = span_of(code, frame.f_lasti if instruction is None else instruction)
    line = frame.f_lineno if instruction is None or first is None else first
    if first != line or column is None:
        column = end = None
    elif last != first:
        end = None
    name = code.co_name
    if name in ("<listcomp>", "<setcomp>", "<dictcomp>"):  # functions of their own until Python 3.12
        name = next((n for n in reversed(code.co_qualname.split(".")) if n[0] != "<"), "<module>")
    return SourceLocation(code.co_filename, line, name, column, end)


def user_location() -> SourceLocation | None:
    """The innermost line of the call stack that belongs to the user, with a source if there is one; or None."""
    frame: FrameType | None = sys._getframe(1)
    without_source: FrameType | None = None
    while frame is not None:
        file = frame.f_code.co_filename
        if is_users(file):
            if file[:1] != "<" or linecache.getlines(file, frame.f_globals):
                return location_of(frame)
            without_source = without_source or frame
        frame = frame.f_back
    return None if without_source is None else location_of(without_source)


#: Set on an error of the user's that a graph raised: the frames below it say nothing.
RAISED_BY_GRAPH = "_raised_by_graph"


def shown_traceback(error: BaseException) -> TracebackType | None:
    """The traceback of an error without the frames of this package and of the engine.

    A door of the package sets it before the error leaves with a bare ``raise``, which adds no frame.
    Everything is kept if ``MYCELIA_TRACEBACK=full`` is set, and where the error itself is the package's fault:
    it is none of its own classes and arose in its frames.
    """
    kept: list[TracebackType] = []
    entry = error.__traceback__
    if entry is None or os.environ.get("MYCELIA_TRACEBACK") == "full":
        return entry
    internal = False
    while entry is not None:
        internal = is_internal(entry.tb_frame.f_code.co_filename)
        if not internal:
            kept.append(entry)
        entry = entry.tb_next
    if internal and not isinstance(error, MyceliaError) and RAISED_BY_GRAPH not in error.__dict__:
        return error.__traceback__
    shown: TracebackType | None = None
    for old in reversed(kept):
        shown = TracebackType(shown, old.tb_frame, old.tb_lasti, old.tb_lineno)
    return shown


@cache
def is_internal(file: str) -> bool:
    """Whether a file belongs to this package or to the engine."""
    return file.startswith(_PACKAGE) or any(part in file for part in _ENGINE)


class MyceliaError(Exception):
    """Base of all errors of this package.

    Args:
        where: the operator, layer or function that refuses, as the user wrote it (``"matmul"``).
        argument: the name of the offending argument, if one argument is to blame.
        got: what it was given, in words.
        takes: what it accepts, in words.
        hint: what to write instead.
        message: free text used in place of the argument/got/takes sentence.
        location: the user's line; found on the call stack when omitted.
    """

    def __init__(
        self,
        where: str,
        argument: str | None = None,
        *,
        got: str | None = None,
        takes: str | None = None,
        hint: str | None = None,
        message: str | None = None,
        location: SourceLocation | None = None,
    ) -> None:
        self.where, self.argument, self.got, self.takes, self.hint = where, argument, got, takes, hint
        self.location = location if location is not None else user_location()
        parts = []
        if message:
            parts.append(message)
        elif argument is not None:
            sentence = f"argument '{argument}'"
            if got is not None:
                sentence += f" got {got}"
            if takes is not None:
                sentence += f"{';' if got is not None else ''} it takes {takes}"
            parts.append(sentence)
        self._sentence = f"{where}: " + " ".join(parts)
        self._operands = ""
        super().__init__(self._text())

    def _text(self) -> str:
        text = self._sentence
        if self.location is not None:
            text += "\n" + self.location.render()
        if self._operands:
            text += f"\n  where {self._operands}"
        if self.hint:
            text += f"\n  hint: {self.hint}"
        return text

    def explain(self, operands: str, hint: str | None = None) -> None:
        """Add what is known later: what the names on the line are, and a better hint."""
        self._operands = operands
        self.hint = hint or self.hint
        self.args = (self._text(), *self.args[1:])

    def relocate(self, location: SourceLocation | None) -> None:
        """Point at another line: that of who asked, when the error arose in a thread of ours."""
        self.location = location
        self.args = (self._text(), *self.args[1:])


class ArgumentTypeError(MyceliaError, TypeError):
    """An argument has the wrong Python type."""


class DTypeError(ArgumentTypeError):
    """A tensor has a dtype the operator does not take."""


class ArgumentValueError(MyceliaError, ValueError):
    """An argument has the right type and a wrong value."""


class ShapeError(ArgumentValueError):
    """Shapes do not fit each other."""


class OutOfRangeError(MyceliaError, IndexError):
    """An index or axis is out of range."""


class MissingKeyError(MyceliaError, KeyError):
    """A name is not there."""

    def __str__(self) -> str:
        return str(self.args[0])


class AttributeMissingError(MyceliaError, AttributeError):
    """An attribute is not there."""


class StateError(MyceliaError, RuntimeError):
    """The call is right, but not now."""


class UnsupportedError(MyceliaError, NotImplementedError):
    """The device, dtype or form is known and cannot be served."""


class FileFormatError(MyceliaError, ValueError):
    """A file is corrupt, truncated, or not of the format it should be."""


class GraphError(MyceliaError, RuntimeError):
    """A program cannot be staged into a graph, or a graph is malformed."""


class GraphTypeError(GraphError, TypeError):
    """Two paths of a staged program disagree in type."""


class UnboundInGraphError(GraphError, UnboundLocalError):
    """A variable is read that only one path of a staged program binds."""
