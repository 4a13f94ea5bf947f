"""The execution context: the names of ``mindspore.context``."""

from mycelia.core.context import (
    GRAPH_MODE,
    PYNATIVE_MODE,
    get_context,
    reset_context,
    set_context,
    set_device,
)

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "get_context",
    "reset_context",
    "set_context",
    "set_device",
]
