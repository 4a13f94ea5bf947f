"""The front-end: from Python functions to compiled graphs."""

from mycelia.frontend.jit import Jit, jit

__all__ = ["Jit", "jit"]
