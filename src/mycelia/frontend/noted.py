"""Values read from outside a staged program, as they were: named slots, contents of containers, differences.

:mod:`mycelia.frontend.guards` keeps them and compares.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
from collections import deque
from operator import is_
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from mycelia.core.dtypes import DType
from mycelia.core.errors import SourceLocation, user_location
from mycelia.ir.graph import Value
from mycelia.tensor.tensor import Tensor

ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "nothing", "__slots__": ()})()
ATOMS = (bool, int, float, complex, str, bytes, type(None), DType, type(Ellipsis), range, slice)
SETS = (set, frozenset)
_ENGINE = frozenset({"mycelia", "numpy", "jax", "jaxlib", "ml_dtypes", "builtins"})
#: Attributes of a Cell that are bookkeeping, not part of what a graph is staged from.
INTERNAL = frozenset({
    "_params", "_cells", "_compiled_calls", "_auto_prefix", "_param_prefix", "_special", "_phase", "_load_hooks",
    "_input_spec", "_jit_config", "_jit_options", "_parameter_layouts",
})  # fmt: skip


def is_engine(module: Any) -> bool:
    """Whether a module is this package or what it stands on, which users do not change."""
    return str(module).partition(".")[0] in _ENGINE


def same_value(a: Any, b: Any) -> bool:
    """Whether two Python values are the same constant: of one type and equal, zeros and NaNs by their text."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is float or kind is complex:
        return bool(a == b and (a != 0 or str(a) == str(b))) or (a != a and b != b and str(a) == str(b))
    if kind in ATOMS:
        return bool(a == b)
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return False


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One difference between what was read and what is there now.

    Attributes:
        path: what the user calls it: ``self.cfg.k``, ``global 'RATE'``.
        kind: ``"attribute"``, ``"global"``, ``"closure"``, ``"item"``, ``"function"``, ``"tensor"``, ...
        before: what it was when the graph was staged.
        after: what it is.
        location: the line that read it.
        slot: the slot, if the whole value of one differs.
    """

    path: str
    kind: str
    before: Any
    after: Any
    location: SourceLocation | None = None
    slot: Slot | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.path}: {brief(self.before)} -> {brief(self.after)}"


def brief(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, Tensor) and type(value._value) is not Value:
        return f"{type(value).__name__} {value.dtype.name}{list(value.shape)}"
    if value is ABSENT:
        return "nothing"
    if isinstance(value, np.ndarray):
        return f"array {value.dtype}{list(value.shape)}"
    if isinstance(value, (FunctionType, MethodType, type)):
        return f"{'class' if isinstance(value, type) else 'function'} {value.__qualname__}"
    if isinstance(value, (*ATOMS, list, dict, tuple, set, frozenset, deque, np.generic)):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    return f"a {type(value).__name__}"


class Slot:
    """A name in a mapping (``__dict__`` of an object, class or module; globals), or an attribute without one."""

    __slots__ = ("held", "kind", "location", "mapping", "name", "owner", "path")

    def __init__(self, mapping: Any, name: str, held: Any, path: str, kind: str, owner: Any) -> None:
        self.mapping, self.name, self.held, self.path, self.kind, self.owner = mapping, name, held, path, kind, owner
        self.location = user_location()

    @property
    def key(self) -> tuple[int, str]:
        return id(self.owner), self.name

    def now(self) -> Any:
        """What is there now."""
        return self.mapping.get(self.name, ABSENT)


class CellSlot(Slot):
    """A closure cell."""

    __slots__ = ()

    def now(self) -> Any:
        try:
            return self.owner.cell_contents
        except ValueError:
            return ABSENT


class AttributeSlot(Slot):
    """An attribute that only ``getattr`` finds."""

    __slots__ = ()

    def now(self) -> Any:
        return getattr(self.owner, self.name, ABSENT)


class Content:
    """A container, or an object taken whole, with what it held."""

    __slots__ = ("items", "keys", "location", "obj", "path")

    def __init__(self, obj: Any, path: str) -> None:
        self.obj, self.path = obj, path
        self.location = user_location()
        self.keys, self.items = self.read()

    def read(self) -> tuple[Any, Any]:
        """Keys (None for sequences) and items now."""
        obj = self.obj
        if isinstance(obj, dict):
            return tuple(obj), tuple(obj.values())
        if isinstance(obj, (list, deque)):
            return None, tuple(obj)
        if isinstance(obj, set):
            return None, frozenset(obj)
        own = getattr(obj, "__dict__", None)
        if own is not None:
            return tuple(own), tuple(own.values())
        names = tuple(f.name for f in dataclasses.fields(obj))
        return names, tuple([getattr(obj, n, ABSENT) for n in names])

    def unchanged(self) -> bool:
        """Whether every item is the very same object."""
        obj, items = self.obj, self.items
        kind = type(obj)
        if kind is list:
            return len(obj) == len(items) and all(map(is_, obj, items))
        if kind is dict:
            return len(obj) == len(items) and all(map(is_, obj.values(), items)) and all(map(is_, obj, self.keys))
        keys, now = self.read()
        if isinstance(obj, set):
            return bool(now == items)
        return len(now) == len(items) and all(map(is_, now, items)) and (keys is None or all(map(is_, keys, self.keys)))


class CellContent(Content):
    """A Cell taken whole."""

    __slots__ = ()

    def read(self) -> tuple[Any, Any]:
        own = self.obj.__dict__
        return tuple(own), tuple(own.values())

    def unchanged(self) -> bool:
        own, items = self.obj.__dict__, self.items
        return len(own) == len(items) and all(map(is_, own.values(), items))


@functools.cache
def global_names(code: CodeType) -> tuple[str, ...]:
    """The global names that a code object and those nested in it read."""
    names = dict.fromkeys(
        i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    )  # fmt: skip
    for const in code.co_consts:
        if isinstance(const, CodeType):
            names.update(dict.fromkeys(global_names(const)))
    return tuple(names)


def is_cell(obj: Any) -> bool:
    """Whether an object is a Cell."""
    own = getattr(obj, "__dict__", None)
    return type(own) is dict and "_cells" in own and "_params" in own


def cell_value(cell: CellType) -> Any:
    """What a closure cell holds, or ``ABSENT``."""
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


def static_attribute(cls: type, name: str) -> tuple[Any, type | None]:
    """What stands under a name in a class, not bound to anything, and the class of its bases that has it."""
    for k in cls.__mro__:
        if name in k.__dict__:
            return k.__dict__[name], k
    return ABSENT, None


def same_array(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays have one type and content; objects in them are compared by identity."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind == "O":
        return all(x is y for x, y in zip(a.flat, b.flat, strict=True))
    return bool(np.array_equal(a, b)) or a.tobytes() == b.tobytes()


def equal_nests(a: Any, b: Any) -> bool:
    """Whether two descriptions are equal; tensors and arrays in them are compared by identity."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(equal_nests, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal_nests(a[k], b[k]) for k in a)
    if isinstance(a, (Tensor, np.ndarray)):
        return a is b
    return a is b or same_value(a, b) or bool(a == b)


class Same:
    """An object as a comparable value: equal to itself only, and kept alive, so that its place is not reused."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
