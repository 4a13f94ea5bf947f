"""Operators under their later names: the names of ``mindspore.ops.auto_generate``."""

from typing import Any

from mycelia.ops.array_ext import *  # noqa: F403
from mycelia.ops.legacy import *  # noqa: F403
from mycelia.ops.legacy.faces import name_of_ops
from mycelia.ops.neural_ext import *  # noqa: F403
from mycelia.ops.reduction_ext import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """What :mod:`mycelia.ops` has besides."""
    return name_of_ops(__name__, name)
