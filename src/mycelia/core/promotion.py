"""Which dtype the result of mixed operands has: the whole of the implicit conversion rules, one table.

Two tensors: the wider of the same kind; bool gives way to integers, integers to floats, floats to
complex, whatever the widths; float16 with bfloat16 is float32; int and uint of one width go to the
next wider int. uint64 with a signed integer has no common type and is refused.

A Python scalar never widens a tensor of its own or a higher kind: it takes the tensor's dtype. A float
with an integer tensor makes float32; an int with a bool tensor int64; a complex with a real tensor the
complex type of the tensor's width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import ParamSpec, TypeVar, cast

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType
from mycelia.core.errors import DTypeError

_ORDER = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_SIGNED_OF_SIZE = {1: dt.int8, 2: dt.int16, 4: dt.int32, 8: dt.int64}

P = ParamSpec("P")
R = TypeVar("R")


def cached(fn: Callable[P, R]) -> Callable[P, R]:
    """``fn`` with an ``lru_cache`` that keeps its signature, so that a ``type`` may be an argument.

    >>> from mycelia.core.promotion import cached
    >>> cached(lambda kind: kind())(int)
    0
    """
    return cast(Callable[P, R], lru_cache(maxsize=4096)(fn))


@cache
def promote(a: DType, b: DType) -> DType | None:
    """The common dtype of two tensors, or None if there is none."""
    if a is b:
        return a
    rank_a, rank_b = _ORDER[a.kind], _ORDER[b.kind]
    if rank_a < rank_b:
        a, b, rank_a, rank_b = b, a, rank_b, rank_a
    if a.kind == "c":
        double = a is dt.complex128 or b is dt.float64 or b is dt.complex128
        return dt.complex128 if double else dt.complex64
    if rank_a > rank_b:
        return a
    if a.kind == "f":
        if a.itemsize == b.itemsize:
            return dt.float32 if a.itemsize == 2 else dt.float16
        return a if a.itemsize > b.itemsize else b
    if a.kind == b.kind:
        return a if a.itemsize > b.itemsize else b
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    return _SIGNED_OF_SIZE.get(unsigned.itemsize * 2)


@cached
def promote_scalar(tensor: DType, scalar: type) -> DType:
    """The dtype of a tensor combined with a Python scalar of the given type."""
    if scalar is bool:
        return tensor
    if scalar is int:
        return dt.int64 if tensor.kind == "b" else tensor
    if scalar is float:
        return tensor if tensor.is_inexact else dt.float32
    if tensor.is_complex:
        return tensor
    return dt.complex128 if tensor is dt.float64 else dt.complex64


def result_type(types: Iterable[DType], where: str) -> DType:
    """The common dtype of several tensors.

    Raises:
        DTypeError: no common dtype exists.
    """
    it = iter(types)
    result = next(it)
    for other in it:
        common = promote(result, other)
        if common is None:
            raise DTypeError(
                where, message=f"operands of dtype {result} and {other} have no common dtype",
                hint="convert one of them first, e.g. x.astype(ms.int64)",
            )  # fmt: skip
        result = common
    return result


@cache
def floating(dtype: DType) -> DType:
    """The dtype a function like ``exp`` or ``/`` returns: itself if inexact, else float32."""
    return dtype if dtype.is_inexact else dt.float32
