"""Reads of attributes in rewritten code, told to the guards of the graph being staged."""

from __future__ import annotations

from typing import Any

from mycelia.frontend.implicit import see
from mycelia.tensor.mode import STAGE, state
from mycelia.tensor.tensor import Tensor


def attr(obj: Any, name: str) -> Any:
    """``obj.name``; a number that varies from call to call as its scalar."""
    value = getattr(obj, name)
    if state.phase != STAGE or isinstance(obj, Tensor):
        return value
    guards = state.builder.notes.get("guards")  # type: ignore[union-attr]
    return value if guards is None else guards.read(obj, name, value)


def getattr_(obj: Any, name: str, *default: Any) -> Any:
    """``getattr`` of rewritten code."""
    try:
        return attr(see(obj), name)
    except AttributeError:
        if not default:
            raise
        _missed(obj, name)
        return default[0]


def hasattr_(obj: Any, name: str) -> bool:
    """``hasattr`` of rewritten code."""
    try:
        attr(see(obj), name)
    except AttributeError:
        _missed(obj, name)
        return False
    return True


def _missed(obj: Any, name: str) -> None:
    if state.phase == STAGE and (guards := state.builder.notes.get("guards")) is not None:  # type: ignore[union-attr]
        guards.missed(obj, name)


def wrote(owner: Any) -> None:
    """An attribute, item or variable of ``owner`` is about to be set by the program."""
    if state.phase == STAGE and (guards := state.builder.notes.get("guards")) is not None:  # type: ignore[union-attr]
        guards.wrote(owner)


def whole(obj: Any) -> Any:
    """The object itself, of which Python itself is about to read attributes (``vars``, class patterns)."""
    if state.phase == STAGE and (guards := state.builder.notes.get("guards")) is not None:  # type: ignore[union-attr]
        guards.read_whole(obj)
    return obj
