"""The execution context: mode, device and the options of ``set_context``.

The mode is read at every call of a Cell, so it is a plain module variable behind functions; options
that steer nothing here are kept and given back, and unknown ones refused by name.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any, Final

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError

GRAPH_MODE: Final = 0
PYNATIVE_MODE: Final = 1

_DEVICES: Final = ("CPU", "GPU", "Ascend")
_DEFAULTS: Final[dict[str, Any]] = {
    "mode": PYNATIVE_MODE, "device_target": "CPU", "device_id": 0, "save_graphs": False, "save_graphs_path": ".",
    "precompile_only": False, "deterministic": "OFF", "jit_level": "O1", "jit_config": {}, "jit_syntax_level": 2,
    "max_call_depth": 1000, "max_device_memory": "1024GB", "variable_memory_max_size": "30GB",
    "mempool_block_size": "1GB", "memory_optimize_level": "O0", "memory_offload": "OFF", "runtime_num_threads": 0,
    "pynative_synchronize": False, "enable_graph_kernel": True, "graph_kernel_flags": "", "enable_compile_cache": True,
    "compile_cache_path": "", "enable_reduce_precision": True, "check_bprop": False, "grad_for_scalar": False,
    "support_binary": False, "print_file_path": "", "env_config_path": "", "reserve_class_name_in_scope": True,
    "inter_op_parallel_num": 0, "op_timeout": 900, "ascend_config": {}, "gpu_config": {}, "auto_tune_mode": "NO_TUNE",
    "enable_profiling": False, "profiling_options": "", "enable_dump": False, "save_dump_path": ".",
    "enable_sparse": False, "enable_auto_mixed_precision": False, "exec_order": "", "debug_level": 0,
    "conv_fprop_algo": "normal", "conv_dgrad_algo": "normal", "conv_wgrad_algo": "normal", "conv_allow_tf32": True,
    "matmul_allow_tf32": False, "aoe_config": {}, "aoe_tune_mode": "", "disable_format_transform": False,
    "parameter_broadcast": False, "host_scheduling_max_threshold": 1000, "enable_mem_offload": False,
}  # fmt: skip

_options: dict[str, Any] = dict(_DEFAULTS)
_mode: int = PYNATIVE_MODE


def is_graph_mode() -> bool:
    """Whether a Cell that is called now is compiled."""
    return _mode == GRAPH_MODE


def _checked(name: str, value: Any) -> Any:
    if name == "mode":
        if value not in (GRAPH_MODE, PYNATIVE_MODE) or isinstance(value, bool):
            raise ArgumentValueError(
                "set_context", "mode", got=repr(value), takes="GRAPH_MODE (0) or PYNATIVE_MODE (1)"
            )
        return int(value)
    if name == "device_target":
        return check_device("set_context", "device_target", value)
    if name == "device_id" and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise ArgumentValueError("set_context", "device_id", got=repr(value), takes="a non-negative int")
    if name == "deterministic" and value not in ("ON", "OFF"):
        raise ArgumentValueError("set_context", "deterministic", got=repr(value), takes='"ON" or "OFF"')
    return value


def check_device(where: str, argument: str, value: Any) -> str:
    """Refuse an unknown or unavailable device, saying what is missing."""
    if not isinstance(value, str):
        raise ArgumentTypeError(where, argument, got=type(value).__name__, takes="a string")
    if value not in _DEVICES:
        raise ArgumentValueError(where, argument, got=repr(value), takes='"CPU", "GPU" or "Ascend"')
    if value == "Ascend":
        raise UnsupportedError(
            where, argument, got='"Ascend"', takes='"CPU" or "GPU" here',
            hint="Ascend chips need a PJRT plugin for XLA, and none is public; the same script runs with CPU or GPU",
        )  # fmt: skip
    if value == "GPU":
        import jax

        try:
            jax.devices("gpu")
        except RuntimeError:
            raise UnsupportedError(
                where, argument, got='"GPU"', takes="a device that is present",
                hint="no NVIDIA GPU with JAX's CUDA plugin was found; install mycelia[cuda] on a machine that has one",
            ) from None  # fmt: skip
    return value


def set_context(**kwargs: Any) -> None:
    """Set options of the execution context; all are checked before any is changed.

    Args:
        mode: ``PYNATIVE_MODE`` (operators run at once) or ``GRAPH_MODE`` (Cells are compiled when called).
        device_target: ``"CPU"`` or ``"GPU"``.
        deterministic: ``"ON"`` or ``"OFF"``.

    Raises:
        ArgumentValueError: an unknown option, or a value it does not take.

    >>> import mycelia as ms
    >>> ms.set_context(mode=ms.PYNATIVE_MODE)
    >>> ms.get_context("mode") == ms.PYNATIVE_MODE
    True
    """
    global _mode
    checked: dict[str, Any] = {}
    for name, value in kwargs.items():
        if name not in _DEFAULTS:
            raise ArgumentValueError("set_context", name, message=f"there is no option '{name}'", hint=_nearest(name))
        checked[name] = _checked(name, value)
    _options.update(checked)
    _mode = _options["mode"]
    if "device_target" in checked:
        _select_device(checked["device_target"])


def _nearest(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, _DEFAULTS, 1)
    return f"did you mean '{close[0]}'?" if close else "see the docstring of set_context for the options"


def get_context(attr_key: str) -> Any:
    """The value of one option."""
    if attr_key not in _options:
        raise ArgumentValueError(
            "get_context", "attr_key", message=f"there is no option '{attr_key}'", hint=_nearest(attr_key)
        )
    return _options[attr_key]


def reset_context() -> None:
    """Put every option back to its default."""
    global _mode
    _options.clear()
    _options.update(_DEFAULTS)
    _mode = PYNATIVE_MODE
    _select_device("CPU")


def set_device(device_target: str, device_id: int = 0) -> None:
    """Choose the device that tensors live on.

    Args:
        device_target: ``"CPU"`` or ``"GPU"``.
        device_id: index of the device.

    Raises:
        UnsupportedError: the device is not present; the message says what is missing.
    """
    check_device("set_device", "device_target", device_target)
    set_context(device_target=device_target, device_id=device_id)


def _select_device(target: str) -> None:
    import jax

    index = _options["device_id"]
    config: Any = jax.config  # its settings are attributes that its class does not declare
    if target == "CPU" and index == 0 and config.jax_default_device is None and not _may_have_gpu():
        return  # asks for no device: ranks meet before the first one is used
    platform = "gpu" if target == "GPU" else "cpu"
    devices = jax.local_devices(backend=platform)
    if index >= len(devices):
        raise ArgumentValueError("set_device", "device_id", got=str(index), takes=f"0 to {len(devices) - 1}")
    if target == "CPU" and index == 0 and jax.default_backend() == "cpu":
        jax.config.update("jax_default_device", None)
    else:
        jax.config.update("jax_default_device", devices[index])


def _may_have_gpu() -> bool:
    """Whether JAX has a plugin for a device that would come before the CPU."""
    return any(importlib.util.find_spec(name) for name in ("jax_plugins", "jax_cuda12_plugin", "jax_cuda13_plugin"))


def cache_folder() -> str:
    """The folder of compiled executables: ``MYCELIA_CACHE_DIR``, or ``mycelia`` in the user's cache folder."""
    chosen = os.environ.get("MYCELIA_CACHE_DIR")
    if chosen:
        return chosen
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "mycelia")
