"""Variables that are bound on one path only, and those two paths disagree on.

Plain Python raises ``UnboundLocalError`` when the path taken did not bind a variable. A graph takes its
path when it runs, so the variable holds a marker after the paths join, and reading it is refused while
staging. :class:`Maybe` keeps the value of the path that does bind it: where the flow analysis proves that a
read is reached on that path only (a ``for``/``else`` after ``break``, say), the value is handed out.
"""

from __future__ import annotations

from typing import Any, NoReturn

from mycelia.core.errors import UnboundInGraphError


class Undefined:
    """Stands for a variable without a value; any use raises :class:`UnboundInGraphError`."""

    __slots__ = ("_hint", "_message", "_name")

    def __init__(self, name: str, message: str | None = None, hint: str | None = None) -> None:
        self._name = name
        self._message = message or f"'{name}' has no value here"
        self._hint = hint or f"give '{name}' a value on every path, or before the paths part"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise UnboundInGraphError("graph", message=self._message, hint=self._hint)

    def __repr__(self) -> str:
        return f"<undefined '{self._name}'>"

    def __getattr__(self, attribute: str) -> NoReturn:
        if attribute.startswith("__") and attribute.endswith("__"):
            raise AttributeError(attribute)
        self._refuse()


class Maybe(Undefined):
    """A variable bound on one path only: ``value`` is what it holds there, zeros of that type elsewhere."""

    __slots__ = ("value",)

    def __init__(self, name: str, value: Any, message: str, hint: str | None = None) -> None:
        super().__init__(name, message, hint)
        self.value = value

    def over(self, value: Any) -> Maybe:
        """The same marker with another value."""
        return Maybe(self._name, value, self._message, self._hint)


_REFUSED = (
    "bool len iter next call getitem setitem delitem contains add radd iadd sub rsub mul rmul truediv rtruediv "
    "floordiv rfloordiv mod rmod pow rpow matmul rmatmul neg pos abs invert and rand or ror xor rxor lshift rshift "
    "lt le gt ge eq ne int float index complex array enter exit format str hash"
)
for _dunder in _REFUSED.split():
    setattr(Undefined, f"__{_dunder}__", Undefined._refuse)


def use(value: Any) -> Any:
    """The value of a variable, or a located error if it may have none."""
    if isinstance(value, Undefined):
        value._refuse()
    return value


def sure(value: Any) -> Any:
    """The value of a variable that the flow of the program proves to be bound."""
    if type(value) is Maybe:
        return sure(value.value)
    return use(value)
