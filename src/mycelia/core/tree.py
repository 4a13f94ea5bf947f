"""Nested containers as flat lists of leaves and a hashable description of the structure.

Containers are tuples, lists, dicts, named tuples and dataclasses; everything else, None included, is a
leaf. The structure compares and hashes by content, so it can be part of a cache key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

_LEAF = "*"


class TreeDef:
    """The shape of a nest: rebuilds it from its leaves."""

    __slots__ = ("_hash", "children", "kind", "num_leaves", "spec")

    def __init__(self, kind: Any, spec: Any, children: tuple[TreeDef, ...]) -> None:
        self.kind, self.spec, self.children = kind, spec, children
        self.num_leaves: int = 1 if kind is _LEAF else sum(c.num_leaves for c in children)
        self._hash = hash((kind, spec, children))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, TreeDef) and self.kind == other.kind and self.spec == other.spec
            and self.children == other.children
        )  # fmt: skip

    def __repr__(self) -> str:
        if self.kind is _LEAF:
            return "*"
        inner = ", ".join(map(repr, self.children))
        if self.kind is tuple:
            return f"({inner})"
        if self.kind is list:
            return f"[{inner}]"
        names = ", ".join(f"{k}={c!r}" for k, c in zip(self.spec, self.children, strict=True))
        return f"{self.kind.__name__}({names})"

    def unflatten(self, leaves: Iterator[Any]) -> Any:
        kind = self.kind
        if kind is _LEAF:
            return next(leaves)
        if kind is tuple:
            return tuple([c.unflatten(leaves) for c in self.children])
        if kind is list:
            return [c.unflatten(leaves) for c in self.children]
        values = [c.unflatten(leaves) for c in self.children]
        if issubclass(kind, dict):
            made = kind() if kind is not dict else {}
            made.update(zip(self.spec, values, strict=True))
            return made
        if issubclass(kind, tuple):
            return kind(*values)
        made = object.__new__(kind)
        for name, value in zip(self.spec, values, strict=True):
            object.__setattr__(made, name, value)
        return made


LEAF = TreeDef(_LEAF, None, ())


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a nest from left to right, and its structure.

    >>> leaves, treedef = flatten({"a": 1, "b": (2, [3])})
    >>> leaves
    [1, 2, 3]
    >>> unflatten(treedef, [x * 10 for x in leaves])
    {'a': 10, 'b': (20, [30])}
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> TreeDef:
    kind = type(tree)
    if kind is tuple or kind is list:
        return TreeDef(kind, None, tuple([_flatten(x, leaves) for x in tree]))
    if isinstance(tree, dict) and hasattr(tree, "update"):
        return TreeDef(kind, tuple(tree), tuple([_flatten(x, leaves) for x in tree.values()]))
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return TreeDef(kind, tree._fields, tuple([_flatten(x, leaves) for x in tree]))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = tuple(f.name for f in dataclasses.fields(tree))
        return TreeDef(kind, names, tuple([_flatten(getattr(tree, n), leaves) for n in names]))
    leaves.append(tree)
    return LEAF


def level(obj: Any) -> tuple[Any, list[Any]] | None:
    """What tells a container's items apart (None where that is their order), and the items; None for a leaf.

    >>> level({"a": 1, "b": (2, 3)}), level((1, [2])), level(5)
    ((('a', 'b'), [1, (2, 3)]), (None, [1, [2]]), None)
    """
    kind = type(obj)
    if kind is tuple or kind is list:
        return None, list(obj)
    if isinstance(obj, dict) and hasattr(obj, "update"):
        return tuple(obj), list(obj.values())
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return obj._fields, list(obj)
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        names = tuple(f.name for f in dataclasses.fields(obj))
        return names, [getattr(obj, n) for n in names]
    return None


def unflatten(treedef: TreeDef, leaves: list[Any]) -> Any:
    """Put leaves back into a structure; the inverse of :func:`flatten`."""
    if len(leaves) != treedef.num_leaves:
        raise ValueError(f"structure {treedef!r} takes {treedef.num_leaves} leaves, got {len(leaves)}")
    return treedef.unflatten(iter(leaves))


def leaves(tree: Any) -> list[Any]:
    """The leaves of a nest from left to right."""
    return flatten(tree)[0]


def map_leaves(fn: Callable[[Any], Any], tree: Any) -> Any:
    """The same nest with ``fn`` applied to each leaf."""
    found, treedef = flatten(tree)
    return unflatten(treedef, [fn(x) for x in found])
