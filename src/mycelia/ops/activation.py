"""Activation functions.

An activation is two primitives: itself and its slope, the derivative in closed form, so that the gradient
is one product and each runs as one fused loop. Half precision is computed in float32. The piecewise linear
ones are in :mod:`mycelia.ops.rectifiers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float, attach_in_place, overwrite, unary_float
from mycelia.ops.declare import Bad, Sample, check_dtypes, conj, elementwise
from mycelia.ops.keywords import renaming
from mycelia.ops.operands import as_axis
from mycelia.ops.registry import operator
from mycelia.ops.special import wide
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

POINTS = np.array([[-4.0, -1.7, -0.3], [0.2, 1.6, 7.5]])
_SPECIAL = np.array([0.0, np.inf, np.nan])


def samples_of(attrs: Sequence[dict[str, Any]], kinks: Sequence[float] = ()) -> Callable[[], list[Any]]:
    """Samples of an activation for each set of attributes, and values without gradients at special points."""
    return lambda: [
        *[Sample((POINTS,), a) for a in attrs], Sample((POINTS[0, 1],), attrs[0]),
        Sample((np.zeros((2, 0)),), attrs[0]),
        Sample((np.array([*_SPECIAL, *kinks]),), attrs[0], grad=False),
        Bad((np.array([1j]),), attrs[0], DTypeError, "Complex128"),
    ]  # fmt: skip


def activation(
    name: str,
    lower: Callable[..., Any],
    slope: Callable[..., Any],
    *,
    onnx: str | None = None,
    attrs: Sequence[dict[str, Any]] = ({},),
    kinks: Sequence[float] = (),
) -> Primitive:
    """Declare an activation and its slope; ``attrs`` are the attributes its samples try."""
    samples = samples_of(attrs, kinks)
    slope_p = elementwise(f"{name}_slope", wide(slope), dtypes=dt.FLOATS, samples=samples)
    slope_p.derived_vjp = True

    def vjp(ct: Tensor, x: Tensor, out: Tensor, **given: Any) -> Tensor:
        return ct * apply(slope_p, x, **given)  # type: ignore[no-any-return]

    return elementwise(name, wide(lower), dtypes=dt.FLOATS, vjp=vjp, onnx=onnx, samples=samples)


#: Where every smooth activation has reached its limits. The tails are cut there, so that no 0 * inf arises.
_FAR = 1e4


def tail(x: Any) -> Any:
    """The input without its far negative part."""
    return jnp.maximum(x, -_FAR)


def _middle(x: Any) -> Any:
    return jnp.clip(x, -_FAR, _FAR)


elu_p = activation(
    "elu", lambda x, *, alpha: jnp.where(x > 0, x, alpha * jnp.expm1(jnp.minimum(x, 0))),
    lambda x, *, alpha: jnp.where(x > 0, 1.0, alpha * jnp.exp(jnp.minimum(x, 0))), onnx="Elu",
    attrs=({"alpha": 1.0}, {"alpha": 0.5}),
)  # fmt: skip
celu_p = activation(
    "celu", lambda x, *, alpha: jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0, x / alpha))),
    lambda x, *, alpha: jnp.where(x > 0, 1.0, jnp.exp(jnp.where(x > 0, 0, x / alpha))), onnx="Celu",
    attrs=({"alpha": 1.0}, {"alpha": 2.0}, {"alpha": -1.5}),
)  # fmt: skip
#: Klambauer et al., Self-Normalizing Neural Networks, 2017.
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
selu_p = activation(
    "selu", lambda x: _SELU_SCALE * jnp.where(x > 0, x, _SELU_ALPHA * jnp.expm1(jnp.minimum(x, 0))),
    lambda x: _SELU_SCALE * jnp.where(x > 0, 1.0, _SELU_ALPHA * jnp.exp(jnp.minimum(x, 0))), onnx="Selu",
)  # fmt: skip


def _gelu(x: Any, *, approximate: str) -> Any:
    x = tail(x)
    if approximate == "tanh":
        return 0.5 * x * (1 + jnp.tanh(_gelu_argument(x)))
    return 0.5 * x * lax.erfc(x * -math.sqrt(0.5))


def _gelu_argument(x: Any) -> Any:
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)


def _gelu_slope(x: Any, *, approximate: str) -> Any:
    x = _middle(x)
    if approximate == "tanh":
        t = jnp.tanh(_gelu_argument(x))
        inner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner
    density = jnp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return 0.5 * lax.erfc(x * -math.sqrt(0.5)) + x * density


gelu_p = activation(
    "gelu", _gelu, _gelu_slope, onnx="Gelu", attrs=({"approximate": "none"}, {"approximate": "tanh"})
)  # fmt: skip


def _swish(beta: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def lower(x: Any) -> Any:
        return tail(x) * lax.logistic(beta * x)

    def slope(x: Any) -> Any:
        s = lax.logistic(beta * x)
        return s * (1 + beta * _middle(x) * (1 - s))

    return lower, slope


silu_p = activation("silu", *_swish(1.0), onnx="Swish")
fast_gelu_p = activation("fast_gelu", *_swish(1.702))


def _mish_slope(x: Any) -> Any:
    x = _middle(x)
    t = jnp.tanh(jnp.logaddexp(x, 0))
    return t + x * (1 - t * t) * lax.logistic(x)


mish_p = activation("mish", lambda x: tail(x) * jnp.tanh(jnp.logaddexp(x, 0)), _mish_slope, onnx="Mish")
logsigmoid_p = activation(
    "logsigmoid", lambda x: -jnp.logaddexp(-x, 0), lambda x: lax.logistic(-x), kinks=(-np.inf, -200.0)
)
softplus_p = activation(
    "softplus",
    lambda x, *, beta, threshold: jnp.where(beta * x > threshold, x, jnp.logaddexp(beta * x, 0) / beta),
    lambda x, *, beta, threshold: jnp.where(beta * x > threshold, 1.0, lax.logistic(beta * x)),
    attrs=({"beta": 1.0, "threshold": 20.0}, {"beta": 2.0, "threshold": 3.0}), kinks=(-np.inf,),
)  # fmt: skip


def _squared_tanh(x: Any) -> Any:
    t = jnp.tanh(x)
    return t * t


tanhshrink_p = activation("tanhshrink", lambda x: x - jnp.tanh(x), _squared_tanh)
softsign_p = activation(
    "softsign", lambda x: jnp.where(jnp.isinf(x), jnp.sign(x), x / (1 + jnp.abs(x))),
    lambda x: 1 / ((1 + jnp.abs(x)) * (1 + jnp.abs(x))), onnx="Softsign",
)  # fmt: skip


def _sigmoid_grad(ct: Any, y: Any) -> Any:
    return ct * jnp.conj(y * (1 - y))


#: The gradient of the sigmoid from its output ``y``: ``ct * y * (1 - y)``.
sigmoid_grad_p: Primitive = elementwise(
    "sigmoid_grad", _sigmoid_grad, arity=2, names=("ct", "y"),
    vjp=lambda ct, given, y, out: (
        lambda: apply(sigmoid_grad_p, ct, conj(y)), lambda: conj(ct) * given * conj(1 - y * 2),
    ),
    samples=lambda: [
        Sample((POINTS, np.array([[0.1, 0.5, 0.9], [0.2, 0.3, 0.8]]))), Sample((np.zeros((0, 3)), np.zeros(3))),
    ],
)  # fmt: skip


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + jnp.exp(-x)) if jnp.iscomplexobj(x) else lax.logistic(x)


sigmoid_p = elementwise(
    "sigmoid", _sigmoid, onnx="Sigmoid", vjp=lambda ct, x, out: apply(sigmoid_grad_p, ct, out),
    samples=lambda: [
        Sample((POINTS,)), Sample((np.zeros((2, 0)),)), Sample((POINTS + 0.5j,), dtypes=False),
        Sample((np.array([-np.inf, np.inf, np.nan, -1000.0]),), grad=False, dtypes=False),
        Bad((np.array([1]),), {}, DTypeError, "Int64"),
    ],
)  # fmt: skip


def _gated(name: str, combine: Callable[[Any, Any], Any]) -> Primitive:
    """A primitive that halves an axis and combines the halves."""

    def infer(x: TensorType, *, axis: int) -> TensorType:
        check_dtypes(name, (x,), dt.FLOATS)
        if x.rank == 0 or x.shape[axis] % 2:
            raise ShapeError(name, "input", got=f"shape {x.shape}", takes=f"an even length of axis {axis}")
        return TensorType(x.dtype, (*x.shape[:axis], x.shape[axis] // 2, *x.shape[axis + 1 :]))

    def lower(x: Any, *, axis: int) -> Any:
        first, second = jnp.split(x, 2, axis)
        return combine(first, second)

    return Primitive(
        name, infer=infer, lower=wide(lower), derived_vjp=True,
        samples=lambda: [
            Sample((np.linspace(-2, 2, 24).reshape(2, 3, 4),), {"axis": 2}),
            Sample((np.linspace(-2, 2, 8).reshape(4, 2),), {"axis": 0}),
            Sample((np.zeros((0, 2)),), {"axis": 1}), Bad((np.zeros((2, 3)),), {"axis": 1}, ShapeError, "even length"),
        ],
    )  # fmt: skip


glu_p = _gated("glu", lambda a, b: a * lax.logistic(b))
swiglu_p = _gated("swiglu", lambda a, b: a * lax.logistic(a) * b)


def placed(x: Any, made: Tensor, inplace: bool, where: str) -> Tensor:
    """The result, put into the input itself if ``inplace``."""
    if not inplace:
        return made
    if not isinstance(x, Tensor):
        raise ArgumentTypeError(where, "inplace", got="True", takes="False for an input that is not a Tensor")
    return overwrite(x, made, where)


def number(value: Any, where: str, argument: str) -> float:
    """A float of a number or a tensor of one element; others are refused."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        if isinstance(value, Tensor) and value.size == 1:
            return float(value)
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="a number")
    return float(value)


@operator()
def elu(input_x: Any, alpha: float = 1.0) -> Tensor:
    """``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere.

    >>> import mycelia as ms
    >>> f"{ms.ops.elu(ms.Tensor(-1.0)).item():.4f}"
    '-0.6321'
    """
    return unary_float(elu_p, "elu", input_x, alpha=number(alpha, "elu", "alpha"))


@operator()
def elu_ext(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere.

    >>> import mycelia as ms
    >>> f"{ms.ops.elu_ext(ms.Tensor(-1.0)).item():.4f}"
    '-0.6321'
    """
    return placed(input, elu(input, alpha), inplace, "elu")


@operator()
def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """``x`` where positive, ``alpha * (exp(x / alpha) - 1)`` elsewhere.

    Raises:
        ArgumentValueError: ``alpha`` is 0.

    >>> import mycelia as ms
    >>> f"{ms.ops.celu(ms.Tensor(-1.0), 2.0).item():.4f}"
    '-0.7869'
    """
    value = number(alpha, "celu", "alpha")
    if value == 0:
        raise ArgumentValueError("celu", "alpha", got="0", takes="a number other than 0")
    return unary_float(celu_p, "celu", x, alpha=value)


def _selu(input_x: Any) -> Tensor:
    """Scaled exponential linear unit: ``1.0507 * elu(x, alpha=1.6733)``.

    >>> import mycelia as ms
    >>> f"{ms.ops.selu(ms.Tensor(-1.0)).item():.4f}"
    '-1.1113'
    """
    return unary_float(selu_p, "selu", input_x)


_selu.__name__ = "selu"
selu = operator()(renaming(_selu, input="input_x"))


@operator()
def gelu(input: Any, approximate: str = "none") -> Tensor:
    """``x`` times the normal distribution's probability of values up to ``x``.

    Args:
        input: a real tensor.
        approximate: ``"none"`` for the exact form, ``"tanh"`` for the approximation of Hendrycks and Gimpel (2016).

    Raises:
        ArgumentValueError: another ``approximate``.

    >>> import mycelia as ms
    >>> f"{ms.ops.gelu(ms.Tensor(-1.0)).item():.4f}"
    '-0.1587'
    """
    if approximate not in ("none", "tanh"):
        raise ArgumentValueError("gelu", "approximate", got=repr(approximate), takes='"none" or "tanh"')
    return unary_float(gelu_p, "gelu", input, approximate=approximate)


@operator()
def fast_gelu(x: Any) -> Tensor:
    """``x * sigmoid(1.702 * x)``, an approximation of :func:`gelu`.

    >>> import mycelia as ms
    >>> f"{ms.ops.fast_gelu(ms.Tensor(-1.0)).item():.4f}"
    '-0.1542'
    """
    return unary_float(fast_gelu_p, "fast_gelu", x)


@operator()
def silu(input: Any, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``, also called swish.

    >>> import mycelia as ms
    >>> f"{ms.ops.silu(ms.Tensor(-1.0)).item():.4f}"
    '-0.2689'
    """
    return placed(input, unary_float(silu_p, "silu", input), inplace, "silu")


def _mish(x: Any) -> Tensor:
    """``x * tanh(log(1 + exp(x)))``.

    >>> import mycelia as ms
    >>> f"{ms.ops.mish(ms.Tensor(-1.0)).item():.4f}"
    '-0.3034'
    """
    return unary_float(mish_p, "mish", x)


_mish.__name__ = "mish"
mish = operator()(renaming(_mish, input="x"))


@operator(methods=True)
def sigmoid(input: Any) -> Tensor:
    """``1 / (1 + exp(-x))``.

    >>> import mycelia as ms
    >>> print(ms.ops.sigmoid(ms.Tensor([0.0])))
    [0.5]
    """
    return unary_float(sigmoid_p, "sigmoid", input)


def _logsigmoid(x: Any) -> Tensor:
    """Logarithm of the sigmoid, precise for large negative ``x``.

    >>> import mycelia as ms
    >>> f"{ms.ops.logsigmoid(ms.Tensor(-200.0)).item():.1f}"
    '-200.0'
    """
    return unary_float(logsigmoid_p, "logsigmoid", x)


_logsigmoid.__name__ = "logsigmoid"
logsigmoid = operator()(renaming(_logsigmoid, input="x"))


@operator()
def softplus(input: Any, beta: float = 1, threshold: float = 20) -> Tensor:
    """``log(1 + exp(beta * x)) / beta``, and ``x`` itself where ``beta * x`` is above ``threshold``.

    Raises:
        ArgumentValueError: ``beta`` is 0.

    >>> import mycelia as ms
    >>> f"{ms.ops.softplus(ms.Tensor(0.0)).item():.4f}"
    '0.6931'
    """
    scale = number(beta, "softplus", "beta")
    if scale == 0:
        raise ArgumentValueError("softplus", "beta", got="0", takes="a number other than 0")
    return unary_float(softplus_p, "softplus", input, beta=scale, threshold=number(threshold, "softplus", "threshold"))


@operator()
def tanhshrink(input: Any) -> Tensor:
    """``x - tanh(x)``.

    >>> import mycelia as ms
    >>> f"{ms.ops.tanhshrink(ms.Tensor(1.0)).item():.4f}"
    '0.2384'
    """
    return unary_float(tanhshrink_p, "tanhshrink", input)


@operator()
def softsign(x: Any) -> Tensor:
    """``x / (1 + abs(x))``.

    >>> import mycelia as ms
    >>> print(ms.ops.softsign(ms.Tensor([-1.0, 3.0])))
    [-0.5   0.75]
    """
    return unary_float(softsign_p, "softsign", x)


def _glu(x: Any, axis: int = -1) -> Tensor:
    """The first half of an axis times the sigmoid of the second half.

    Args:
        x: a real tensor.
        axis: the axis to halve.

    Raises:
        ShapeError: the axis has an odd length.

    >>> import mycelia as ms
    >>> print(ms.ops.glu(ms.Tensor([2.0, 4.0, 0.0, 0.0])))
    [1. 2.]
    """
    t = as_float(x, "glu", "x")
    return apply(glu_p, t, axis=as_axis(axis, t.ndim, "glu"))  # type: ignore[no-any-return]


_glu.__name__ = "glu"
glu = operator()(renaming(_glu, input="x", dim="axis"))


@operator()
def swiglu(input: Any, dim: int = -1) -> Tensor:
    """:func:`silu` of the first half of an axis times the second half.

    Raises:
        ShapeError: the axis has an odd length.

    >>> import mycelia as ms
    >>> print(ms.ops.swiglu(ms.Tensor([0.0, 0.0, 1.0, 2.0])))
    [0. 0.]
    """
    t = as_float(input, "swiglu")
    return apply(swiglu_p, t, axis=as_axis(dim, t.ndim, "swiglu", "dim"))  # type: ignore[no-any-return]


attach_in_place("sigmoid_", sigmoid)
