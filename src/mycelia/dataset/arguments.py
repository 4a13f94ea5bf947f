"""Checks of arguments that many datasets and transforms share; each raises an error that names the argument."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError

INT32_MAX = 2**31 - 1


def integer(where: str, argument: str, value: Any, low: int | None = None, high: int | None = INT32_MAX) -> int:
    """``value`` as an int within [low, high]; bools are refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="an int")
    if (low is not None and value < low) or (high is not None and value > high):
        if high is None or high == INT32_MAX:
            takes = f"an int of at least {low}"
        else:
            takes = f"an int from {low} to {high}" if low is not None else f"an int of at most {high}"
        raise ArgumentValueError(where, argument, got=str(value), takes=takes)
    return int(value)


def optional_integer(where: str, argument: str, value: Any, low: int | None = None) -> int | None:
    """``value`` as an int of at least ``low``, or None."""
    return None if value is None else integer(where, argument, value, low)


def real(where: str, argument: str, value: Any, low: float | None = None, high: float | None = None) -> float:
    """``value`` as a finite float within [low, high]; bools are refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="a number")
    number = float(value)
    inside = np.isfinite(number) and (low is None or number >= low) and (high is None or number <= high)
    if not inside:
        bounds = "a finite number"
        if low is not None and high is not None:
            bounds = f"a number from {low:g} to {high:g}"
        elif low is not None:
            bounds = f"a finite number of at least {low:g}"
        raise ArgumentValueError(where, argument, got=repr(value), takes=bounds)
    return number


def reals(where: str, argument: str, value: Any, length: int | None = None) -> tuple[float, ...]:
    """A list or tuple of finite numbers, of ``length`` if given."""
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise ArgumentTypeError(where, argument, got=type(value).__name__, takes="a list or tuple of numbers")
    if length is not None and len(value) != length:
        raise ArgumentValueError(where, argument, got=f"{len(value)} numbers", takes=f"{length} numbers")
    return tuple(real(where, argument, x) for x in value)


def interval(
    where: str, argument: str, value: Any, low: float | None = None, high: float | None = None
) -> tuple[float, float]:
    """A pair (min, max) of numbers within [low, high]."""
    if not isinstance(value, (list, tuple)):
        raise ArgumentTypeError(where, argument, got=repr(value), takes="a pair (min, max)")
    if len(value) != 2:
        raise ArgumentValueError(where, argument, got=f"{len(value)} numbers", takes="a pair (min, max)")
    first, second = (real(where, argument, x, low, high) for x in value)
    if first > second:
        raise ArgumentValueError(where, argument, got=repr(value), takes="a pair (min, max) with min <= max")
    return first, second


def boolean(where: str, argument: str, value: Any) -> bool:
    """``value`` as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentTypeError(where, argument, got=repr(value), takes="True or False")
    return bool(value)


def choice(where: str, argument: str, value: Any, allowed: Sequence[Any]) -> Any:
    """``value`` if it is one of ``allowed``."""
    if not any(value is a or (type(value) is type(a) and value == a) for a in allowed):
        kind = ArgumentValueError if any(type(value) is type(a) for a in allowed) else ArgumentTypeError
        raise kind(where, argument, got=repr(value), takes="one of " + ", ".join(map(str, allowed)))
    return value


def names(where: str, argument: str, value: Any) -> list[str]:
    """A column name or a list of distinct column names, as a list."""
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, (list, tuple)):
        raise ArgumentTypeError(where, argument, got=repr(value), takes="a column name or a list of them")
    for name in found:
        if not isinstance(name, str):
            raise ArgumentTypeError(where, argument, got=repr(name), takes="column names as strings")
        if not name:
            raise ArgumentValueError(
                where, argument, got="an empty string", takes="column names of at least one letter"
            )
    twice = {name for name in found if list(found).count(name) > 1}
    if twice:
        raise ArgumentValueError(where, argument, got=f"{sorted(twice)} more than once", takes="distinct column names")
    return list(found)


def known_columns(where: str, argument: str, wanted: Iterable[str], present: Sequence[str]) -> None:
    """Refuse a column name that the dataset does not have."""
    for name in wanted:
        if name not in present:
            raise ArgumentValueError(
                where, argument, got=repr(name), takes=f"a column of the dataset: {', '.join(map(repr, present))}"
            )


def directory(where: str, argument: str, value: Any) -> str:
    """A path of an existing, readable directory."""
    if not isinstance(value, (str, os.PathLike)):
        raise ArgumentTypeError(where, argument, got=repr(value), takes="the path of a directory")
    path = os.fspath(value)
    if not os.path.isdir(path):
        state = "a file" if os.path.exists(path) else "a path that does not exist"
        raise ArgumentValueError(where, argument, got=f"{path!r}, {state}", takes="the path of an existing directory")
    if not os.access(path, os.R_OK | os.X_OK):
        raise ArgumentValueError(where, argument, got=f"{path!r}, which may not be read", takes="a readable directory")
    return str(path)


def size_pair(where: str, argument: str, value: Any) -> tuple[int, int]:
    """A positive int for both, or a pair (height, width) of them."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        size = integer(where, argument, value, 1)
        return size, size
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ArgumentTypeError(where, argument, got=repr(value), takes="an int or a pair (height, width)")
    return integer(where, argument, value[0], 1), integer(where, argument, value[1], 1)


def probability(where: str, value: Any, argument: str = "prob") -> float:
    """A number from 0 to 1."""
    return real(where, argument, value, 0.0, 1.0)
