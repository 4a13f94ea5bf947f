"""Options of a profile as JSON says them: in the file of a ``DynamicProfilerMonitor`` and in the environment.

An enumeration is given by a member's name or value, in the file also by MindSpore's older numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import Enum
from typing import Any

from mycelia.profiler.options import (
    AicoreMetrics,
    ExportType,
    HostSystem,
    ProfilerActivity,
    ProfilerLevel,
    _ExperimentalConfig,
)

logger = logging.getLogger("mycelia")

_CPU, _NPU = ProfilerActivity.CPU, ProfilerActivity.NPU
_LEVELS = dict(zip((-1, 0, 1, 2), ProfilerLevel, strict=True))
_METRICS = dict(enumerate(metric for metric in AicoreMetrics if metric is not AicoreMetrics.AiCoreNone))
_ACTIVITIES = {0: (_CPU, _NPU), 1: (_CPU,), 2: (_NPU,)}
_EXPORTS = {0: (ExportType.Text,), 1: (ExportType.Db,), 2: (ExportType.Text, ExportType.Db)}

#: Flags of ``profile``, and those of ``_ExperimentalConfig``.
_FLAGS = (
    "with_stack", "profile_memory", "data_process", "parallel_strategy", "hbm_ddr", "pcie", "sync_enable",
    "record_shapes",
)  # fmt: skip
_DEVICE_FLAGS = ("l2_cache", "mstx", "data_simplification", "sys_io", "sys_interconnection")
_OTHERS = (
    "activities", "profiler_level", "aic_metrics", "export_type", "host_sys", "mstx_domain_include",
    "mstx_domain_exclude",
)  # fmt: skip


class RefusedError(ValueError):
    """What options say is wrong; the text names the option, what it is and what it takes."""

    def __init__(self, name: str, got: Any, takes: str) -> None:
        super().__init__(f"'{name}' is {got!r}; it takes {takes}")


def flag(given: Mapping[str, Any], name: str, default: bool) -> bool:
    """A bool of the options."""
    value = given.get(name, default)
    if not isinstance(value, bool):
        raise RefusedError(name, value, "true or false")
    return value


def whole(given: Mapping[str, Any], name: str, default: int) -> int:
    """A whole number of the options."""
    value = given.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise RefusedError(name, value, "a whole number")
    return value


def _member(name: str, value: Any, kind: type[Enum], numbers: Mapping[int, Any]) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and value in numbers:
        return numbers[value]
    for member in kind:
        if isinstance(value, str) and value in (member.name, member.value):
            return member
    raise RefusedError(name, value, "one of " + ", ".join(f'"{m.name}"' for m in kind))


def _members(name: str, value: Any, kind: type[Enum], numbers: Mapping[int, Any]) -> list[Any]:
    if isinstance(value, int) and not isinstance(value, bool) and value in numbers:
        return list(numbers[value])
    if not isinstance(value, list):
        raise RefusedError(name, value, "a list of " + ", ".join(f'"{m.value}"' for m in kind))
    return [_member(name, item, kind, {}) for item in value]


def _names(given: Mapping[str, Any], name: str) -> list[str]:
    value = given.get(name, [])
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise RefusedError(name, value, "a list of names")
    return value


def profile_options(given: Mapping[str, Any], others: tuple[str, ...], where: str) -> dict[str, Any]:
    """The keyword arguments of ``profile`` that options mean; unknown ones are told of and left out.

    Args:
        given: the options by name.
        others: options that are known and mean something else.
        where: whose options they are.

    Raises:
        RefusedError: an option's value is wrong.
    """
    unknown = [name for name in given if name not in (*_FLAGS, *_DEVICE_FLAGS, *_OTHERS, *others)]
    if unknown:
        logger.warning("%s: unknown options are ignored: %s", where, ", ".join(unknown))
    made: dict[str, Any] = {name: flag(given, name, name == "sync_enable") for name in _FLAGS}
    activities = _members("activities", given.get("activities", 0), ProfilerActivity, _ACTIVITIES)
    if not activities:
        raise RefusedError("activities", [], "at least one activity")
    device: dict[str, Any] = {name: flag(given, name, name == "data_simplification") for name in _DEVICE_FLAGS}
    made["experimental_config"] = _ExperimentalConfig(
        profiler_level=_member("profiler_level", given.get("profiler_level", 0), ProfilerLevel, _LEVELS),
        aic_metrics=_member("aic_metrics", given.get("aic_metrics", "AiCoreNone"), AicoreMetrics, _METRICS),
        export_type=_members("export_type", given.get("export_type", 0), ExportType, _EXPORTS),
        host_sys=_members("host_sys", given.get("host_sys", []), HostSystem, {}),
        mstx_domain_include=_names(given, "mstx_domain_include"),
        mstx_domain_exclude=_names(given, "mstx_domain_exclude"),
        **device,
    )
    return {**made, "activities": activities}
