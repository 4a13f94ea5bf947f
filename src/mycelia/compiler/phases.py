"""Where the time of a compilation goes: what JAX reports about its phases while a graph is compiled.

JAX tells registered listeners how long it traced, lowered to StableHLO and compiled, and whether an executable came
from disk. What it reports is added up for whatever compilation runs in the thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import jax.monitoring

_DURATIONS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
_HIT = "/jax/compilation_cache/cache_hits"


@dataclass
class Phases:
    """Seconds of each phase of compiling one graph.

    Attributes:
        stage: running the user's function on symbolic tensors.
        passes: the passes over the graph.
        trace: evaluating the graph under ``jax.jit``.
        lower: StableHLO from that.
        compile: XLA; or reading the executable from disk.
        from_disk: whether the executable came from disk.
    """

    stage: float = 0.0
    passes: float = 0.0
    trace: float = 0.0
    lower: float = 0.0
    compile: float = 0.0
    from_disk: bool = False

    @property
    def total(self) -> float:
        """Seconds of all phases."""
        return self.stage + self.passes + self.trace + self.lower + self.compile


class _Listening(threading.local):
    phases: Phases | None = None


_listening = _Listening()


def _on_duration(event: str, duration_secs: float, **_: object) -> None:
    phases, name = _listening.phases, _DURATIONS.get(event)
    if phases is not None and name is not None:
        setattr(phases, name, getattr(phases, name) + duration_secs)


def _on_event(event: str, **_: object) -> None:
    if event == _HIT and _listening.phases is not None:
        _listening.phases.from_disk = True


jax.monitoring.register_event_duration_secs_listener(_on_duration)
jax.monitoring.register_event_listener(_on_event)


@contextmanager
def listening(phases: Phases) -> Iterator[None]:
    """Add what JAX reports in this thread to ``phases``."""
    before = _listening.phases
    _listening.phases = phases
    try:
        yield
    finally:
        _listening.phases = before
