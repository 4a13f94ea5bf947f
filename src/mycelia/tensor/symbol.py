"""Shapes that are not all known: ``Symbol``, and tensors that have a type but no data."""

from __future__ import annotations

from typing import Any

from mycelia.core.dtypes import DType
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError


class Symbol:
    """What is known of the length of an axis that varies.

    Args:
        max: the greatest length; 0 for no bound. It counts if it is greater than ``min``.
        min: the least length.
        divisor: lengths are ``divisor * N + remainder``.
        remainder: see ``divisor``; from 0 to ``divisor - 1``.
        unique: every axis with this symbol has the same length.

    Raises:
        ArgumentTypeError: an argument is not an int, or ``unique`` not a bool.
        ArgumentValueError: ``min`` or ``divisor`` is not positive, or ``remainder`` out of range.

    >>> import mycelia as ms
    >>> ms.Tensor(shape=[ms.Symbol(max=64, divisor=8), 3], dtype=ms.float32).shape
    (-1, 3)
    """

    def __init__(
        self, max: int = 0, min: int = 1, divisor: int = 1, remainder: int = 0, unique: bool = False, **kwargs: Any
    ) -> None:
        for name, value in (("max", max), ("min", min), ("divisor", divisor), ("remainder", remainder)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ArgumentTypeError("Symbol", name, got=type(value).__name__, takes="an int")
        if not isinstance(unique, bool):
            raise ArgumentTypeError("Symbol", "unique", got=type(unique).__name__, takes="True or False")
        for name, value in (("min", min), ("divisor", divisor)):
            if value < 1:
                raise ArgumentValueError("Symbol", name, got=str(value), takes="an int above 0")
        if not 0 <= remainder < divisor:
            raise ArgumentValueError("Symbol", "remainder", got=str(remainder), takes=f"an int from 0 to {divisor - 1}")
        self.max, self.min, self.divisor, self.remainder, self.unique = max, min, divisor, remainder, unique

    def to_dict(self) -> dict[str, int]:
        """What it says beyond the defaults."""
        found = {}
        if self.max > self.min:
            found["max"] = self.max
        if self.min > 1:
            found["min"] = self.min
        if self.divisor != 1:
            found["divisor"] = self.divisor
        if self.remainder:
            found["remainder"] = self.remainder
        if self.unique:
            found["id"] = id(self)
        return found

    def __repr__(self) -> str:
        said = ", ".join(f"{k}={v}" if k != "id" else "unique=True" for k, v in self.to_dict().items())
        return f"Symbol({said})"


class Unfilled:
    """The type of a tensor without data: what ``Cell.set_inputs`` takes. Unknown lengths are -1 in ``shape``."""

    def __init__(self, dtype: DType, dims: tuple[Any, ...]) -> None:
        for d in dims:
            known = isinstance(d, int) and not isinstance(d, bool) and (d >= 0 or d == -1)
            if d is not None and not known and not isinstance(d, Symbol):
                raise ArgumentValueError(
                    "Tensor", "shape", got=repr(d), takes="lengths, None or a Symbol for each axis"
                )
        self.dtype = dtype.np
        self.dims = tuple([None if d == -1 else d for d in dims])
        self.shape = tuple([d if isinstance(d, int) else -1 for d in self.dims])
