"""Comparisons of two tensors, element by element, giving bools; and whether two tensors are close or equal.

``x == y`` on a Tensor is elementwise, too. Compared with what is no number (None, a string, a list) it is
False as a whole, ``!=`` True, and an order is refused. A Python number that no value of an integer dtype
equals is compared by its value, not after wrapping around.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ops.calls import binary, floats
from mycelia.ops.declare import Bad, Sample, elementwise
from mycelia.ops.operands import NUMBER, as_tensor, cast, same_dtype
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_A = np.array([[-2.5, -1.0, 0.5], [1.0, 2.0, 3.5]])
_B = np.array([[-2.0, -1.0, 1.5], [0.5, 2.0, -3.5]])
_REAL = (dt.bool_, *dt.REALS)


def _samples() -> list[Any]:
    special = np.array([np.nan, np.inf, -np.inf, 0.0])
    return [
        Sample((_A, _B)), Sample((_A, _B[0])), Sample((np.array(0.5), _B)), Sample((np.zeros((0, 3)), _B[0])),
        Sample((special[:, None], special)), Bad((_A, np.zeros(2)), {}, ShapeError, "broadcasts"),
    ]  # fmt: skip


def _ordered() -> list[Any]:
    return [*_samples(), Bad((_A + 0j, _A + 0j), {}, DTypeError, "Complex128")]


def _comparison(name: str, lower: Any, onnx: str | None, ordered: bool = True) -> Primitive:
    return elementwise(
        name, lower, arity=2, dtypes=_REAL if ordered else dt.ALL, result=dt.bool_, differentiable=False, onnx=onnx,
        samples=_ordered if ordered else _samples,
    )  # fmt: skip


equal_p = _comparison("equal", jnp.equal, "Equal", ordered=False)
not_equal_p = _comparison("not_equal", jnp.not_equal, None, ordered=False)
less_p = _comparison("less", jnp.less, "Less")
less_equal_p = _comparison("less_equal", jnp.less_equal, "LessOrEqual")
greater_p = _comparison("greater", jnp.greater, "Greater")
greater_equal_p = _comparison("greater_equal", jnp.greater_equal, "GreaterOrEqual")


def _compare(primitive: Primitive, where: str, a: Any, b: Any) -> Tensor:
    if type(b) is int and isinstance(a, Tensor) and a.dtype.is_integer:
        b = _within(b, a)
    elif type(a) is int and isinstance(b, Tensor) and b.dtype.is_integer:
        a = _within(a, b)
    return binary(primitive, where, a, b)


def _within(number: int, x: Tensor) -> float:
    """The number, or the infinity on its side where no value of the tensor's dtype reaches it."""
    bounds = np.iinfo(x.dtype.np)
    return number if bounds.min <= number <= bounds.max else np.inf if number > 0 else -np.inf


@operator(aliases=("equal",), methods=("eq", "equal"))
def eq(input: Any, other: Any) -> Tensor:
    """Where two tensors are equal, with broadcasting; NaN equals nothing.

    Args:
        input: a tensor or number.
        other: a tensor or number that broadcasts with it.

    Returns:
        A bool tensor of the broadcast shape.

    >>> import mycelia as ms
    >>> print(ms.ops.eq(ms.Tensor([1, 2, 3]), 2))
    [False  True False]
    """
    return _compare(equal_p, "eq", input, other)


@operator(aliases=("not_equal",), methods=("ne", "not_equal"))
def ne(input: Any, other: Any) -> Tensor:
    """Where two tensors differ, with broadcasting; NaN differs from everything.

    >>> import mycelia as ms
    >>> print(ms.ops.ne(ms.Tensor([1, 2, 3]), 2))
    [ True False  True]
    """
    return _compare(not_equal_p, "ne", input, other)


@operator(aliases=("less", "tensor_lt"), methods=("lt", "less"))
def lt(input: Any, other: Any) -> Tensor:
    """Where ``input`` is smaller than ``other``, with broadcasting.

    Raises:
        DTypeError: complex numbers, which have no order.

    >>> import mycelia as ms
    >>> print(ms.ops.lt(ms.Tensor([1, 2, 3]), 2))
    [ True False False]
    """
    return _compare(less_p, "lt", input, other)


@operator(aliases=("less_equal", "tensor_le"), methods=("le", "less_equal"))
def le(input: Any, other: Any) -> Tensor:
    """Where ``input`` is at most ``other``, with broadcasting.

    >>> import mycelia as ms
    >>> print(ms.ops.le(ms.Tensor([1, 2, 3]), 2))
    [ True  True False]
    """
    return _compare(less_equal_p, "le", input, other)


@operator(aliases=("greater", "tensor_gt"), methods=("gt", "greater"))
def gt(input: Any, other: Any) -> Tensor:
    """Where ``input`` is larger than ``other``, with broadcasting.

    >>> import mycelia as ms
    >>> print(ms.ops.gt(ms.Tensor([1, 2, 3]), 2))
    [False False  True]
    """
    return _compare(greater_p, "gt", input, other)


@operator(aliases=("greater_equal", "tensor_ge"), methods=("ge", "greater_equal"))
def ge(input: Any, other: Any) -> Tensor:
    """Where ``input`` is at least ``other``, with broadcasting.

    >>> import mycelia as ms
    >>> print(ms.ops.ge(ms.Tensor([1, 2, 3]), 2))
    [False  True  True]
    """
    return _compare(greater_equal_p, "ge", input, other)


def _isclose(a: Any, b: Any, *, rtol: float, atol: float, equal_nan: bool) -> Any:
    if a.dtype.itemsize == 2:
        a, b = a.astype(np.float32), b.astype(np.float32)
    return jnp.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


isclose_p = elementwise(
    "isclose", _isclose, arity=2, dtypes=dt.FLOATS + dt.COMPLEX, result=dt.bool_, differentiable=False,
    samples=lambda: [
        Sample((np.array([1.0, 1.0, 0.0]), np.array([1.001, 1.1, 0.04])),
               {"rtol": 0.01, "atol": 0.05, "equal_nan": False}),
        *[
            Sample((np.array([np.nan, np.inf, np.inf]), np.array([np.nan, np.inf, -np.inf])),
                   {"rtol": 1e-5, "atol": 1e-8, "equal_nan": e})
            for e in (False, True)
        ],
        Sample((np.zeros((0, 3)), np.zeros(3)), {"rtol": 1e-5, "atol": 1e-8, "equal_nan": False}),
        Bad((_A, np.zeros(2)), {"rtol": 1e-5, "atol": 1e-8, "equal_nan": False}, ShapeError, "broadcasts"),
    ],
)  # fmt: skip


@operator(methods=True)
def isclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Where ``abs(input - other) <= atol + rtol * abs(other)``; infinities are close to their equals.

    Args:
        input: a tensor.
        other: a tensor that broadcasts with it.
        rtol: relative tolerance, not negative.
        atol: absolute tolerance, not negative.
        equal_nan: whether NaN is close to NaN.

    Raises:
        ArgumentValueError: a negative tolerance.

    >>> import mycelia as ms
    >>> print(ms.ops.isclose(ms.Tensor([1.0, 2.0]), ms.Tensor([1.001, 2.5]), rtol=0.01))
    [ True False]
    """
    return _close("isclose", input, other, rtol, atol, equal_nan)


def _close(where: str, input: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not isinstance(value, (int, float)):
            raise ArgumentTypeError(where, name, got=type(value).__name__, takes="a number")
        if not value >= 0:
            raise ArgumentValueError(where, name, got=str(value), takes="a number of at least 0")
    a, b = same_dtype(where, input, other)
    if not a.dtype.is_inexact:
        a, b = cast(a, dt.float64), cast(b, dt.float64)
    result: Tensor = apply(isclose_p, a, b, rtol=float(rtol), atol=float(atol), equal_nan=bool(equal_nan))
    return result


@operator(methods=True)
def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close (see :func:`isclose`), as a Python bool.

    >>> import mycelia as ms
    >>> ms.ops.allclose(ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, 2.0]))
    True
    """
    return bool(_close("allclose", input, other, rtol, atol, equal_nan).asnumpy().all())


@operator()
def equal_ext(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape and the same elements, as a Python bool.

    >>> import mycelia as ms
    >>> ms.ops.equal_ext(ms.Tensor([1, 2]), ms.Tensor([1, 2]))
    True
    """
    a, b = as_tensor(input, "equal"), as_tensor(other, "equal", "other")
    return a.shape == b.shape and bool(eq(a, b).asnumpy().all())


@operator(methods=True)
def approximate_equal(x: Any, y: Any, tolerance: float = 1e-05) -> Tensor:
    """Where ``abs(x - y) < tolerance``.

    Raises:
        ArgumentTypeError: ``tolerance`` is not a number.

    >>> import mycelia as ms
    >>> print(ms.ops.approximate_equal(ms.Tensor([1.0, 2.0]), ms.Tensor([1.05, 2.5]), 0.1))
    [ True False]
    """
    from mycelia.ops.rounding import abs as magnitude

    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)):
        raise ArgumentTypeError("approximate_equal", "tolerance", got=type(tolerance).__name__, takes="a number")
    a, b = floats("approximate_equal", x, y, names=("x", "y"))
    return lt(magnitude(a - b), float(tolerance))


def _comparable(other: Any) -> bool:
    return isinstance(other, (Tensor, np.ndarray, np.generic, *NUMBER))


def _equals(self: Tensor, other: Any) -> Any:
    return eq(self, other) if _comparable(other) else False


def _differs(self: Tensor, other: Any) -> Any:
    return ne(self, other) if _comparable(other) else True


def _order(fn: Any) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        return fn(self, other) if _comparable(other) else NotImplemented

    return method


def _contains(self: Tensor, element: Any) -> bool:
    return _comparable(element) and bool(eq(self, element).asnumpy().any())


def _attach_operators() -> None:
    attach("__contains__", _contains)
    attach("__eq__", _equals)
    attach("__ne__", _differs)
    for fn in (lt, le, gt, ge):
        attach(f"__{fn.__name__}__", _order(fn))


_attach_operators()
