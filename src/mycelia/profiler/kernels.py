"""What the device did while a profile was being recorded: the kernels of XLA's own profile.

``jax.profiler`` writes an XSpace, which ``jax.profiler.ProfileData`` reads: planes of lines of events. On the CPU each
line is a thread, and each event with the statistic ``hlo_op`` is the run of one part of a compiled program ("thunk"):
a fusion, a library call, a loop. It names its program (``program_id``) and the run of it (``run_id``; the runs of a
program are numbered one after the other, modulo 2**32). A part that goes on in other threads after its event has
ended is followed, somewhere, by an event ``end: NAME`` with the same flow number.

The clock of that profile is tied to the host's by annotations made between known times (:class:`Clock`).
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from jax.profiler import ProfileData

from mycelia.core.errors import StateError
from mycelia.profiler.recording import Launch

_CLOCK = "mycelia.profiler clock"


@dataclass(slots=True, eq=False)
class Kernel:
    """One run of a part of a compiled program.

    Attributes:
        name: the part's name in the program.
        module: the program's name.
        program: the number of the program in this process.
        run: the number of the run.
        thread: the thread it ran in, as an index into ``Kernels.threads``.
        start: nanoseconds of the host's clock.
        end: nanoseconds; what follows in the same thread starts later.
        own: nanoseconds without the kernels inside it (the body of a loop).
        launch: the call that led to it, once known.
    """

    name: str
    module: str
    program: int
    run: int
    thread: int
    start: int
    end: int
    own: int = 0
    launch: Launch | None = None


@dataclass
class DeviceProgram:
    """The runs of one program, in the order in which they were launched.

    Attributes:
        module: its name.
        number: the number it had in the process that compiled it.
        runs: the kernels of each run.
    """

    module: str
    number: int
    runs: list[list[Kernel]]

    @property
    def parts(self) -> set[str]:
        """The names of its parts that ran."""
        return {k.name for run in self.runs for k in run}

    @property
    def start(self) -> int:
        """When its first kernel began."""
        return min(k.start for run in self.runs for k in run)


#: Numbers of runs that are farther apart are of two programs: each counts from a start of its own, drawn at random.
_GAP = 1 << 20


@dataclass
class Kernels:
    """The kernels of one profile, in order of time within each thread; and the names of the threads."""

    kernels: list[Kernel]
    threads: list[str]

    def programs(self) -> list[DeviceProgram]:
        """The programs that ran, in order of time.

        One that came from the cache on disk has the number of the process that compiled it, which another may have
        too.
        """
        found: dict[tuple[str, int], dict[int, list[Kernel]]] = defaultdict(lambda: defaultdict(list))
        for kernel in self.kernels:
            found[kernel.module, kernel.program][kernel.run % 2**32].append(kernel)
        programs = []
        for (module, number), runs in found.items():
            numbers = sorted(runs)
            groups = [[numbers[0]]]
            for before, after in itertools.pairwise(numbers):
                if after - before > _GAP:
                    groups.append([])
                groups[-1].append(after)
            if len(groups) > 1 and groups[0][0] + 2**32 - groups[-1][-1] <= _GAP:  # counted past the greatest
                groups[0] = groups.pop() + groups[0]
            programs += [DeviceProgram(module, number, [runs[n] for n in group]) for group in groups]
        return sorted(programs, key=lambda p: p.start)


class Clock:
    """What ties the clock of XLA's profile to the host's: annotations, each made between two times of the host.

    Any one of them may be late (its first has to make room; a thread may be interrupted), so that the others decide:
    of all annotations made together, the shift has to suit each. Those at the end tell how far the clocks drift.
    """

    #: How many annotations are made together.
    TIMES = 10

    def __init__(self) -> None:
        self.between: list[list[tuple[int, int]]] = []

    def tie(self) -> None:
        """Make annotations now; a profile is being recorded."""
        between = []
        for _ in range(self.TIMES):
            before = time.perf_counter_ns()
            with jax.profiler.TraceAnnotation(_CLOCK):
                pass
            between.append((before, time.perf_counter_ns()))
        self.between.append(between)

    def host_time(self, annotations: Sequence[tuple[float, float]]) -> Callable[[float], int]:
        """What turns a time of the profile into one of the host.

        Args:
            annotations: start and end of each annotation that was made, in the profile's nanoseconds.
        """
        found = sorted(annotations)
        at, shifts = [], []
        for between in self.between:
            made, found = found[: len(between)], found[len(between) :]
            if len(made) == len(between):
                least = max(before - start for (before, _), (start, _) in zip(between, made, strict=True))
                most = min(after - end for (_, after), (_, end) in zip(between, made, strict=True))
                at.append(made[-1][0])
                shifts.append((least + most) / 2)
        if not at:
            return round
        first, shift = at[0], shifts[0]
        drift = (shifts[-1] - shift) / (at[-1] - first) if len(at) > 1 else 0.0
        return lambda t: round(t + shift + drift * (t - first))


class DeviceTrace:
    """XLA's profile, from :meth:`start` to :meth:`stop`."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._clock = Clock()

    def start(self) -> None:
        """Begin.

        Raises:
            StateError: a profile of JAX's is being recorded.
        """
        settle()
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        options.host_tracer_level = 1
        folder = tempfile.mkdtemp(prefix="mycelia-profile-")
        try:
            jax.profiler.start_trace(folder, profiler_options=options)
        except RuntimeError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise StateError(
                "profile.start", message=f"jax.profiler is recording already ({error})",
                hint="stop that profile first; there is one at a time in a process",
            ) from None  # fmt: skip
        self._folder = folder
        self._clock = Clock()
        self._clock.tie()

    def stop(self) -> Kernels:
        """End, when everything that was launched has run; the kernels."""
        settle()
        folder, self._folder = self._folder, None
        assert folder is not None
        try:
            self._clock.tie()
            jax.profiler.stop_trace()
            files = sorted(Path(folder).rglob("*.xplane.pb"))
            return read(ProfileData.from_file(str(files[-1])), self._clock) if files else Kernels([], [])
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def settle(pending: Iterable[Any] = ()) -> None:
    """Wait until arrays that are pending, and all that this process holds, are computed."""
    for array in (*pending, *jax.live_arrays()):
        if not array.is_deleted():
            array.block_until_ready()


def read(data: Any, clock: Clock) -> Kernels:
    """The kernels of a profile, in the host's time as ``clock`` ties it."""
    annotations: list[tuple[float, float]] = []
    ends: dict[int, float] = {}
    lines: list[tuple[str, list[tuple[float, float, str, dict[str, Any]]]]] = []
    for plane in data.planes:
        for line in plane.lines:
            events = []
            for event in line.events:
                name = event.name
                if name.startswith("end: "):
                    flow = next((v for k, v in event.stats if k == "_c"), None)
                    if flow is not None:
                        ends[int(flow)] = event.start_ns
                elif name == _CLOCK:
                    annotations.append((event.start_ns, event.start_ns + event.duration_ns))
                elif "::" not in name:
                    stats = dict(event.stats)
                    if "hlo_op" in stats:
                        events.append((event.start_ns, event.start_ns + event.duration_ns, name, stats))
            if events:
                lines.append((line.name, events))
    kernels: list[Kernel] = []
    host_time = clock.host_time(annotations)
    for thread, (_, events) in enumerate(lines):
        kernels += _in_thread(thread, events, ends, host_time)
    return Kernels(kernels, [name for name, _ in lines])


def _in_thread(
    thread: int,
    events: Iterable[tuple[float, float, str, dict[str, Any]]],
    ends: dict[int, float],
    host_time: Callable[[float], int],
) -> list[Kernel]:
    """The kernels of one thread, nested as they were, with the time of each that is its own."""
    ordered = sorted(events, key=lambda e: (e[0], -e[1]))
    made: list[Kernel] = []
    open_: list[Kernel] = []
    for i, (start, end, _, stats) in enumerate(ordered):
        following = ordered[i + 1][0] if i + 1 < len(ordered) else float("inf")
        finished = ends.get(int(stats["_p"]), end) if "_p" in stats else end
        if finished > end:
            end = max(end, min(finished, following)) if following >= end else end
        kernel = Kernel(
            str(stats["hlo_op"]), str(stats.get("hlo_module", "")), int(stats.get("program_id", -1)),
            int(stats.get("run_id", 0)), thread, host_time(start), host_time(end),
        )  # fmt: skip
        while open_ and open_[-1].end <= kernel.start:
            open_.pop()
        if open_:
            kernel.end = min(kernel.end, open_[-1].end)
        kernel.own = kernel.end - kernel.start
        if open_:
            open_[-1].own -= kernel.own
        open_.append(kernel)
        made.append(kernel)
    return made
