"""The names of ``mindspore.parallel.auto_parallel``."""

from mycelia.core.layout import Layout
from mycelia.nn.auto_parallel import AutoParallel

__all__ = ["AutoParallel", "Layout"]
