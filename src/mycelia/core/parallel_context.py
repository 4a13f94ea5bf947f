"""The settings of ``set_auto_parallel_context``: how training is spread over ranks.

Those that steer nothing here are kept and given back; unknown ones are refused by name. Defaults and names are
MindSpore's.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from mycelia.core import cluster
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError

PARALLEL_MODES: Final = ("stand_alone", "data_parallel", "hybrid_parallel", "semi_auto_parallel", "auto_parallel")
SEARCH_MODES: Final = ("auto", "recursive_programming", "sharding_propagation", "dynamic_programming")
SCHEDULERS: Final = ("gpipe", "1f1b", "interleaved", "seqpipe", "seqvpp", "seqsmartvpp", "zero_bubble_v")


def _one_of(*allowed: str) -> Callable[[Any], str | None]:
    return lambda v: None if v in allowed else " or ".join(f'"{a}"' for a in allowed)


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "True or False"


def _whole(least: int, most: int | None = None) -> Callable[[Any], str | None]:
    words = f"a whole number from {least}" + (f" to {most}" if most is not None else "")
    return lambda v: (
        None if isinstance(v, int) and not isinstance(v, bool) and v >= least and (most is None or v <= most) else words
    )


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "a text"


def _mapping(value: Any) -> str | None:
    return None if isinstance(value, dict) else "a dict"


def _places(value: Any) -> str | None:
    rising = isinstance(value, (list, tuple)) and all(isinstance(v, int) and v > 0 for v in value)
    return None if rising and list(value) == sorted(set(value)) else "rising positive numbers"


def _strategy(value: Any) -> str | None:
    if value in ("data_parallel", "full_batch") or isinstance(value, tuple):
        return None
    return '"data_parallel", "full_batch" or a tuple with a strategy or a Layout for each input'


#: The options: default, and what tells of a value that is not taken what is.
_OPTIONS: Final[dict[str, tuple[Any, Callable[[Any], str | None]]]] = {
    "device_num": (None, _whole(1, 4096)), "global_rank": (None, _whole(0, 4095)), "gradients_mean": (False, _flag),
    "gradient_fp32_sync": (True, _flag), "loss_repeated_mean": (True, _flag), "pipeline_stages": (1, _whole(1)),
    "pipeline_result_broadcast": (False, _flag), "pipeline_interleave": (False, _flag),
    "pipeline_scheduler": ("1f1b", _one_of(*SCHEDULERS)), "parallel_mode": ("stand_alone", _one_of(*PARALLEL_MODES)),
    "search_mode": ("recursive_programming", _one_of(*SEARCH_MODES)), "parameter_broadcast": (False, _flag),
    "strategy_ckpt_load_file": ("", _text), "strategy_ckpt_save_file": ("", _text), "full_batch": (False, _flag),
    "dataset_strategy": ("data_parallel", _strategy), "enable_parallel_optimizer": (False, _flag),
    "parallel_optimizer_config": ({}, _mapping), "force_fp32_communication": (False, _flag),
    "grad_accumulation_step": (1, _whole(1)), "all_reduce_fusion_config": ([], _places),
    "communi_parallel_mode": (
        "all_group_parallel", _one_of("all_group_parallel", "same_server_group_parallel", "no_group_parallel"),
    ),
    "optimizer_weight_shard_size": (-1, _whole(-1)), "optimizer_weight_shard_aggregated_save": (False, _flag),
    "enable_alltoall": (False, _flag), "comm_fusion": ({}, _mapping), "strategy_ckpt_config": ({}, _mapping),
    "pipeline_config": ({}, _mapping), "group_ckpt_save_file": ("", _text), "dump_local_norm": (False, _flag),
    "dump_local_norm_path": ("", _text), "dump_device_local_norm": (False, _flag), "auto_pipeline": (False, _flag),
    "sharding_propagation": (False, _flag),
}  # fmt: skip
#: Second names.
_SAME: Final = {"auto_parallel_search_mode": "search_mode", "mirror_mean": "gradients_mean"}

_chosen: dict[str, Any] = {}


def _name(where: str, argument: str) -> str:
    name = _SAME.get(argument, argument)
    if name not in _OPTIONS:
        close = difflib.get_close_matches(argument, [*_OPTIONS, *_SAME], 1)
        hint = f"did you mean '{close[0]}'?" if close else None
        raise ArgumentValueError(where, argument, message=f"there is no option '{argument}'", hint=hint)
    return name


def set_auto_parallel_context(**kwargs: Any) -> None:
    """Set how training is spread over ranks; all options are checked before any is changed.

    Args:
        parallel_mode: ``"stand_alone"``; ``"data_parallel"`` (each rank has a part of the batch, gradients are
            reduced); ``"semi_auto_parallel"`` (operators and cells are laid out as their ``shard`` says);
            ``"auto_parallel"`` (a planner lays them out); ``"hybrid_parallel"`` (the user's own communication).
        gradients_mean: whether gradients of ranks are averaged (else summed) in ``data_parallel``.
        dataset_strategy: ``"data_parallel"`` (each rank reads its part of a batch), ``"full_batch"``, or a strategy for
            each input.
        device_num: how many ranks there are, if not as many as were started.
        global_rank: the number of this one.
        pipeline_stages: into how many stages a network is cut.
        enable_parallel_optimizer: whether optimizers' states are spread over the ranks that hold the same parameters.
        grad_accumulation_step: how many steps' gradients are added before an update.

    Raises:
        ArgumentValueError: an unknown option, or a value that it does not take.

    >>> import mycelia as ms
    >>> ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    >>> ms.get_auto_parallel_context("parallel_mode")
    'data_parallel'
    >>> ms.reset_auto_parallel_context()
    """
    where = "set_auto_parallel_context"
    checked: dict[str, Any] = {}
    for argument, value in kwargs.items():
        name = _name(where, argument)
        takes = _OPTIONS[name][1](value)
        if takes is not None:
            raise ArgumentValueError(where, argument, got=repr(value), takes=takes)
        checked[name] = value
    if checked.get("full_batch"):
        checked.setdefault("dataset_strategy", "full_batch")
    if "pipeline_config" in checked:
        config = checked["pipeline_config"]
        if "pipeline_scheduler" in config:
            set_auto_parallel_context(pipeline_scheduler=config["pipeline_scheduler"])
        if "pipeline_interleave" in config:
            set_auto_parallel_context(pipeline_interleave=config["pipeline_interleave"])
    _chosen.update(checked)
    _tell()


def spreads() -> bool:
    """Whether graphs are spread over devices, each tensor of a graph being one for all ranks."""
    return _chosen.get("parallel_mode") in ("semi_auto_parallel", "auto_parallel")


_listeners: list[Callable[[], None]] = []


def on_change(listener: Callable[[], None]) -> None:
    """Call a function whenever options have changed."""
    _listeners.append(listener)


def _tell() -> None:
    for listener in _listeners:
        listener()


def get_auto_parallel_context(attr_key: str) -> Any:
    """The value of one option.

    Raises:
        ArgumentTypeError: a key that is no text.
        ArgumentValueError: an unknown option.
    """
    if not isinstance(attr_key, str):
        raise ArgumentTypeError("get_auto_parallel_context", "attr_key", got=repr(attr_key), takes="a str")
    name = _name("get_auto_parallel_context", attr_key)
    if name in _chosen:
        return _chosen[name]
    if name == "device_num":
        return cluster.place().size
    if name == "global_rank":
        return cluster.place().rank
    return _OPTIONS[name][0]


@contextmanager
def options(chosen: dict[str, Any]) -> Iterator[None]:
    """Options for a while; those before come back."""
    before = dict(_chosen)
    try:
        set_auto_parallel_context(**chosen)
        yield
    finally:
        _chosen.clear()
        _chosen.update(before)
        _tell()


def reset_auto_parallel_context() -> None:
    """Put every option back to its default."""
    _chosen.clear()
    _tell()
