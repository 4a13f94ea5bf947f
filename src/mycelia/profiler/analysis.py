"""Joining what the host did with what the device did: which call led to which kernels, and what they are called.

A call is joined to its run by number: the runs of a program are numbered in the order of its calls. Which of XLA's
programs a call runs is asked of JAX (lowering again what has been compiled gives the same executable, from memory).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np

from mycelia.compiler.executable import Executable
from mycelia.compiler.passes import opaque, updates
from mycelia.compiler.pipeline import optimize
from mycelia.ir.graph import Graph
from mycelia.profiler.kernels import DeviceProgram, Kernel, Kernels
from mycelia.profiler.names import BACKWARD, Label, ProgramNames
from mycelia.profiler.recording import Launch, Line, Recording, Span


@dataclass
class Average:
    """One line of the table: an operator at a line of the user's.

    Attributes:
        key: the operator's name.
        line: the user's line; None where it is not known.
        count: how often it ran.
        total_ns: the time of its kernels, nanoseconds.
        dispatch_ns: the host's time of its calls without kernels that ran in it, nanoseconds (PyNative mode).
        share: the part of all kernels' time, from 0 to 1.
    """

    key: str
    line: Line | None
    count: int = 0
    total_ns: int = 0
    dispatch_ns: int = 0
    share: float = 0.0

    @property
    def total_ms(self) -> float:
        """Milliseconds of its kernels."""
        return self.total_ns / 1e6

    @property
    def mean_us(self) -> float:
        """Microseconds of its kernels in one run."""
        return self.total_ns / 1e3 / self.count if self.count else 0.0

    @property
    def dispatch_ms(self) -> float:
        """Milliseconds of the host's."""
        return self.dispatch_ns / 1e6


@dataclass
class Step:
    """One step: its number or name, and times in nanoseconds."""

    name: str
    start: int
    end: int
    data_wait: int = 0

    @property
    def ms(self) -> float:
        """Milliseconds."""
        return (self.end - self.start) / 1e6


@dataclass
class Profile:
    """What was recorded, analysed.

    Attributes:
        recording: the host's side.
        kernels: the device's side.
        averages: operators by line, the longest first.
        labels: what each kernel is shown as.
        steps: the steps, in order.
        peak_bytes: the most memory of arrays and of what graphs need inside; None if it was not asked for.
        process_bytes: the most memory that the process was seen to use.
    """

    recording: Recording
    kernels: Kernels
    averages: list[Average] = field(default_factory=list)
    labels: dict[int, Label] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    peak_bytes: int | None = None
    process_bytes: int | None = None

    @property
    def kernel_ns(self) -> int:
        """The time of all kernels."""
        return sum(a.total_ns for a in self.averages)

    def spans(self, kind: str) -> list[Span]:
        """The stretches of a kind."""
        return [s for s in self.recording.spans if s.kind == kind]

    def label(self, kernel: Kernel) -> Label:
        """What a kernel is shown as."""
        return self.labels[id(kernel)]


def analyse(recording: Recording, kernels: Kernels) -> Profile:
    """Join the two sides of a recording."""
    profile = Profile(recording, kernels)
    programs = _Programs()
    _join(recording.launches, kernels, programs)
    _label(profile, programs)
    _average(profile)
    _steps(profile)
    memory = recording.memory
    if memory is not None:
        peak = max([s.bytes for s in memory.samples], default=0)
        for run in memory.runs:
            peak = max(peak, run.before + max(run.given, 0) + programs.temporary_bytes(run.program))
        profile.peak_bytes = peak
        profile.process_bytes = max([s.bytes for s in memory.process], default=0)
    return profile


class _About(NamedTuple):
    """What a program tells of itself: its name, its number and the names of its parts."""

    name: str | None
    number: int | None
    parts: set[str]


_DEFINED = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = ", re.MULTILINE)


class _Programs:
    """What XLA knows of the programs that were called; asked once for each."""

    def __init__(self) -> None:
        self._compiled: dict[Any, Any] = {}
        self._abouts: dict[Any, _About] = {}
        self._names: dict[Any, ProgramNames] = {}

    def compiled(self, launch: Launch) -> Any:
        """The ``jax.stages.Compiled`` of a call; None if what was called cannot tell."""
        return self._of(launch.program, launch.types)

    def _of(self, program: Any, types: tuple[Any, ...]) -> Any:
        key = (id(program), types)
        if key not in self._compiled:
            lower = getattr(program, "lower", None)
            if isinstance(program, Executable):
                lowered = program.lowered()
            elif lower is not None and all(hasattr(t, "weak_type") for t in types):
                lowered = lower(*[jax.ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak_type) for t in types])
            else:
                lowered = None
            self._compiled[key] = None if lowered is None else lowered.compile()
        return self._compiled[key]

    def module_name(self, launch: Launch) -> str | None:
        """The name of a program; None if what was called cannot tell."""
        return self._about(launch).name

    def number(self, launch: Launch) -> int | None:
        """The number that a program has in this process."""
        return self._about(launch).number

    def parts(self, launch: Launch) -> set[str]:
        """The names of a program's parts."""
        return self._about(launch).parts

    def _about(self, launch: Launch) -> _About:
        key = (id(launch.program), launch.types)
        if key not in self._abouts:
            module = _module(self.compiled(launch))
            if module is None:
                self._abouts[key] = _About(None, None, set())
            else:
                number = _unique_id(module.as_serialized_hlo_module_proto())
                parts = set(_DEFINED.findall(module.to_string()))
                self._abouts[key] = _About(module.name, number, parts)
        return self._abouts[key]

    def names(self, launch: Launch) -> ProgramNames | None:
        """The names of a graph's parts, with the lines of the graph that was called."""
        if not isinstance(launch.program, Executable):
            return None
        graph = launch.graph if launch.graph is not launch.program.source else None
        key = (id(launch.program), id(graph), id(launch.tape))
        if key not in self._names:
            module = _module(self.compiled(launch))
            text = "" if module is None else module.to_string()
            self._names[key] = ProgramNames(text, _lowered_graph(launch.program, graph), launch.tape)
        return self._names[key]

    def temporary_bytes(self, program: Executable) -> int:
        """The memory that a graph needs inside."""
        analysis = self._of(program, ()).memory_analysis()
        return 0 if analysis is None else int(analysis.temp_size_in_bytes)


def _lowered_graph(executable: Executable, graph: Graph | None) -> Graph:
    """The graph whose places the names of an executable mean, with the lines of ``graph`` if it computes the same."""
    made: Graph = executable.program
    if graph is None or graph.input_types != executable.source.input_types:
        return made
    other = opaque.run(updates.run(optimize(graph), executable.donated)[0])[0]
    same = [n.op for n in other.nodes] == [n.op for n in made.nodes]
    return other if same else made


def _module(compiled: Any) -> Any:
    """The optimized module of a compiled program."""
    executable = None if compiled is None else compiled.runtime_executable()
    modules = () if executable is None else executable.hlo_modules()
    return modules[0] if modules else None


def _unique_id(proto: bytes) -> int | None:
    """Field 5 of an ``HloModuleProto``: the number of the module in this process."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = proto[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(proto):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
            if key >> 3 == 5:
                return value
        elif kind == 2:
            size = varint()
            at += size
        else:
            at += 8 if kind == 1 else 4
    return None


def _join(launches: Iterable[Launch], kernels: Kernels, programs: _Programs) -> None:
    """Tell each kernel the call that led to it; what was called before the recording is left out."""
    early: set[int] = set()
    groups: dict[Any, list[Launch]] = defaultdict(list)
    for launch in sorted(launches, key=lambda c: c.start):
        groups[id(launch.program), launch.types].append(launch)
    by_module: dict[str, list[list[Launch]]] = defaultdict(list)
    for calls in groups.values():
        name = programs.module_name(calls[0])
        if name is not None:
            by_module[name].append(calls)
    ran: dict[str, list[DeviceProgram]] = defaultdict(list)
    for program in kernels.programs():
        ran[program.module].append(program)
    for name, called in by_module.items():
        for program, calls in _pairs(ran[name], called, programs):
            early.update(map(id, _join_runs(program.runs, calls)))
    kernels.kernels = [k for k in kernels.kernels if id(k) not in early]


def _pairs(
    ran: list[DeviceProgram], called: list[list[Launch]], programs: _Programs
) -> Iterable[tuple[DeviceProgram, list[Launch]]]:
    """Which of the programs of one name the calls of each group ran.

    A program that was compiled in this process is known by its number, but one from disk has the number of another
    process. So numbers only decide between what is else alike: a program has to hold the parts that ran, as often as
    it was called, not before it was called. Of programs that are called in turn, the first called runs first: the sum
    of the squares of what lies between calls and runs is least if both are in the same order.
    """
    if not ran or not called:
        return []
    from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]

    costs = np.full((len(ran), len(called)), _NEVER)
    for i, program in enumerate(ran):
        for j, calls in enumerate(called):
            if program.parts <= programs.parts(calls[0]):
                costs[i, j] = _distance(program.runs, calls)
                if programs.number(calls[0]) == program.number:
                    costs[i, j] -= _SAME_NUMBER
    rows, columns = linear_sum_assignment(costs)
    return [(ran[i], called[j]) for i, j in zip(rows, columns, strict=True) if costs[i, j] < _NEVER]


#: The costs of pairs, beside seconds squared: one that cannot be, one run more or less than calls, one run before its
#: call, and what the same number makes up for.
_NEVER, _MISSING, _BEFORE, _SAME_NUMBER = 1e15, 1e9, 1e6, 1e-12
#: By how much a run may seem to be before its call (nanoseconds), since clocks are tied with some error.
_TOLERANCE = 50_000


def _distance(runs: list[list[Kernel]], calls: list[Launch]) -> float:
    """How far the runs of a program are from being those of some calls."""
    count = min(len(runs), len(calls))
    started = np.array([min(k.start for k in run) for run in runs[len(runs) - count :]], np.float64)
    lag = started - np.array([call.start for call in calls[:count]], np.float64)
    before = int((lag < -_TOLERANCE).sum())
    return float(_MISSING * abs(len(runs) - len(calls)) + _BEFORE * before + ((lag / 1e9) ** 2).sum())


def _join_runs(runs: list[list[Kernel]], calls: list[Launch]) -> list[Kernel]:
    """Tell the kernels of runs the calls that led to them; the kernels of calls before the recording."""
    early = max(0, len(runs) - len(calls))
    for run, call in zip(runs[early:], calls, strict=False):
        for kernel in run:
            kernel.launch = call
    return [kernel for run in runs[:early] for kernel in run]


#: What programs of JAX's own do that are no operators.
_OUTSIDE = {"stage": "copy into a Tensor"}


def _label(profile: Profile, programs: _Programs) -> None:
    for kernel in profile.kernels.kernels:
        launch = kernel.launch
        names = None if launch is None else programs.names(launch)
        if launch is None:
            name = kernel.module.removeprefix("jit_")
            label = Label(_OUTSIDE.get(name, name) or kernel.name, None, (), (kernel.program, kernel.name))
        elif names is None:
            label = Label(shown_name(launch), launch.line, (), (kernel.program, kernel.name))
        else:
            label = names.label(kernel.name)
            if label.line is None:  # of unknown origin: at least where the graph was called
                label = label._replace(line=launch.line)
        if label.control:
            kernel.own = 0
        profile.labels[id(kernel)] = label


def shown_name(launch: Launch) -> str:
    """The name of a call; one that belongs to a derivative says so."""
    return launch.name if launch.forward is None else launch.name + BACKWARD


def _average(profile: Profile) -> None:
    found: dict[tuple[str, Line | None], Average] = {}

    def row(name: str, line: Line | None) -> Average:
        where = None if line is None else Line(line.file, line.line)
        if (name, where) not in found:
            found[name, where] = Average(name, line)
        return found[name, where]

    inside: dict[int, int] = defaultdict(int)
    counts: dict[tuple[Any, ...], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for kernel in profile.kernels.kernels:
        label, launch = profile.label(kernel), kernel.launch
        if label.control:
            continue
        row(label.name, label.line).total_ns += kernel.own
        if launch is not None and launch.graph is None and not isinstance(launch.program, Executable):
            if kernel.start < launch.end:
                inside[id(launch)] += min(kernel.end, launch.end) - kernel.start if kernel.own else 0
            continue
        counts[label.name, label.line, kernel.program, label.node][kernel.name] += 1
    for (name, line, _, _), parts in counts.items():
        row(name, line).count += max(parts.values())
    for launch in profile.recording.launches:
        if not isinstance(launch.program, Executable):
            average = row(shown_name(launch), launch.line)
            average.count += 1
            average.dispatch_ns += max(0, launch.end - launch.start - inside[id(launch)])
    total = sum(a.total_ns for a in found.values())
    for average in found.values():
        average.share = average.total_ns / total if total else 0.0
    profile.averages = sorted(found.values(), key=lambda a: (-a.total_ns, -a.dispatch_ns, a.key))


def _steps(profile: Profile) -> None:
    """The steps that ``step()`` told of, or else those of a ``Model``; with the time each waited for data."""
    spans = profile.spans("step")
    ranges = profile.spans("range")
    if not spans:
        spans = [s for s in ranges if s.name == "step"]
    waits = [s for s in ranges if s.name == "data_wait"]
    profile.steps = [Step(s.name, s.start, s.end) for s in sorted(spans, key=lambda s: s.start)]
    before = profile.recording.start
    for step in profile.steps:  # a Model waits for the batch of a step before it
        step.data_wait = sum(w.end - w.start for w in waits if before <= w.start < step.end)
        before = step.end
