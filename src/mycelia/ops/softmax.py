"""Softmax and its relatives.

The largest element is subtracted before ``exp``, so nothing overflows; float16 and bfloat16 are computed in
float32. A slice whose elements are all ``-inf`` gives NaN, as in NumPy. The gradients are primitives of their
own, so that a backward step in eager mode is one call.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import as_dtype
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float
from mycelia.ops.declare import Sample, check_dtypes
from mycelia.ops.linear import accumulator
from mycelia.ops.operands import as_axes, as_tensor, cast
from mycelia.ops.reduction import reduce_sum
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_X = np.array([[1.5, -2.0, 0.25, 0.5], [3.0, 0.5, -1.0, 0.0], [-0.75, 1.0, 2.0, 40.0]])


def _infer(x: TensorType, *, axes: tuple[int, ...]) -> TensorType:
    check_dtypes("softmax", (x,), dt.FLOATS)
    return x


def _infer_grad(ct: TensorType, out: TensorType, *, axes: tuple[int, ...]) -> TensorType:
    check_dtypes("softmax_grad", (ct, out), dt.FLOATS, ("ct", "out"))
    return out


def _wide(x: Any) -> Any:
    return x.astype(accumulator(x.dtype) or x.dtype)


def _shifted(x: Any, axes: tuple[int, ...]) -> Any:
    wide = _wide(x)
    return wide - jnp.max(wide, axis=axes, keepdims=True) if x.size else wide


def _lower_softmax(x: Any, *, axes: tuple[int, ...]) -> Any:
    powers = jnp.exp(_shifted(x, axes))
    return (powers / powers.sum(axes, keepdims=True)).astype(x.dtype)


def _lower_log_softmax(x: Any, *, axes: tuple[int, ...]) -> Any:
    shifted = _shifted(x, axes)
    return (shifted - jnp.log(jnp.exp(shifted).sum(axes, keepdims=True))).astype(x.dtype)


def _lower_softmax_grad(ct: Any, out: Any, *, axes: tuple[int, ...]) -> Any:
    c, y = _wide(ct), _wide(out)
    return (y * (c - (c * y).sum(axes, keepdims=True))).astype(ct.dtype)


def _lower_log_softmax_grad(ct: Any, out: Any, *, axes: tuple[int, ...]) -> Any:
    c = _wide(ct)
    return (c - jnp.exp(_wide(out)) * c.sum(axes, keepdims=True)).astype(ct.dtype)


def _samples() -> list[Any]:
    special = np.array([[np.nan, 0.0], [-np.inf, 2.0], [-np.inf, -np.inf], [1e300, -1e300]])
    return [
        Sample((_X,), {"axes": (1,)}), Sample((_X,), {"axes": (0,)}), Sample((_X,), {"axes": (0, 1)}),
        Sample((_X.reshape(2, 3, 2),), {"axes": (1,)}), Sample((np.zeros((0, 3)),), {"axes": (1,)}),
        Sample((np.zeros((3, 0)),), {"axes": (1,)}), Sample((np.array(2.0),), {"axes": ()}),
        Sample((special,), {"axes": (1,)}, grad=False, dtypes=False),
    ]  # fmt: skip


def _grad_samples() -> list[Any]:
    y = np.exp(_X) / np.exp(_X).sum(1, keepdims=True)
    return [Sample((_X[::-1] * 0.1, y), {"axes": (1,)}), Sample((_X, y), {"axes": (0,)})]


softmax_p = Primitive(
    "softmax", infer=_infer, lower=_lower_softmax, samples=_samples,
    vjp=lambda ct, x, out, *, axes: [apply(softmax_grad_p, ct, out, axes=axes)],
)  # fmt: skip

log_softmax_p = Primitive(
    "log_softmax", infer=_infer, lower=_lower_log_softmax, samples=_samples,
    vjp=lambda ct, x, out, *, axes: [apply(log_softmax_grad_p, ct, out, axes=axes)],
)  # fmt: skip


def _vjp_softmax_grad(c: Tensor, ct: Tensor, y: Tensor, out: Tensor, *, axes: tuple[int, ...]) -> list[Any]:
    def grad_y() -> Any:
        return c * (ct - reduce_sum(ct * y, axes, True)) - ct * reduce_sum(c * y, axes, True)

    return [lambda: apply(softmax_grad_p, c, y, axes=axes), grad_y]


softmax_grad_p: Primitive = Primitive(
    "softmax_grad", infer=_infer_grad, lower=_lower_softmax_grad, vjp=_vjp_softmax_grad, samples=_grad_samples
)


def _vjp_log_softmax_grad(c: Tensor, ct: Tensor, y: Tensor, out: Tensor, *, axes: tuple[int, ...]) -> list[Any]:
    from mycelia.ops.elementary import exp

    p = exp(y)
    return [
        lambda: c - reduce_sum(c * p, axes, True),
        lambda: -(c * p) * reduce_sum(ct, axes, True),
    ]


log_softmax_grad_p: Primitive = Primitive(
    "log_softmax_grad", infer=_infer_grad, lower=_lower_log_softmax_grad, vjp=_vjp_log_softmax_grad,
    samples=lambda: [
        Sample((_X[::-1] * 0.1, _X - np.log(np.exp(_X).sum(1, keepdims=True))), {"axes": (1,)}),
        Sample((_X[:, :2], -np.abs(_X[:, 2:])), {"axes": (0,)}),
    ],
)  # fmt: skip


def _prepared(input: Any, dtype: Any, where: str, argument: str = "input") -> Tensor:
    if dtype is not None:
        return cast(as_tensor(input, where, argument), as_dtype(dtype, where))
    return as_float(input, where, argument)


@operator()
def softmax(input: Any, axis: Any = -1, *, dtype: Any = None) -> Tensor:
    """Positive numbers that sum to one along an axis: ``exp(x) / sum(exp(x))``.

    Args:
        input: a tensor; integers become float32.
        axis: the axis, or a tuple of axes that are normalized together.
        dtype: convert to this dtype first.

    Raises:
        OutOfRangeError: there is no such axis.

    >>> import mycelia as ms
    >>> print(ms.ops.softmax(ms.Tensor([0.0, 0.0])))
    [0.5 0.5]
    """
    x = _prepared(input, dtype, "softmax")
    return apply(softmax_p, x, axes=as_axes(axis, x.ndim, "softmax"))  # type: ignore[no-any-return]


@operator()
def log_softmax(logits: Any, axis: Any = -1, *, dtype: Any = None) -> Tensor:
    """The logarithm of :func:`softmax`, computed without its underflow.

    Args:
        logits: a tensor; integers become float32.
        axis: the axis.
        dtype: convert to this dtype first.

    >>> import mycelia as ms
    >>> print(ms.ops.log_softmax(ms.Tensor([0.0, 0.0])))
    [-0.6931472 -0.6931472]
    """
    x = _prepared(logits, dtype, "log_softmax", "logits")
    return apply(log_softmax_p, x, axes=as_axes(axis, x.ndim, "log_softmax"))  # type: ignore[no-any-return]


@operator()
def softmin(x: Any, axis: Any = -1, *, dtype: Any = None) -> Tensor:
    """:func:`softmax` of the negated input: the smallest element gets the largest share.

    >>> import mycelia as ms
    >>> print(ms.ops.softmin(ms.Tensor([2.0, 2.0])))
    [0.5 0.5]
    """
    return softmax(-_prepared(x, dtype, "softmin", "x"), axis)


@operator()
def gumbel_softmax(logits: Any, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Tensor:
    """Samples of a relaxed categorical distribution: softmax of logits with Gumbel noise.

    E. Jang, S. Gu and B. Poole, "Categorical reparameterization with Gumbel-Softmax" (2017).

    Args:
        logits: unnormalized log-probabilities.
        tau: temperature, positive.
        hard: give one-hot vectors, with the gradient of the soft ones.
        dim: the axis of the categories.

    Raises:
        ArgumentValueError: ``tau`` is not positive.

    >>> import mycelia as ms
    >>> y = ms.ops.gumbel_softmax(ms.ops.ones((3, 4)), hard=True)
    >>> y.shape, float(y.sum())
    ((3, 4), 3.0)
    """
    from mycelia.ops.distributions import gumbel
    from mycelia.ops.state import stop_gradient

    if isinstance(tau, bool) or not isinstance(tau, (int, float)):
        raise ArgumentTypeError("gumbel_softmax", "tau", got=type(tau).__name__, takes="a positive number")
    if not tau > 0:
        raise ArgumentValueError("gumbel_softmax", "tau", got=str(tau), takes="a positive number")
    x = as_float(logits, "gumbel_softmax", "logits")
    y = softmax((x + gumbel(x.shape, dtype=x.dtype)) / float(tau), dim)
    if not hard:
        return y
    axes = as_axes(dim, x.ndim, "gumbel_softmax", "dim")
    picked: Tensor = apply(one_hot_of_max_p, y, axis=axes[0] if axes else 0)
    return stop_gradient(picked - y) + y  # type: ignore[no-any-return]


def _infer_one_hot(x: TensorType, *, axis: int) -> TensorType:
    check_dtypes("one_hot_of_max", (x,), dt.FLOATS)
    return x


def _lower_one_hot(x: Any, *, axis: int) -> Any:
    if not x.ndim:
        return jnp.ones_like(x)
    if not x.size:
        return x
    best = jnp.argmax(x, axis=axis, keepdims=True)
    places = jnp.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return (places == best).astype(x.dtype)


#: One where the (first) largest element along an axis is, zero elsewhere.
one_hot_of_max_p = Primitive(
    "one_hot_of_max", infer=_infer_one_hot, lower=_lower_one_hot, differentiable=False,
    samples=lambda: [Sample((_X,), {"axis": 1}), Sample((_X,), {"axis": 0}), Sample((np.zeros((0, 2)),), {"axis": 1})],
)  # fmt: skip


def _softmax_method(self: Tensor, axis: Any = -1, dtype: Any = None, *, dim: Any = None) -> Tensor:
    """:func:`mycelia.ops.softmax` of the tensor; ``dim`` is another name of ``axis``."""
    return softmax(self, axis if dim is None else dim, dtype=dtype)


attach("softmax", _softmax_method)
attach("log_softmax", lambda self, axis=-1, *, dtype=None: log_softmax(self, axis, dtype=dtype))
