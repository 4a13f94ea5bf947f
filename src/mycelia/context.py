"""The execution context: the names of ``mindspore.context``."""

from mycelia.core.context import (
    GRAPH_MODE as GRAPH_MODE,
    PYNATIVE_MODE as PYNATIVE_MODE,
    get_context as get_context,
    reset_context as reset_context,
    set_context as set_context,
    set_device as set_device,
)
