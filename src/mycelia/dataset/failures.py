"""A sample whose processing failed, carried from where it happened to where the user sees it."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

from mycelia.core.errors import MyceliaError, SourceLocation


class TransformError(MyceliaError, RuntimeError):
    """User code or a transform failed on a sample; the cause is its ``__cause__``.

    Attributes:
        operation: the name of what failed.
        columns: the columns it was given.
        sample: the number of the sample, counted from 0 in the order the operation saw them.
    """

    operation: str = ""
    columns: tuple[str, ...] = ()
    sample: int = -1


class SampleFailure(Exception):
    """What failed, on which columns of which sample, and why.

    Args:
        action: what failed, in words: ``"operation 2 of 3, 'Normalize',"``.
        operation: its name.
        columns: the columns it was given.
        sample: the number of the sample.
        cause: the exception.
    """

    def __init__(
        self, action: str, operation: str, columns: tuple[str, ...], sample: int, cause: BaseException
    ) -> None:
        super().__init__(action, operation, columns, sample)
        self.action, self.operation, self.columns, self.sample = action, operation, columns, sample
        self.cause: BaseException | None = cause
        self.summary = summary(cause)
        self.trace: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        trace = self.trace
        if trace is None and self.cause is not None:
            trace = "".join(traceback.format_exception(self.cause))
        fields = (self.action, self.operation, self.columns, self.sample)
        return _arrived, (*fields, _portable(self.cause), self.summary, trace)

    def as_error(self, where: str, location: SourceLocation | None, hint: str | None = None) -> TransformError:
        """The error the user sees, with the cause set."""
        columns = " and ".join(repr(c) for c in self.columns)
        text = f"{self.action} failed on {'column ' if columns else ''}{columns}{' of ' if columns else ''}"
        text += f"sample {self.sample}: {self.summary}"
        if self.trace is not None:
            text += "\n  in a worker process:\n" + "".join(f"    {line}\n" for line in self.trace.rstrip().splitlines())
            text = text.rstrip()
        error = TransformError(where, message=text, location=location, hint=hint)
        error.operation, error.columns, error.sample = self.operation, self.columns, self.sample
        error.__cause__ = self.cause
        return error


def summary(error: BaseException) -> str:
    """``ValueError: text``; of this package's errors the first line."""
    text = str(error)
    if isinstance(error, MyceliaError):
        text = text.splitlines()[0] + (f" (hint: {error.hint})" if error.hint else "")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _portable(error: BaseException | None) -> bytes | None:
    """The exception as a pickle, or None if it does not survive the journey."""
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:  # an exception class may fail to pickle in any way of its own; its text travels anyway
        return None
    return data


def _arrived(
    action: str, operation: str, columns: tuple[str, ...], sample: int, pickled: bytes | None, text: str, trace: str
) -> SampleFailure:
    cause: BaseException | None = None
    if pickled is not None:
        try:
            cause = pickle.loads(pickled)
        except Exception:  # its class cannot be imported here; its text is in the message
            cause = None
    failure = SampleFailure(action, operation, columns, sample, cause if cause is not None else RuntimeError(text))
    failure.cause, failure.summary, failure.trace = cause, text, trace
    return failure
