"""Calls in rewritten code: whose code is rewritten in turn, and builtins that must know tensors.

A user's function, method, lambda, partial, callable object or constructor is converted when it is called; so
are third-party packages. Builtins, the standard library, NumPy, JAX and this package run as they are;
a function that a builtin is to call (``map``, ``sorted``, ``functools.reduce``, ``itertools``) is converted
when it is handed over. What this package is given to call it converts itself
(:func:`mycelia.tensor.dispatch.stageable`).
"""

from __future__ import annotations

import functools
import os
import sysconfig
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any

from mycelia.frontend import effects, implicit, reads, regions
from mycelia.frontend.branches import fold, truth
from mycelia.frontend.loops import make_enumerate, make_range
from mycelia.frontend.ordering import count, extreme, index, ordered
from mycelia.ir.builder import Builder
from mycelia.tensor.mode import current_builder, is_staging

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
        if is_users(fn):
            return _convert(fn)
        return _of_others(fn) if is_staging() else fn
    if kind is MethodType:
        made = _convert(fn)
        return made if made is not fn or not regions.depth() else _method(fn)
    if not is_staging():
        return _convert(fn)
    if kind is BuiltinFunctionType:
        known = _BUILTINS.get(fn)
        return _builtin(fn) if known is None else known
    if isinstance(fn, type):
        return _class(fn)
    if kind in _DESCRIPTORS:
        return _descriptor(fn)
    if kind.__module__.partition(".")[0] == "numpy" and regions.depth():
        return _touching(fn)
    if kind is _CACHED:
        return functools.partial(_cached, fn)
    return _convert(fn)


_SEARCHES = {"index": index, "count": count}
_DESCRIPTORS = (WrapperDescriptorType, MethodWrapperType, MethodDescriptorType)
_CACHED = type(functools.lru_cache(lambda: None))


def _builtin(fn: Any) -> Any:
    owner = fn.__self__
    if isinstance(owner, regions.CONTAINERS):
        if isinstance(owner, list) and fn.__name__ == "sort":
            return functools.partial(_sort, owner)
        if isinstance(owner, list) and fn.__name__ in _SEARCHES:
            return functools.partial(_SEARCHES[fn.__name__], owner)
        regions.touch(owner)
        return fn
    if isinstance(owner, tuple) and fn.__name__ in _SEARCHES:
        return functools.partial(_SEARCHES[fn.__name__], owner)
    return _touching(fn) if regions.depth() else fn


def _method(fn: MethodType) -> Any:
    """A method that is left as it is, of the standard library, say: it may change its object, if a container."""
    file = getattr(getattr(fn.__func__, "__code__", None), "co_filename", _PACKAGE)
    return fn if file.startswith(_PACKAGE) else functools.partial(_touching(fn.__func__), fn.__self__)


def _touching(fn: Any) -> Any:
    """``fn``, which may change the containers it is given."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            regions.touch(value)
        return fn(*args, **kwargs)

    return wrapper


def _descriptor(fn: Any) -> Any:
    """A method of a builtin type, taken from the type (``list.append``) or from ``super()``."""
    if fn.__name__ not in ("__setattr__", "__delattr__"):
        return _touching(fn) if regions.depth() else fn

    def sets(*args: Any) -> Any:
        owner, name = (fn.__self__, args[0]) if type(fn) is MethodWrapperType else args[:2]
        regions.record_attribute(owner, name, bare=True)
        return fn(*args)

    return sets


def _of_others(fn: FunctionType) -> Any:
    """A function of the standard library, a package that is left alone, or this package."""
    file = fn.__code__.co_filename
    if file.startswith(_PACKAGE):
        return fn
    if hasattr(fn, "registry") and hasattr(fn, "dispatch"):  # functools.singledispatch
        return lambda *args, **kwargs: call(fn.dispatch(args[0].__class__))(*args, **kwargs)
    if hasattr(fn, "__wrapped__") and fn.__closure__ and file.startswith(_STDLIB):  # contextlib.contextmanager
        cells = tuple([_converted_cell(cell) for cell in fn.__closure__])
        made = FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, cells)
        made.__kwdefaults__ = fn.__kwdefaults__
        return made
    return _touching(fn) if regions.depth() else fn


def _converted_cell(cell: CellType) -> CellType:
    try:
        return CellType(converted_argument(cell.cell_contents))
    except ValueError:
        return cell


def _cached(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """A call of a function under ``functools.lru_cache``: results of a graph are kept as long as it is built."""
    try:
        key = (fn, args, tuple(kwargs.items()), tuple(map(type, args)))
        hash(key)
    except TypeError:
        return fn(*args, **kwargs)
    builder: Builder | None = current_builder()
    while builder is not None:
        kept = builder.__dict__.setdefault("cached", {})
        if key in kept:
            return kept[key]
        builder = builder.parent
    result = call(fn.__wrapped__)(*args, **kwargs)
    current_builder().__dict__["cached"][key] = result
    return result


def _class(cls: Any) -> Any:
    known = _BUILTIN_TYPES.get(cls)
    if known is not None:
        return known
    if cls.__module__ == "itertools":
        return _passing_converted(cls)
    init = cls.__init__
    if type(init) is not FunctionType or not is_users(init) or cls.__new__ is not object.__new__:
        return cls
    if type(cls).__call__ is not type.__call__:
        return cls
    implicit.prepare(cls)

    def instance(*args: Any, **kwargs: Any) -> Any:
        made = object.__new__(cls)
        regions.born(made)
        _convert(cls.__init__)(made, *args, **kwargs)
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
    if _is_users_callable(value):
        return _convert(value)
    if type(value) is BuiltinFunctionType:
        return _BUILTINS.get(value, value)
    return _BUILTIN_TYPES[bool] if value is bool else implicit.see(value)


def _passing_converted(fn: Any) -> Any:
    """``fn``, given converted functions where it is given functions, and iterators that may be advanced."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given = [regions.advance(converted_argument(a)) for a in args]
        return fn(*given, **{k: converted_argument(v) for k, v in kwargs.items()})

    wrapper.__module__, wrapper.__qualname__ = "builtins", getattr(fn, "__qualname__", "call")  # for error messages
    return wrapper


# -- builtins --------------------------------------------------------------------------------------------


def _sort(items: list[Any], *, key: Any = None, reverse: bool = False) -> None:
    regions.touch(items)
    items[:] = ordered(items, key=None if key is None else converted_argument(key), reverse=reverse)


def _keyed(fn: Any) -> Any:
    def wrapper(*args: Any, key: Any = None, **kwargs: Any) -> Any:
        return fn(*args, key=None if key is None else converted_argument(key), **kwargs)

    return wrapper


def _set_attribute(owner: Any, name: str, value: Any) -> None:
    setattr(regions.touch_attribute(owner, name), name, value)


def _delete_attribute(owner: Any, name: str) -> None:
    delattr(regions.touch_attribute(owner, name), name)


_BUILTINS: dict[Any, Any] = {
    print: effects.print_,
    max: _keyed(extreme("max")),
    min: _keyed(extreme("min")),
    any: lambda iterable: fold(False, regions.advance(implicit.see(iterable))),
    all: lambda iterable: fold(True, regions.advance(implicit.see(iterable))),
    sorted: _keyed(ordered),
    setattr: _set_attribute,
    delattr: _delete_attribute,
    functools.reduce: _passing_converted(functools.reduce),
    **{fn: _passing_converted(fn) for fn in (sum, len, iter, next, abs, round, divmod, pow, repr, format, hash, ascii)},
    getattr: reads.getattr_,
    hasattr: reads.hasattr_,
    **{fn: fn for fn in (isinstance, issubclass, callable, id, ord, chr, bin, hex, oct, open, input)},
}
_BUILTIN_TYPES: dict[Any, Any] = {
    range: make_range,
    enumerate: make_enumerate,
    bool: lambda value=False: truth(value),
    **{
        cls: _passing_converted(cls)
        for cls in (
            map, filter, zip, reversed, list, tuple, set, frozenset, dict, int, float, complex, str, bytes,
        )
    },
}  # fmt: skip


# -- statements that need a value --------------------------------------------------------------------------


def holds(condition: Any, message: Callable[[], Any]) -> bool:
    """Whether an ``assert`` holds now; one that depends on a tensor is checked when the graph runs."""
    known = truth(condition)
    if type(known) is bool:
        if not known and regions.depth():
            said = message()
            raise effects.raised(AssertionError() if said is None else AssertionError(said))
        return known
    said = message()
    effects.raise_unless(known, AssertionError() if said is None else AssertionError(said))
    return True
