"""Rows: tuples of NumPy arrays, one per column, made from what user code returns.

A tuple is several columns; anything else is one. Numbers, strings, bytes, nested lists, tensors and
images become arrays; Python ints are int64 and floats float64, as in MindSpore.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Row = tuple[np.ndarray, ...]


class BadValue(TypeError):
    """A value that cannot be a column; the text says why."""


def column(value: Any) -> np.ndarray:
    """``value`` as an array.

    Raises:
        BadValue: None, a dict, a ragged list, or an object that is no number, string or array.
    """
    kind = type(value)
    if kind is np.ndarray:
        array = value
    elif value is None:
        raise BadValue("got None; is a return statement missing?")
    elif isinstance(value, dict):
        raise BadValue("got a dict; return a tuple of values, one for each column")
    elif hasattr(value, "asnumpy"):
        array = value.asnumpy()
    else:
        try:
            array = np.asarray(value)
        except (ValueError, TypeError) as error:
            raise BadValue(f"got a {kind.__name__} that is not rectangular: {error}") from None
    if array.dtype.kind in "Om" or array.dtype.kind == "M":
        raise BadValue(f"got a {kind.__name__} of Python objects; columns hold numbers, bools, strings or bytes")
    return array


def row(value: Any) -> Row:
    """What a function returned, as a row: a tuple is several columns, anything else is one.

    Raises:
        BadValue: see :func:`column`.
    """
    if type(value) is tuple:
        return tuple([column(v) for v in value])
    return (column(value),)


def source_row(value: Any) -> Row:
    """What a source gave, as a row: a tuple or a list is several columns, anything else is one.

    Raises:
        BadValue: see :func:`column`.
    """
    if isinstance(value, (tuple, list)):
        return tuple([column(v) for v in value])
    return (column(value),)


def describe(array: np.ndarray) -> str:
    """``shape (2, 3) float32``, for messages."""
    return f"shape {array.shape} {array.dtype}"
