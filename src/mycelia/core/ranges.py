"""Named stretches of a program's time, for whoever watches.

``with record("data_wait"):`` costs one comparison while nobody watches. A profiler listens while it records
(``mycelia.profiler``); the parts of the package that have something to say about their time stand below it and know
only this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TypeVar

Item = TypeVar("Item")

#: The time a training loop waits for its next batch.
DATA_WAIT = "data_wait"
#: One training step of a ``Model``.
STEP = "step"


class _Unwatched:
    """The context that does nothing."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


_unwatched = _Unwatched()
_listener: Callable[[str], AbstractContextManager[None]] | None = None


def record(name: str) -> AbstractContextManager[None]:
    """A context whose time is recorded under ``name`` if somebody watches.

    >>> with record("reading"):
    ...     total = sum(range(10))
    """
    listener = _listener
    return _unwatched if listener is None else listener(name)


def watched() -> bool:
    """Whether somebody watches."""
    return _listener is not None


def waited(name: str, items: Iterable[Item]) -> Iterator[Item]:
    """The items, with the time that each is waited for recorded under ``name`` if somebody watches.

    >>> list(waited("reading", [1, 2]))
    [1, 2]
    """
    iterator = iter(items)
    while True:
        with record(name):
            try:
                item = next(iterator)
            except StopIteration:
                return
        yield item


def set_listener(listener: Callable[[str], AbstractContextManager[None]] | None) -> None:
    """Have ``listener(name)`` make the contexts from now on; None for nobody."""
    global _listener
    _listener = listener
