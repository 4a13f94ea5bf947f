"""Compilation: the names of ``mindspore.common.api``."""

from mycelia.frontend import jit

ms_function = jit

__all__ = [
    "jit", "ms_function",
]  # fmt: skip
