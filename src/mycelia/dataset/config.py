"""Settings of all dataset pipelines of the process: seed, workers, prefetching, debugging.

The seed is one for the whole package: ``mycelia.set_seed`` sets it here too, and whichever call came
last holds. Setting it starts every sequence of random decisions anew, even when the value is the same.
"""

from __future__ import annotations

import enum
import json
import os
import random
import secrets
from typing import Any

from mycelia.core import random as core_random
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, FileFormatError, UnsupportedError
from mycelia.dataset import arguments

DEFAULT_SEED = 5489
"""What :func:`get_seed` gives while no seed has been set (MindSpore's value)."""


class ErrorSamplesMode(enum.IntEnum):
    """What ``map`` does with a sample whose operations fail: stop, take another sample, or leave it out."""

    RETURN = 0
    REPLACE = 1
    SKIP = 2


class _State:
    def __init__(self) -> None:
        self.seed: int | None = None
        self.entropy = secrets.randbits(32)
        self.generation = 0
        self.eager = random.Random()
        self.workers: int | None = None
        self.prefetch = 16
        self.debug = False
        self.watchdog = True
        self.timeout = 300
        self.errors = ErrorSamplesMode.RETURN
        self.hints: dict[str, Any] = {
            "auto_num_workers": False, "numa_enable": False, "enable_shared_mem": True, "enable_autotune": False,
            "autotune_interval": 0, "monitor_sampling_interval": 1000, "callback_timeout": 60,
            "fast_recovery": False, "dynamic_shape": False,
        }  # fmt: skip


_state = _State()


def _reseed(seed: int) -> None:
    _state.seed = seed
    _state.generation += 1
    _state.eager = random.Random(seed)


core_random.on_seed(_reseed)
_present = core_random.get_seed()
if _present is not None:
    _reseed(_present)


def set_seed(seed: int) -> None:
    """Set the seed of shuffles, samplers and random transforms, and start their sequences anew.

    With a seed, every run of the same program gives the same samples, whatever the number of workers;
    the passes over one dataset still differ from each other.

    Args:
        seed: an int from 0 to 2**32 - 1.

    Raises:
        ArgumentTypeError: ``seed`` is not an int.
        ArgumentValueError: ``seed`` is out of range.

    >>> import mycelia.dataset as ds
    >>> ds.config.set_seed(7)
    >>> data = ds.NumpySlicesDataset(list(range(8)))
    >>> first = [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    >>> ds.config.set_seed(7)
    >>> first == [int(x) for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    True
    """
    _reseed(arguments.integer("set_seed", "seed", seed, 0, 2**32 - 1))


def get_seed() -> int:
    """The seed in force; 5489 while none has been set."""
    return DEFAULT_SEED if _state.seed is None else _state.seed


def seed_is_set() -> bool:
    """Whether a seed has been set; without one each process draws its own."""
    return _state.seed is not None


def base_seed() -> tuple[int, int]:
    """(seed that sequences derive from, count of how often it has been set)."""
    return (_state.entropy if _state.seed is None else _state.seed), _state.generation


def eager_random() -> random.Random:
    """The generator of random transforms that are called outside of a pipeline."""
    return _state.eager


def set_num_parallel_workers(num: int) -> None:
    """Set how many threads expensive built-in transforms use when ``map`` is not told.

    Args:
        num: an int of at least 1.

    Raises:
        ArgumentTypeError, ArgumentValueError: not such an int.
    """
    _state.workers = arguments.integer("set_num_parallel_workers", "num", num, 1)


def get_num_parallel_workers() -> int:
    """The number set, or the number of usable processors up to 8."""
    return _state.workers if _state.workers is not None else min(8, processors())


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def set_prefetch_size(size: int) -> None:
    """Set how many rows (batches, after ``batch``) are prepared ahead; at most 256 MiB of them.

    Args:
        size: an int of at least 1.

    Raises:
        ArgumentTypeError, ArgumentValueError: not such an int.
    """
    _state.prefetch = arguments.integer("set_prefetch_size", "size", size, 1)


def get_prefetch_size() -> int:
    """How many rows are prepared ahead, 16 unless set."""
    return _state.prefetch


def set_debug_mode(debug_mode_flag: bool, debug_hook_list: list[Any] | None = None) -> None:
    """Run pipelines row by row in the calling thread, so that a debugger stops inside transforms.

    Args:
        debug_mode_flag: True to switch it on.
        debug_hook_list: functions of one row (a tuple of arrays), called on every row ``map`` gives.

    Raises:
        ArgumentTypeError: the flag is not a bool, or a hook cannot be called.
    """
    flag = arguments.boolean("set_debug_mode", "debug_mode_flag", debug_mode_flag)
    hooks = list(debug_hook_list or [])
    for hook in hooks:
        if not callable(hook):
            raise ArgumentTypeError("set_debug_mode", "debug_hook_list", got=repr(hook), takes="functions of one row")
    _state.debug = flag
    _debug_hooks[:] = hooks


_debug_hooks: list[Any] = []


def get_debug_mode() -> bool:
    """Whether pipelines run row by row in the calling thread."""
    return _state.debug


def debug_hooks() -> list[Any]:
    """The functions that debug mode calls on every row."""
    return _debug_hooks if _state.debug else []


def set_error_samples_mode(error_samples_mode: ErrorSamplesMode) -> None:
    """Choose what ``map`` does with a sample whose operations fail.

    Args:
        error_samples_mode: ``RETURN`` raises the error, ``REPLACE`` gives the latest good sample in its
            place, ``SKIP`` leaves it out.

    Raises:
        ArgumentTypeError: not an :class:`ErrorSamplesMode`.
    """
    if not isinstance(error_samples_mode, ErrorSamplesMode):
        raise ArgumentTypeError(
            "set_error_samples_mode", "error_samples_mode", got=repr(error_samples_mode), takes="an ErrorSamplesMode"
        )
    _state.errors = error_samples_mode


def get_error_samples_mode() -> ErrorSamplesMode:
    """What ``map`` does with a sample whose operations fail; ``RETURN`` unless set."""
    return _state.errors


def set_enable_watchdog(enable: bool) -> None:
    """Choose whether a warning is logged when worker processes give nothing for a long time."""
    _state.watchdog = arguments.boolean("set_enable_watchdog", "enable", enable)


def get_enable_watchdog() -> bool:
    """Whether silent worker processes are reported."""
    return _state.watchdog


def set_multiprocessing_timeout_interval(interval: int) -> None:
    """Set after how many seconds without a result worker processes are reported.

    Args:
        interval: seconds, an int of at least 1.

    Raises:
        ArgumentTypeError, ArgumentValueError: not such an int.
    """
    _state.timeout = arguments.integer("set_multiprocessing_timeout_interval", "interval", interval, 1)


def get_multiprocessing_timeout_interval() -> int:
    """Seconds without a result after which worker processes are reported; 300 unless set."""
    return _state.timeout


def set_multiprocessing_start_method(start_method: str = "spawn") -> None:
    """Accept ``"spawn"``: worker processes are always new interpreters.

    Raises:
        UnsupportedError: ``"fork"``; a forked copy of a process that runs XLA's threads may hang.
        ArgumentValueError: any other value.
    """
    arguments.choice("set_multiprocessing_start_method", "start_method", start_method, ("fork", "spawn"))
    if start_method == "fork":
        raise UnsupportedError(
            "set_multiprocessing_start_method",
            message="worker processes are new interpreters; a fork of a process that runs XLA's threads may hang",
            hint='leave the call out or pass "spawn"',
        )


def get_multiprocessing_start_method() -> str:
    """``"spawn"``."""
    return "spawn"


def load(file: str) -> None:
    """Set what a JSON file says: ``seed``, ``numParallelWorkers``, ``prefetchSize`` (MindSpore's names).

    Args:
        file: path of the file.

    Raises:
        ArgumentValueError: the file does not exist, or a value is out of range.
        FileFormatError: the file is not a JSON object.
    """
    if not isinstance(file, (str, os.PathLike)):
        raise ArgumentTypeError("load", "file", got=repr(file), takes="the path of a JSON file")
    if not os.path.isfile(file):
        raise ArgumentValueError("load", "file", got=repr(os.fspath(file)), takes="the path of an existing JSON file")
    with open(file, encoding="utf-8") as stream:
        try:
            values = json.load(stream)
        except ValueError as error:
            raise FileFormatError("load", message=f"{os.fspath(file)!r} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise FileFormatError("load", message=f"{os.fspath(file)!r} holds a {type(values).__name__}, not a JSON object")
    known = {
        "seed": (set_seed, 0, 2**32 - 1),
        "numParallelWorkers": (set_num_parallel_workers, 1, arguments.INT32_MAX),
        "prefetchSize": (set_prefetch_size, 1, arguments.INT32_MAX),
    }
    present = [(*known[name], name, value) for name, value in values.items() if name in known]
    checked = [
        (setter, arguments.integer("load", name, value, low, high)) for setter, low, high, name, value in present
    ]
    for setter, value in checked:
        setter(value)


def _hint(name: str, kind: type, text: str) -> tuple[Any, Any]:
    """A setter and a getter of a value that is kept for the caller and changes nothing in this engine."""

    def setter(value: Any) -> None:
        if kind is bool:
            arguments.boolean(f"set_{name}", "value", value)
        else:
            arguments.integer(f"set_{name}", "value", value, 0)
        _state.hints[name] = value

    def getter() -> Any:
        return _state.hints[name]

    setter.__name__ = setter.__qualname__ = f"set_{name}"
    getter.__name__ = getter.__qualname__ = f"get_{name}"
    setter.__doc__ = f"Keep a tuning value of MindSpore's engine: {text}. It changes nothing here."
    getter.__doc__ = f"The value kept by ``set_{name}``."
    return setter, getter


set_auto_num_workers, get_auto_num_workers = _hint("auto_num_workers", bool, "choose workers automatically")
set_numa_enable, get_numa_enable = _hint("numa_enable", bool, "bind to memory nodes")
set_enable_shared_mem, get_enable_shared_mem = _hint(
    "enable_shared_mem", bool, "pass rows of worker processes in shared memory; they come through pipes"
)
set_autotune_interval, get_autotune_interval = _hint("autotune_interval", int, "steps between tunings")
set_monitor_sampling_interval, get_monitor_sampling_interval = _hint(
    "monitor_sampling_interval", int, "milliseconds between samples of the profiler"
)
set_callback_timeout, get_callback_timeout = _hint("callback_timeout", int, "seconds a callback may wait")
set_fast_recovery, get_fast_recovery = _hint("fast_recovery", bool, "skip the pipeline when training resumes")
set_dynamic_shape, get_dynamic_shape = _hint("dynamic_shape", bool, "let shapes differ between batches; they may")


def set_enable_autotune(enable: bool, filepath_prefix: str | None = None) -> None:
    """Keep whether MindSpore's engine would tune its queues; this engine has nothing to tune."""
    _state.hints["enable_autotune"] = arguments.boolean("set_enable_autotune", "enable", enable)


def get_enable_autotune() -> bool:
    """The value kept by ``set_enable_autotune``."""
    return bool(_state.hints["enable_autotune"])


__all__ = [
    "ErrorSamplesMode", "get_auto_num_workers", "get_autotune_interval", "get_callback_timeout", "get_debug_mode",
    "get_dynamic_shape", "get_enable_autotune", "get_enable_shared_mem", "get_enable_watchdog",
    "get_error_samples_mode", "get_fast_recovery", "get_monitor_sampling_interval",
    "get_multiprocessing_start_method", "get_multiprocessing_timeout_interval", "get_num_parallel_workers",
    "get_numa_enable", "get_prefetch_size", "get_seed", "load", "set_auto_num_workers", "set_autotune_interval",
    "set_callback_timeout", "set_debug_mode", "set_dynamic_shape", "set_enable_autotune", "set_enable_shared_mem",
    "set_enable_watchdog", "set_error_samples_mode", "set_fast_recovery", "set_monitor_sampling_interval",
    "set_multiprocessing_start_method", "set_multiprocessing_timeout_interval", "set_num_parallel_workers",
    "set_numa_enable", "set_prefetch_size", "set_seed",
]  # fmt: skip
