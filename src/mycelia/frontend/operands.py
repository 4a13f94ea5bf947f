"""The variables and attributes that the expression a frame is at names, with their values."""

from __future__ import annotations

import io
import linecache
import sys
import tokenize
from collections.abc import Iterator
from types import FrameType
from typing import Any

from mycelia.core.errors import is_users, location_of, span_of
from mycelia.frontend.undefined import Undefined
from mycelia.tensor import Tensor

_PLAIN = (Tensor, bool, int, float, complex, str, list, tuple, dict, set, type(None))


def users_operands() -> dict[str, Any]:
    """Those of the user's line that is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return {} if frame is None else dict(operands(frame, frame.f_lasti))


def operands(frame: FrameType, last: int) -> Iterator[tuple[str, Any]]:
    """The variables and attributes that an expression names, with their values, those that say something."""
    found = dict(_values(frame, source_of(frame, last)))
    if not found:
        found = dict(_values(frame, linecache.getline(frame.f_code.co_filename, location_of(frame, last).line)))
    yield from found.items()


def source_of(frame: FrameType, last: int) -> str:
    """The source of the expression that a frame is at."""
    first, end, column, end_column = span_of(frame.f_code, last)
    if first is None or end is None or column is None or end_column is None:
        return ""
    lines = [linecache.getline(frame.f_code.co_filename, i).encode() for i in range(first, end + 1)]
    if not lines:
        return ""
    lines[-1] = lines[-1][:end_column]
    lines[0] = lines[0][column:]
    return b"".join(lines).decode(errors="replace")


def _values(frame: FrameType, text: str) -> Iterator[tuple[str, Any]]:
    scopes = frame.f_locals, frame.f_globals
    for chain in _chains(text):
        scope = next((s for s in scopes if chain[0] in s), None)
        if scope is None:
            continue
        value, name = scope[chain[0]], chain[0]
        for attribute in chain[1:]:
            if isinstance(value, _PLAIN):
                break
            value, name = _held(value, attribute), f"{name}.{attribute}"
        if isinstance(value, _PLAIN) and not isinstance(value, Undefined):
            yield name, value


def _held(owner: Any, name: str) -> Any:
    """An attribute that an object holds itself, without running code of the object."""
    own = getattr(owner, "__dict__", None)
    if not isinstance(own, dict):
        return Ellipsis
    for store in (own, own.get("_params"), own.get("_cells")):
        if isinstance(store, dict) and name in store:
            return store[name]
    return Ellipsis


def _chains(text: str) -> list[list[str]]:
    """The dotted names of a piece of source, in order."""
    chains: list[list[str]] = []
    before = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                if before == "." and chains:
                    chains[-1].append(token.string)
                elif before != ".":
                    chains.append([token.string])
            elif token.string not in (".", ""):
                chains.append([])
            before = token.string
    except (tokenize.TokenError, SyntaxError):
        pass
    return [c for c in chains if c]
