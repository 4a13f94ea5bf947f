"""Where tensors are put before a graph runs: a hook for what spreads them over devices.

``parallel`` installs it; without it, or while :data:`active` is False, tensors stay where they are.
"""

from __future__ import annotations

from typing import Any, Protocol

from mycelia.frontend.entry import Entry


class Placer(Protocol):
    """What decides where tensors lie."""

    def inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a compiled function, put where they shall lie."""

    def captured(self, entry: Entry) -> None:
        """Put the tensors that a staged graph takes besides its arguments where they shall lie."""


active = False
_placer: Placer | None = None


def set_placer(placer: Placer) -> None:
    """Install what puts tensors where they shall lie."""
    global _placer
    _placer = placer


def activate(on: bool) -> None:
    """Whether the placer is asked."""
    global active
    active = on and _placer is not None


def placed_inputs(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a compiled function, put where they shall lie."""
    return (args, kwargs) if _placer is None else _placer.inputs(args, kwargs)


def place_captured(entry: Entry) -> None:
    """Put the tensors that a staged graph takes besides its arguments where they shall lie."""
    if _placer is not None:
        _placer.captured(entry)
