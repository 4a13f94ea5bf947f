"""Functions of the user's that Python calls by itself: operators, properties, iteration, contexts.

``a + b``, ``obj.value``, ``for v in obj`` and ``with obj`` may run a function of the user's that no call in the
program names. The first time an object of such a class is met in a staged program (:func:`see`, which rewritten
code puts where Python may do so), those functions of its class are wrapped: they run converted while a graph is
staged, and as they are otherwise. What a class is and does outside of graphs does not change.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any
from weakref import WeakSet

from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.mode import STAGE, state

_BINARY = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift"
_NAMES = frozenset(
    f"__{name}__"
    for name in (
        "getattr setattr delattr getitem setitem delitem missing len iter next reversed contains enter exit "
        "lt le gt ge eq ne hash bool int float complex index round trunc floor ceil neg pos abs invert str repr "
        "format length_hint call post_init set_name init_subclass class_getitem get set delete "
        + " ".join(f"{op} r{op} i{op}" for op in _BINARY.split())
    ).split()
)
_PLAIN: frozenset[type] = frozenset(
    {int, float, bool, complex, str, bytes, type(None), tuple, list, dict, set, range, Tensor, Parameter, FunctionType}
)
_BUILTIN = frozenset({"builtins", "mycelia", "numpy", "jax", "jaxlib", "ml_dtypes", "enum", "abc", "typing", "types"})

_seen: WeakSet[type] = WeakSet()
_convert: Callable[[Any], Any]
_is_users: Callable[[FunctionType], bool]


def install(convert: Callable[[Any], Any], is_users: Callable[[FunctionType], bool]) -> None:
    """Tell how functions are converted, and which."""
    global _convert, _is_users
    _convert, _is_users = convert, is_users


def see(value: Any) -> Any:
    """The object itself; the functions that Python may call for it are fit to be staged from now on."""
    kind = type(value)
    if kind in _PLAIN or kind in _seen:
        return value
    if state.phase == STAGE:
        prepare(kind)
    return value


def prepare(kind: type) -> None:
    """Make what Python calls for objects of a class fit to be staged."""
    _seen.add(kind)
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] not in _BUILTIN:
            _prepare(base)


def _prepare(base: type) -> None:
    for name, value in list(vars(base).items()):
        kind = type(value)
        if kind is FunctionType:
            if name in _NAMES and _is_users(value):
                _replace(base, name, _both(value))
        elif kind is property:
            get, put, delete = _both(value.fget), _both(value.fset), _both(value.fdel)
            if (get, put, delete) != (value.fget, value.fset, value.fdel):
                _replace(base, name, property(get, put, delete, value.__doc__))
        elif kind is functools.cached_property:
            value.func = _both(value.func)
        elif hasattr(kind, "__get__") and kind.__module__.partition(".")[0] not in _BUILTIN and kind not in _seen:
            prepare(kind)


def _replace(base: type, name: str, value: Any) -> None:
    try:
        type.__setattr__(base, name, value)
    except TypeError:  # a class that cannot be changed
        return


def _both(fn: Any) -> Any:
    """``fn``, converted while a graph is staged."""
    if type(fn) is not FunctionType or not _is_users(fn) or hasattr(fn, "_ms_original"):
        return fn

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (_convert(fn) if state.phase == STAGE else fn)(*args, **kwargs)

    call._ms_original = fn  # type: ignore[attr-defined]
    return call


def original(fn: Any) -> Any:
    """The user's function that a wrapper made here stands for; anything else as it is."""
    return getattr(fn, "_ms_original", fn) if type(fn) is FunctionType else fn


def method_of(value: Any, name: str) -> FunctionType | None:
    """The user's function behind a special method of an object, or None."""
    kind = type(value)
    if kind in _PLAIN:
        return None
    found = original(getattr(kind, name, None))
    return found if type(found) is FunctionType and _is_users(found) else None


def sets_by_itself(owner: Any, name: str) -> bool:
    """Whether setting an attribute runs a function of the user's, which then does what there is to do."""
    kind = type(owner)
    for base in kind.__mro__:
        found = vars(base).get(name)
        if found is None:
            continue
        if type(found) is property:
            return type(original(found.fset)) is FunctionType
        return type(original(getattr(type(found), "__set__", None))) is FunctionType
    return method_of(owner, "__setattr__") is not None
