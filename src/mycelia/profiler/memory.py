"""How much memory arrays take while a profile is recorded.

Every array that an operator or a graph gives back is counted from then until it is dropped (a weak reference tells);
arrays that were there before are counted from the beginning. What a graph needs inside (its temporaries) is added from
what XLA says of the compiled program. Beside it the memory of the process is sampled.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax

#: Nanoseconds between samples of the process's memory.
SAMPLING = 1_000_000


class Sample(NamedTuple):
    """Bytes in arrays at a time (nanoseconds)."""

    time: int
    bytes: int


class GraphRun(NamedTuple):
    """What is needed to tell what memory a run of a graph took."""

    time: int
    program: Any
    before: int
    given: int


def process_bytes() -> int:
    """The memory of this process that is in use now (resident), in bytes; 0 where that cannot be told."""
    if sys.platform != "linux":
        return 0
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE


def _page_size() -> int:
    return int(os.sysconf("SC_PAGE_SIZE")) if hasattr(os, "sysconf") else 4096


_PAGE = _page_size()


class Memory:
    """Counts the bytes of arrays from now on."""

    def __init__(self) -> None:
        self.live = 0
        self.samples: list[Sample] = []
        self.runs: list[GraphRun] = []
        self.process: list[Sample] = []
        self._held: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._watching = True
        self._lock = threading.RLock()  # an array may be dropped in any thread, also in the midst of counting
        self.samples.append(Sample(time.perf_counter_ns(), self.add(jax.live_arrays())))

    def add(self, arrays: Iterable[Any]) -> int:
        """Count arrays that are new; their bytes."""
        added = 0
        with self._lock:
            for array in arrays:
                key = id(array)
                if key not in self._held and isinstance(array, jax.Array):
                    size = int(array.nbytes)
                    self._held[key] = (weakref.ref(array, self._dropper(key)), size)
                    added += size
            self.live += added
            now = time.perf_counter_ns()
            if added:
                self.samples.append(Sample(now, self.live))
            if not self.process or now - self.process[-1].time > SAMPLING:
                self.process.append(Sample(now, process_bytes()))
        return added

    def graph(self, program: Any, donated: Sequence[Any], results: Iterable[Any]) -> None:
        """Count what a run of a graph gave, and no longer what it used up."""
        before = self.live
        for array in donated:
            if array.is_deleted():
                self._drop(id(array))
        kept = self.live
        self.add(results)
        self.runs.append(GraphRun(time.perf_counter_ns(), program, before, self.live - kept))

    def stop(self) -> None:
        """Count no more."""
        self.process.append(Sample(time.perf_counter_ns(), process_bytes()))
        self._watching = False
        self._held.clear()

    def _dropper(self, key: int) -> Any:
        def drop(_: Any) -> None:
            if self._watching:
                self._drop(key)

        return drop

    def _drop(self, key: int) -> None:
        with self._lock:
            held = self._held.pop(key, None)
            if held is not None:
                self.live -= held[1]
                self.samples.append(Sample(time.perf_counter_ns(), self.live))
