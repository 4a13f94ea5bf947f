"""What an error says besides its own message, when it leaves a compiled function.

The traceback still has the frame in which the error arose. The names in the expression that failed are looked
up there: what the tensors among them are, what keys a dict has. Errors of Python's own get the user's line and a
hint, as those of this package have them from the start; then the frames of this package are taken out of the
traceback (:func:`mycelia.core.errors.shown_traceback`).
"""

from __future__ import annotations

import difflib
import inspect
import linecache
import re
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

from mycelia.core.errors import (
    RAISED_BY_GRAPH,
    GraphTypeError,
    MyceliaError,
    SourceLocation,
    UnboundInGraphError,
    is_internal,
    is_users,
    location_of,
    shown_traceback,
    user_location,
)
from mycelia.frontend import branches, calls, implicit, ordering, patterns, reads, runtime
from mycelia.frontend.convert import reason_of_code
from mycelia.frontend.loops import make_range
from mycelia.frontend.merge import describe
from mycelia.frontend.operands import operands, source_of
from mycelia.tensor import Tensor
from mycelia.tensor.mode import is_staging

_EXPLAINED = "_explained"
_MOST_NAMES = 4
#: Where rewritten code does what the user wrote: an error of Python's own there is the user's.
_ON_BEHALF = frozenset({m.__file__ for m in (branches, calls, implicit, ordering, patterns, reads, runtime)})
_SIGNATURE = re.compile(r"\(\) (takes|missing|got (an unexpected|multiple|some positional))")
_UNPACK = re.compile(r"values to unpack \(expected")


def leave(error: Exception) -> None:
    """Explain an error, once, and shorten its traceback; the caller goes on with a bare ``raise``."""
    known = error.__dict__
    if _EXPLAINED not in known and RAISED_BY_GRAPH not in known and _explain(error):
        known[_EXPLAINED] = True
    error.__traceback__ = shown_traceback(error)


def _on_behalf(code: CodeType) -> bool:
    return code.co_filename in _ON_BEHALF or code is make_range.__code__


def _explain(error: Exception) -> bool:
    """Whether there was something to say, or a frame of the user's at least."""
    if isinstance(error, RecursionError) and is_staging():  # at the outermost door: there are a thousand frames
        return False
    frame, last, inside = None, -1, False
    entry = error.__traceback__
    while entry is not None:
        file = entry.tb_frame.f_code.co_filename
        inside = is_internal(file) and not _on_behalf(entry.tb_frame.f_code)
        if is_users(file) and (frame is None or file[:1] != "<" or linecache.getlines(file, entry.tb_frame.f_globals)):
            frame, last = entry.tb_frame, entry.tb_lasti
        entry = entry.tb_next
    if isinstance(error, MyceliaError):
        _complete(error, frame, last)
    elif isinstance(error, RecursionError):
        _recursion(error)
    elif isinstance(error, TypeError) and inside and _SIGNATURE.search(str(error)):
        _note(error, user_location() if frame is None else location_of(frame, last), "", _signature(error))
    elif frame is not None and not inside and not isinstance(error, (StopIteration, StopAsyncIteration)):
        found = dict(operands(frame, last))
        location = location_of(frame, last)
        if not source_of(frame, last).startswith("raise"):
            _note(error, location, _listed(found), _hint(error, location, found))
    return frame is not None or RAISED_BY_GRAPH in error.__dict__


def _complete(error: MyceliaError, frame: FrameType | None, last: int) -> None:
    if frame is None or isinstance(error, (GraphTypeError, UnboundInGraphError)):
        return
    reason = reason_of_code(list(_users(error))[-1].tb_frame.f_code)
    hint = None
    if reason is not None and "needs the value" in str(error):
        hint = f"{reason}, so its conditions and loops cannot depend on tensors: put it into a file, and import it"
    elif "the truth value" in str(error):
        hint = _truth_hint(source_of(frame, last))
    location = location_of(frame, last)
    if reason is not None:
        error.explain("", hint)
    if error.location is not None and (location.file, location.line) != (error.location.file, error.location.line):
        return
    error.explain(_listed(dict(operands(frame, last))), hint)


def _truth_hint(text: str) -> str | None:
    if re.search(r"[\])}] *(==|!=)|(==|!=) *[\[({]", text):
        return "compare the tensors one by one: ops.all(a == b), or ops.equal and logical_and"
    return None


def _users(error: Exception) -> Iterator[TracebackType]:
    entry = error.__traceback__
    while entry is not None:
        if is_users(entry.tb_frame.f_code.co_filename):
            yield entry
        entry = entry.tb_next


def _recursion(error: RecursionError) -> None:
    calls = list(_users(error))
    if not calls:
        return
    codes = [entry.tb_frame.f_code for entry in calls]
    code = max(codes, key=codes.count)
    entry = calls[codes.index(code)]  # the first call of the one that is called most
    frame, last = entry.tb_frame, entry.tb_lasti
    name = code.co_name
    error.args = (f"'{name}' calls itself without end while it is compiled",)
    error.__dict__[RAISED_BY_GRAPH] = True
    hint = "both sides of a condition on a tensor are compiled, so it cannot end a recursion: write a while loop"
    found = _listed(dict(operands(frame, last)))
    _note(error, location_of(frame, last), found, hint)


def _note(error: Exception, location: SourceLocation | None, found: str, hint: str | None) -> None:
    lines = [] if location is None else [location.render()]
    lines += [f"  where {found}"] if found else []
    lines += [f"  hint: {hint}"] if hint else []
    if lines:
        error.add_note("\n".join(lines))
    error.__dict__[RAISED_BY_GRAPH] = True  # it is the user's: nothing of ours in the traceback


# -- hints for errors of Python's own -------------------------------------------------------------------


def _signature(error: Exception) -> str | None:
    called = str(error).partition("(")[0]
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    owner = None if entry is None else entry.tb_frame.f_locals.get("self")
    fn = getattr(owner, "fn", owner)
    fn = getattr(fn, "construct", fn)
    if not callable(fn):
        return None
    try:
        known = inspect.signature(fn)
        bare = [p.replace(annotation=p.empty) for p in known.parameters.values()]
        return f"it is {called}{known.replace(parameters=bare, return_annotation=known.empty)}"
    except (TypeError, ValueError):
        return None


def _hint(error: Exception, location: SourceLocation, found: dict[str, Any]) -> str | None:
    lists = [n for n, v in found.items() if isinstance(v, (list, tuple)) and v and all(map(_is_number, v))]
    tensors = [n for n, v in found.items() if isinstance(v, Tensor)]
    rows = next((n for n in tensors if found[n].ndim), None)
    if isinstance(error, KeyError) and error.args:
        return _key_hint(error.args[0], found)
    if isinstance(error, AttributeError) and lists and hasattr(Tensor, str(error.name)):
        return f"a list of numbers is not a tensor: pass ms.Tensor({lists[0]})"
    if isinstance(error, ValueError) and _UNPACK.search(str(error)) and rows:
        return f"a tensor gives as many values as its first axis is long: {len(found[rows])} of '{rows}'"
    if "<Tensor " in str(error):
        return "the text of a tensor is only known when the graph runs, for print and for messages of errors"
    missing = [n for n, v in found.items() if v is None]
    if missing and "NoneType" in str(error):
        return f"'{missing[0]}' is None: give it a value, or test it first, as in: if {missing[0]} is not None"
    if isinstance(error, TypeError):
        if lists and "sequence" in str(error):
            return f"a list of numbers is not a tensor: pass ms.Tensor({lists[0]})"
        if "not callable" in str(error) and tensors:
            name = tensors[0]
            return f"'{name}' is a tensor, not a function: {name}[i] indexes it, {name} * y multiplies"
    if isinstance(error, AssertionError) and tensors and re.search(r"\bis\b", location.text):
        return "'is' asks for the same object, which a tensor and a value never are; compare with =="
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, complex))


def _key_hint(key: object, found: dict[str, Any]) -> str | None:
    if isinstance(key, Tensor) or (isinstance(key, str) and key.startswith("<Tensor ")):
        return "a tensor has no value yet to look up: index a tensor of the values, or pass the key as a Python value"
    for value in found.values():
        if isinstance(value, dict) and isinstance(key, str):
            near = difflib.get_close_matches(key, [k for k in value if isinstance(k, str)], 1)
            if near:
                return f"did you mean '{near[0]}'?"
    return None


def _listed(found: dict[str, Any]) -> str:
    return ", ".join(f"{name} is {describe(value)}" for name, value in list(found.items())[:_MOST_NAMES])
