"""Where the time of a program goes: operators by the user's line, steps, compiling, memory; and a trace.

``profile`` records, ``schedule`` says which steps, ``tensorboard_trace_handler`` writes files, ``mstx`` sets marks.
``DynamicProfilerMonitor`` follows a file that says which steps, ``EnvProfiler`` the environment.
"""

from mycelia.profiler.dynamic import DynamicProfilerMonitor
from mycelia.profiler.environment import EnvProfiler
from mycelia.profiler.files import tensorboard_trace_handler
from mycelia.profiler.marks import mstx
from mycelia.profiler.options import (
    AicoreMetrics,
    ExportType,
    HostSystem,
    ProfilerActivity,
    ProfilerLevel,
    _ExperimentalConfig as _ExperimentalConfig,
)
from mycelia.profiler.profiler import Profiler, profile
from mycelia.profiler.steps import ProfilerAction, schedule

__all__ = [
    "AicoreMetrics",
    "DynamicProfilerMonitor",
    "EnvProfiler",
    "ExportType",
    "HostSystem",
    "Profiler",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerLevel",
    "mstx",
    "profile",
    "schedule",
    "tensorboard_trace_handler",
]

EnvProfiler.init_profiler()
