"""Class forms of operators: the names of ``mindspore.ops.operations``."""

from mycelia.ops.legacy import *  # noqa: F403


def __getattr__(name: str) -> object:
    """What :mod:`mycelia.ops` has besides."""
    from mycelia.ops.legacy.faces import name_of_ops

    return name_of_ops(__name__, name)
