"""The public operators by name, and the Tensor methods made of them.

``@operator`` registers a function under its name; ``methods`` attaches it to Tensor under the given
names, the tensor taking the place of the first argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mycelia.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

#: Every public operator by name.
OPERATORS: dict[str, Callable[..., Any]] = {}


def operator(*, methods: Sequence[str] | bool = False, aliases: Sequence[str] = ()) -> Callable[[F], F]:
    """Register a public operator.

    Args:
        methods: Tensor method names; True for the operator's own name.
        aliases: further public names of the same function.
    """

    def register(fn: F) -> F:
        for name in (fn.__name__, *aliases):
            if name in OPERATORS:
                raise ValueError(f"operator '{name}' is declared twice")
            OPERATORS[name] = fn
        for name in (fn.__name__,) if methods is True else methods or ():
            attach(name, fn)
        return fn

    return register


def attach(name: str, fn: Callable[..., Any]) -> None:
    """Make ``fn`` the Tensor method ``name``."""
    if name in Tensor.__dict__:
        raise ValueError(f"Tensor already has '{name}'")
    setattr(Tensor, name, fn)
