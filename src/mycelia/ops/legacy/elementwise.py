"""Class forms of the operators that work element by element."""

from __future__ import annotations

from typing import Any

from mycelia.core import dtypes as dt
from mycelia.ops.activation import (
    celu,
    elu,
    fast_gelu,
    gelu,
    glu,
    mish,
    selu,
    sigmoid,
    silu,
    softplus,
    softsign,
    swiglu,
)
from mycelia.ops.arithmetic import (
    add,
    addcdiv,
    addcmul,
    addn,
    div,
    floor_divide,
    floor_mod,
    fmod,
    lerp,
    mul,
    neg,
    sub,
    truncate_div,
    truncate_mod,
)  # fmt: skip
from mycelia.ops.bessel import bessel_j0, bessel_j1, bessel_k0, bessel_k0e, bessel_k1, bessel_k1e, bessel_y0, bessel_y1
from mycelia.ops.bitwise import (
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    population_count,
)  # fmt: skip
from mycelia.ops.comparison import approximate_equal, eq, ge, gt, isclose, le, lt, ne
from mycelia.ops.complex_numbers import angle, complex as complex_, imag, polar, real
from mycelia.ops.creation import eps
from mycelia.ops.elementary import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    conj,
    cos,
    cosh,
    exp,
    expm1,
    log,
    log1p,
    rsqrt,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)  # fmt: skip
from mycelia.ops.extremum import fmax, fmin, maximum, minimum
from mycelia.ops.integers import gcd, lcm
from mycelia.ops.legacy.form import alias, form
from mycelia.ops.logical import isfinite, isinf, isnan, logical_and, logical_not, logical_or, logical_xor
from mycelia.ops.operands import as_tensor, cast
from mycelia.ops.power import hypot, inv, pow as pow_, reciprocal, square
from mycelia.ops.rectifiers import hardshrink, hardsigmoid, hardswish, prelu, relu, relu6, softshrink
from mycelia.ops.reduction import reduce_sum
from mycelia.ops.rounding import (
    abs as abs_,
    ceil,
    floor,
    heaviside,
    nan_to_num,
    nextafter,
    round as round_,
    sign,
    trunc,
)  # fmt: skip
from mycelia.ops.selection import where
from mycelia.ops.shape import reshape
from mycelia.ops.special import (
    bessel_i0,
    bessel_i0e,
    bessel_i1,
    bessel_i1e,
    digamma,
    erf,
    erfc,
    erfinv,
    igamma,
    igammac,
    lgamma,
    logit,
    mvlgamma,
    polygamma,
    sinc,
    xdivy,
    xlogy,
    zeta,
)  # fmt: skip
from mycelia.tensor import Tensor

__all__ = [
    "GLU", "ACos", "Abs", "AccumulateNV2", "Acosh", "Add", "AddExt", "AddN", "Addcdiv", "Addcmul", "Angle",
    "ApproximateEqual", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e",
    "BesselJ0", "BesselJ1", "BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1", "BitwiseAnd",
    "BitwiseOr", "BitwiseXor", "CeLU", "Ceil", "Complex", "ComplexAbs", "Conj", "Cos", "Cosh", "Digamma", "Div",
    "DivNoNan", "Elu", "Eps", "Equal", "EqualCount", "Erf", "Erfc", "Erfinv", "Exp", "Expm1", "FastGeLU",
    "FastGelu", "Floor", "FloorDiv", "FloorMod", "Fmax", "Fmin", "FmodScalar", "Gcd", "GeLU", "Gelu", "Greater",
    "GreaterEqual", "HShrink", "HSigmoid", "HSwish", "Heaviside", "Hypot", "Igamma", "Igammac", "Imag", "Inv",
    "Invert", "IsClose", "IsFinite", "IsInf", "IsNan", "Lcm", "LeftShift", "Lerp", "LerpScalar", "Less",
    "LessEqual", "Lgamma", "Log", "Log1p", "LogicalAnd", "LogicalNot", "LogicalOr", "LogicalXor", "Logit",
    "Maximum", "Minimum", "Mish", "Mod", "Mul", "MulNoNan", "Mvlgamma", "NanToNum", "Neg", "NextAfter", "NotEqual",
    "PReLU", "Polar", "Polygamma", "PopulationCount", "Pow", "ReLU", "ReLU6", "Real", "RealDiv", "Reciprocal",
    "RightShift", "Rint", "Round", "Rsqrt", "SeLU", "Select", "SiLU", "Sigmoid", "Sign", "Sin", "Sinc", "Sinh",
    "SoftShrink", "Softplus", "Softsign", "Sqrt", "Square", "SquaredDifference", "Sub", "SubExt", "Swiglu", "Tan",
    "Tanh", "TensorAdd", "Trunc", "TruncateDiv", "TruncateMod", "Xdivy", "Xlogy", "Zeta",
]  # fmt: skip

# arithmetic


def _quotient(x: Any, y: Any) -> Tensor:
    """The quotient in the operands' own dtype: that of integers is truncated."""
    given = [v for v in (x, y) if isinstance(v, Tensor)]
    whole = bool(given) and all(v.dtype.is_integer for v in given)
    return truncate_div(x, y) if whole else div(x, y)


def _without_nan(x1: Any, x2: Any) -> Any:
    zero = eq(x2, 0)
    return where(zero, 0, div(x1, where(zero, 1, x2)))


def _zero_wins(x: Any, y: Any) -> Any:
    zero = eq(y, 0)
    return where(zero, 0, mul(where(zero, 0, x), y))


def _difference_squared(x: Any, y: Any) -> Tensor:
    return square(sub(x, y))


def _scaled_sum(input: Any, other: Any, alpha: Any) -> Tensor:
    return add(input, other, alpha=alpha)


def _scaled_difference(input: Any, other: Any, alpha: Any) -> Tensor:
    return sub(input, other, alpha=alpha)


Add = form("Add()(input, other)", add)
AddExt = form("AddExt()(input, other, alpha=1)", _scaled_sum)
AddN = form("AddN()(x)", addn)
AccumulateNV2 = alias("AccumulateNV2", AddN)
Addcdiv = form("Addcdiv()(input, tensor1, tensor2, value=1)", addcdiv)
Addcmul = form("Addcmul()(input, tensor1, tensor2, value=1)", addcmul)
Div = form("Div()(input, other)", div)
DivNoNan = form("DivNoNan()(x1, x2)", _without_nan)
FloorDiv = form("FloorDiv()(input, other)", floor_divide)
FloorMod = form("FloorMod()(x, y)", floor_mod)
FmodScalar = form("FmodScalar()(input, other)", fmod)
Gcd = form("Gcd()(input, other)", gcd)
Inv = form("Inv()(x)", inv)
Lcm = form("Lcm()(x1, x2)", lcm)
Lerp = form("Lerp()(input, end, weight)", lerp)
LerpScalar = form("LerpScalar()(input, end, weight)", lerp)
Maximum = form("Maximum()(input, other)", maximum)
Minimum = form("Minimum()(input, other)", minimum)
Fmax = form("Fmax()(x1, x2)", fmax)
Fmin = form("Fmin()(x1, x2)", fmin)
Mod = form("Mod()(x, y)", fmod)
Mul = form("Mul()(input, other)", mul)
MulNoNan = form("MulNoNan()(x, y)", _zero_wins)
Neg = form("Neg()(input)", neg)
Pow = form("Pow()(input, exponent)", pow_)
RealDiv = form("RealDiv()(x, y)", _quotient)
Reciprocal = form("Reciprocal()(input)", reciprocal)
Square = form("Square()(input)", square)
SquaredDifference = form("SquaredDifference()(x, y)", _difference_squared)
Sub = form("Sub()(input, other)", sub)
SubExt = form("SubExt()(input, other, alpha=1)", _scaled_difference)
TensorAdd = alias("TensorAdd", Add)
TruncateDiv = form("TruncateDiv()(x, y)", truncate_div)
TruncateMod = form("TruncateMod()(x, y)", truncate_mod)

# signs and integer parts

Abs = form("Abs()(input)", abs_)
Ceil = form("Ceil()(input)", ceil)
Floor = form("Floor()(input)", floor)
NanToNum = form("NanToNum(nan=None, posinf=None, neginf=None)(input)", nan_to_num)
NextAfter = form("NextAfter()(input, other)", nextafter)
Rint = form("Rint()(input_x)", round_)
Round = form("Round()(input, decimals=0)", lambda input, decimals: round_(input, decimals=decimals))
Sign = form("Sign()(input)", sign)
Trunc = form("Trunc()(input)", trunc)

# elementary functions

ACos = form("ACos()(input)", acos)
Acosh = form("Acosh()(input)", acosh)
Asin = form("Asin()(input)", asin)
Asinh = form("Asinh()(input)", asinh)
Atan = form("Atan()(input)", atan)
Atan2 = form("Atan2()(input, other)", atan2)
Atanh = form("Atanh()(input)", atanh)
Cos = form("Cos()(input)", cos)
Cosh = form("Cosh()(input)", cosh)
Exp = form("Exp()(input)", exp)
Expm1 = form("Expm1()(input)", expm1)
Hypot = form("Hypot()(x1, x2)", hypot)
Log = form("Log()(input)", log)
Log1p = form("Log1p()(input)", log1p)
Rsqrt = form("Rsqrt()(input)", rsqrt)
Sin = form("Sin()(input)", sin)
Sinc = form("Sinc()(input)", sinc)
Sinh = form("Sinh()(input)", sinh)
Sqrt = form("Sqrt()(x)", sqrt)
Tan = form("Tan()(input)", tan)
Tanh = form("Tanh()(input)", tanh)

# special functions


def _logit(input: Any, eps: float) -> Tensor:
    return logit(input, None if eps < 0 else eps)


BesselI0 = form("BesselI0()(x)", bessel_i0)
BesselI0e = form("BesselI0e()(x)", bessel_i0e)
BesselI1 = form("BesselI1()(x)", bessel_i1)
BesselI1e = form("BesselI1e()(x)", bessel_i1e)
BesselJ0 = form("BesselJ0()(x)", bessel_j0)
BesselJ1 = form("BesselJ1()(x)", bessel_j1)
BesselK0 = form("BesselK0()(x)", bessel_k0)
BesselK0e = form("BesselK0e()(x)", bessel_k0e)
BesselK1 = form("BesselK1()(x)", bessel_k1)
BesselK1e = form("BesselK1e()(x)", bessel_k1e)
BesselY0 = form("BesselY0()(x)", bessel_y0)
BesselY1 = form("BesselY1()(x)", bessel_y1)
Digamma = form("Digamma()(x)", digamma)
Erf = form("Erf()(input)", erf)
Erfc = form("Erfc()(input)", erfc)
Erfinv = form("Erfinv()(input)", erfinv)
Igamma = form("Igamma()(a, x)", igamma)
Igammac = form("Igammac()(a, x)", igammac)
Lgamma = form("Lgamma()(x)", lgamma)
Logit = form("Logit(eps=-1.0)(input)", _logit)
Mvlgamma = form("Mvlgamma(p)(x)", mvlgamma)
Polygamma = form("Polygamma()(a, x)", polygamma)
Xdivy = form("Xdivy()(x, y)", xdivy)
Xlogy = form("Xlogy()(input, other)", xlogy)
Zeta = form("Zeta()(x, q)", zeta)

# complex numbers

Angle = form("Angle()(input)", angle)
Complex = form("Complex()(real, imag)", complex_)
ComplexAbs = form("ComplexAbs()(x)", abs_)
Conj = form("Conj()(input)", conj)
Imag = form("Imag()(input)", imag)
Polar = form("Polar()(abs, angle)", polar)
Real = form("Real()(input)", real)

# comparison, logic and bits


def _equal_count(x: Any, y: Any) -> Tensor:
    """How many elements are equal, a vector of one element of the operands' dtype."""
    a = as_tensor(x, "EqualCount", "x")
    same = cast(eq(a, y), a.dtype)
    return reshape(reduce_sum(same, tuple(range(same.ndim))), (1,))


ApproximateEqual = form("ApproximateEqual(tolerance=1e-05)(x, y)", approximate_equal)
BitwiseAnd = form("BitwiseAnd()(x, y)", bitwise_and)
BitwiseOr = form("BitwiseOr()(x, y)", bitwise_or)
BitwiseXor = form("BitwiseXor()(x, y)", bitwise_xor)
Eps = form("Eps()(x)", eps)
Equal = form("Equal()(input, other)", eq)
EqualCount = form("EqualCount()(x, y)", _equal_count)
Greater = form("Greater()(input, other)", gt)
GreaterEqual = form("GreaterEqual()(input, other)", ge)
Heaviside = form("Heaviside()(x, values)", heaviside)
Invert = form("Invert()(x)", bitwise_not)
IsClose = form("IsClose(rtol=1e-05, atol=1e-08, equal_nan=False)(input, other)", isclose)
IsFinite = form("IsFinite()(input)", isfinite)
IsInf = form("IsInf()(input)", isinf)
IsNan = form("IsNan()(x)", isnan)
LeftShift = form("LeftShift()(x1, x2)", bitwise_left_shift)
Less = form("Less()(input, other)", lt)
LessEqual = form("LessEqual()(input, other)", le)
LogicalAnd = form("LogicalAnd()(x, y)", logical_and)
LogicalNot = form("LogicalNot()(input)", logical_not)
LogicalOr = form("LogicalOr()(x, y)", logical_or)
LogicalXor = form("LogicalXor()(input, other)", logical_xor)
NotEqual = form("NotEqual()(input, other)", ne)
PopulationCount = form("PopulationCount()(input_x)", population_count)
RightShift = form("RightShift()(input_x, input_y)", bitwise_right_shift)
Select = form("Select()(condition, input, other)", where)

# activations


def _tanh_gelu(input: Any) -> Tensor:
    return gelu(input, approximate="tanh")


def _softplus(input_x: Any) -> Tensor:
    t = as_tensor(input_x, "Softplus", "input_x")
    return softplus(t if t.dtype.is_inexact else cast(t, dt.float32))


CeLU = form("CeLU(alpha=1.0)(x)", celu)
Elu = form("Elu(alpha=1.0)(input_x)", elu)
FastGeLU = form("FastGeLU()(x)", fast_gelu)
FastGelu = alias("FastGelu", FastGeLU)
GLU = form("GLU(axis=-1)(x)", glu)
GeLU = form("GeLU()(input)", _tanh_gelu)
Gelu = alias("Gelu", GeLU)
HShrink = form("HShrink(lambd=0.5)(input)", hardshrink)
HSigmoid = form("HSigmoid()(input)", hardsigmoid)
HSwish = form("HSwish()(input)", hardswish)
Mish = form("Mish()(x)", mish)
PReLU = form("PReLU()(input, weight)", prelu)
ReLU = form("ReLU()(input)", relu)
ReLU6 = form("ReLU6()(x)", relu6)
SeLU = form("SeLU()(input_x)", selu)
SiLU = form("SiLU()(input)", silu)
Sigmoid = form("Sigmoid()(input)", sigmoid)
SoftShrink = form("SoftShrink(lambd=0.5)(input)", softshrink)
Softplus = form("Softplus()(input_x)", _softplus)
Softsign = form("Softsign()(input_x)", softsign)
Swiglu = form("Swiglu()(input, dim=-1)", swiglu)
