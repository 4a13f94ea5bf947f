"""Complex numbers: their parts, angles, and how to make them.

Gradients follow the conjugate convention: the gradient of a real loss by ``z = x + iy`` is
``dL/dx + i dL/dy``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType
from mycelia.core.errors import ArgumentTypeError, DTypeError, ShapeError
from mycelia.ops.arithmetic import mul
from mycelia.ops.calls import as_float, floats
from mycelia.ops.comparison import lt
from mycelia.ops.declare import Bad, Sample, elementwise
from mycelia.ops.elementary import atan2, cos, sin
from mycelia.ops.operands import as_tensor
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_Z = np.array([[1.5 - 2.0j, -0.25 + 0.5j], [3.0j, -1.0 + 0j]])


def _part(dtype: DType) -> DType:
    return dt.float32 if dtype is dt.complex64 else dt.float64


def _whole(dtype: DType) -> DType:
    return dt.complex64 if dtype is dt.float32 else dt.complex128


def _samples() -> list[Any]:
    return [
        Sample((_Z,)), Sample((np.array(1 - 1j),)), Sample((np.zeros((2, 0), np.complex128),)),
        Bad((np.array([1.0]),), {}, DTypeError, "Complex64"),
    ]  # fmt: skip


def _from_parts(re: Any, im: Any) -> Tensor:
    return complex(re, im)


real_p = elementwise(
    "real", lax.real, dtypes=dt.COMPLEX, result=_part, samples=_samples, vjp=lambda ct, x, out: _from_parts(ct, 0.0)
)
imag_p = elementwise(
    "imag", lax.imag, dtypes=dt.COMPLEX, result=_part, samples=_samples, vjp=lambda ct, x, out: _from_parts(0.0, ct)
)
complex_p = elementwise(
    "complex", lax.complex, arity=2, dtypes=(dt.float32, dt.float64), result=_whole, names=("real", "imag"),
    vjp=lambda ct, re, im, out: (lambda: apply(real_p, ct), lambda: apply(imag_p, ct)),
    samples=lambda: [
        Sample((_Z.real, _Z.imag)), Sample((_Z.real, np.array(2.0))), Sample((np.zeros((0, 3)), np.zeros(3))),
        Bad((_Z.real, np.zeros(3)), {}, ShapeError, "broadcasts"),
        Bad((np.array([1]), np.array([1])), {}, DTypeError, "Int64"),
    ],
)  # fmt: skip


@operator(methods=True)
def real(input: Any) -> Tensor:
    """The real part; a real tensor is its own.

    >>> import mycelia as ms
    >>> print(ms.ops.real(ms.Tensor([1 + 2j])))
    [1.]
    """
    x = as_tensor(input, "real")
    return apply(real_p, x) if x.dtype.is_complex else x


@operator(methods=True)
def imag(input: Any) -> Tensor:
    """The imaginary part; zeros for a real tensor.

    >>> import mycelia as ms
    >>> print(ms.ops.imag(ms.Tensor([1 + 2j])))
    [2.]
    """
    from mycelia.ops.creation import zeros_like

    x = as_tensor(input, "imag")
    return apply(imag_p, x) if x.dtype.is_complex else zeros_like(x)


@operator()
def complex(real: Any, imag: Any) -> Tensor:
    """The complex tensor of two real parts, with broadcasting.

    Args:
        real: the real part, a float32 or float64 tensor or a number; integers become float32.
        imag: the imaginary part.

    Returns:
        A complex64 tensor, or complex128 if one of them is float64.

    Raises:
        DTypeError: a part is complex, or of half precision.

    >>> import mycelia as ms
    >>> print(ms.ops.complex(ms.Tensor([1.0]), ms.Tensor([2.0])))
    [1.+2.j]
    """
    return apply(complex_p, *floats("complex", real, imag, names=("real", "imag")))  # type: ignore[no-any-return]


@operator()
def polar(abs: Any, angle: Any) -> Tensor:
    """The complex tensor of magnitudes and angles, ``abs * (cos(angle) + i sin(angle))``.

    Args:
        abs: magnitudes, a float32 or float64 tensor.
        angle: angles in radians.

    >>> import mycelia as ms
    >>> print(ms.ops.polar(ms.Tensor([2.0]), ms.Tensor([0.0])))
    [2.+0.j]
    """
    size, turn = floats("polar", abs, angle, names=("abs", "angle"))
    return complex(mul(size, cos(turn)), mul(size, sin(turn)))


@operator(methods=True)
def angle(input: Any) -> Tensor:
    """The angle of each complex number in radians, from -pi to pi; of a real number 0 or pi, NaN of NaN.

    >>> import mycelia as ms
    >>> f"{ms.ops.angle(ms.Tensor([-1.0])).item():.4f}"
    '3.1416'
    """
    from mycelia.ops.logical import isnan
    from mycelia.ops.selection import where

    x = as_float(input, "angle")
    if x.dtype.is_complex:
        return atan2(imag(x), real(x))
    return where(isnan(x), x, where(lt(x, 0), math.pi, 0.0))  # type: ignore[no-any-return]


@operator()
def view_as_real(input: Any) -> Tensor:
    """A real tensor with a last axis of length 2: real and imaginary part.

    Raises:
        ArgumentTypeError: the tensor is not complex.

    >>> import mycelia as ms
    >>> print(ms.ops.view_as_real(ms.Tensor([1 + 2j])))
    [[1. 2.]]
    """
    from mycelia.ops.joining import stack

    x = as_tensor(input, "view_as_real")
    if not x.dtype.is_complex:
        raise DTypeError("view_as_real", "input", got=f"dtype {x.dtype}", takes="Complex64 or Complex128")
    return stack((real(x), imag(x)), -1)  # type: ignore[no-any-return]


@operator(methods=True)
def is_complex(input: Any) -> bool:
    """Whether the dtype of a tensor is complex.

    >>> import mycelia as ms
    >>> ms.ops.is_complex(ms.Tensor([1j]))
    True
    """
    return _tensor(input, "is_complex").dtype.is_complex


@operator(methods=True)
def is_floating_point(input: Any) -> bool:
    """Whether the dtype of a tensor is a floating one.

    >>> import mycelia as ms
    >>> ms.ops.is_floating_point(ms.Tensor([1]))
    False
    """
    return _tensor(input, "is_floating_point").dtype.is_floating


def _tensor(value: Any, where: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise ArgumentTypeError(where, "input", got=type(value).__name__, takes="a Tensor")
    return value


def _is_signed(self: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return self.dtype.is_signed


attach("is_signed", _is_signed)
