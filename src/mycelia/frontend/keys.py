"""The key of a call: the structure of its arguments, the types of its tensors, the values of the rest.

Numbers (int and float, not bool) are kept beside the key, which has only their type: graphs that differ in
nothing but numbers stand under one key, and a number may become an input of the graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.core import tree
from mycelia.core.dtypes import DType
from mycelia.frontend.noted import Same, brief
from mycelia.tensor.tensor import Parameter, Tensor

_NUMBERS = (int, float)
_CONSTANTS = (bool, str, bytes, type(None), DType)
_PLAIN = frozenset({Tensor, int, float, bool, str, type(None)})


class MutableInt(int):
    """An int that is an input of a graph from its first compilation; made by :func:`mycelia.mutable`."""


class MutableFloat(float):
    """A float that is an input of a graph from its first compilation; made by :func:`mycelia.mutable`."""


def plain_call(args: tuple[Any, ...]) -> bool:
    """Whether no argument is a container or an object."""
    return all(type(a) in _PLAIN for a in args)


def call_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Tensor], Any, tuple[Any, ...]]:
    """The tensors of a call, its key and its numbers."""
    tensors: list[Tensor] = []
    numbers: list[Any] = []
    parts: list[Any] = []
    if not kwargs and plain_call(args):
        leaves: Any = args
    else:
        leaves, treedef = tree.flatten((args, kwargs))
        parts.append(treedef)
    for x in leaves:
        kind = type(x)
        if kind is Tensor:
            tensors.append(x)
            parts.append((x._value.dtype, x._value.shape))
        elif kind is int or kind is float:
            numbers.append(x)
            parts.append(kind)
        else:
            parts.append(_part(x, kind, tensors, numbers))
    return tensors, tuple(parts), tuple(numbers)


def _part(x: Any, kind: type, tensors: list[Tensor], numbers: list[Any]) -> Any:
    if isinstance(x, Parameter):
        return ("parameter", Same(x), x.dtype, x.shape, x.requires_grad)
    if isinstance(x, Tensor):
        tensors.append(x)
        return (x._value.dtype, x._value.shape)
    if kind is MutableInt or kind is MutableFloat:
        numbers.append(x)
        return kind
    if isinstance(x, _CONSTANTS):
        return (kind, x)
    if kind is complex:
        return (kind, repr(x))
    if isinstance(x, np.ndarray):
        return ("array", x.shape, str(x.dtype), x.tobytes() if x.dtype.kind != "O" else Same(x))
    if isinstance(x, np.generic):
        return (kind, x.tobytes())
    if kind in (set, frozenset) and all(isinstance(v, (*_NUMBERS, *_CONSTANTS)) for v in x):
        return (kind, frozenset((type(v), v) for v in x))
    return (kind, Same(x))


def described(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, tuple[str, Any]]:
    """Each leaf of the arguments: by its path, its kind and a comparable description, for reports."""
    try:
        bound = dict(inspect.signature(getattr(fn, "construct", fn)).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        bound = {str(i): a for i, a in enumerate(args)} | kwargs
    found: dict[str, tuple[str, Any]] = {}
    for name, value in bound.items():
        for path, leaf in _leaves(name, value):
            if isinstance(leaf, Tensor):
                found[path] = ("tensor", (leaf.dtype.name, leaf.shape))
            elif type(leaf) in _NUMBERS:
                found[path] = ("number", leaf)
            elif isinstance(leaf, _CONSTANTS):
                found[path] = ("value", leaf)
            else:
                found[path] = ("object", (brief(leaf), id(leaf)))
    return found


def _leaves(path: str, value: Any) -> Any:
    if type(value) in (tuple, list):
        for i, v in enumerate(value):
            yield from _leaves(f"{path}[{i}]", v)
    elif isinstance(value, dict):
        for k, v in value.items():
            yield from _leaves(f"{path}[{k!r}]", v)
    else:
        yield path, value
