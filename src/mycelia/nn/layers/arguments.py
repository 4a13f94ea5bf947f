"""Checks of what layers are made with, and of what they are called with.

Each refuses with an error that names the layer, the argument, what it got and what it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.nn.initializer import Initializer, initializer
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.tensor import check_bool

#: Refuse anything but True and False.
flag = check_bool


def positive(where: str, argument: str, value: Any, minimum: int = 1) -> int:
    """An int of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="an int")
    if value < minimum:
        raise ArgumentValueError(where, argument, got=str(value), takes=f"an int of at least {minimum}")
    return value


def number(where: str, argument: str, value: Any) -> float:
    """A Python number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="a number")
    return value


def fraction(where: str, argument: str, value: Any, *, one: bool = True) -> float:
    """A number from 0 to 1, or below 1."""
    number(where, argument, value)
    if not 0 <= value <= 1 or (value == 1 and not one):
        takes = "a number from 0 to 1" if one else "a number from 0 to below 1"
        raise ArgumentValueError(where, argument, got=str(value), takes=takes)
    return float(value)


def choice(where: str, argument: str, value: Any, allowed: Sequence[str]) -> str:
    """One of a few strings."""
    if not isinstance(value, str):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="a string")
    if value not in allowed:
        raise ArgumentValueError(where, argument, got=repr(value), takes=", ".join(map(repr, allowed)))
    return value


def per_axis(where: str, argument: str, value: Any, n: int, minimum: int = 1) -> tuple[int, ...]:
    """``n`` ints of an int or of a tuple or list of ``n`` ints."""
    if isinstance(value, (tuple, list)):
        if len(value) != n:
            raise ArgumentTypeError(where, argument, got=str(value), takes=f"an int or {n} ints")
        return tuple(positive(where, argument, v, minimum) for v in value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes=f"an int or {n} ints")
    return (positive(where, argument, value, minimum),) * n


def floating_dtype(where: str, value: Any) -> DType:
    """The dtype of a layer's parameters."""
    dtype = dt.as_dtype(dt.float32 if value is None else value, where, "dtype")
    if not dtype.is_floating:
        raise ArgumentTypeError(where, "dtype", got=str(dtype), takes="a floating dtype")
    return dtype


def made(where: str, argument: str, init: Any, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """The initial value of a parameter: of a name, Initializer, number, or a tensor of that shape."""
    if isinstance(init, Tensor) and init.shape != shape:
        raise ShapeError(where, argument, got=f"a tensor of shape {init.shape}", takes=f"shape {shape}")
    if not isinstance(init, (Tensor, str, int, float, Initializer)):
        raise ArgumentTypeError(
            where, argument, got=f"{init!r}"[:80], takes="a name, an Initializer, a number or a Tensor"
        )
    value = initializer(init, shape, dtype)
    return value if value.dtype is dtype else value.astype(dtype)


def parameter(
    where: str, argument: str, init: Any, shape: tuple[int, ...], dtype: DType, name: str, requires_grad: bool = True
) -> Parameter:
    """A parameter with that initial value."""
    return Parameter(made(where, argument, init, shape, dtype), name=name, requires_grad=requires_grad)


def tensor(where: str, argument: str, value: Any) -> Tensor:
    """The argument of a call as a Tensor."""
    if isinstance(value, Tensor):
        return value
    from mycelia.ops.operands import as_tensor

    return as_tensor(value, where, argument)


def channels_of(where: str, argument: str, x: Any, axis: int, wanted: int, what: str = "channels") -> Tensor:
    """``x``, if it has ``wanted`` elements on ``axis``."""
    t = x if isinstance(x, Tensor) else tensor(where, argument, x)
    shape = t.shape
    rank = len(shape)
    if not -rank <= axis < rank or shape[axis] != wanted:
        raise ShapeError(where, argument, got=f"shape {shape}", takes=f"{wanted} {what} on axis {axis}")
    return t


def axes_of_input(where: str, argument: str, x: Any, ranks: Sequence[int], layout: str) -> Tensor:
    """``x``, if it has one of these numbers of axes; ``layout`` says what they are."""
    t = x if isinstance(x, Tensor) else tensor(where, argument, x)
    if len(t.shape) not in ranks:
        raise ShapeError(
            where, argument, got=f"shape {t.shape}", takes=f"{' or '.join(map(str, ranks))} axes, {layout}"
        )
    return t


def floating_input(where: str, argument: str, x: Any) -> Tensor:
    """``x``, if it is of a floating dtype."""
    t = x if isinstance(x, Tensor) else tensor(where, argument, x)
    if not t.dtype.is_floating:
        raise DTypeError(where, argument, got=f"dtype {t.dtype}", takes="a floating dtype")
    return t


def function(where: str, argument: str, value: Any, takes: str) -> Callable[..., Any]:
    """Something callable that is not a class."""
    if isinstance(value, type) or not callable(value):
        hint = f"make one: {value.__name__}()" if isinstance(value, type) else None
        raise ArgumentTypeError(where, argument, got=f"{value!r}"[:80], takes=takes, hint=hint)
    return value


def ordered(where: str, argument: str, low: float, value: float) -> None:
    """Refuse ``value`` below ``low``."""
    if value < low:
        raise ArgumentValueError(where, argument, got=str(value), takes=f"a number of at least {low}")


def nonzero(where: str, argument: str, value: Any) -> float:
    """A number other than 0."""
    if number(where, argument, value) == 0:
        raise ArgumentValueError(where, argument, got=str(value), takes="a number other than 0")
    return float(value)


def shape_error(where: str, argument: str, t: Tensor, takes: str) -> ShapeError:
    """An error about the shape of ``t``."""
    return ShapeError(where, argument, got=f"shape {t.shape}", takes=takes)


def value_error(where: str, argument: str, got: str, takes: str) -> ArgumentValueError:
    """An error about a value."""
    return ArgumentValueError(where, argument, got=got, takes=takes)


def type_error(where: str, argument: str, value: Any, takes: str) -> ArgumentTypeError:
    """An error about the type of a value."""
    return ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})"[:80], takes=takes)
