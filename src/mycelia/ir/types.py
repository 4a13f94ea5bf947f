"""The type of a value in a graph: an element type and a static shape."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from mycelia.core.dtypes import DType

_SHORT = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c"}


class TensorType(NamedTuple):
    """``dtype`` and ``shape`` (a tuple of non-negative ints) of a tensor."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Number of bytes of the elements."""
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


Types = TensorType | tuple[TensorType, ...]
