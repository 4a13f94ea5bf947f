"""The table of a profile: where the time went, by operator and line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import overload

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.profiler.analysis import Average, Profile

_SORTS: dict[str, Callable[[Average], float]] = {
    "total": lambda a: a.total_ns,
    "calls": lambda a: a.count,
    "mean": lambda a: a.mean_us,
    "dispatch": lambda a: a.dispatch_ns,
}
#: The widest a column of text becomes.
_WIDEST = 44


class Averages:
    """The lines of the table, the longest first.

    >>> len(Averages([])), Averages([]).table().splitlines()[0].split()[:2]
    (0, ['operator', 'line'])
    """

    def __init__(self, rows: Iterable[Average]) -> None:
        self.rows = list(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Average]:
        return iter(self.rows)

    @overload
    def __getitem__(self, index: int) -> Average: ...
    @overload
    def __getitem__(self, index: slice) -> list[Average]: ...
    def __getitem__(self, index: int | slice) -> Average | list[Average]:
        return self.rows[index]

    @property
    def total_ms(self) -> float:
        """Milliseconds of all kernels."""
        return sum(r.total_ms for r in self.rows)

    def table(self, sort_by: str = "total", row_limit: int = 20) -> str:
        """The lines as text.

        Args:
            sort_by: ``"total"``, ``"calls"``, ``"mean"`` or ``"dispatch"``, falling.
            row_limit: how many lines at most; -1 for all.

        Raises:
            ArgumentTypeError: ``row_limit`` is no int.
            ArgumentValueError: an unknown ``sort_by``, or a ``row_limit`` below -1.
        """
        if sort_by not in _SORTS:
            raise ArgumentValueError("table", "sort_by", got=repr(sort_by), takes=", ".join(map(repr, _SORTS)))
        if isinstance(row_limit, bool) or not isinstance(row_limit, int):
            raise ArgumentTypeError("table", "row_limit", got=repr(row_limit), takes="an int")
        if row_limit < -1:
            raise ArgumentValueError("table", "row_limit", got=str(row_limit), takes="an int from -1 on")
        rows = sorted(self.rows, key=_SORTS[sort_by], reverse=True)
        shown = rows if row_limit < 0 else rows[:row_limit]
        dispatched = any(r.dispatch_ns for r in rows)
        heads = ["operator", "line", "calls", "total ms", "share", "mean us"] + ["dispatch ms"] * dispatched
        cells = [heads]
        for r in shown:
            line = "" if r.line is None else r.line.short
            cell = [_fitted(r.key), _fitted(line), str(r.count), f"{r.total_ms:.3f}", f"{r.share:.1%}"]
            cells.append([*cell, f"{r.mean_us:.1f}"] + [f"{r.dispatch_ms:.3f}"] * dispatched)
        widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
        text = [_joined(row, widths) for row in cells]
        text.insert(1, "  ".join("-" * w for w in widths))
        if len(shown) < len(rows):
            rest = rows[len(shown) :]
            text.append(f"and {len(rest)} more, {sum(r.total_ms for r in rest):.3f} ms")
        return "\n".join(text)

    def __str__(self) -> str:
        return self.table()


def _fitted(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 3] + "..."


def _joined(row: list[str], widths: list[int]) -> str:
    cells = [c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
    return "  ".join(cells).rstrip()


def summary_text(profile: Profile, sort_by: str = "total", row_limit: int = 20) -> str:
    """The table, with what else is known: steps, waiting for data, compiling, memory."""
    recording = profile.recording
    wall = recording.seconds * 1e3
    lines = [Averages(profile.averages).table(sort_by, row_limit), ""]
    dispatch = sum(a.dispatch_ns for a in profile.averages) / 1e6
    lines.append(f"recorded {wall:.1f} ms: kernels {profile.kernel_ns / 1e6:.1f} ms" + (
        f", dispatch of operators {dispatch:.1f} ms" if dispatch else ""))  # fmt: skip
    if profile.steps:
        times = [s.ms for s in profile.steps]
        lines.append(
            f"{len(times)} steps: mean {sum(times) / len(times):.2f} ms, least {min(times):.2f}, most {max(times):.2f}"
        )
    waits = [s for s in profile.spans("range") if s.name == "data_wait"]
    if waits:
        waited = sum(s.end - s.start for s in waits) / 1e6
        lines.append(
            f"waiting for data: {waited:.2f} ms, {waited / len(waits):.3f} ms a batch, {waited / max(wall, 1e-9):.1%}"
        )
    compiled = compile_seconds(profile)
    if compiled:
        count, seconds = compiled
        lines.append(f"compiling: {count} programs, {seconds:.2f} s")
    if profile.peak_bytes is not None:
        lines.append(f"memory: arrays {_megabytes(profile.peak_bytes)} at most, "
                     f"process {_megabytes(profile.process_bytes or 0)}")  # fmt: skip
    return "\n".join(lines)


def compile_seconds(profile: Profile) -> tuple[int, float] | None:
    """How many programs were compiled while recording, and how long staging, passes and XLA took together.

    Stretches inside others (tracing a function inside another) count once.
    """
    spans = sorted(profile.spans("compile"), key=lambda s: (s.thread, s.start, -s.end))
    if not spans:
        return None
    total, thread, reached = 0, None, 0
    for span in spans:
        if span.thread != thread:
            thread, reached = span.thread, span.start
        total += max(0, span.end - max(span.start, reached))
        reached = max(reached, span.end)
    return sum(s.name.startswith("XLA") for s in spans), total / 1e9


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
