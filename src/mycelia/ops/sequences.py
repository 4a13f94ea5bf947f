"""Sequences of evenly spaced numbers: arange, range, linspace, logspace.

Computed in double precision and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.core.promotion import result_type
from mycelia.ops.calls import floats
from mycelia.ops.creation import dtype_or, generator
from mycelia.ops.declare import Sample
from mycelia.ops.operands import as_int, as_tensor, cast
from mycelia.ops.registry import operator
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor


def _sequence(xp: Any) -> Callable[..., Any]:
    def make(*, start: float, step: float, size: int, dtype: DType) -> Any:
        if isinstance(start, int) and isinstance(step, int):
            return start + step * xp.arange(size, dtype=np.int64)
        return start + step * xp.arange(size, dtype=np.float64)

    return make


_arange = generator(
    "arange", _sequence(jnp), _sequence(np), lambda *, start, step, size: (size,),
    lambda: [
        Sample((), {"start": 1, "step": 2, "size": 4, "dtype": dt.int64}),
        Sample((), {"start": 0.5, "step": -0.25, "size": 5, "dtype": dt.float32}),
        Sample((), {"start": 0, "step": 1, "size": 0, "dtype": dt.int32}),
        Sample((), {"start": 0, "step": 1, "size": 3, "dtype": dt.float16}),
    ],
)  # fmt: skip


def _number(value: Any, where: str, argument: str) -> tuple[Any, DType]:
    """A Python number of a number or a tensor of one element, and its dtype."""
    if isinstance(value, Tensor):
        return value.item(), value.dtype
    if isinstance(value, (int, float)):
        return value, dt.float32 if isinstance(value, float) else dt.int64
    if isinstance(value, (np.integer, np.floating)):
        return value.item(), dt.from_numpy(value.dtype)
    raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="a number")


@operator()
def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Tensor:
    """The numbers from ``start`` on in steps, up to but without ``end``.

    Args:
        start: first number; with one argument alone, that is the end and the start is 0.
        end: where to stop.
        step: the difference of neighbours, not 0.
        dtype: by default int64 if all three are integers, else float32 (float64 if one is a float64 tensor).

    Returns:
        A vector of ``ceil((end - start) / step)`` elements.

    Raises:
        ArgumentValueError: the step is 0, or leads away from the end.
        GraphError: a length that depends on the values of a graph.

    >>> import mycelia as ms
    >>> print(ms.ops.arange(1, 7, 2))
    [1 3 5]
    """
    if end is None:
        start, end = 0, start
    return _range("arange", (start, end, step), ("start", "end", "step"), dtype)


def _range(where: str, values: tuple[Any, Any, Any], names: tuple[str, str, str], dtype: Any) -> Tensor:
    numbers = [_number(v, where, n) for v, n in zip(values, names, strict=True)]
    (first, _), (stop, _), (by, _) = numbers
    if by == 0 or by != by:
        raise ArgumentValueError(where, names[2], got=str(by), takes="a number other than 0")
    for (number, _), name in zip(numbers, names, strict=True):
        if not math.isfinite(number):
            raise ArgumentValueError(where, name, got=str(number), takes="a finite number")
    if (stop - first) * by < 0:
        raise ArgumentValueError(
            where, names[2], got=str(by), takes=f"a step that leads from {first} to {stop}",
        )  # fmt: skip
    whole = all(isinstance(n, int) for n, _ in numbers)
    size = -((first - stop) // by) if whole else math.ceil((stop - first) / by)
    default = result_type([d for _, d in numbers if d.is_floating or whole], where)
    return _arange(start=first, step=by, size=int(size), dtype=dtype_or(dtype, default, where))


@operator()
def range(start: Any, end: Any, step: Any, maxlen: int = 1000000) -> Tensor:
    """The numbers from ``start`` to ``end`` in steps (see :func:`arange`).

    Args:
        start: first number.
        end: where to stop.
        step: the difference of neighbours, not 0.
        maxlen: the largest number of elements that is accepted.

    Raises:
        ArgumentValueError: there are more than ``maxlen``.

    >>> import mycelia as ms
    >>> print(ms.ops.range(0, 6, 2))
    [0 2 4]
    """
    made = _range("range", (start, end, step), ("start", "end", "step"), None)
    if made.size > maxlen:
        raise ArgumentValueError(
            "range", "maxlen", got=str(maxlen), takes=f"at least {made.size}, the number of elements"
        )  # fmt: skip
    return made


def _even(xp: Any) -> Callable[..., Any]:
    def make(*, start: float, stop: float, size: int, dtype: DType) -> Any:
        return xp.linspace(start, stop, size, dtype=np.float64)

    return make


_linspace = generator(
    "linspace", _even(jnp), _even(np), lambda *, start, stop, size: (size,),
    lambda: [
        Sample((), {"start": 0.0, "stop": 1.0, "size": 5, "dtype": dt.float32}),
        Sample((), {"start": 3.0, "stop": -1.5, "size": 4, "dtype": dt.float64}),
        Sample((), {"start": 2.0, "stop": 3.0, "size": 1, "dtype": dt.float32}),
        Sample((), {"start": 2.0, "stop": 3.0, "size": 0, "dtype": dt.float32}),
        Sample((), {"start": 0.0, "stop": 8.0, "size": 5, "dtype": dt.int64}),
    ],
)  # fmt: skip


def _steps(steps: Any, where: str) -> int:
    size = as_int(steps.item() if isinstance(steps, Tensor) else steps, where, "steps")
    if size < 0:
        raise ArgumentValueError(where, "steps", got=str(size), takes="a number of elements of at least 0")
    return size


def _spaced(where: str, start: Any, end: Any, steps: Any, dtype: DType) -> Tensor:
    size = _steps(steps, where)
    if not isinstance(start, Tensor) and not isinstance(end, Tensor):
        (first, _), (last, _) = _number(start, where, "start"), _number(end, where, "end")
        return _linspace(start=float(first), stop=float(last), size=size, dtype=dtype)
    from mycelia.ops.arithmetic import lerp

    a, b = floats(where, start, end, names=("start", "end"))
    for x, name in ((a, "start"), (b, "end")):
        if x.size != 1:
            raise ShapeError(where, name, got=f"shape {x.shape}", takes="one element")
    weight = _linspace(start=0.0, stop=1.0, size=size, dtype=a.dtype)
    return cast(lerp(reshape(a, ()), reshape(b, ()), weight), dtype)


def _ends_dtype(start: Any, end: Any, where: str) -> DType:
    found = [x.dtype for x in (start, end) if isinstance(x, Tensor) and x.dtype.is_inexact]
    return result_type(found, where) if found else dt.float32


@operator()
def linspace(start: Any, end: Any, steps: Any) -> Tensor:
    """Evenly spaced numbers, both ends included.

    Args:
        start: first number, or a tensor of one element.
        end: last number, or a tensor of one element.
        steps: how many.

    Returns:
        A vector of float32, or of the dtype of the tensors given.

    >>> import mycelia as ms
    >>> print(ms.ops.linspace(0, 1, 5))
    [0.   0.25 0.5  0.75 1.  ]
    """
    return _spaced("linspace", start, end, steps, _ends_dtype(start, end, "linspace"))


@operator()
def linspace_ext(start: Any, end: Any, steps: Any, *, dtype: Any = None) -> Tensor:
    """Evenly spaced numbers, both ends included, in a dtype of choice (see :func:`linspace`).

    >>> import mycelia as ms
    >>> ms.ops.linspace_ext(0, 1, 5, dtype=ms.float64).dtype
    mycelia.float64
    """
    return _spaced("linspace", start, end, steps, dtype_or(dtype, _ends_dtype(start, end, "linspace"), "linspace"))


@operator()
def logspace(start: Any, end: Any, steps: Any, base: Any = 10, *, dtype: Any = dt.float32) -> Tensor:
    """Powers of ``base`` with evenly spaced exponents, both ends included.

    Args:
        start: first exponent, a number or a tensor of one element.
        end: last exponent.
        steps: how many.
        base: a number.
        dtype: float32 by default.

    >>> import mycelia as ms
    >>> print(ms.ops.logspace(0, 3, 4, base=2))
    [1. 2. 4. 8.]
    """
    from mycelia.ops.power import pow

    return cast(pow(base, _spaced("logspace", start, end, steps, dt.float64)), dtype_or(dtype, dt.float32, "logspace"))


@operator()
def vander(x: Any, N: int | None = None) -> Tensor:
    """The Vandermonde matrix: column j holds the elements of ``x`` to the power ``N - 1 - j``.

    Args:
        x: a vector.
        N: number of columns; as many as elements by default.

    Raises:
        ShapeError: ``x`` is not a vector.

    >>> import mycelia as ms
    >>> print(ms.ops.vander(ms.Tensor([1, 2, 3])))
    [[1 1 1]
     [4 2 1]
     [9 3 1]]
    """
    from mycelia.ops.power import pow

    t = as_tensor(x, "vander", "x")
    if t.ndim != 1:
        raise ShapeError("vander", "x", got=f"shape {t.shape}", takes="a vector")
    columns = t.size if N is None else as_int(N, "vander", "N")
    if columns < 0:
        raise ArgumentValueError("vander", "N", got=str(columns), takes="a number of columns of at least 0")
    powers = _arange(start=columns - 1, step=-1, size=columns, dtype=t.dtype)
    return pow(reshape(t, (t.size, 1)), powers)
