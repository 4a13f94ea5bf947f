"""What a graph does besides computing: print, and raise the user's errors.

``print`` is a node with the pieces of the line as attributes and the tensors as inputs; its lowering is an
ordered host callback, so a branch not taken prints nothing and a loop prints once per round, in order. An
``assert`` or ``raise`` that depends on a tensor is a node, too. The runtime cannot stop a program half-way:
the callback notes the first error, and who runs the graph calls :func:`raise_pending` afterwards, before
anything of the results is used.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from mycelia.core.errors import (
    RAISED_BY_GRAPH,
    GraphError,
    MyceliaError,
    SourceLocation,
    is_users,
    location_of,
    user_location,
)
from mycelia.frontend.operands import users_operands
from mycelia.frontend.regions import LEFT_LOOP, Region, depth, stack
from mycelia.ir.graph import Graph
from mycelia.ir.primitive import IO, Primitive
from mycelia.ir.rewriter import all_graphs
from mycelia.ir.types import TensorType
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant
from mycelia.tensor.mode import current_builder, is_staging
from mycelia.tensor.tensor import wrap

#: Stand for the value of a tensor, as ``str`` or as ``repr`` gives it, in a line or a message: a line has None
#: or the second, a message one of the two, characters that no text has (Unicode noncharacters).
HOLE, BLANK, FULL_BLANK = None, "\ufdd0", "\ufdd1"
_HOLES = (HOLE, FULL_BLANK)
_BLANKS = re.compile(f"[{BLANK}{FULL_BLANK}]")
#: How many elements the tensors have that are shown when an assertion without a message fails.
_MOST_SHOWN = 16


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
        words = [shown(next(given), p) if p in _HOLES else p for p in pieces]
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
    joint = " " if sep is None else sep
    pieces: list[str | None] = []
    tensors: list[Tensor] = []
    for i, value in enumerate(values):
        if i:
            pieces.append(joint)
        words, mentioned = split_mentions(value)
        pieces += words
        tensors += mentioned
    apply(
        print_p, *tensors, pieces=tuple(pieces), separator="", end="\n" if end is None else end,
        stream="stderr" if file is sys.stderr and file is not sys.stdout else "stdout",
    )  # fmt: skip


_MENTION = re.compile(r"<Tensor \w+\[[\d,]*\] #\d+(r?)>")


def shown(value: Any, hole: str | None = HOLE) -> str:
    """The text of an array in the place of a hole."""
    tensor = wrap(np.asarray(value))
    return repr(tensor) if hole == FULL_BLANK else str(tensor)


def split_mentions(value: Any) -> tuple[list[str | None], list[Tensor]]:
    """A value as the words of a line, with None where a tensor stands, and the tensors; texts may mention some."""
    if isinstance(value, Tensor):
        return [HOLE], [value]
    text = str(value)
    known = current_builder().notes.get("mentioned", {})
    words: list[str | None] = []
    tensors: list[Tensor] = []
    end = 0
    for found in _MENTION.finditer(text) if known else ():
        if found[0] in known:
            words += [text[end : found.start()], FULL_BLANK if found[1] else HOLE]
            tensors.append(known[found[0]])
            end = found.end()
    return [*words, text[end:]], tensors


def mentions(text: str) -> bool:
    """Whether a text made while staging mentions a tensor of the graph."""
    known = current_builder().notes.get("mentioned", {}) if is_staging() else {}
    return any(found[0] in known for found in _MENTION.finditer(text)) if known else False


class Failure:
    """An error of the user's that a graph may raise: the exception, and the line that raises it.

    The exception is a template: the texts among its arguments have blanks where a tensor was mentioned (an
    argument that was a tensor is one blank), and the values are inputs of the node.
    """

    __slots__ = ("error", "location", "shown")

    def __init__(self, error: BaseException, location: SourceLocation | None) -> None:
        self.error = error
        self.location = location
        self.shown: tuple[str, ...] = ()

    def blank(self) -> list[Tensor]:
        """Put blanks where the exception mentions tensors; gives the tensors."""
        found: list[Tensor] = []
        args = list(self.error.args)
        for i, value in enumerate(args):
            if isinstance(value, (Tensor, str)):
                words, tensors = split_mentions(value)
                if tensors:
                    args[i] = "".join([BLANK if w is HOLE else w for w in words])
                    found += tensors
        self.error.args = tuple(args)
        return found

    def filled(self, values: Sequence[Any]) -> BaseException:
        """A new exception with the values in the blanks."""
        kind, given = type(self.error), iter(values)
        args: list[Any] = []
        for arg in self.error.args:
            if not values or not isinstance(arg, str):
                args.append(arg)
            elif arg == BLANK:
                args.append(np.asarray(next(given)).tolist())
            else:
                args.append(_BLANKS.sub(lambda blank: shown(next(given), blank[0]), arg))
        made: BaseException = kind.__new__(kind, *args)
        made.args = tuple(args)
        made.__dict__.update(self.error.__dict__)
        if self.location is not None:
            made.add_note(self.location.render())
        if self.shown and values:
            texts = [shown(value).replace("\n", "") for value in given]
            made.add_note("  where " + ", ".join(f"{n} is {t}" for n, t in zip(self.shown, texts, strict=True)))
        made.__cause__, made.__suppress_context__ = self.error.__cause__, True
        return made

    def __repr__(self) -> str:
        return f"<{type(self.error).__name__} at {self.location}>"


class _Pending:
    """The first failure of the graphs that have run since the last check."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.failure: tuple[Failure, tuple[Any, ...]] | None = None

    def note(self, failure: Failure, values: tuple[Any, ...]) -> None:
        with self.lock:
            if self.failure is None:
                self.failure = failure, values

    def take(self) -> tuple[Failure, tuple[Any, ...]] | None:
        with self.lock:
            failure, self.failure = self.failure, None
        return failure


_pending = _Pending()


def _lower_raise(condition: Any, *arrays: Any, failure: Failure) -> tuple[Any, ...]:
    def check(value: Any, *mentioned: Any) -> None:
        if not value:
            _pending.note(failure, mentioned)

    return _call_back(check, condition, *arrays)


#: Notes an error when its input is False.
raise_p = Primitive(
    "raise_unless", infer=_nothing, lower=_lower_raise, differentiable=False, multi=True, effects=(IO,), samples=()
)


def raise_unless(condition: Tensor, error: BaseException, location: SourceLocation | None = None) -> None:
    """Raise ``error`` when the graph runs and the zero-dimensional bool tensor ``condition`` is False.

    ``location`` is the user's line that raises it; the one that runs now if it is left out.
    """
    failure = Failure(error, location or user_location())
    tensors = failure.blank()
    if type(error) is AssertionError and not error.args:
        shown = {n: v for n, v in users_operands().items() if isinstance(v, Tensor) and v.size <= _MOST_SHOWN}
        failure.shown = tuple(shown)
        tensors += shown.values()
    apply(raise_p, condition, *tensors, failure=failure)


#: The attribute of an error that a ``raise`` of the user's raised while a region was open: the innermost one.
_TAG = "_ms_raised"
UNCATCHABLE = "an error raised under a condition on a tensor cannot be caught inside the graph"
OUTSIDE = "put the try statement around the call of the compiled function"


def raised(error: Any) -> Any:
    """The operand of a ``raise``; an error raised under a condition on a tensor is told from errors of staging."""
    made = error() if isinstance(error, type) and issubclass(error, Exception) else error
    if isinstance(made, Exception) and depth():
        made.__dict__[_TAG] = stack()[-1]
    return made


def escaped(error: BaseException, region: Region, caught: bool = False) -> bool:
    """Take up an error that a called function has raised in ``region``: it is raised when the graph goes there.

    Args:
        error: what has come out of the statements of a branch.
        region: the region of the branch.
        caught: whether a ``try`` around it would catch the error.

    Returns:
        Whether the error was taken up; if not it is one of staging, and goes on.

    Raises:
        GraphError: the error would be caught.
    """
    if error.__dict__.get(_TAG) is not region and not _arose_in(error, region, caught):
        return False
    if caught:
        raise GraphError("raise", message=UNCATCHABLE, hint=OUTSIDE) from None
    while stack()[-1] is not region:
        stack()[-1].abandon()
    location, entry = None, error.__traceback__
    while entry is not None:
        if is_users(entry.tb_frame.f_code.co_filename):
            location = location_of(entry.tb_frame, entry.tb_lasti)
        entry = entry.tb_next
    error.__dict__.pop(_TAG, None)
    error.__traceback__ = error.__context__ = None
    raise_unless(constant(np.asarray(False)), error, location)
    return True


def _arose_in(error: BaseException, region: Region, caught: bool) -> bool:
    """Whether an error of Python's own arose in the branch itself, and depends on values as it does there.

    Others - a misspelled attribute, say - are shown while staging, unless the program would catch them.
    """
    if isinstance(error, (MyceliaError, RecursionError, MemoryError)) or not isinstance(error, Exception):
        return False
    if stack()[-1] is not region or hasattr(error, LEFT_LOOP):
        return False
    return caught or isinstance(error, (LookupError, ArithmeticError))


def can_raise(graph: Graph) -> bool:
    """Whether running a graph may leave an error for :func:`raise_pending`."""
    return any(n.op is raise_p for g in all_graphs(graph) for n in g.nodes)


def raise_pending() -> None:
    """Raise the first error that a graph run by now has met, with a note of the user's line."""
    jax.effects_barrier()
    found = _pending.take()
    if found is None:
        return
    failure, values = found
    error = failure.filled(values)
    error.__dict__[RAISED_BY_GRAPH] = True
    raise error
