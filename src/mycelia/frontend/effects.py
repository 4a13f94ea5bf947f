"""What a graph does besides computing: print, and raise the user's errors.

``print`` is a node with the pieces of the line as attributes and the tensors as inputs; its lowering is an
ordered host callback, so a branch not taken prints nothing and a loop prints once per round, in order. An
``assert`` or ``raise`` that depends on a tensor is a node, too. The runtime cannot stop a program half-way:
the callback notes the first error, and who runs the graph calls :func:`raise_pending` afterwards, before
anything of the results is used.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from mycelia.core.errors import SourceLocation, user_location
from mycelia.ir.graph import Graph
from mycelia.ir.primitive import IO, Primitive
from mycelia.ir.types import TensorType
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply
from mycelia.tensor.tensor import wrap

HOLE = None


def _nothing(*types: TensorType, **attrs: Any) -> tuple[TensorType, ...]:
    return ()


def _call_back(callback: Callable[..., None], *arrays: Any) -> tuple[Any, ...]:
    jax.debug.callback(callback, *arrays, ordered=True)
    return ()


def _lower_print(
    *arrays: Any, pieces: tuple[str | None, ...], separator: str, end: str, stream: str
) -> tuple[Any, ...]:
    def write(*values: Any) -> None:
        given = iter(values)
        words = [str(wrap(np.asarray(next(given)))) if p is HOLE else p for p in pieces]
        print(*words, sep=separator, end=end, file=sys.stderr if stream == "stderr" else sys.stdout)

    return _call_back(write, *arrays)


#: Prints a line; ``pieces`` holds the words, None where the next input stands.
print_p = Primitive(
    "print_line", infer=_nothing, lower=_lower_print, differentiable=False, multi=True, effects=(IO,), samples=()
)


def print_(*values: Any, sep: str | None = None, end: str | None = None, file: Any = None, flush: bool = False) -> None:
    """``print`` while staging: the line is printed whenever the graph runs. Other files get it at once."""
    if file is not None and file is not sys.stdout and file is not sys.stderr:
        print(*values, sep=sep, end=end, file=file, flush=flush)
        return
    pieces = tuple([HOLE if isinstance(v, Tensor) else str(v) for v in values])
    apply(
        print_p, *[v for v in values if isinstance(v, Tensor)], pieces=pieces,
        separator=" " if sep is None else sep, end="\n" if end is None else end,
        stream="stderr" if file is sys.stderr and file is not sys.stdout else "stdout",
    )  # fmt: skip


class Failure:
    """An error of the user's that a graph may raise: the exception, and the line that raises it."""

    __slots__ = ("error", "location")

    def __init__(self, error: BaseException, location: SourceLocation | None) -> None:
        self.error = error
        self.location = location

    def __repr__(self) -> str:
        return f"<{type(self.error).__name__} at {self.location}>"


class _Pending:
    """The first failure of the graphs that have run since the last check."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.failure: Failure | None = None

    def note(self, failure: Failure) -> None:
        with self.lock:
            if self.failure is None:
                self.failure = failure

    def take(self) -> Failure | None:
        with self.lock:
            failure, self.failure = self.failure, None
        return failure


_pending = _Pending()


def _lower_raise(condition: Any, *, failure: Failure) -> tuple[Any, ...]:
    def check(value: Any) -> None:
        if not value:
            _pending.note(failure)

    return _call_back(check, condition)


#: Notes an error when its input is False.
raise_p = Primitive(
    "raise_unless", infer=_nothing, lower=_lower_raise, differentiable=False, multi=True, effects=(IO,), samples=()
)


def raise_unless(condition: Tensor, error: BaseException) -> None:
    """Raise ``error`` when the graph runs and the zero-dimensional bool tensor ``condition`` is False."""
    apply(raise_p, condition, failure=Failure(error, user_location()))


def can_raise(graph: Graph) -> bool:
    """Whether running a graph may leave an error for :func:`raise_pending`."""
    return any(n.op is raise_p or any(can_raise(g) for _, g in n.subgraphs) for n in graph.nodes)


def raise_pending() -> None:
    """Raise the first error that a graph run by now has met, with a note of the user's line."""
    jax.effects_barrier()
    failure = _pending.take()
    if failure is None:
        return
    error = failure.error.with_traceback(None)
    note = failure.location.render() if failure.location is not None else ""
    if note and note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    raise error
