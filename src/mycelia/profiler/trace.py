"""A profile as a trace that Perfetto and ``chrome://tracing`` show.

The format is Chrome's "Trace Event Format": JSON with a list of events. Every event here has ``ph``, ``name``, ``ts``,
``dur`` (microseconds), ``pid`` and ``tid``; ``X`` is a stretch of time, ``M`` names a track, ``C`` counts bytes.
Stretches of one track are nested or apart: what would overlap by the rounding of clocks is cut at the end of what is
around it.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from mycelia.compiler.executable import Executable
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.profiler.analysis import Profile, shown_name
from mycelia.profiler.recording import Line

Event = dict[str, Any]

#: Numbers of tracks: those of threads count from here.
_HOST, _DEVICE, _LANES = 1, 1000, 2000


def trace_events(profile: Profile, metadata: dict[str, Any] | None = None, with_shapes: bool = False) -> dict[str, Any]:
    """The trace as what JSON is made of."""
    recording, pid, zero = profile.recording, os.getpid(), profile.recording.start
    tracks: dict[int, list[Event]] = defaultdict(list)
    names: dict[int, str] = {}

    def add(tid: int, name: str, category: str, start: int, end: int, args: dict[str, Any] | None = None) -> None:
        event: Event = {
            "ph": "X", "name": name, "cat": category, "pid": pid, "tid": tid, "ts": start - zero,
            "dur": max(0, end - start),
        }  # fmt: skip
        if args:
            event["args"] = args
        tracks[tid].append(event)

    threads = {ident: _HOST + i for i, ident in enumerate(recording.threads)}
    for ident, tid in threads.items():
        names[tid] = f"Python: {recording.threads[ident]}"
    lanes: list[tuple[str, list[tuple[int, int]]]] = []
    for span in sorted(recording.spans, key=lambda s: (s.start, -s.end)):
        if span.kind == "lane":
            domain, _, message = span.name.partition("\0")
            tid = _LANES + _lane(lanes, domain, span.start, span.end)
            names[tid] = f"mstx: {domain}"
            add(tid, message, "range", span.start, span.end)
        else:
            add(threads[span.thread], span.name, span.kind, span.start, span.end)
    for launch in recording.launches:
        args = _of_line(launch.line)
        if launch.forward is not None:
            args["gradient of"] = launch.forward
        if launch.stack:
            args["stack"] = launch.stack
        if with_shapes and launch.types:
            args["shapes"] = [str(t) for t in launch.types]
        kind = "graph" if isinstance(launch.program, Executable) else "operator"
        add(threads[launch.thread], shown_name(launch), kind, launch.start, launch.end, args)
    for kernel in profile.kernels.kernels:
        label = profile.label(kernel)
        args = {**_of_line(label.line), "kernel": kernel.name, "program": kernel.module, "run": kernel.run}
        if len(label.operators) > 1:
            args["fused"] = [o.name if o.line is None else f"{o.name} {o.line.short}" for o in label.operators]
        tid = _DEVICE + kernel.thread
        names[tid] = f"kernels: {profile.kernels.threads[kernel.thread]}"
        add(tid, label.name, "kernel", kernel.start, kernel.end, args)
    events: list[Event] = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "dur": 0, "args": {"name": "mycelia"}}
    ]
    for tid, name in sorted(names.items()):
        events.append(
            {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "ts": 0, "dur": 0, "args": {"name": name}}
        )
    for track in tracks.values():
        events += _nested(track)
    if recording.memory is not None:
        for sample in recording.memory.samples:
            events.append(
                {"ph": "C", "name": "bytes in arrays", "pid": pid, "tid": 0, "ts": (sample.time - zero) / 1e3, "dur": 0,
                 "args": {"bytes": sample.bytes}}
            )  # fmt: skip
    return {"traceEvents": events, "displayTimeUnit": "ms", "metadata": dict(metadata or {})}


def _of_line(line: Line | None) -> dict[str, Any]:
    return {} if line is None else {"line": f"{line.file}:{line.line}", "function": line.function}


def _lane(lanes: list[tuple[str, list[tuple[int, int]]]], domain: str, start: int, end: int) -> int:
    """The first track of a domain where a stretch is inside or apart from what is there."""
    for i, (owner, taken) in enumerate(lanes):
        if owner == domain and all(e <= start or end <= s or (s <= start and end <= e) for s, e in taken):
            taken.append((start, end))
            return i
    lanes.append((domain, [(start, end)]))
    return len(lanes) - 1


def _nested(track: list[Event]) -> list[Event]:
    """The events of a track in order, in microseconds, none of them reaching out of the one around it."""
    track.sort(key=lambda e: (e["ts"], -e["dur"]))
    open_: list[int] = []
    for event in track:
        start, end = event["ts"], event["ts"] + event["dur"]
        while open_ and open_[-1] <= start:
            open_.pop()
        if open_:
            end = min(end, open_[-1])
        open_.append(end)
        event["ts"], event["dur"] = start / 1e3, (end - start) / 1e3
    return track


def check_path(where: str, path: Any) -> Path:
    """Where a trace is to be written.

    Raises:
        ArgumentTypeError: no path.
        ArgumentValueError: its folder is not there or cannot be written.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(where, "path", got=repr(path), takes="the path of a file")
    file = Path(path)
    if not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
        why = "cannot be written" if file.parent.is_dir() else "is not there"
        raise ArgumentValueError(
            where, "path", got=f"'{file}', whose folder {why}", takes="a file in a folder that can be written"
        )
    return file


def write_trace(path: Path, trace: dict[str, Any]) -> None:
    """Write a trace, compressed if the name ends with ``.gz``; the file is the old one or the whole new one."""
    data = json.dumps(trace, separators=(",", ":")).encode()
    write_whole(path, gzip.compress(data, 6, mtime=0) if path.suffix == ".gz" else data)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file beside its place, then put it there."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
