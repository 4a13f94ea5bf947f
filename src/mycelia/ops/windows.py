"""Window functions of signal processing, as vectors computed in double precision and rounded once.

A periodic window is the symmetric one of one more element without its last: what a spectral analysis of
consecutive pieces wants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError
from mycelia.ops.creation import dtype_or
from mycelia.ops.operands import as_int
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant

_Array = np.ndarray[Any, Any]


def _window(where: str, length: Any, periodic: bool, dtype: Any, shape: Callable[[int], _Array]) -> Tensor:
    size = as_int(length.item() if isinstance(length, Tensor) else length, where, "window_length")
    if size < 0:
        raise ArgumentValueError(where, "window_length", got=str(size), takes="a length of at least 0")
    if not isinstance(periodic, bool):
        raise ArgumentTypeError(where, "periodic", got=type(periodic).__name__, takes="True or False")
    target = dtype_or(dtype, dt.float32, where)
    if not target.is_floating:
        raise DTypeError(where, "dtype", got=str(target), takes="a floating dtype")
    if size < 2:
        return constant(np.ones(size, target.np))
    full = shape(size + 1)[:-1] if periodic else shape(size)
    return constant(full.astype(target.np))


@operator()
def bartlett_window(window_length: Any, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """A triangle that is 0 at its ends.

    Args:
        window_length: number of elements.
        periodic: whether it repeats without its last element.
        dtype: float32 by default.

    >>> import mycelia as ms
    >>> print(ms.ops.bartlett_window(4))
    [0.  0.5 1.  0.5]
    """
    return _window("bartlett_window", window_length, periodic, dtype, np.bartlett)


@operator()
def blackman_window(window_length: Any, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """Blackman's window: ``0.42 - 0.5 cos + 0.08 cos`` of once and twice the angle (see :func:`bartlett_window`).

    >>> import mycelia as ms
    >>> ms.ops.blackman_window(4).shape
    (4,)
    """
    return _window("blackman_window", window_length, periodic, dtype, np.blackman)


@operator()
def hamming_window(
    window_length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None
) -> Tensor:
    """``alpha - beta * cos`` of an angle that goes round once (see :func:`bartlett_window`).

    >>> import mycelia as ms
    >>> print(ms.ops.hamming_window(4, alpha=0.5, beta=0.5))
    [0.  0.5 1.  0.5]
    """
    return _window(
        "hamming_window", window_length, periodic, dtype,
        lambda n: alpha - beta * np.cos(2 * np.pi * np.arange(n) / (n - 1)),
    )  # fmt: skip


@operator()
def hann_window(window_length: Any, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """A squared sine from 0 over 1 to 0 (see :func:`bartlett_window`).

    >>> import mycelia as ms
    >>> print(ms.ops.hann_window(4))
    [0.  0.5 1.  0.5]
    """
    return _window("hann_window", window_length, periodic, dtype, np.hanning)


@operator()
def kaiser_window(window_length: Any, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None) -> Tensor:
    """Kaiser's window of shape ``beta`` (see :func:`bartlett_window`).

    >>> import mycelia as ms
    >>> ms.ops.kaiser_window(4).shape
    (4,)
    """
    return _window("kaiser_window", window_length, periodic, dtype, lambda n: np.kaiser(n, beta))
