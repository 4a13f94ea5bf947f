"""Elementary functions: exponentials, logarithms, roots, trigonometric and hyperbolic functions.

Integers and bools become float32; complex numbers take the principal branch. ``log2`` is exact at powers of
two and ``exp2`` at whole numbers, so ``int(log2(8192))`` is 13.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ops.arithmetic import mul
from mycelia.ops.calls import as_float, attach_in_place, binary_float, unary, unary_float
from mycelia.ops.declare import Bad, Sample, conj as _conj, elementwise
from mycelia.ops.keywords import renaming
from mycelia.ops.operands import as_tensor
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_SPREAD = np.array([[-2.5, -1.0, -0.5], [0.25, 1.0, 3.0]])
_POSITIVE = np.array([[0.25, 0.5, 1.0], [1.5, 2.0, 8.0]])
_INSIDE = np.array([[-0.9, -0.5, 0.0], [0.25, 0.5, 0.75]])
_SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])


def _on(points: np.ndarray[Any, Any], special: Sequence[float] = tuple(_SPECIAL)) -> Callable[[], list[Any]]:
    """Samples of a function of one real or complex number."""
    return lambda: [
        Sample((points,)), Sample((points[0, 0],)), Sample((np.zeros((2, 0)),)),
        Sample((points + 0.25j * points[::-1] + 0.1j,), dtypes=False),
        Sample((np.array(special),), grad=False, dtypes=False),
        Bad((np.array([1, 2]),), {}, DTypeError, "Int64"),
    ]  # fmt: skip


def _log2(x: Any) -> Any:
    if jnp.iscomplexobj(x):
        return lax.log(x) / math.log(2)
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    bits, mantissa = (np.uint32, 23) if wide.dtype.itemsize == 4 else (np.uint64, 52)
    value = (lax.log(wide) / math.log(2)).astype(wide.dtype)
    is_power = (lax.bitcast_convert_type(wide, bits) & bits(2**mantissa - 1)) == 0
    return jnp.where(is_power, lax.round(value, lax.RoundingMethod.TO_NEAREST_EVEN), value).astype(x.dtype)


def _exp2(x: Any) -> Any:
    return lax.exp(x * math.log(2)) if jnp.iscomplexobj(x) else lax.pow(jnp.full_like(x, 2), x)


def _log10(x: Any) -> Any:
    return lax.log(x) / math.log(10) if jnp.iscomplexobj(x) else jnp.log10(x)


exp_p = elementwise("exp", lax.exp, onnx="Exp", samples=_on(_SPREAD), vjp=lambda ct, x, out: ct * _conj(out))
exp2_p = elementwise(
    "exp2", _exp2, samples=_on(_SPREAD), vjp=lambda ct, x, out: ct * _conj(out * math.log(2))
)  # fmt: skip
expm1_p = elementwise("expm1", lax.expm1, samples=_on(_SPREAD), vjp=lambda ct, x, out: ct * _conj(out + 1))
log_p = elementwise("log", lax.log, onnx="Log", samples=_on(_POSITIVE), vjp=lambda ct, x, out: ct / _conj(x))
log1p_p = elementwise("log1p", lax.log1p, samples=_on(_INSIDE), vjp=lambda ct, x, out: ct / _conj(x + 1))
log2_p = elementwise(
    "log2", _log2, samples=_on(_POSITIVE), vjp=lambda ct, x, out: ct / _conj(x * math.log(2))
)  # fmt: skip
log10_p = elementwise(
    "log10", _log10, samples=_on(_POSITIVE), vjp=lambda ct, x, out: ct / _conj(x * math.log(10))
)  # fmt: skip
sqrt_p = elementwise(
    "sqrt", lax.sqrt, onnx="Sqrt", samples=_on(_POSITIVE), vjp=lambda ct, x, out: ct / _conj(out * 2)
)  # fmt: skip
rsqrt_p: Primitive = elementwise(
    "rsqrt", lax.rsqrt, samples=_on(_POSITIVE, (0.0, np.inf, np.nan, -1.0)),
    vjp=lambda ct, x, out: ct * _conj(out / (x * -2)),
)  # fmt: skip
cbrt_p = elementwise(
    "cbrt", lax.cbrt, dtypes=dt.FLOATS, vjp=lambda ct, x, out: ct / (out * out * 3),
    samples=lambda: [
        Sample((_SPREAD * 8,)), Sample((np.zeros((2, 0)),)), Sample((_SPECIAL,), grad=False),
        Bad((np.array([1j]),), {}, DTypeError, "Complex128"),
    ],
)  # fmt: skip

sin_p: Primitive = elementwise(
    "sin", lax.sin, onnx="Sin", samples=_on(_SPREAD), vjp=lambda ct, x, out: ct * _conj(apply(cos_p, x))
)  # fmt: skip
cos_p: Primitive = elementwise(
    "cos", lax.cos, onnx="Cos", samples=_on(_SPREAD), vjp=lambda ct, x, out: -(ct * _conj(apply(sin_p, x)))
)  # fmt: skip
tan_p = elementwise("tan", lax.tan, onnx="Tan", samples=_on(_INSIDE), vjp=lambda ct, x, out: ct * _conj(out * out + 1))
asin_p = elementwise(
    "asin", lax.asin, onnx="Asin", samples=_on(_INSIDE, (1.0, -1.0, 2.0, np.nan)),
    vjp=lambda ct, x, out: ct * _conj(apply(rsqrt_p, 1 - x * x)),
)  # fmt: skip
acos_p = elementwise(
    "acos", lax.acos, onnx="Acos", samples=_on(_INSIDE, (1.0, -1.0, 2.0, np.nan)),
    vjp=lambda ct, x, out: -(ct * _conj(apply(rsqrt_p, 1 - x * x))),
)  # fmt: skip
atan_p = elementwise("atan", lax.atan, onnx="Atan", samples=_on(_SPREAD), vjp=lambda ct, x, out: ct / _conj(x * x + 1))
sinh_p: Primitive = elementwise(
    "sinh", lax.sinh, onnx="Sinh", samples=_on(_SPREAD), vjp=lambda ct, x, out: ct * _conj(apply(cosh_p, x))
)  # fmt: skip
cosh_p: Primitive = elementwise(
    "cosh", lax.cosh, onnx="Cosh", samples=_on(_SPREAD), vjp=lambda ct, x, out: ct * _conj(apply(sinh_p, x))
)  # fmt: skip
tanh_p = elementwise(
    "tanh", lax.tanh, onnx="Tanh", samples=_on(_SPREAD), vjp=lambda ct, x, out: apply(tanh_grad_p, ct, out)
)  # fmt: skip
asinh_p = elementwise(
    "asinh", lax.asinh, onnx="Asinh", samples=_on(_SPREAD), vjp=lambda ct, x, out: ct * _conj(apply(rsqrt_p, x * x + 1))
)  # fmt: skip
acosh_p = elementwise(
    "acosh", lax.acosh, onnx="Acosh", samples=_on(_POSITIVE + 1, (1.0, np.inf, 0.5, np.nan)),
    vjp=lambda ct, x, out: ct * _conj(apply(rsqrt_p, x - 1) * apply(rsqrt_p, x + 1)),
)  # fmt: skip
atanh_p = elementwise(
    "atanh", lax.atanh, onnx="Atanh", samples=_on(_INSIDE, (1.0, -1.0, 2.0, np.nan)),
    vjp=lambda ct, x, out: ct / _conj(1 - x * x),
)  # fmt: skip


def _tanh_grad(ct: Any, y: Any) -> Any:
    return ct * jnp.conj(1 - y * y)


#: The gradient of tanh from its output ``y``: ``ct * (1 - y**2)`` in one pass over memory.
tanh_grad_p: Primitive = elementwise(
    "tanh_grad", _tanh_grad, arity=2, names=("ct", "y"),
    vjp=lambda ct, given, y, out: (
        lambda: apply(tanh_grad_p, ct, _conj(y)), lambda: _conj(ct) * given * _conj(y * -2),
    ),
    samples=lambda: [Sample((_SPREAD, _INSIDE)), Sample((np.zeros((0, 3)), np.zeros(3)))],
)  # fmt: skip


def _hyperbola(ct: Any, a: Any, b: Any) -> Any:
    return ct / (a * a + b * b)


atan2_p = elementwise(
    "atan2", lax.atan2, arity=2, dtypes=dt.FLOATS,
    vjp=lambda ct, a, b, out: (lambda: _hyperbola(ct * b, a, b), lambda: -_hyperbola(ct * a, a, b)),
    samples=lambda: [
        Sample((_SPREAD, _POSITIVE)), Sample((_SPREAD, _SPREAD[::-1] - 0.1)), Sample((np.zeros((0, 3)), np.zeros(3))),
        Sample((_SPECIAL[:, None], _SPECIAL), grad=False),
        Bad((_SPREAD, np.zeros(2)), {}, ShapeError, "broadcasts"),
    ],
)  # fmt: skip

conj_p: Primitive = elementwise(
    "conj", jnp.conj, dtypes=dt.COMPLEX, vjp=lambda ct, x, out: _conj(ct),
    samples=lambda: [
        Sample((_SPREAD + 1j * _POSITIVE,)), Sample((np.zeros((2, 0), np.complex128),)),
        Bad((_SPREAD,), {}, DTypeError, "Complex64"),
    ],
)  # fmt: skip


@operator(methods=True)
def conj(input: Any) -> Tensor:
    """The complex conjugate; a real tensor is its own.

    >>> import mycelia as ms
    >>> print(ms.ops.conj(ms.Tensor([1 + 2j])))
    [1.-2.j]
    """
    x = as_tensor(input, "conj")
    return unary(conj_p, "conj", x) if x.dtype.is_complex else x


@operator(methods=True, aliases=("tensor_exp",))
def exp(input: Any) -> Tensor:
    """``e`` raised to each element.

    >>> import mycelia as ms
    >>> f"{ms.ops.exp(ms.Tensor(1.0)).item():.4f}"
    '2.7183'
    """
    return unary_float(exp_p, "exp", input)


@operator()
def exp2(input: Any) -> Tensor:
    """2 raised to each element; exact for whole numbers.

    >>> import mycelia as ms
    >>> print(ms.ops.exp2(ms.Tensor([3.0, -1.0])))
    [8.  0.5]
    """
    return unary_float(exp2_p, "exp2", input)


@operator(methods=True, aliases=("tensor_expm1",))
def expm1(input: Any) -> Tensor:
    """``exp(x) - 1``, precise for small ``x``.

    >>> import mycelia as ms
    >>> f"{ms.ops.expm1(ms.Tensor(1e-6)).item():.3e}"
    '1.000e-06'
    """
    return unary_float(expm1_p, "expm1", input)


@operator(methods=True)
def log(input: Any) -> Tensor:
    """Natural logarithm; -inf at 0 and NaN for negative reals.

    >>> import mycelia as ms
    >>> print(ms.ops.log(ms.Tensor([1.0, 0.0])))
    [  0. -inf]
    """
    return unary_float(log_p, "log", input)


@operator(methods=True)
def log1p(input: Any) -> Tensor:
    """``log(1 + x)``, precise for small ``x``.

    >>> import mycelia as ms
    >>> f"{ms.ops.log1p(ms.Tensor(1e-6)).item():.3e}"
    '1.000e-06'
    """
    return unary_float(log1p_p, "log1p", input)


@operator(methods=True)
def log2(input: Any) -> Tensor:
    """Logarithm to base 2; exact at powers of two.

    >>> import mycelia as ms
    >>> print(ms.ops.log2(ms.Tensor([8.0, 8192.0])))
    [ 3. 13.]
    """
    return unary_float(log2_p, "log2", input)


@operator(methods=True)
def log10(input: Any) -> Tensor:
    """Logarithm to base 10.

    >>> import mycelia as ms
    >>> print(ms.ops.log10(ms.Tensor([1.0, 100.0])))
    [0. 2.]
    """
    return unary_float(log10_p, "log10", input)


def _sqrt(x: Any) -> Tensor:
    """Square root; NaN for negative reals.

    >>> import mycelia as ms
    >>> print(ms.ops.sqrt(ms.Tensor([4.0, 9.0])))
    [2. 3.]
    """
    return unary_float(sqrt_p, "sqrt", x)


_sqrt.__name__ = "sqrt"
sqrt = operator(methods=True)(renaming(_sqrt, input="x"))


@operator(methods=True)
def rsqrt(input: Any) -> Tensor:
    """One divided by the square root.

    >>> import mycelia as ms
    >>> print(ms.ops.rsqrt(ms.Tensor([4.0, 16.0])))
    [0.5  0.25]
    """
    return unary_float(rsqrt_p, "rsqrt", input)


@operator()
def cbrt(input: Any) -> Tensor:
    """Real cube root.

    >>> import mycelia as ms
    >>> print(ms.ops.cbrt(ms.Tensor([8.0, -27.0])))
    [ 2. -3.]
    """
    return unary_float(cbrt_p, "cbrt", input)


@operator(methods=True)
def sin(input: Any) -> Tensor:
    """Sine of angles in radians.

    >>> import mycelia as ms
    >>> f"{ms.ops.sin(ms.Tensor(0.5)).item():.4f}"
    '0.4794'
    """
    return unary_float(sin_p, "sin", input)


@operator(methods=True)
def cos(input: Any) -> Tensor:
    """Cosine of angles in radians.

    >>> import mycelia as ms
    >>> f"{ms.ops.cos(ms.Tensor(0.5)).item():.4f}"
    '0.8776'
    """
    return unary_float(cos_p, "cos", input)


@operator(methods=True)
def tan(input: Any) -> Tensor:
    """Tangent of angles in radians.

    >>> import mycelia as ms
    >>> f"{ms.ops.tan(ms.Tensor(0.5)).item():.4f}"
    '0.5463'
    """
    return unary_float(tan_p, "tan", input)


@operator(methods=("asin", "arcsin"), aliases=("arcsin",))
def asin(input: Any) -> Tensor:
    """Inverse sine, in radians from -pi/2 to pi/2; NaN outside [-1, 1].

    >>> import mycelia as ms
    >>> f"{ms.ops.asin(ms.Tensor(0.5)).item():.4f}"
    '0.5236'
    """
    return unary_float(asin_p, "asin", input)


@operator(methods=("acos", "arccos"), aliases=("arccos",))
def acos(input: Any) -> Tensor:
    """Inverse cosine, in radians from 0 to pi; NaN outside [-1, 1].

    >>> import mycelia as ms
    >>> f"{ms.ops.acos(ms.Tensor(0.5)).item():.4f}"
    '1.0472'
    """
    return unary_float(acos_p, "acos", input)


@operator(methods=("atan", "arctan"), aliases=("arctan",))
def atan(input: Any) -> Tensor:
    """Inverse tangent, in radians from -pi/2 to pi/2.

    >>> import mycelia as ms
    >>> f"{ms.ops.atan(ms.Tensor(1.0)).item():.4f}"
    '0.7854'
    """
    return unary_float(atan_p, "atan", input)


@operator(methods=True)
def sinh(input: Any) -> Tensor:
    """Hyperbolic sine.

    >>> import mycelia as ms
    >>> f"{ms.ops.sinh(ms.Tensor(1.0)).item():.4f}"
    '1.1752'
    """
    return unary_float(sinh_p, "sinh", input)


@operator(methods=True)
def cosh(input: Any) -> Tensor:
    """Hyperbolic cosine.

    >>> import mycelia as ms
    >>> f"{ms.ops.cosh(ms.Tensor(1.0)).item():.4f}"
    '1.5431'
    """
    return unary_float(cosh_p, "cosh", input)


@operator(methods=True)
def tanh(input: Any) -> Tensor:
    """Hyperbolic tangent.

    >>> import mycelia as ms
    >>> f"{ms.ops.tanh(ms.Tensor(1.0)).item():.4f}"
    '0.7616'
    """
    return unary_float(tanh_p, "tanh", input)


@operator(methods=("asinh", "arcsinh"), aliases=("arcsinh",))
def asinh(input: Any) -> Tensor:
    """Inverse hyperbolic sine.

    >>> import mycelia as ms
    >>> f"{ms.ops.asinh(ms.Tensor(1.0)).item():.4f}"
    '0.8814'
    """
    return unary_float(asinh_p, "asinh", input)


@operator(methods=("acosh", "arccosh"), aliases=("arccosh",))
def acosh(input: Any) -> Tensor:
    """Inverse hyperbolic cosine; NaN below 1.

    >>> import mycelia as ms
    >>> f"{ms.ops.acosh(ms.Tensor(2.0)).item():.4f}"
    '1.3170'
    """
    return unary_float(acosh_p, "acosh", input)


@operator(methods=("atanh", "arctanh"), aliases=("arctanh",))
def atanh(input: Any) -> Tensor:
    """Inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.

    >>> import mycelia as ms
    >>> f"{ms.ops.atanh(ms.Tensor(0.5)).item():.4f}"
    '0.5493'
    """
    return unary_float(atanh_p, "atanh", input)


@operator(methods=("atan2", "arctan2"), aliases=("arctan2",))
def atan2(input: Any, other: Any) -> Tensor:
    """Angle of the point (x = ``other``, y = ``input``) in radians from -pi to pi, with broadcasting.

    >>> import mycelia as ms
    >>> f"{ms.ops.atan2(ms.Tensor(1.0), ms.Tensor(-1.0)).item():.4f}"
    '2.3562'
    """
    return binary_float(atan2_p, "atan2", input, other)


@operator(methods=True)
def deg2rad(x: Any) -> Tensor:
    """Degrees to radians.

    >>> import mycelia as ms
    >>> f"{ms.ops.deg2rad(ms.Tensor(180.0)).item():.4f}"
    '3.1416'
    """
    return mul(as_float(x, "deg2rad", "x"), math.pi / 180)


@operator(methods=True)
def rad2deg(x: Any) -> Tensor:
    """Radians to degrees.

    >>> import mycelia as ms
    >>> f"{ms.ops.rad2deg(ms.Tensor(3.1415927)).item():.2f}"
    '180.00'
    """
    return mul(as_float(x, "rad2deg", "x"), 180 / math.pi)


for _name, _compute in (("exp_", exp), ("log_", log), ("tanh_", tanh)):
    attach_in_place(_name, _compute)
