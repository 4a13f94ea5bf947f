"""What a compiled function was compiled for: a record of each compilation, and the report of them.

>>> import mycelia as ms
>>> f = ms.jit(lambda x: x + 1)
>>> _ = f(ms.Tensor([1.0])), f(ms.Tensor([1.0, 2.0]))
>>> print(str(ms.explain_recompiles(f)).splitlines()[0])
<lambda>: compiled 2 times, 2 graphs kept
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any

from mycelia.core.errors import ArgumentTypeError, SourceLocation, user_location
from mycelia.frontend.noted import Change, brief, same_value

#: After so many compilations of one function beyond the first a notice is given.
NOTICE_AFTER = 8


class RecompileWarning(UserWarning):
    """A function is compiled again and again."""


@dataclass(frozen=True)
class Reason:
    """Why a function was compiled: what differed from the time before, and what can be done about it.

    Attributes:
        text: what differed, from what to what.
        location: the line of the user's that depends on it, if it is known.
        advice: what to do, or an empty string.
    """

    text: str
    location: SourceLocation | None = None
    advice: str = ""

    def __str__(self) -> str:
        lines = [self.text]
        if self.location is not None:
            lines.append(f"    read at {self.location}" + (f": {self.location.text}" if self.location.text else ""))
        if self.advice:
            lines.append(f"    to avoid it: {self.advice}")
        return "\n".join(lines)


@dataclass
class Compilation:
    """One compilation of a function.

    Attributes:
        number: 1 for the first.
        when: the time of day.
        reasons: why; empty for the first.
        arguments: what the arguments were.
        entry: the graph, or None when it has been dropped.
        note: whether varying axes are padded, or why they are not.
    """

    number: int
    when: datetime.datetime
    reasons: list[Reason]
    arguments: dict[str, tuple[str, Any]]
    entry: Any = None
    note: str = ""
    timed: float = 0.0

    @property
    def seconds(self) -> float:
        """How long staging, optimizing and the first run took, in seconds; 0 if it has failed."""
        if self.entry is None:
            return self.timed
        self.timed = self.entry.stage_seconds + self.entry.compile_seconds
        return float(self.timed)

    def __str__(self) -> str:
        head = f"#{self.number}  {self.when:%H:%M:%S}  {self.seconds:.2f} s{self.note}"
        if not self.reasons:
            return f"{head}  first call"
        body = "\n".join(str(r) for r in self.reasons)
        return f"{head}  " + body.replace("\n", "\n    ")


def _shape(held: tuple[str, tuple[int, ...]]) -> str:
    return f"{held[0]}{list(held[1])}"


def argument_reasons(
    before: dict[str, tuple[str, Any]], after: dict[str, tuple[str, Any]], pinned: dict[str, SourceLocation | None]
) -> list[Reason]:
    """How two calls' arguments differ, one reason each."""
    reasons = []
    for path in {**before, **after}:
        a, b = before.get(path), after.get(path)
        if a is None or b is None:
            reasons.append(Reason(f"argument '{path}': {'is new' if a is None else 'is gone'}"))
        elif a[0] != b[0]:
            reasons.append(Reason(f"argument '{path}': a {a[0]} became a {b[0]}"))
        elif a[0] == "tensor" and a[1] != b[1]:
            reasons.append(_tensor_reason(path, a[1], b[1]))
        elif a[0] == "object" and a[1] != b[1]:
            advice = "pass the same object again: objects are compared by identity"
            reasons.append(Reason(f"argument '{path}': another {b[1][0]}", advice=advice))
        elif a[0] in ("number", "value") and not same_value(a[1], b[1]):
            reasons.append(_number_reason(path, a[1], b[1], pinned))
    return reasons


def _number_reason(path: str, a: Any, b: Any, pinned: dict[str, SourceLocation | None]) -> Reason:
    text = f"argument '{path}': {brief(a)} -> {brief(b)}"
    if type(a) is not type(b):
        return Reason(f"{text} ({type(a).__name__} -> {type(b).__name__})", advice="pass one type of number")
    if path in pinned:
        return Reason(text, pinned[path], "there Python needs the number itself; compute with it as a tensor instead")
    if type(a) in (int, float):
        return Reason(f"{text}; it becomes an input of the graph")
    return Reason(text, advice="every value of it is a program of its own; keep to few values, or pass a tensor")


def _tensor_reason(path: str, a: tuple[str, tuple[int, ...]], b: tuple[str, tuple[int, ...]]) -> Reason:
    text = f"argument '{path}': {_shape(a)} -> {_shape(b)}"
    if a[0] != b[0]:
        return Reason(text, advice=f"convert it before the call, e.g. {path}.astype(ms.{a[0]})")
    if len(a[1]) != len(b[1]):
        return Reason(text, advice="each rank is a program of its own; reshape to one rank")
    dims = ", ".join("None" if x != y else str(x) for x, y in zip(a[1], b[1], strict=True))
    return Reason(
        text,
        advice=f"pad to one shape, drop the remainder of the batches, or announce the axis: "
        f"net.set_inputs(ms.Tensor(shape=[{dims}], dtype=ms.{b[0]})) or ms.jit(..., dynamic=1)",
    )


def change_reason(change: Change, pinned: dict[str, SourceLocation | None]) -> Reason:
    """A broken guard as a reason."""
    text = str(change)
    a, b = change.before, change.after
    if change.kind == "attribute" and "requires_grad" in change.path:
        advice = "freeze parameters before the first call"
    elif type(a) is type(b) and type(a) in (int, float) and change.slot is not None:
        if change.path in pinned:
            return Reason(text, pinned[change.path], "Python needs the number itself there; keep it as a Tensor")
        return Reason(f"{text}; it becomes an input of the graph", change.location)
    elif change.kind in ("list", "set", "item", "array", "order of the keys"):
        advice = "its content is part of the graph: keep it as it is, or hold changing numbers in a Tensor or Parameter"
    elif change.kind == "function":
        advice = ""
    elif change.kind == "value used in Python":
        advice = "compute with the tensor instead of with int(), float() or asnumpy() of it"
    elif change.kind == "tensor":
        advice = "keep the shape and dtype of what the function uses"
    else:
        advice = "set it once before the calls, or hold it in a Tensor or Parameter"
    return Reason(text, change.location, advice)


class Recompiles:
    """The report of :func:`explain_recompiles`: print it, or read ``compilations``.

    Attributes:
        functions: for each compiled function its name, its compilations, and the number of graphs kept.
    """

    def __init__(self, functions: Sequence[tuple[str, list[Compilation], int]]) -> None:
        self.functions = list(functions)

    @property
    def compilations(self) -> list[Compilation]:
        """All compilations, in order for each function."""
        return [c for _, found, _ in self.functions for c in found]

    def __len__(self) -> int:
        return len(self.compilations)

    def __str__(self) -> str:
        blocks = []
        for name, found, kept in self.functions:
            times = "once" if len(found) == 1 else f"{len(found)} times"
            head = f"{name}: compiled {times}, {kept} graph{'s' if kept != 1 else ''} kept"
            blocks.append("\n".join([head, *[f"  {c}" for c in found]]))
        return "\n".join(blocks) or "not compiled yet"

    __repr__ = __str__


def notify(name: str, compilation: Compilation) -> None:
    """Say once that a function is compiled again and again."""
    reason = str(compilation.reasons[0]) if compilation.reasons else "another call"
    text = (
        f"'{name}' has been compiled {compilation.number} times, last because of {reason}\n"
        "ms.explain_recompiles(...) tells all reasons"
    )
    at = user_location()
    if at is None:
        warnings.warn(text, RecompileWarning, stacklevel=2)
    else:
        warnings.warn_explicit(text, RecompileWarning, at.file, at.line)


def explain_recompiles(fn: Any) -> Recompiles:
    """Why a function has been compiled, each time.

    Args:
        fn: a Cell, a function or method that was called compiled, or what ``jit`` returned.

    Returns:
        A report to print: for each compilation when, how many seconds, which argument, attribute, global,
        closed-over variable or item differed, from what to what, at which line it is read, and what to do.

    Raises:
        ArgumentTypeError: ``fn`` is not callable.

    >>> import mycelia as ms
    >>> f = ms.jit(lambda x, flag: x if flag else -x)
    >>> _ = f(ms.Tensor(1.0), True), f(ms.Tensor(1.0), False)
    >>> print(ms.explain_recompiles(f).compilations[1].reasons[0].text)
    argument 'flag': True -> False
    """
    if not callable(fn):
        raise ArgumentTypeError("explain_recompiles", "fn", got=type(fn).__name__, takes="a function, method or Cell")
    return Recompiles([(j.name, j.compilations, j.kept) for j in compiled_calls(fn)])


def compiled_calls(fn: Any) -> list[Any]:
    """What was made to call ``fn`` compiled: one for each way in which it is differentiated or wrapped."""
    from mycelia.frontend.jit import Jit

    if isinstance(fn, Jit):
        return [fn]
    if isinstance(fn, MethodType):
        calls = getattr(fn.__self__, "__dict__", {}).get("_compiled_calls") or {}
        return [j for key, j in calls.items() if key is fn.__func__ or (type(key) is tuple and key[0] is fn.__func__)]
    own = getattr(fn, "__dict__", {})
    found = list((own.get("_compiled_calls") or {}).values())
    return found + [j for name, j in own.items() if name.startswith("_jit_") and isinstance(j, Jit)]
