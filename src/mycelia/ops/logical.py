"""Logic on truth values, and the classes of floating-point numbers: NaN, infinite, finite, negative.

Anything but zero is true. ``~`` on a Tensor is ``logical_not``, also for integers, as MindSpore has it;
``bitwise_not`` and ``invert`` flip bits.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ops.calls import unary
from mycelia.ops.comparison import eq
from mycelia.ops.declare import Bad, Sample, elementwise
from mycelia.ops.operands import as_tensor, cast
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_T = np.array([[True, False, True], [False, False, True]])
_SPECIAL = np.array([1.5, -0.0, 0.0, np.inf, -np.inf, np.nan, -np.nan])


def _pairs() -> list[Any]:
    return [
        Sample((_T, _T[::-1])), Sample((_T, _T[0])), Sample((np.array(True), _T)),
        Sample((np.zeros((0, 3), bool), _T[0])),
        Bad((_T, np.zeros(2, bool)), {}, ShapeError, "broadcasts"),
        Bad((np.array([1]), np.array([1])), {}, DTypeError, "Int64"),
    ]  # fmt: skip


def _logic(name: str, lower: Any, onnx: str) -> Primitive:
    return elementwise(
        name, lower, arity=2, dtypes=(dt.bool_,), differentiable=False, onnx=onnx, samples=_pairs
    )  # fmt: skip


logical_and_p = _logic("logical_and", jnp.logical_and, "And")
logical_or_p = _logic("logical_or", jnp.logical_or, "Or")
logical_xor_p = _logic("logical_xor", jnp.logical_xor, "Xor")
logical_not_p = elementwise(
    "logical_not", jnp.logical_not, dtypes=(dt.bool_,), differentiable=False, onnx="Not",
    samples=lambda: [
        Sample((_T,)), Sample((np.zeros((2, 0), bool),)), Bad((np.array([1]),), {}, DTypeError, "Int64"),
    ],
)  # fmt: skip


def _class(name: str, lower: Any, onnx: str | None = None, complex: bool = True) -> Primitive:
    return elementwise(
        name, lower, dtypes=dt.FLOATS + dt.COMPLEX if complex else dt.FLOATS, result=dt.bool_, differentiable=False,
        onnx=onnx,
        samples=lambda: [
            Sample((_SPECIAL,)), Sample((np.array(np.nan),)), Sample((np.zeros((2, 0)),)),
            Bad((np.array([1]),), {}, DTypeError, "Int64"),
        ],
    )  # fmt: skip


isnan_p = _class("isnan", jnp.isnan, "IsNaN")
isinf_p = _class("isinf", jnp.isinf, "IsInf")
isfinite_p = _class("isfinite", jnp.isfinite)
isposinf_p = _class("isposinf", lambda x: x == np.inf, complex=False)
isneginf_p = _class("isneginf", lambda x: x == -np.inf, complex=False)
signbit_p = elementwise(
    "signbit", jnp.signbit, dtypes=dt.REALS, result=dt.bool_, differentiable=False,
    samples=lambda: [
        Sample((_SPECIAL[:5],)), Sample((np.array([-3, 0, 2]),), dtypes=False), Sample((np.zeros((2, 0)),)),
        Bad((np.array([1j]),), {}, DTypeError, "Complex128"),
    ],
)  # fmt: skip


def _truth(value: Any, where: str, argument: str) -> Tensor:
    return cast(as_tensor(value, where, argument), dt.bool_)


@operator(methods=True)
def logical_and(input: Any, other: Any) -> Tensor:
    """Where both are true, with broadcasting; anything but zero is true.

    Args:
        input: a tensor or number of any dtype.
        other: a tensor or number that broadcasts with it.

    Returns:
        A bool tensor.

    >>> import mycelia as ms
    >>> print(ms.ops.logical_and(ms.Tensor([1, 0]), ms.Tensor([True, True])))
    [ True False]
    """
    return apply(  # type: ignore[no-any-return]
        logical_and_p, _truth(input, "logical_and", "input"), _truth(other, "logical_and", "other")
    )


@operator(methods=True)
def logical_or(input: Any, other: Any) -> Tensor:
    """Where at least one is true, with broadcasting; anything but zero is true.

    >>> import mycelia as ms
    >>> print(ms.ops.logical_or(ms.Tensor([1, 0]), ms.Tensor([False, False])))
    [ True False]
    """
    return apply(  # type: ignore[no-any-return]
        logical_or_p, _truth(input, "logical_or", "input"), _truth(other, "logical_or", "other")
    )


@operator(methods=True)
def logical_xor(input: Any, other: Any) -> Tensor:
    """Where exactly one is true, with broadcasting; anything but zero is true.

    >>> import mycelia as ms
    >>> print(ms.ops.logical_xor(ms.Tensor([1, 0]), ms.Tensor([True, True])))
    [False  True]
    """
    return apply(  # type: ignore[no-any-return]
        logical_xor_p, _truth(input, "logical_xor", "input"), _truth(other, "logical_xor", "other")
    )


@operator(methods=("logical_not", "__invert__"))
def logical_not(input: Any) -> Tensor:
    """Where an element is zero or False.

    >>> import mycelia as ms
    >>> print(ms.ops.logical_not(ms.Tensor([1, 0])))
    [False  True]
    """
    return apply(logical_not_p, _truth(input, "logical_not", "input"))  # type: ignore[no-any-return]


def _classify(primitive: Primitive, where: str, value: Any, whole: bool) -> Tensor:
    """Apply a float class test; every integer and bool answers ``whole``."""
    from mycelia.ops.creation import full_like

    x = as_tensor(value, where)
    return unary(primitive, where, x) if x.dtype.is_inexact else full_like(x, whole, dtype=dt.bool_)


@operator(methods=True, aliases=("isnan_ext",))
def isnan(input: Any) -> Tensor:
    """Where an element is NaN (either part, of a complex number).

    >>> import mycelia as ms
    >>> print(ms.ops.isnan(ms.Tensor([1.0, float("nan")])))
    [False  True]
    """
    return _classify(isnan_p, "isnan", input, False)


@operator(methods=True)
def isinf(input: Any) -> Tensor:
    """Where an element is infinite (either part, of a complex number).

    >>> import mycelia as ms
    >>> print(ms.ops.isinf(ms.Tensor([1.0, -float("inf")])))
    [False  True]
    """
    return _classify(isinf_p, "isinf", input, False)


@operator(methods=True)
def isfinite(input: Any) -> Tensor:
    """Where an element is neither NaN nor infinite.

    >>> import mycelia as ms
    >>> print(ms.ops.isfinite(ms.Tensor([1.0, float("nan")])))
    [ True False]
    """
    return _classify(isfinite_p, "isfinite", input, True)


@operator(methods=True)
def isposinf(input: Any) -> Tensor:
    """Where an element is plus infinity.

    >>> import mycelia as ms
    >>> print(ms.ops.isposinf(ms.Tensor([float("inf"), -float("inf")])))
    [ True False]
    """
    return _classify(isposinf_p, "isposinf", input, False)


@operator(methods=True)
def isneginf(input: Any) -> Tensor:
    """Where an element is minus infinity.

    >>> import mycelia as ms
    >>> print(ms.ops.isneginf(ms.Tensor([float("inf"), -float("inf")])))
    [False  True]
    """
    return _classify(isneginf_p, "isneginf", input, False)


@operator(methods=True)
def signbit(input: Any) -> Tensor:
    """Where an element carries a minus sign, -0.0 included.

    >>> import mycelia as ms
    >>> print(ms.ops.signbit(ms.Tensor([-0.0, 1.0])))
    [ True False]
    """
    from mycelia.ops.creation import full_like

    x = as_tensor(input, "signbit")
    if x.dtype.kind == "b":
        return full_like(x, False)
    return unary(signbit_p, "signbit", x)


@operator(methods=True)
def isreal(input: Any) -> Tensor:
    """Where an element has no imaginary part.

    >>> import mycelia as ms
    >>> print(ms.ops.isreal(ms.Tensor([1 + 0j, 1j])))
    [ True False]
    """
    from mycelia.ops.complex_numbers import imag
    from mycelia.ops.creation import full_like

    x = as_tensor(input, "isreal")
    return eq(imag(x), 0) if x.dtype.is_complex else full_like(x, True, dtype=dt.bool_)


@operator()
def is_nonzero(input: Any) -> bool:
    """Whether the only element of a tensor is not zero, as a Python bool.

    Raises:
        ArgumentValueError: the tensor has not exactly one element.

    >>> import mycelia as ms
    >>> ms.ops.is_nonzero(ms.Tensor([0.0]))
    False
    """
    x = as_tensor(input, "is_nonzero")
    if x.size != 1:
        raise ArgumentValueError("is_nonzero", "input", got=f"shape {x.shape}", takes="exactly one element")
    return bool(x)


@operator()
def is_tensor(obj: Any) -> bool:
    """Whether an object is a Tensor.

    >>> import mycelia as ms
    >>> ms.ops.is_tensor([1, 2])
    False
    """
    return isinstance(obj, Tensor)
