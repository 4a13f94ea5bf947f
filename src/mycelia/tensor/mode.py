"""What a call does right now, per thread: run, run and record, or stage.

One attribute read per dispatch decides: ``PLAIN`` runs the operator, ``RECORD`` also links it to its
inputs for differentiation, ``STAGE`` adds it to the graph of ``state.builder``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mycelia.ir.builder import Builder

PLAIN = 0
RECORD = 1
STAGE = 2


class _State(threading.local):
    phase: int = PLAIN
    builder: Builder | None = None
    depth: int = 0  # how many gradients are being taken around this call
    programs: int = 0  # of operators, that were traced in this thread
    programs_before: int = 0  # the same when the outermost gradient around this call began


state = _State()


def is_staging() -> bool:
    """Whether operators are being added to a graph."""
    return state.phase == STAGE


@contextmanager
def staging(builder: Builder) -> Iterator[Builder]:
    """Stage into ``builder`` inside the block."""
    before = state.phase, state.builder
    state.phase, state.builder = STAGE, builder
    try:
        yield builder
    finally:
        state.phase, state.builder = before


@contextmanager
def running(record: bool = False) -> Iterator[None]:
    """Run operators at once inside the block, recording them if ``record``."""
    before = state.phase, state.builder
    state.phase, state.builder = (RECORD if record else PLAIN), None
    try:
        yield
    finally:
        state.phase, state.builder = before


@contextmanager
def recording() -> Iterator[int]:
    """Record operators inside the block; gives the nesting depth, 1 for the outermost gradient."""
    before = state.phase, state.builder
    state.phase, state.builder = RECORD, None
    state.depth += 1
    if state.depth == 1:
        state.programs_before = state.programs
    try:
        yield state.depth
    finally:
        state.depth -= 1
        state.phase, state.builder = before


def current_builder() -> Builder:
    """The builder being staged into; only valid while staging."""
    assert state.builder is not None
    return state.builder
