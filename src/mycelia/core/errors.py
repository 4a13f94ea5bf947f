"""Typed errors that name the argument, what it got, what it takes, and the user's line.

Every error a user can cause derives from :class:`MyceliaError` and from the builtin a Python
programmer would catch (``TypeError``, ``ValueError``, ``RuntimeError``, ...). When one is built, the
call stack is walked outwards to the first frame that is neither this package nor the engine below
it; that file, line and source text become part of the message, so that it reads the same whether the
operator ran at once or was being staged into a graph.
"""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass
from functools import cache
from types import FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_ENGINE = tuple(f"{os.sep}{name}{os.sep}" for name in ("jax", "jaxlib"))


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """One line of the user's program: file name, 1-based line number, function."""

    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """The source text of the line, stripped; empty when the source is not available."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}, in {self.function}"

    def render(self) -> str:
        """``at FILE:LINE, in FUNCTION`` with the line itself below it."""
        text = self.text
        return f"  at {self}" + (f"\n    {text}" if text else "")


@cache
def _is_users(file: str) -> bool:
    """Whether a file is neither this package, nor the engine, nor the standard library."""
    if file.startswith((_PACKAGE, "<frozen")) or any(part in file for part in _ENGINE):
        return False
    return not file.startswith(_STANDARD) or "site-packages" in file or "dist-packages" in file


def user_location() -> SourceLocation | None:
    """The innermost line of the call stack that belongs to the user, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_users(frame.f_code.co_filename):
            return SourceLocation(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None


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
        super().__init__(self._text())

    def _text(self) -> str:
        text = self._sentence
        if self.location is not None:
            text += "\n" + self.location.render()
        if self.hint:
            text += f"\n  hint: {self.hint}"
        return text

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
