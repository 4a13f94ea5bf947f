"""Chains of conversions, decided by dtype, against NumPy on every edge of every dtype."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from mycelia.compiler.passes.conversions import combined, holds
from mycelia.core import dtypes as dt

FLOATS = [dt.float16, dt.bfloat16, dt.float32, dt.float64, dt.float8_e4m3fn, dt.float8_e5m2]
EVERY = [dt.bool_, *dt.INTEGERS, *FLOATS, *dt.COMPLEX]


def edges(dtype):
    """The extreme, the smallest and the special values of a dtype, and some between."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.is_integer:
        info = np.iinfo(dtype.np)
        near = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, info.max // 3, 0, 1, 2, 3, 100]
        return np.array([n for n in [*near, -1, -2] if info.min <= n <= info.max], dtype.np)
    if dtype.is_complex:
        part = edges(dt.float32 if dtype is dt.complex64 else dt.float64)
        return np.concatenate([part.astype(dtype.np), (1j * part[np.isfinite(part)]).astype(dtype.np)])
    info = ml_dtypes.finfo(dtype.np)
    near = [
        info.max,
        info.smallest_normal,
        info.smallest_subnormal,
        info.eps,
        1 + float(info.eps),
        0.0,
        1.0,
        3.0,
        np.inf,
    ]
    whole = [float(x) for x in near] + [2.0**k for k in range(-20, 16)]
    with np.errstate(over="ignore"):
        return np.array([*whole, *[-x for x in whole], np.nan], np.float64).astype(dtype.np)


def cast(array, dtype):
    with np.errstate(all="ignore"):
        if dtype.kind == "b":
            return array != 0
        if array.dtype.kind == "c" and dtype.kind != "c":
            array = array.real
        return array.astype(dtype.np)


def bits(array):
    """Something to compare that holds NaN equal to NaN and -0.0 different from 0.0."""
    wide = array.astype(np.complex128) if array.dtype.kind == "c" else array
    if array.dtype.kind in "biu":
        return array.tolist()
    return [repr(x) for x in (wide if array.dtype.kind == "c" else wide.astype(np.float64)).tolist()]


@pytest.mark.parametrize(("wide", "narrow"), list(itertools.product(EVERY, EVERY)), ids=lambda d: d.name)
def test_holds_means_going_there_and_back_changes_nothing(wide, narrow):
    values = edges(narrow)
    back = cast(cast(values, wide), narrow)
    if holds(wide, narrow):
        assert bits(back) == bits(values)
    elif wide.kind != "b" and not (narrow.is_integer and wide.is_integer) and not narrow.is_complex:
        assert bits(back) != bits(values), "something is lost where it does not hold"


WHOLE = [d for d in EVERY if d.itemsize > 1 or not d.is_floating]  # NumPy has no conversions between the 8-bit floats


@pytest.mark.parametrize("source", WHOLE, ids=lambda d: d.name)
def test_combined_chains_are_one_conversion(source):
    values = edges(source)
    found = 0
    for middle, target in itertools.product(WHOLE, WHOLE):
        if combined(source, middle, target):
            found += 1
            assert bits(cast(cast(values, middle), target)) == bits(cast(values, target)), (middle.name, target.name)
    assert found >= 7


@pytest.mark.parametrize(
    ("source", "middle", "target", "is_one"),
    [
        ("float32", "float64", "float32", True), ("float32", "float16", "float32", False),
        ("int32", "float64", "int32", True),
        ("int32", "float32", "int32", False), ("int32", "int64", "int8", True), ("int64", "int8", "int64", False),
        ("int8", "uint8", "int8", True), ("int8", "uint8", "int16", False), ("float32", "float64", "int32", False),
        ("int32", "int64", "bfloat16", False), ("int32", "float64", "float32", True), ("bool", "int8", "float16", True),
        ("float32", "bool", "float32", False), ("complex64", "float32", "complex64", False),
        ("float32", "complex64", "bool", True),
        ("bfloat16", "float32", "float16", True), ("float16", "bfloat16", "float16", False),
        ("int8", "bool", "int8", False),
    ],
)  # fmt: skip
def test_particular_chains(source, middle, target, is_one):
    assert combined(*[dt.dtype_named(n) for n in (source, middle, target)]) is is_one
