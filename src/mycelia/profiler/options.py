"""What can be asked of a profile, under MindSpore's names.

Many options choose what is collected on Ascend devices. They are taken, checked and kept, and choose nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError


class ProfilerActivity(Enum):
    """Whose work is recorded. The device in use is recorded, whichever of them is named."""

    NPU = "NPU"
    GPU = "GPU"
    CPU = "CPU"


class ProfilerLevel(Enum):
    """How much is collected on Ascend; here every level is the same."""

    LevelNone = "LevelNone"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class AicoreMetrics(Enum):
    """Counters of Ascend's cores; kept for compatibility."""

    PipeUtilization = "PipeUtilization"
    ArithmeticUtilization = "ArithmeticUtilization"
    Memory = "Memory"
    MemoryL0 = "MemoryL0"
    MemoryUB = "MemoryUB"
    ResourceConflictRatio = "ResourceConflictRatio"
    L2Cache = "L2Cache"
    MemoryAccess = "MemoryAccess"
    AiCoreNone = "None"


class ExportType(Enum):
    """The form of what is written; kept for compatibility: a trace and tables are text."""

    Db = "db"
    Text = "text"


class HostSystem(Enum):
    """What of the host is sampled on Ascend; kept for compatibility."""

    CPU = "cpu"
    MEM = "mem"
    DISK = "disk"
    NETWORK = "network"
    OSRT = "osrt"


def check_flag(where: str, name: str, value: Any) -> bool:
    """Refuse what is no bool."""
    if not isinstance(value, bool):
        raise ArgumentTypeError(where, name, got=repr(value), takes="True or False")
    return value


def check_member(where: str, name: str, value: Any, kind: type[Enum]) -> Any:
    """Refuse what is no member of an enumeration."""
    if not isinstance(value, kind):
        members = ", ".join(f"{kind.__name__}.{m.name}" for m in kind)
        raise ArgumentTypeError(where, name, got=repr(value), takes=f"one of {members}")
    return value


def check_members(where: str, name: str, value: Any, kind: type[Enum]) -> tuple[Any, ...]:
    """Refuse what is no iterable of members; without repetitions."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ArgumentTypeError(where, name, got=repr(value), takes=f"a list of {kind.__name__}")
    return tuple(dict.fromkeys(check_member(where, name, item, kind) for item in value))


def check_activities(where: str, value: Any) -> tuple[ProfilerActivity, ...]:
    """The activities, all of them for None.

    Raises:
        ArgumentTypeError: not an iterable of ``ProfilerActivity``.
        ArgumentValueError: an empty one.
    """
    if value is None:
        return (ProfilerActivity.CPU, ProfilerActivity.NPU)
    chosen = check_members(where, "activities", value, ProfilerActivity)
    if not chosen:
        raise ArgumentValueError(where, "activities", got="none", takes="at least one ProfilerActivity")
    return chosen


class _ExperimentalConfig:
    """Options of Ascend's profiler, kept for compatibility.

    Raises:
        ArgumentTypeError: an option of the wrong type.

    >>> import mycelia as ms
    >>> from mycelia.profiler import ProfilerLevel
    >>> config = ms.profiler._ExperimentalConfig(profiler_level=ProfilerLevel.Level1)
    """

    def __init__(
        self, profiler_level: ProfilerLevel = ProfilerLevel.Level0,
        aic_metrics: AicoreMetrics = AicoreMetrics.AiCoreNone, l2_cache: bool = False, mstx: bool = False,
        data_simplification: bool = True, export_type: list[ExportType] | None = None,
        mstx_domain_include: list[str] | None = None, mstx_domain_exclude: list[str] | None = None,
        sys_io: bool = False, sys_interconnection: bool = False, host_sys: list[HostSystem] | None = None,
    ) -> None:  # fmt: skip
        where = "_ExperimentalConfig"
        self.profiler_level = check_member(where, "profiler_level", profiler_level, ProfilerLevel)
        self.aic_metrics = check_member(where, "aic_metrics", aic_metrics, AicoreMetrics)
        self.l2_cache = check_flag(where, "l2_cache", l2_cache)
        self.mstx = check_flag(where, "mstx", mstx)
        self.data_simplification = check_flag(where, "data_simplification", data_simplification)
        self.export_type = check_members(where, "export_type", export_type or (), ExportType)
        self.mstx_domain_include = list(mstx_domain_include or ())
        self.mstx_domain_exclude = list(mstx_domain_exclude or ())
        self.sys_io = check_flag(where, "sys_io", sys_io)
        self.sys_interconnection = check_flag(where, "sys_interconnection", sys_interconnection)
        self.host_sys = check_members(where, "host_sys", host_sys or (), HostSystem)
