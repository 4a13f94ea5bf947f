"""Functions made of operators: the names of ``mindspore.ops.composite``."""

from typing import Any

from mycelia.ops.legacy.clipping import clip_by_global_norm, clip_by_norm
from mycelia.ops.legacy.faces import name_of_ops
from mycelia.ops.legacy.maps import (
    HyperMap,
    Map,
    MultitypeFuncGraph,
    add_flags,
    augassign_add,
    augassign_div,
    augassign_floordiv,
    augassign_mod,
    augassign_mul,
    augassign_sub,
    hyper_add,
    iter_converter,
    ms_hasnext,
    ms_next,
    tail,
    zip_operation,
)
from mycelia.ops.selection import clip_by_value

__all__ = [
    "HyperMap", "Map", "MultitypeFuncGraph", "add_flags", "augassign_add", "augassign_div", "augassign_floordiv",
    "augassign_mod", "augassign_mul", "augassign_sub", "clip_by_global_norm", "clip_by_norm", "clip_by_value",
    "hyper_add", "iter_converter", "ms_hasnext", "ms_next", "tail", "zip_operation",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """What :mod:`mycelia.ops` has besides (``normal``, ``GradOperation``)."""
    return name_of_ops(__name__, name)
