"""Which chains of dtype conversions are one conversion.

``cast(cast(x, M), B)`` is ``cast(x, B)`` if every value of x's dtype A is a value of M and B rounds the number
the same way wherever it comes from; or if all three are integers and M has at least as many bits as B, as
conversion between integers keeps the low bits. What floats out of range become as integers, and how wide
types round to 16 bits, is left to the conversions that were written.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes

from mycelia.core import dtypes
from mycelia.core.dtypes import DType


def holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of ``narrow`` is a value of ``wide``.

    >>> from mycelia.core import dtypes
    >>> holds(dtypes.float32, dtypes.float16), holds(dtypes.float32, dtypes.int32)
    (True, False)
    """
    if wide is narrow or narrow.kind == "b":
        return True
    if wide.is_complex:
        return _part_bytes(wide) >= _part_bytes(narrow) if narrow.is_complex else holds(_part(wide), narrow)
    if narrow.is_complex or wide.kind == "b":
        return False
    if narrow.is_integer:
        bits = narrow.itemsize * 8 - (narrow.kind == "i")
        if wide.is_integer:
            return wide.itemsize * 8 - (wide.kind == "i") >= bits and (narrow.kind == "u" or wide.kind == "i")
        info: Any = ml_dtypes.finfo(wide.np)
        return bool(info.nmant + 1 >= bits and info.maxexp >= bits)
    if wide.is_integer:
        return False
    a: Any = ml_dtypes.finfo(narrow.np)
    b: Any = ml_dtypes.finfo(wide.np)
    return bool(b.nmant >= a.nmant and b.maxexp >= a.maxexp and b.minexp - b.nmant <= a.minexp - a.nmant)


def combined(source: DType, middle: DType, target: DType) -> bool:
    """Whether ``cast(cast(x, middle), target)`` is ``cast(x, target)`` for every x of dtype ``source``."""
    whole = "iu"
    if source.kind in whole and middle.kind in whole and target.kind in whole and middle.itemsize >= target.itemsize:
        return True
    if not holds(middle, source):
        return False
    if target.kind == "b" or holds(target, source):
        return True
    if target.is_integer:
        return source.kind in whole and middle.kind in whole
    if source.kind in "fc":
        return True
    return _part_bytes(target) >= 4


def _part(dtype: DType) -> DType:
    """The dtype of the real part."""
    if not dtype.is_complex:
        return dtype
    return dtypes.float32 if dtype is dtypes.complex64 else dtypes.float64


def _part_bytes(dtype: DType) -> int:
    return int(_part(dtype).itemsize)
