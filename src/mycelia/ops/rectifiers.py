"""Piecewise linear activation functions: relu and its kin, hard approximations, shrinkage, thresholds.

The slope at a kink is the one torch documents: 0 for ``relu`` at 0 and for ``hardtanh`` and ``hardsigmoid`` at
their ends; ``relu6`` passes the gradient on at 6, as MindSpore does.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ops.activation import POINTS, activation, number, placed, samples_of, tail
from mycelia.ops.calls import as_float, floats, unary, unary_float
from mycelia.ops.declare import Bad, Sample, elementwise
from mycelia.ops.keywords import renaming
from mycelia.ops.operands import as_tensor
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply


def _masked(ct: Any, out: Any) -> Any:
    return jnp.where(out <= 0, jnp.zeros_like(ct), ct)


#: The gradient of relu from its output.
relu_grad_p: Primitive = elementwise(
    "relu_grad", _masked, arity=2, dtypes=dt.FLOATS, names=("ct", "out"),
    vjp=lambda ct, given, y, out: (lambda: apply(relu_grad_p, ct, y), None),
    samples=lambda: [
        Sample((POINTS, POINTS[::-1])), Sample((np.ones(3), np.array([0.0, np.inf, np.nan])), grad=False),
    ],
)  # fmt: skip
relu_p = elementwise(
    "relu", lambda x: lax.max(x, jnp.zeros_like(x)), dtypes=dt.REALS, onnx="Relu",
    vjp=lambda ct, x, out: apply(relu_grad_p, ct, out), samples=samples_of(({},)),
)  # fmt: skip
relu6_p = activation(
    "relu6", lambda x: jnp.clip(x, 0, 6), lambda x: jnp.where((x > 0) & (x <= 6), 1.0, 0.0), kinks=(6.0, -np.inf)
)
leaky_relu_p = activation(
    "leaky_relu", lambda x, *, alpha: jnp.where(x > 0, x, alpha * x), lambda x, *, alpha: jnp.where(x > 0, 1.0, alpha),
    onnx="LeakyRelu", attrs=({"alpha": 0.2}, {"alpha": 1.5}),
)  # fmt: skip
hardsigmoid_p = activation(
    "hardsigmoid", lambda x: jnp.clip(x / 6 + 0.5, 0, 1), lambda x: jnp.where((x > -3) & (x < 3), 1 / 6, 0.0),
    kinks=(-3.0, 3.0, -np.inf),
)  # fmt: skip
hardswish_p = activation(
    "hardswish", lambda x: tail(x) * jnp.clip(x + 3, 0, 6) / 6,
    lambda x: jnp.where(x < -3, 0.0, jnp.where(x > 3, 1.0, x / 3 + 0.5)), onnx="HardSwish", kinks=(-3.0, 3.0),
)  # fmt: skip
hardtanh_p = activation(
    "hardtanh", lambda x, *, low, high: jnp.clip(x, low, high),
    lambda x, *, low, high: jnp.where((x > low) & (x < high), 1.0, 0.0),
    attrs=({"low": -1.0, "high": 1.0}, {"low": -2.0, "high": 0.5}), kinks=(-1.0, 1.0, -np.inf),
)  # fmt: skip
hardshrink_p = activation(
    "hardshrink", lambda x, *, lambd: jnp.where(jnp.abs(x) <= lambd, 0, x),
    lambda x, *, lambd: jnp.where(jnp.abs(x) <= lambd, 0.0, 1.0),
    attrs=({"lambd": 0.5}, {"lambd": 2.0}), kinks=(0.5, -0.5),
)  # fmt: skip
softshrink_p = activation(
    "softshrink", lambda x, *, lambd: x - jnp.clip(x, -lambd, lambd),
    lambda x, *, lambd: jnp.where(jnp.abs(x) <= lambd, 0.0, 1.0),
    attrs=({"lambd": 0.5}, {"lambd": 2.0}), kinks=(0.5, -0.5),
)  # fmt: skip

threshold_p = activation(
    "threshold", lambda x, *, threshold, value: jnp.where(x <= threshold, value, x),
    lambda x, *, threshold, value: jnp.where(x <= threshold, 0.0, 1.0),
    attrs=({"threshold": 0.5, "value": -2.0},), kinks=(0.5,),
)  # fmt: skip


def _prelu_slope_gradient(ct: Any, x: Any) -> Any:
    from mycelia.ops.selection import where

    return where(x > 0, 0, ct * x)


def _prelu_gradient(ct: Any, x: Any, weight: Any) -> Any:
    from mycelia.ops.selection import where

    return where(x > 0, ct, ct * weight)


prelu_p = elementwise(
    "prelu", lambda x, weight: jnp.where(x > 0, x, weight * x), arity=2, dtypes=dt.FLOATS,
    names=("input", "weight"), onnx="PRelu",
    vjp=lambda ct, x, weight, out: (lambda: _prelu_gradient(ct, x, weight), lambda: _prelu_slope_gradient(ct, x)),
    samples=lambda: [
        Sample((POINTS, np.array([0.1, 0.5, 2.0]))), Sample((POINTS, np.array(0.25))),
        Sample((np.zeros((0, 3)), np.zeros(3))),
        Bad((POINTS, np.zeros(2)), {}, ShapeError, "broadcasts"),
    ],
)  # fmt: skip


@operator()
def relu(input: Any, inplace: bool = False) -> Tensor:
    """``max(x, 0)``; NaN stays NaN.

    Args:
        input: a real tensor of any shape.
        inplace: whether to overwrite the input.

    >>> import mycelia as ms
    >>> print(ms.ops.relu(ms.Tensor([-1.0, 2.0])))
    [0. 2.]
    """
    return placed(input, unary(relu_p, "relu", input), inplace, "relu")


def _relu6(x: Any, inplace: bool = False) -> Tensor:
    """``min(max(x, 0), 6)``.

    >>> import mycelia as ms
    >>> print(ms.ops.relu6(ms.Tensor([-1.0, 2.0, 7.0])))
    [0. 2. 6.]
    """
    return placed(x, unary_float(relu6_p, "relu6", x), inplace, "relu6")


_relu6.__name__ = "relu6"
relu6 = operator()(renaming(_relu6, input="x"))


@operator()
def leaky_relu(input: Any, alpha: float = 0.2) -> Tensor:
    """``x`` where positive, ``alpha * x`` elsewhere.

    Args:
        input: a real tensor.
        alpha: slope of the negative part.

    >>> import mycelia as ms
    >>> print(ms.ops.leaky_relu(ms.Tensor([-1.0, 2.0]), 0.5))
    [-0.5  2. ]
    """
    return unary_float(leaky_relu_p, "leaky_relu", input, alpha=number(alpha, "leaky_relu", "alpha"))


@operator()
def leaky_relu_ext(input: Any, negative_slope: float = 0.01) -> Tensor:
    """``x`` where positive, ``negative_slope * x`` elsewhere.

    >>> import mycelia as ms
    >>> print(ms.ops.leaky_relu_ext(ms.Tensor([-1.0, 2.0]), 0.5))
    [-0.5  2. ]
    """
    return unary_float(leaky_relu_p, "leaky_relu", input, alpha=number(negative_slope, "leaky_relu", "negative_slope"))


@operator()
def prelu(input: Any, weight: Any) -> Tensor:
    """``x`` where positive, ``weight * x`` elsewhere, with one weight for all or for each channel (axis 1).

    Args:
        input: a real tensor.
        weight: a vector of length 1, or of the length of axis 1.

    Raises:
        ShapeError: the weight has another length.

    >>> import mycelia as ms
    >>> print(ms.ops.prelu(ms.Tensor([[-1.0, 2.0], [-3.0, -4.0]]), ms.Tensor([0.5, 0.25])))
    [[-0.5  2. ]
     [-1.5 -1. ]]
    """
    from mycelia.ops.shape import reshape

    x, w = floats("prelu", input, weight, names=("input", "weight"))
    channels = x.shape[1] if x.ndim > 1 else 1
    if w.ndim > 1 or w.size not in (1, channels):
        raise ShapeError(
            "prelu", "weight", got=f"shape {w.shape}",
            takes="length 1" + (f" or {channels}, that of axis 1" if x.ndim > 1 else ""),
        )  # fmt: skip
    if w.size > 1:
        w = reshape(w, (channels, *[1] * (x.ndim - 2)))
    elif w.ndim:
        w = reshape(w, ())
    return apply(prelu_p, x, w)  # type: ignore[no-any-return]


@operator()
def rrelu(input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3) -> Tensor:
    """``x`` where positive; elsewhere ``x`` times a random slope drawn evenly from ``lower`` to ``upper``.

    Args:
        input: a real tensor.
        lower: smallest slope.
        upper: largest slope.

    Raises:
        ArgumentValueError: ``lower`` is larger than ``upper``.

    >>> import mycelia as ms
    >>> print(ms.ops.rrelu(ms.Tensor([-2.0, 2.0]), 0.5, 0.5))
    [-1.  2.]
    """
    from mycelia.ops.random import rand_like

    x, low, high = as_float(input, "rrelu"), number(lower, "rrelu", "lower"), number(upper, "rrelu", "upper")
    slope: Any = rand_like(x)
    if low > high:
        raise ArgumentValueError("rrelu", "lower", got=str(low), takes=f"at most upper, {high}")
    return apply(prelu_p, x, slope * (high - low) + low)  # type: ignore[no-any-return]


@operator()
def hardsigmoid(input: Any) -> Tensor:
    """``min(max(x / 6 + 1 / 2, 0), 1)``.

    >>> import mycelia as ms
    >>> print(ms.ops.hardsigmoid(ms.Tensor([-4.0, 0.0, 4.0])))
    [0.  0.5 1. ]
    """
    return unary_float(hardsigmoid_p, "hardsigmoid", input)


@operator()
def hardswish(input: Any) -> Tensor:
    """``x * min(max(x + 3, 0), 6) / 6``.

    >>> import mycelia as ms
    >>> print(ms.ops.hardswish(ms.Tensor([-4.0, 0.0, 4.0])))
    [-0.  0.  4.]
    """
    return unary_float(hardswish_p, "hardswish", input)


@operator()
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` moved into the range from ``min_val`` to ``max_val``; integers stay integers between integers.

    Raises:
        ArgumentValueError: ``min_val`` is not below ``max_val``.

    >>> import mycelia as ms
    >>> print(ms.ops.hardtanh(ms.Tensor([-2.0, 0.5, 2.0])))
    [-1.   0.5  1. ]
    """
    low, high = number(min_val, "hardtanh", "min_val"), number(max_val, "hardtanh", "max_val")
    if not low < high:
        raise ArgumentValueError("hardtanh", "min_val", got=str(min_val), takes=f"less than max_val, {max_val}")
    x = as_tensor(input, "hardtanh")
    if x.dtype.is_integer and isinstance(min_val, int) and isinstance(max_val, int):
        from mycelia.ops.selection import clamp

        made = clamp(x, min_val, max_val)
    else:
        made = unary_float(hardtanh_p, "hardtanh", x, low=low, high=high)
    return placed(input, made, inplace, "hardtanh")


@operator(methods=True)
def hardshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """``x`` where its magnitude is above ``lambd``, 0 elsewhere.

    >>> import mycelia as ms
    >>> print(ms.ops.hardshrink(ms.Tensor([-1.0, 0.25, 2.0])))
    [-1.  0.  2.]
    """
    return unary_float(hardshrink_p, "hardshrink", input, lambd=number(lambd, "hardshrink", "lambd"))


@operator(methods=("soft_shrink",), aliases=("soft_shrink",))
def softshrink(input: Any, lambd: float = 0.5) -> Tensor:
    """``x`` moved towards 0 by ``lambd``, and 0 where it would pass it.

    Raises:
        ArgumentValueError: ``lambd`` is negative.

    >>> import mycelia as ms
    >>> print(ms.ops.softshrink(ms.Tensor([-1.0, 0.25, 2.0])))
    [-0.5  0.   1.5]
    """
    value = number(lambd, "softshrink", "lambd")
    if value < 0:
        raise ArgumentValueError("softshrink", "lambd", got=str(lambd), takes="a number of at least 0")
    return unary_float(softshrink_p, "softshrink", input, lambd=value)


@operator()
def threshold(input: Any, thr: float, value: float) -> Tensor:
    """``x`` where it is above ``thr``, ``value`` elsewhere.

    >>> import mycelia as ms
    >>> print(ms.ops.threshold(ms.Tensor([0.0, 2.0]), 1, 20))
    [20.  2.]
    """
    limit, other = number(thr, "threshold", "thr"), number(value, "threshold", "value")
    return unary_float(threshold_p, "threshold", input, threshold=limit, value=other)


@operator()
def threshold_ext(input: Any, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` where it is above ``threshold``, ``value`` elsewhere.

    >>> import mycelia as ms
    >>> print(ms.ops.threshold_ext(ms.Tensor([0.0, 2.0]), 1, 20))
    [20.  2.]
    """
    limit, other = number(threshold, "threshold", "threshold"), number(value, "threshold", "value")
    made = unary_float(threshold_p, "threshold", input, threshold=limit, value=other)
    return placed(input, made, inplace, "threshold")
