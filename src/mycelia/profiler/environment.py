"""Profiling of a whole program that is asked for by the environment."""

from __future__ import annotations

import atexit
import json
import os
from typing import Any, ClassVar

from mycelia.core.errors import MyceliaError
from mycelia.profiler.files import tensorboard_trace_handler
from mycelia.profiler.profiler import profile
from mycelia.profiler.settings import RefusedError, flag, logger, profile_options

VARIABLE = "MS_PROFILER_OPTIONS"

_OURS = ("start", "output_path", "start_profile", "schedule", "on_trace_ready")


class EnvProfiler:
    """Records a program from the import of this package to its end, if ``MS_PROFILER_OPTIONS`` asks for it.

    The variable holds a JSON object: ``"start": true``, ``"output_path"`` for the folder that the profile is written
    to (``./data`` by default), and options of :class:`profile` by their names. What is wrong in it is told of in the
    log, and nothing is recorded.

    >>> import os, mycelia as ms
    >>> os.environ.get("MS_PROFILER_OPTIONS") is None and ms.profiler.EnvProfiler.profiler is None
    True
    """

    #: The profile that runs, or ran last.
    profiler: ClassVar[profile | None] = None

    @classmethod
    def init_profiler(cls) -> None:
        """Begin, if the environment asks for it; called when the package is imported."""
        text = os.environ.get(VARIABLE)
        if not text:
            return
        try:
            given = json.loads(text)
            if not isinstance(given, dict):
                raise RefusedError(VARIABLE, given, "a JSON object")
            if not flag(given, "start", False):
                return
            options: dict[str, Any] = profile_options(given, _OURS, VARIABLE)
            made = profile(
                start_profile=False, on_trace_ready=tensorboard_trace_handler(given.get("output_path")), **options
            )
            made.start()
        except (MyceliaError, ValueError) as error:
            logger.error("%s: nothing is recorded: %s", VARIABLE, error)
            return
        cls.profiler = made
        atexit.register(cls().analyse)

    def analyse(self) -> None:
        """End, and write what was recorded; at the end of the program at the latest."""
        made = self.profiler
        if made is not None and made._started:
            made.stop()
