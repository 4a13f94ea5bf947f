"""The folder that a profile is written to: a trace and tables."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.profiler.options import check_flag

if TYPE_CHECKING:
    from mycelia.profiler.profiler import Recorded

TRACE, OPERATORS, STEPS, INFO = "trace_view.json", "op_statistic.csv", "step_trace_time.csv", "profiler_info.json"


def check_folder(where: str, name: str, path: Any) -> Path:
    """A folder that profiles can be written to, made if it is not there.

    Raises:
        ArgumentTypeError: no path.
        ArgumentValueError: it cannot be made or written.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(where, name, got=repr(path), takes="the path of a folder")
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentValueError(
            where, name, got=f"'{folder}', which cannot be made ({error.strerror})", takes="one that can be written"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ArgumentValueError(
            where, name, got=f"'{folder}', which cannot be written", takes="a folder that can be written"
        )
    return folder


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str] | None = None, worker_name: str | None = None, analyse_flag: bool = True,
    async_mode: bool = False,
) -> Callable[[Recorded], None]:  # fmt: skip
    """What writes each profile into a folder of its own, for ``on_trace_ready``.

    The folder ``WORKER_TIME_ms`` holds ``trace_view.json``, which Perfetto and ``chrome://tracing`` open, and, unless
    ``analyse_flag`` is False, ``op_statistic.csv`` (operators by line), ``step_trace_time.csv`` (steps) and
    ``profiler_info.json`` (metadata, compiling, memory). It appears when it is complete.

    Args:
        dir_name: where folders are made; ``./data`` by default.
        worker_name: the first part of their names; host name and process number by default.
        analyse_flag: write the tables too.
        async_mode: kept for compatibility.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: ``dir_name`` cannot be made or written, or ``worker_name`` holds a path separator.

    >>> import tempfile, mycelia as ms
    >>> from pathlib import Path
    >>> folder = tempfile.mkdtemp()
    >>> with ms.profiler.profile(on_trace_ready=ms.profiler.tensorboard_trace_handler(folder)):
    ...     y = ms.ops.tanh(ms.Tensor([1.0]))
    >>> sorted(p.name for p in Path(folder).glob("*/trace*"))
    ['trace_view.json']
    """
    where = "tensorboard_trace_handler"
    folder = check_folder(where, "dir_name", "./data" if dir_name is None else dir_name)
    if worker_name is not None:
        if not isinstance(worker_name, str):
            raise ArgumentTypeError(where, "worker_name", got=repr(worker_name), takes="a str or None")
        if not worker_name or os.path.basename(worker_name) != worker_name:
            raise ArgumentValueError(where, "worker_name", got=repr(worker_name), takes="a name without separators")
    check_flag(where, "analyse_flag", analyse_flag)
    check_flag(where, "async_mode", async_mode)

    def handler(prof: Recorded) -> None:
        write_profile(prof, folder, worker_name, analyse_flag)

    return handler


def write_profile(prof: Recorded, folder: Path, worker_name: str | None = None, tables: bool = True) -> Path:
    """Write what was recorded last into a new folder in ``folder``; its path."""
    worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
    stamp = time.strftime("%Y%m%d%H%M%S") + f"{time.time_ns() // 1000 % 1_000_000:06d}"
    made = Path(tempfile.mkdtemp(prefix=".profile-", dir=folder))
    try:
        prof.export_chrome_trace(made / TRACE)
        if tables:
            _write_tables(prof, made)
        made.chmod(0o755)
        final = folder / f"{worker}_{stamp}_ms"
        made.rename(final)
        return final
    finally:
        if made.exists():
            shutil.rmtree(made)


def _write_tables(prof: Recorded, folder: Path) -> None:
    rows = [["Operator", "Line", "Count", "Total Time(us)", "Ratio(%)", "Avg Time(us)", "Dispatch Time(us)"]]
    for a in prof.key_averages():
        line = "" if a.line is None else f"{a.line.file}:{a.line.line}"
        rows.append([a.key, line, str(a.count), f"{a.total_ns / 1e3:.3f}", f"{a.share * 100:.3f}",
                     f"{a.mean_us:.3f}", f"{a.dispatch_ns / 1e3:.3f}"])  # fmt: skip
    (folder / OPERATORS).write_text(_csv(rows), encoding="utf-8")
    steps = [["Step", "Time(us)", "Data Wait(us)"]]
    steps += [[s.name, f"{s.ms * 1e3:.3f}", f"{s.data_wait / 1e3:.3f}"] for s in prof.steps]
    (folder / STEPS).write_text(_csv(steps), encoding="utf-8")
    compiled = prof.compile_seconds
    info = {
        "recorded_seconds": prof.seconds, "compile_seconds": compiled, "peak_memory_bytes": prof.peak_memory,
        "metadata": prof.metadata,
    }  # fmt: skip
    (folder / INFO).write_text(json.dumps(info, indent=1), encoding="utf-8")


def _csv(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
