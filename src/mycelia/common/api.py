"""Compilation: the names of ``mindspore.common.api``."""

from mycelia.frontend import jit, jit_class

ms_function = jit

__all__ = [
    "jit", "jit_class", "ms_function",
]  # fmt: skip
