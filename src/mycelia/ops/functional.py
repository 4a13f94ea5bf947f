"""Functions of operators: the names of ``mindspore.ops.functional``, which are those of :mod:`mycelia.ops`."""

from typing import Any

from mycelia.ops.legacy.faces import name_of_ops
from mycelia.ops.registry import OPERATORS

__all__ = sorted(OPERATORS)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """A name of :mod:`mycelia.ops`."""
    return name_of_ops(__name__, name)
