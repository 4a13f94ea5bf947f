"""What a staged program read from the outside, to be checked before its graph is used again.

Staging bakes in Python values: attributes of the Cells it went through, globals and closure cells of the
functions it converted. Each is recorded with the value it had. Attributes are checked only when some
attribute or flag somewhere has changed since the last check (``tensor.epoch``), the rest at each call.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from mycelia.core.dtypes import DType
from mycelia.tensor.tensor import Parameter, Tensor, epoch

_SIMPLE = (bool, int, float, complex, str, bytes, type(None), DType)
_ABSENT = object()


class Same:
    """An object as a comparable value: equal to itself only, and kept alive, so that its place is not reused."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def frozen(value: Any) -> Any:
    """A comparable copy of a value whose content a program may depend on; None if it is not such a value."""
    if isinstance(value, _SIMPLE):
        return (type(value), value)
    if isinstance(value, (tuple, list)):
        items = [frozen(v) for v in value[:64]]
        return (type(value), len(value), tuple(items))
    if isinstance(value, dict):
        return (dict, len(value), tuple((k, frozen(v)) for k, v in list(value.items())[:64] if isinstance(k, _SIMPLE)))
    if isinstance(value, Parameter):
        return (Parameter, Same(value), value.requires_grad)
    if isinstance(value, Tensor):
        return (Tensor, Same(value))
    return None


class Guards:
    """The outside reads of one staged graph."""

    def __init__(self) -> None:
        self._globals: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}
        self._cells: dict[int, tuple[CellType, Any]] = {}
        self._objects: dict[int, tuple[Any, Callable[[Any], Any], Any]] = {}
        self._values: dict[int, tuple[Tensor, Any]] = {}
        self._epoch = -1

    def watch_function(self, fn: FunctionType) -> None:
        """Note the globals a function names and the cells it closes over."""
        for name in fn.__code__.co_names:
            value = fn.__globals__.get(name, _ABSENT)
            held = frozen(value)
            if held is not None:
                self._globals.setdefault((id(fn.__globals__), name), (fn.__globals__, name, held))
        for cell in fn.__closure__ or ():
            try:
                held = frozen(cell.cell_contents)
            except ValueError:
                continue
            if held is not None:
                self._cells.setdefault(id(cell), (cell, held))

    def watch_object(self, obj: Any, state: Callable[[Any], Any]) -> None:
        """Note ``state(obj)``, a frozen description; checked again when the epoch has moved."""
        if id(obj) not in self._objects:
            self._objects[id(obj)] = (obj, state, state(obj))

    def watch_value(self, tensor: Tensor) -> None:
        """Note that the data of a captured tensor were read as a Python value."""
        self._values.setdefault(id(tensor), (tensor, tensor._value))

    def seal(self) -> None:
        """The staging is over: what was noted holds now."""
        self._epoch = epoch()

    def broken(self) -> str | None:
        """What has changed, in words, or None."""
        for scope, name, held in self._globals.values():
            if frozen(scope.get(name, _ABSENT)) != held:
                return f"global '{name}'"
        for cell, held in self._cells.values():
            try:
                if frozen(cell.cell_contents) != held:
                    return f"a closed-over variable (was {held[1]!r})"
            except ValueError:
                return "a closed-over variable that was deleted"
        for tensor, value in self._values.values():
            if tensor._value is not value:
                return "the value of a tensor that was used as a Python value"
        now = epoch()
        if now != self._epoch:
            for obj, state, held in self._objects.values():
                if state(obj) != held:
                    return f"an attribute of {type(obj).__name__}"
            self._epoch = now
        return None
