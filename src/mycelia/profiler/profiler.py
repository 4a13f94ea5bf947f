"""``profile``, and the older ``Profiler``: what is recorded, when, and what is told of it.

Between :meth:`start` and :meth:`stop` a schedule says for each step whether it is recorded. A stretch of recorded steps
is one :class:`~mycelia.profiler.recording.Recording` with XLA's own profile of the same time; when it ends, both are
joined, and ``on_trace_ready`` is called with this object, which tells of the last stretch.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError, UnsupportedError
from mycelia.profiler import marks
from mycelia.profiler.analysis import Average, Profile, Step, analyse as join
from mycelia.profiler.files import check_folder, tensorboard_trace_handler, write_profile
from mycelia.profiler.hooks import Hooks
from mycelia.profiler.kernels import DeviceTrace, settle
from mycelia.profiler.memory import Memory
from mycelia.profiler.names import BACKWARD
from mycelia.profiler.options import ProfilerActivity, _ExperimentalConfig, check_activities, check_flag
from mycelia.profiler.recording import Recording
from mycelia.profiler.steps import ProfilerAction, record_always
from mycelia.profiler.table import Averages, compile_seconds, summary_text
from mycelia.profiler.trace import check_path, trace_events, write_trace

__all__ = ["Profiler", "analyse", "profile", "tensorboard_trace_handler"]

#: The profiler that is between start and stop.
_running: Recorded | None = None

_RECORDED = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class Recorded:
    """What ``profile`` and ``Profiler`` share."""

    _where = "profile"

    def __init__(
        self, schedule: Callable[[int], ProfilerAction] | None, on_trace_ready: Callable[..., Any] | None,
        profile_memory: bool, with_stack: bool, record_shapes: bool,
    ) -> None:  # fmt: skip
        for name, value in (("schedule", schedule), ("on_trace_ready", on_trace_ready)):
            if value is not None and not callable(value):
                raise ArgumentTypeError(self._where, name, got=repr(value), takes="a callable or None")
        self.schedule = schedule or record_always
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.metadata: dict[str, Any] = {}
        self._memory, self._stack, self._shapes = profile_memory, with_stack, record_shapes
        self._action = ProfilerAction.NONE
        self._started = False
        self._stepped = 0
        self._hooks: Hooks | None = None
        self._device: DeviceTrace | None = None
        self._profile: Profile | None = None

    # -- from start to stop ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin; the schedule says whether the first step is recorded.

        Raises:
            StateError: it has begun already, or another profiler has.
        """
        global _running
        where = f"{self._where}.start"
        if self._started:
            raise StateError(where, message="this profiler is running already", hint="call stop() first")
        if _running is not None:
            raise StateError(
                where, message="another profiler is running", hint="stop it first; there is one at a time in a process"
            )
        action = self._scheduled(0)
        _running, self._started, self.step_num = self, True, 0
        try:
            self._turn_to(action)
        except BaseException:
            self._end_stretch(False)
            _running, self._started = None, False
            raise
        self._stepped = time.perf_counter_ns()

    def stop(self) -> None:
        """End; what is being recorded is analysed, and ``on_trace_ready`` called.

        Raises:
            StateError: it has not begun.
        """
        global _running
        if not self._started:
            raise StateError(
                f"{self._where}.stop", message="this profiler is not running",
                hint="call start() first, or use it in a with statement",
            )  # fmt: skip
        recording = self._action in _RECORDED
        _running, self._started = None, False
        try:
            self._end_stretch(recording)
        finally:
            self._action = ProfilerAction.NONE
        if recording:
            self._ready()

    def step(self) -> None:
        """Tell that a step has ended and the next begins.

        Raises:
            StateError: the profiler is not running.
        """
        if not self._started:
            raise StateError(
                f"{self._where}.step", message="this profiler is not running",
                hint="call start() first, or call step() inside the with statement",
            )  # fmt: skip
        before = self._action
        after = self._scheduled(self.step_num + 1)
        if before in _RECORDED:
            self._note_step()
        self.step_num += 1
        if before is ProfilerAction.RECORD_AND_SAVE or (before in _RECORDED) != (after in _RECORDED):
            self._end_stretch(before in _RECORDED)
            if before is ProfilerAction.RECORD_AND_SAVE:
                self._ready()
        self._turn_to(after)
        self._stepped = time.perf_counter_ns()

    def _scheduled(self, step: int) -> ProfilerAction:
        action = self.schedule(step)
        if not isinstance(action, ProfilerAction):
            raise ArgumentTypeError(
                self._where, "schedule", got=f"a callable that gave {action!r} for step {step}",
                takes="one that gives a ProfilerAction",
            )  # fmt: skip
        return action

    def _turn_to(self, action: ProfilerAction) -> None:
        self._action = action
        if action is not ProfilerAction.NONE and self._hooks is None:
            self._begin_stretch()

    def _note_step(self) -> None:
        recording = self._hooks.recording if self._hooks is not None else None
        if recording is not None:
            recording.span("step", f"ProfilerStep#{self.step_num}", self._stepped, time.perf_counter_ns())

    def _begin_stretch(self) -> None:
        device = DeviceTrace()
        device.start()
        recording = Recording(self._stack, Memory() if self._memory else None)
        hooks = Hooks(recording)
        self._device, self._hooks = device, hooks
        hooks.install()
        marks.set_recording(recording)
        recording.start = self._stepped = time.perf_counter_ns()

    def _end_stretch(self, kept: bool) -> None:
        """Record no more; what was recorded is analysed if it is to be kept."""
        hooks, device = self._hooks, self._device
        self._hooks = self._device = None
        if hooks is None or device is None:
            return
        recording = hooks.recording
        marks.set_recording(None)
        hooks.remove()
        settle(recording.pending)
        recording.pending.clear()
        recording.end = time.perf_counter_ns()
        kernels = device.stop()
        if recording.memory is not None:
            recording.memory.stop()
        if kept:
            self._profile = join(recording, kernels)

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._started:
            self.stop()

    # -- what is told ---------------------------------------------------------------------------------------

    @property
    def _last(self) -> Profile:
        if self._profile is None:
            raise StateError(
                self._where, message="nothing has been recorded yet",
                hint="ask after stop(), or when a stretch of recorded steps has ended",
            )  # fmt: skip
        return self._profile

    def key_averages(self) -> Averages:
        """The operators by line, the longest first; see :class:`~mycelia.profiler.table.Averages`.

        Raises:
            StateError: nothing has been recorded yet.
        """
        return Averages(self._last.averages)

    def summary(self, sort_by: str = "total", row_limit: int = 20) -> str:
        """The table of operators, steps, waiting for data, compiling and memory, as text.

        Args:
            sort_by: ``"total"``, ``"calls"``, ``"mean"`` or ``"dispatch"``.
            row_limit: how many operators at most; -1 for all.

        Raises:
            ArgumentValueError: an unknown ``sort_by`` or a wrong ``row_limit``.
            StateError: nothing has been recorded yet.
        """
        return summary_text(self._last, sort_by, row_limit)

    @property
    def steps(self) -> list[Step]:
        """The steps that were recorded: name, ``ms``, and ``data_wait`` in nanoseconds."""
        return self._last.steps

    @property
    def seconds(self) -> float:
        """How long was recorded."""
        return self._last.recording.seconds

    @property
    def compile_seconds(self) -> float:
        """The time of staging and compiling while it was recorded, in seconds."""
        found = compile_seconds(self._last)
        return 0.0 if found is None else found[1]

    @property
    def peak_memory(self) -> int | None:
        """The most bytes that arrays and the inside of graphs took; None without ``profile_memory``."""
        return self._last.peak_bytes

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the trace for Perfetto or ``chrome://tracing``; compressed if the name ends with ``.gz``.

        Raises:
            ArgumentTypeError: ``path`` is no path.
            ArgumentValueError: its folder is not there or cannot be written.
            StateError: nothing has been recorded yet.
        """
        file = check_path(f"{self._where}.export_chrome_trace", path)
        write_trace(file, trace_events(self._last, self.metadata, self._shapes))

    def add_metadata(self, key: str, value: str) -> None:
        """Keep a text with the trace.

        Raises:
            ArgumentTypeError: the key or the text is no str.
        """
        for name, given in (("key", key), ("value", value)):
            if not isinstance(given, str):
                raise ArgumentTypeError(f"{self._where}.add_metadata", name, got=repr(given), takes="a str")
        self.metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Keep what a JSON text says with the trace.

        Raises:
            ArgumentTypeError: the key or the text is no str.
            ArgumentValueError: the text is not JSON.
        """
        where = f"{self._where}.add_metadata_json"
        for name, given in (("key", key), ("value", value)):
            if not isinstance(given, str):
                raise ArgumentTypeError(where, name, got=repr(given), takes="a str")
        try:
            self.metadata[key] = json.loads(value)
        except ValueError as error:
            raise ArgumentValueError(where, "value", got=f"text that is not JSON ({error})", takes="JSON") from None


class profile(Recorded):
    """Records what a program does, operator by operator, with the lines it comes from.

    As a context manager it starts (unless it has) and stops. In PyNative mode each operator is recorded with the
    time its call took on the host and the time its kernels ran; operators of a backward pass stand under the line
    of what they differentiate. In Graph mode the kernels of the compiled program are named by the operators and
    lines they were made of. Nothing is slower while nothing is recorded.

    Args:
        activities: what to record; the device in use is recorded, whatever is named.
        with_stack: keep the user's call stack of each operator in the trace.
        profile_memory: count the memory of arrays.
        data_process: kept for compatibility.
        parallel_strategy: kept for compatibility.
        start_profile: start now.
        hbm_ddr: kept for compatibility.
        pcie: kept for compatibility.
        sync_enable: kept for compatibility.
        record_shapes: keep the types of operators' inputs in the trace.
        schedule: which steps to record, see :class:`schedule`; without one all of them.
        on_trace_ready: called with this object whenever a stretch of steps has been recorded.
        experimental_config: kept for compatibility.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: no activity.
        StateError: another profiler is running.

    >>> import mycelia as ms
    >>> with ms.profiler.profile() as prof:
    ...     y = ms.ops.matmul(ms.ops.ones((64, 64)), ms.ops.ones((64, 64)))
    >>> [row.count for row in prof.key_averages() if row.key == "matmul"]
    [1]
    """

    def __init__(
        self, activities: Iterable[ProfilerActivity] | None = None, with_stack: bool = False,
        profile_memory: bool = False, data_process: bool = False, parallel_strategy: bool = False,
        start_profile: bool = True, hbm_ddr: bool = False, pcie: bool = False, sync_enable: bool = True,
        record_shapes: bool = False, schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None, experimental_config: _ExperimentalConfig | None = None,
    ) -> None:  # fmt: skip
        self.activities = check_activities("profile", activities)
        for name, value in (
            ("with_stack", with_stack), ("profile_memory", profile_memory), ("data_process", data_process),
            ("parallel_strategy", parallel_strategy), ("start_profile", start_profile), ("hbm_ddr", hbm_ddr),
            ("pcie", pcie), ("sync_enable", sync_enable), ("record_shapes", record_shapes),
        ):  # fmt: skip
            check_flag("profile", name, value)
        if experimental_config is not None and not isinstance(experimental_config, _ExperimentalConfig):
            raise ArgumentTypeError(
                "profile", "experimental_config", got=repr(experimental_config), takes="an _ExperimentalConfig or None"
            )
        super().__init__(schedule, on_trace_ready, profile_memory, with_stack, record_shapes)
        if start_profile:
            self.start()

    def __enter__(self) -> profile:
        if not self._started:
            self.start()
        return self


class Profiler(Recorded):
    """The older form of :class:`profile`: it writes what it recorded when :meth:`analyse` is called.

    Args:
        start_profile: start now.
        output_path: the folder that :meth:`analyse` writes to.
        activities: see :class:`profile`.
        schedule: see :class:`profile`.
        on_trace_ready: see :class:`profile`.
        profile_memory: see :class:`profile`.
        with_stack: see :class:`profile`.
        options: other options of MindSpore's, kept for compatibility.

    Raises:
        ArgumentTypeError: an argument of the wrong type, or an unknown option.
        ArgumentValueError: ``output_path`` cannot be made or written.
        StateError: another profiler is running.

    >>> import tempfile, mycelia as ms
    >>> profiler = ms.Profiler(output_path=tempfile.mkdtemp())
    >>> y = ms.ops.exp(ms.Tensor([1.0]))
    >>> profiler.analyse()
    >>> profiler.op_analyse("exp")["exp"]["count"]
    1
    """

    _where = "Profiler"
    _KEPT = frozenset({
        "profiler_level", "aic_metrics", "data_simplification", "l2_cache", "hbm_ddr", "pcie", "data_process",
        "parallel_strategy", "sync_enable", "profile_communication", "op_time", "profile_framework", "timeline_limit",
        "mstx", "host_sys", "mstx_domain_include", "mstx_domain_exclude", "sys_io", "sys_interconnection",
        "export_type", "record_shapes",
    })  # fmt: skip

    def __init__(
        self, *, start_profile: bool = True, output_path: str | os.PathLike[str] = "./data",
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None, on_trace_ready: Callable[..., Any] | None = None,
        profile_memory: bool = False, with_stack: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        for name in options:
            if name not in self._KEPT:
                raise ArgumentTypeError("Profiler", name, got="a value", takes="an option of MindSpore's Profiler")
        self.activities = check_activities("Profiler", activities)
        for name, value in (
            ("start_profile", start_profile), ("profile_memory", profile_memory), ("with_stack", with_stack)
        ):  # fmt: skip
            check_flag("Profiler", name, value)
        self._folder = check_folder("Profiler", "output_path", output_path)
        super().__init__(schedule, on_trace_ready, profile_memory, with_stack, bool(options.get("record_shapes")))
        if start_profile:
            self.start()

    def __enter__(self) -> Profiler:
        if not self._started:
            self.start()
        return self

    def analyse(
        self, offline_path: str | None = None, pretty: bool = False, step_list: list[int] | None = None,
        mode: str = "sync",
    ) -> None:  # fmt: skip
        """Stop, if it is running, and write a trace and tables into a new folder in ``output_path``.

        Args:
            offline_path: not served; see :func:`analyse`.
            pretty: kept for compatibility.
            step_list: kept for compatibility.
            mode: ``"sync"`` or ``"async"``; both write at once.

        Raises:
            ArgumentValueError: an unknown ``mode``.
            StateError: nothing has been recorded.
            UnsupportedError: ``offline_path`` is given.
        """
        if mode not in ("sync", "async"):
            raise ArgumentValueError("Profiler.analyse", "mode", got=repr(mode), takes='"sync" or "async"')
        if offline_path is not None:
            raise UnsupportedError(
                "Profiler.analyse", message="profiles are analysed when they are recorded",
                hint="read the files in the folder that analyse() wrote",
            )  # fmt: skip
        if self._started:
            self.stop()
        _ = self._last
        write_profile(self, self._folder)

    def op_analyse(self, op_name: str | list[str], device_id: int | None = None) -> dict[str, dict[str, Any]]:
        """What is known of operators: for each name ``count``, ``total_us``, ``mean_us`` and ``lines``.

        Args:
            op_name: a name as the table shows it, or a list of names; capitals, underscores and the number of
                dimensions do not matter, so ``"Conv2D"`` is ``"conv"``.
            device_id: kept for compatibility.

        Raises:
            ArgumentTypeError: ``op_name`` is neither.
            StateError: nothing has been recorded.
        """
        names = [op_name] if isinstance(op_name, str) else op_name
        if not isinstance(names, list) or not names or not all(isinstance(n, str) and n for n in names):
            raise ArgumentTypeError("Profiler.op_analyse", "op_name", got=repr(op_name), takes="a name or names")
        found: dict[str, dict[str, Any]] = {}
        for name in names:
            rows = [a for a in self._last.averages if _plain(name) in _parts(a)]
            count, total = sum(a.count for a in rows), sum(a.total_ns for a in rows) / 1e3
            lines = sorted({f"{a.line.file}:{a.line.line}" for a in rows if a.line is not None})
            found[name] = {
                "count": count, "total_us": total, "mean_us": total / count if count else 0.0, "lines": lines
            }  # fmt: skip
        return found


def _plain(name: str) -> str:
    return re.sub(r"[123]d$", "", name.replace("_", "").lower())


def _parts(average: Average) -> set[str]:
    return {_plain(part) for part in average.key.removesuffix(BACKWARD).split("+")}


def analyse(profiler_path: str | os.PathLike[str], **options: Any) -> None:
    """Check that a folder holds a profile; its files need no further analysis.

    Raises:
        ArgumentValueError: there is none in it.
    """
    folder = Path(profiler_path)
    if not folder.is_dir() or next(folder.rglob("trace_view.json"), None) is None:
        raise ArgumentValueError(
            "analyse", "profiler_path", got=f"'{folder}', which holds no profile",
            takes="a folder that a profiler has written to",
        )  # fmt: skip
