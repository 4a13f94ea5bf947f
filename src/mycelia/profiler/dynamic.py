"""Profiling that is asked for while training runs, by a file.

The file is looked at between steps, not by a process of its own: what a look costs is one ``stat`` every
``poll_interval`` seconds, and it is read when it has changed. What it says is checked before anything is done.
"""

from __future__ import annotations

import atexit
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, MyceliaError
from mycelia.profiler.files import check_folder, tensorboard_trace_handler
from mycelia.profiler.profiler import profile
from mycelia.profiler.settings import RefusedError, flag, logger, profile_options, whole
from mycelia.train.callback.base import Callback, RunContext

CONFIG = "profiler_config.json"

_WHERE = "DynamicProfilerMonitor"
_OURS = ("start_step", "stop_step", "analyse", "analyse_mode", "prof_path")

#: What is written where there is no file: nothing is recorded.
_DEFAULTS: dict[str, Any] = {
    "start_step": -1, "stop_step": -1, "aic_metrics": "AiCoreNone", "profiler_level": "Level0", "analyse_mode": -1,
    "activities": ["CPU", "NPU"], "export_type": ["text"], "profile_memory": False, "mstx": False, "analyse": False,
    "parallel_strategy": False, "with_stack": False, "data_simplification": True, "l2_cache": False,
    "record_shapes": False, "prof_path": "./", "mstx_domain_include": [], "mstx_domain_exclude": [], "host_sys": [],
    "sys_io": False, "sys_interconnection": False,
}  # fmt: skip


@dataclass(frozen=True)
class _Wish:
    """What the file asks for."""

    start: int
    stop: int
    folder: str | None
    tables: bool
    options: dict[str, Any]


def _read(text: str) -> _Wish | None:
    """What the text of a file asks for; None if for nothing.

    Raises:
        RefusedError: a wrong option.
        ValueError: the text is not JSON.
    """
    given = json.loads(text)
    if not isinstance(given, dict):
        raise RefusedError("the file", given, "a JSON object")
    start, stop = whole(given, "start_step", -1), whole(given, "stop_step", -1)
    mode = whole(given, "analyse_mode", -1)
    if mode not in (-1, 0, 1):
        raise RefusedError("analyse_mode", mode, "-1, 0 or 1")
    tables, folder = flag(given, "analyse", False), given.get("prof_path", "./")
    if not isinstance(folder, str):
        raise RefusedError("prof_path", folder, "the path of a folder")
    options = profile_options(given, _OURS, _WHERE)
    if start == stop == -1:
        return None
    for name, value, least in (("start_step", start, 1), ("stop_step", stop, start)):
        if value < least:
            raise RefusedError(name, value, f"a step from {least} on, or -1 with both for none")
    return _Wish(start, stop, None if folder == "./" else folder, tables, options)


class DynamicProfilerMonitor(Callback):
    """Records the steps that a file names, which may be written while training runs.

    The file is ``profiler_config.json`` in ``cfg_path``; if there is none, one that asks for nothing is written. Its
    ``start_step`` and ``stop_step`` are the first and the last step that is recorded (the first of a training is 1);
    if the first has passed already, recording begins with the next. Further options are those of :class:`profile`,
    ``prof_path`` in the place of ``output_path``, and ``analyse`` for tables beside the trace. A profile is written
    into ``rank0_startFIRST_stopLAST`` in the output folder. A file that cannot be read or says something wrong is
    told of in the log and changes nothing; training goes on.

    Give it to ``Model.train`` as a callback, or call :meth:`step` at the end of each step.

    Args:
        cfg_path: the folder of the file.
        output_path: where profiles are written.
        poll_interval: seconds, at least, between two looks at the file.
        kwargs: kept for compatibility.

    Raises:
        ArgumentTypeError: an argument of the wrong type.
        ArgumentValueError: ``poll_interval`` is below 1, or ``cfg_path`` cannot be made or written.

    >>> import json, tempfile, mycelia as ms
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> asked = json.dumps({"start_step": 2, "stop_step": 3})
    >>> count = (folder / "profiler_config.json").write_text(asked)
    >>> monitor = ms.profiler.DynamicProfilerMonitor(str(folder), str(folder / "out"))
    >>> for step in range(4):
    ...     y = ms.ops.exp(ms.Tensor([1.0]))
    ...     monitor.step()
    >>> [path.name for path in (folder / "out").iterdir()]
    ['rank0_start2_stop3']
    """

    def __init__(
        self, cfg_path: str | None = None, output_path: str = "./dyn_profile_data", poll_interval: int = 2,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        for name, value in (("cfg_path", cfg_path), ("output_path", output_path)):
            if not isinstance(value, (str, os.PathLike)):
                raise ArgumentTypeError(_WHERE, name, got=repr(value), takes="the path of a folder")
        if isinstance(poll_interval, bool) or not isinstance(poll_interval, int):
            raise ArgumentTypeError(_WHERE, "poll_interval", got=repr(poll_interval), takes="a whole number of seconds")
        if poll_interval < 1:
            raise ArgumentValueError(_WHERE, "poll_interval", got=str(poll_interval), takes="1 second or more")
        super().__init__()
        self._file = check_folder(_WHERE, "cfg_path", cfg_path) / CONFIG
        self._output, self._interval = Path(output_path), poll_interval
        self._next_look = 0.0
        self._seen: tuple[int, int] | None = None
        self._wish: _Wish | None = None
        self._profile: profile | None = None
        self._step = 0
        if not self._file.exists():
            beside = self._file.with_name(f".{CONFIG}.{os.getpid()}")
            beside.write_text(json.dumps(_DEFAULTS, indent=4) + "\n", encoding="utf-8")
            os.replace(beside, self._file)

    # -- as a callback ---------------------------------------------------------------------------------------

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Begin to record, if this is the step."""
        self._before(run_context.original_args().cur_step_num)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """End to record, if this is the step."""
        self._after(run_context.original_args().cur_step_num)

    def on_train_end(self, run_context: RunContext) -> None:
        """End to record, whatever the file says."""
        self._stop()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    # -- in a loop of one's own ------------------------------------------------------------------------------

    def step(self) -> None:
        """Tell that a step has ended and the next begins."""
        self._step += 1
        self._after(self._step)
        self._before(self._step + 1)

    # -- what both do ----------------------------------------------------------------------------------------

    def _before(self, step: int) -> None:
        self._look(step)
        wish = self._wish
        if wish is None or self._profile is not None or step < wish.start:
            return
        if step > wish.stop:
            logger.warning("%s: steps %d to %d have passed, this is step %d", _WHERE, wish.start, wish.stop, step)
            self._wish = None
            return
        try:
            folder = Path(wish.folder or self._output) / f"rank0_start{wish.start}_stop{wish.stop}"
            ready = tensorboard_trace_handler(folder, analyse_flag=wish.tables)
            self._profile = made = profile(start_profile=False, on_trace_ready=ready, **wish.options)
            made.start()
        except MyceliaError as error:
            self._profile = self._wish = None
            logger.error("%s: step %d is not recorded: %s", _WHERE, step, error)
            return
        atexit.register(self._stop)
        logger.info("%s: recording steps %d to %d into %s", _WHERE, step, wish.stop, folder)

    def _after(self, step: int) -> None:
        if self._profile is None or self._wish is None:
            return
        self._profile.step()
        if step >= self._wish.stop:
            self._stop()

    def _stop(self) -> None:
        """End what is being recorded and write it."""
        made, self._profile, self._wish = self._profile, None, None
        if made is None:
            return
        atexit.unregister(self._stop)
        try:
            made.stop()
        except (MyceliaError, OSError) as error:
            logger.error("%s: the profile could not be written: %s", _WHERE, error)

    def _look(self, step: int) -> None:
        """Read the file, if it has changed and it is time; not while steps are recorded."""
        now = time.monotonic()
        if self._profile is not None or now < self._next_look:
            return
        self._next_look = now + self._interval
        try:
            state = self._file.stat()
            seen = (state.st_mtime_ns, state.st_size)
            if seen == self._seen:
                return
            self._seen = seen
            self._wish = _read(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            logger.warning("%s: %s is not followed: %s", _WHERE, self._file, error)
