"""The global seed.

Only the number lives here; the state that random operators advance is a tensor (``ops.random``), so
that it threads through graphs like any parameter, and listeners reset themselves when the seed changes.
"""

from __future__ import annotations

from collections.abc import Callable

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError

_seed: int | None = None
_listeners: list[Callable[[int], None]] = []


def on_seed(listener: Callable[[int], None]) -> None:
    """Call ``listener(seed)`` whenever the seed is set."""
    _listeners.append(listener)


def set_seed(seed: int) -> None:
    """Set the seed of random operators, initializers and data set shuffling.

    Args:
        seed: a non-negative int below 2**32.

    >>> import mycelia as ms
    >>> ms.set_seed(1)
    >>> a = ms.ops.rand(3)
    >>> ms.set_seed(1)
    >>> bool((a == ms.ops.rand(3)).all())
    True
    """
    global _seed
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise ArgumentTypeError("set_seed", "seed", got=type(seed).__name__, takes="an int")
    if not 0 <= seed < 2**32:
        raise ArgumentValueError("set_seed", "seed", got=str(seed), takes="a value from 0 to 2**32 - 1")
    _seed = seed
    for listener in _listeners:
        listener(seed)


def get_seed() -> int | None:
    """The seed last set, or None."""
    return _seed
