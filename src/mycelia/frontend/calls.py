"""Calls in rewritten code: whose code is rewritten in turn, and builtins that must know tensors.

A user's function, method, lambda, partial, callable object or constructor is converted when it is called; so
are third-party packages. Builtins, the standard library, NumPy, JAX and this package run as they are;
a function that a builtin is to call (``map``, ``sorted``, ``functools.reduce``, ``itertools``) is converted
when it is handed over. What this package is given to call it converts itself
(:func:`mycelia.tensor.dispatch.stageable`).
"""

from __future__ import annotations

import builtins
import functools
import os
import sysconfig
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from mycelia.frontend import effects, regions
from mycelia.frontend.branches import all_of, any_of, choose, truth
from mycelia.frontend.loops import make_range
from mycelia.tensor import Tensor
from mycelia.tensor.mode import is_staging

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = tuple({os.path.realpath(sysconfig.get_path(n)) + os.sep for n in ("stdlib", "platstdlib")})
_SITE = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_LEFT_ALONE = frozenset({"numpy", "jax", "jaxlib", "ml_dtypes", "mycelia"})


@functools.lru_cache(maxsize=4096)
def _is_users_file(filename: str) -> bool:
    if filename.startswith((_PACKAGE, "<frozen")):
        return False
    return not os.path.realpath(filename).startswith(_STDLIB) or any(part in filename for part in _SITE)


def is_users(fn: FunctionType) -> bool:
    """Whether a function is rewritten: it belongs to neither the standard library, NumPy, JAX nor this package."""
    file = fn.__code__.co_filename
    root = str(fn.__globals__.get("__name__", "")).partition(".")[0]
    return (root not in _LEFT_ALONE or file.startswith("<doctest")) and _is_users_file(file)


#: Set by :mod:`mycelia.frontend.convert`, which builds on this module.
_convert: Callable[[Any], Any]


def set_convert(convert: Callable[[Any], Any]) -> None:
    """Install the conversion of functions."""
    global _convert
    _convert = convert


def call(fn: Any) -> Any:
    """What to call instead of ``fn`` in rewritten code."""
    kind = type(fn)
    if kind is FunctionType:
        return _convert(fn) if is_users(fn) else fn
    if kind is MethodType:
        return _convert(fn)
    if kind is BuiltinFunctionType:
        owner = fn.__self__
        if isinstance(owner, regions.CONTAINERS):
            regions.touch(owner)
        known = _BUILTINS.get(fn)
        return fn if known is None or not is_staging() else known
    if kind is type:
        return _class(fn) if is_staging() else fn
    return _convert(fn)


def _class(cls: Any) -> Any:
    known = _BUILTIN_TYPES.get(cls)
    if known is not None:
        return known
    if cls.__module__ == "itertools":
        return _passing_converted(cls)
    init = cls.__init__
    if type(init) is not FunctionType or not is_users(init) or cls.__new__ is not object.__new__:
        return cls
    converted = _convert(init)
    if converted is init:
        return cls

    def instance(*args: Any, **kwargs: Any) -> Any:
        made = object.__new__(cls)
        regions.born(made)
        converted(made, *args, **kwargs)
        return made

    return instance


def _is_users_callable(value: Any) -> bool:
    if type(value) is MethodType:
        value = value.__func__
    elif type(value) is functools.partial:
        return _is_users_callable(value.func)
    return type(value) is FunctionType and is_users(value)


def converted_argument(value: Any) -> Any:
    """A user's function that is handed on, converted; anything else as it is."""
    return _convert(value) if _is_users_callable(value) else value


def _passing_converted(fn: Any) -> Any:
    """``fn``, given converted functions where it is given functions."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*map(converted_argument, args), **{k: converted_argument(v) for k, v in kwargs.items()})

    return wrapper


# -- builtins --------------------------------------------------------------------------------------------


def _symbolic(values: Iterable[Any]) -> bool:
    return any(isinstance(v, Tensor) for v in values)


def _extreme(name: str, better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    original = getattr(builtins, name)

    def extreme(*args: Any, **kwargs: Any) -> Any:
        key = kwargs.get("key")
        if key is not None:
            kwargs["key"] = key = converted_argument(key)
        values = list(args[0]) if len(args) == 1 else list(args)
        ranks = values if key is None else [key(v) for v in values]
        if not _symbolic(ranks) or not values:
            return original(values, **kwargs) if len(args) == 1 else original(*args, **kwargs)
        found, rank = values[0], ranks[0]
        for value, other in zip(values[1:], ranks[1:], strict=True):
            wins = truth(better(other, rank))
            if type(wins) is bool:
                found, rank = (value, other) if wins else (found, rank)
            else:
                taken, kept = functools.partial(tuple, (value, other)), functools.partial(tuple, (found, rank))
                found, rank = choose(name, wins, taken, kept)
        return found

    extreme.__name__ = name
    return extreme


def _any(iterable: Any) -> Any:
    values = list(iterable)
    return any_of(False, *[(lambda v=v: v) for v in values]) if _symbolic(values) else any(values)


def _all(iterable: Any) -> Any:
    values = list(iterable)
    return all_of(True, *[(lambda v=v: v) for v in values]) if _symbolic(values) else all(values)


def _sorted(iterable: Any, **kwargs: Any) -> Any:
    if "key" in kwargs:
        kwargs["key"] = converted_argument(kwargs["key"])
    return sorted(iterable, **kwargs)


_BUILTINS: dict[Any, Any] = {
    print: effects.print_,
    max: _extreme("max", lambda a, b: a > b),
    min: _extreme("min", lambda a, b: a < b),
    any: _any,
    all: _all,
    sorted: _sorted,
    functools.reduce: _passing_converted(functools.reduce),
}
_BUILTIN_TYPES: dict[Any, Any] = {
    range: make_range,
    map: lambda fn, *iterables: map(converted_argument(fn), *iterables),
    filter: lambda fn, iterable: filter(converted_argument(fn), iterable),
}


# -- statements that need a value --------------------------------------------------------------------------


def holds(condition: Any, message: Callable[[], Any]) -> bool:
    """Whether an ``assert`` holds now; one that depends on a tensor is checked when the graph runs."""
    known = truth(condition)
    if type(known) is bool:
        return known
    said = message()
    effects.raise_unless(known, AssertionError() if said is None else AssertionError(said))
    return True
