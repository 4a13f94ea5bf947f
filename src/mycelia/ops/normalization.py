"""Normalization by mean and variance over chosen axes: batch, layer, group and instance norm, RMS norm.

S. Ioffe and C. Szegedy, "Batch normalization" (2015); J. L. Ba et al., "Layer normalization" (2016); Y. Wu
and K. He, "Group normalization" (2018); B. Zhang and R. Sennrich, "Root mean square layer normalization"
(2019). The variance is the mean of squared differences, in two passes; float16 and bfloat16 inputs are
computed in float32, statistics are then float32, and scales may be float32 beside half inputs. Each backward
step is one primitive (``*_grad``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.linear import accumulator
from mycelia.ops.operands import as_int, as_shape, as_tensor, cast
from mycelia.ops.registry import operator
from mycelia.ops.shape import broadcast_to, reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant

Axes = tuple[int, ...]

_PARAMS = ("input", "weight", "bias")


def statistics_dtype(dtype: DType) -> DType:
    """The dtype of means and variances of a tensor: float32 for half types, else its own."""
    return dt.float32 if dtype.itemsize == 2 else dtype


def check_normalized(where: str, x: TensorType, params: Sequence[TensorType], names: Sequence[str] = _PARAMS) -> None:
    """Refuse an input that is no float, and parameters that are neither of its dtype nor of its statistics'."""
    check_dtypes(where, (x,), dt.FLOATS)
    for i, p in enumerate(params, 1):
        if p.dtype is not x.dtype and p.dtype is not statistics_dtype(x.dtype):
            takes = dict.fromkeys((str(x.dtype), str(statistics_dtype(x.dtype))))
            raise DTypeError(
                where, names[i], got=f"dtype {p.dtype}", takes=f"{' or '.join(takes)} beside an input of {x.dtype}"
            )


def check_parameter_shapes(
    where: str, params: Sequence[TensorType], shape: Axes, why: str, names: Sequence[str] = _PARAMS
) -> None:
    """Refuse parameters of another shape than ``shape``; ``why`` says what that is."""
    for i, p in enumerate(params, 1):
        if p.shape != shape:
            raise ShapeError(where, names[i], got=f"shape {p.shape}", takes=f"shape {shape}, {why}")


def widened(x: Any) -> Any:
    """An array in the dtype its sums are formed in."""
    return x.astype(accumulator(x.dtype) or x.dtype)


def moments(x: Any, axes: Axes) -> tuple[Any, Any]:
    """Mean and variance over ``axes``, which are kept."""
    mean = x.mean(axes, keepdims=True)
    return mean, jnp.square(x - mean).mean(axes, keepdims=True)


def affine(y: Any, params: Sequence[Any]) -> Any:
    """``y`` times the first parameter plus the second, as far as there are any."""
    for i, p in enumerate(params):
        y = y * p.astype(y.dtype) if i == 0 else y + p.astype(y.dtype)
    return y


def normalized_backward(dy: Any, x: Any, scale: Any, mean: Any, rstd: Any, axes: Axes) -> tuple[Any, Any, Any]:
    """Gradients of ``(x - mean) * rstd * scale + shift`` through the statistics over ``axes``.

    All arrays broadcast to the shape of ``x``; the gradients of scale and shift are not folded yet.
    """
    dy, normal = widened(dy), (widened(x) - mean) * rstd
    g = dy if scale is None else dy * scale.astype(dy.dtype)
    centred = g - g.mean(axes, keepdims=True) - normal * (g * normal).mean(axes, keepdims=True)
    return rstd * centred, dy * normal, dy


class Shared:
    """The outputs of one gradient primitive, computed when the first of them is asked for."""

    def __init__(self, make: Callable[[], tuple[Tensor, ...]]) -> None:
        self._make = make
        self._made: tuple[Tensor, ...] = ()

    def __getitem__(self, i: int) -> Tensor:
        if not self._made:
            self._made = self._make()
        return self._made[i]


def plus(a: Any, b: Any) -> Any:
    """The sum of two cotangents, either of which may be None."""
    return b if a is None else a if b is None else a + b


def through_moments(
    x: Tensor, mean: Tensor, d_mean: Tensor | None, d_variance: Tensor | None, count: int
) -> Tensor | None:
    """What the cotangents of a mean and a variance add to that of x; all broadcast to its shape."""
    wide = statistics_dtype(x.dtype)
    total: Any = None
    if d_mean is not None:
        total = broadcast_to(d_mean, x.shape) / count
    if d_variance is not None:
        total = plus(total, (cast(x, wide) - mean) * (d_variance * (2.0 / count)))
    return total  # type: ignore[no-any-return]


# Layer normalization ------------------------------------------------------------------------------------


def _leading(x: TensorType, begin: int) -> Axes:
    return x.shape[:begin] + (1,) * (x.rank - begin)


def _trailing_axes(rank: int, begin: int) -> Axes:
    return tuple(range(begin, rank))


def _infer_layer_norm(x: TensorType, *params: TensorType, begin: int, epsilon: float) -> tuple[TensorType, ...]:
    check_normalized("layer_norm", x, params)
    for i, p in enumerate(params, 1):
        if p.shape != x.shape[x.rank - p.rank :] or p.rank > x.rank:
            raise ShapeError(
                "layer_norm",
                _PARAMS[i],
                got=f"shape {p.shape}",
                takes=f"the last lengths of 'input' of shape {x.shape}",
            )
    statistics = TensorType(statistics_dtype(x.dtype), _leading(x, begin))
    return x, statistics, statistics


def _lower_layer_norm(x: Any, *params: Any, begin: int, epsilon: float) -> tuple[Any, ...]:
    wide = widened(x)
    mean, variance = moments(wide, _trailing_axes(x.ndim, begin))
    rstd = 1 / jnp.sqrt(variance + epsilon)
    return affine((wide - mean) * rstd, params).astype(x.dtype), mean, rstd


def _vjp_layer_norm(cts: Any, x: Tensor, *params: Tensor, out: Any, begin: int, epsilon: float) -> list[Any]:
    ct, d_mean, d_rstd = cts
    _, mean, rstd = out
    count = int(np.prod(x.shape[begin:]))
    grads = Shared(lambda: apply(layer_norm_grad_p, ct, x, mean, rstd, *params[:1], begin=begin))

    def grad_x() -> Any:
        d_variance = None if d_rstd is None else d_rstd * rstd * rstd * rstd * -0.5
        return plus(None if ct is None else grads[0], through_moments(x, mean, d_mean, d_variance, count))

    if not params:
        return [grad_x]
    if ct is None:
        return [grad_x, *[None for _ in params]]
    return [grad_x, lambda: grads[1], lambda: grads[2]][: 1 + len(params)]


def wave(*shape: int) -> np.ndarray[Any, Any]:
    """Sample values without a pattern."""
    return np.sin(np.arange(float(np.prod(shape))) * 1.3 + 0.5).reshape(shape) * 2


def _layer_norm_samples() -> list[Any]:
    attrs = {"begin": 1, "epsilon": 1e-5}
    return [
        Sample((wave(3, 4), wave(4) + 2, wave(4)), attrs), Sample((wave(2, 3, 4), wave(3, 4), wave(3, 4)), attrs),
        Sample((wave(2, 3, 4), wave(4), wave(4)), {"begin": 2, "epsilon": 1e-3}), Sample((wave(3, 4),), attrs),
        Sample((wave(2, 3, 4), wave(4), wave(4)), attrs), Sample((wave(3, 4), wave(4)), attrs),
        Sample((wave(4), wave(4), wave(4)), {"begin": 0, "epsilon": 1e-5}), Sample((np.zeros((0, 3)),), attrs),
        Bad((wave(3, 4), wave(3), wave(3)), attrs, ShapeError, "last lengths"),
    ]  # fmt: skip


layer_norm_p = Primitive(
    "layer_norm", infer=_infer_layer_norm, lower=_lower_layer_norm, vjp=_vjp_layer_norm, multi=True,
    samples=_layer_norm_samples,
)  # fmt: skip


def _infer_layer_norm_grad(
    ct: TensorType, x: TensorType, mean: TensorType, rstd: TensorType, *scale: TensorType, begin: int
) -> tuple[TensorType, ...]:
    check_normalized("layer_norm_grad", x, scale)
    return x, *scale, *scale


def _lower_layer_norm_grad(ct: Any, x: Any, mean: Any, rstd: Any, *scale: Any, begin: int) -> tuple[Any, ...]:
    dx, *rest = normalized_backward(ct, x, scale[0] if scale else None, mean, rstd, _trailing_axes(x.ndim, begin))
    folded = [g.sum(tuple(range(x.ndim - s.ndim))).astype(s.dtype) for g in rest for s in scale]
    return (dx.astype(x.dtype), *folded)


#: Gradients of a layer norm's input, scale and shift, its statistics taken as given.
layer_norm_grad_p = Primitive(
    "layer_norm_grad", infer=_infer_layer_norm_grad, lower=_lower_layer_norm_grad, multi=True, derived_vjp=True,
    samples=lambda: [
        Sample((wave(3, 4) ** 2, wave(3, 4), wave(3, 1), 1 + wave(3, 1) ** 2, wave(4)), {"begin": 1}),
        Sample((wave(3, 4) ** 2, wave(3, 4), wave(3, 1), 1 + wave(3, 1) ** 2), {"begin": 1}),
    ],
)  # fmt: skip


def as_epsilon(value: Any, where: str, argument: str = "eps") -> float:
    """A float that is not negative."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(where, argument, got=type(value).__name__, takes="a number")
    if not value >= 0:
        raise ArgumentValueError(where, argument, got=str(value), takes="a number that is not negative")
    return float(value)


def as_parameters(where: str, x: Tensor, weight: Any, bias: Any, shape: Axes) -> tuple[Tensor, ...]:
    """Scale and shift as tensors; a missing scale beside a shift is ones."""
    if weight is None and bias is None:
        return ()
    w = constant(np.ones(shape, x.dtype.np)) if weight is None else as_tensor(weight, where, "weight")
    return (w,) if bias is None else (w, as_tensor(bias, where, "bias"))


@operator()
def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalize the last axes of each sample: ``(x - mean) / sqrt(variance + eps) * weight + bias``.

    Args:
        input: a tensor of shape (..., *normalized_shape).
        normalized_shape: the lengths of the axes that are normalized together, an int or a tuple.
        weight: scale of that shape, or None.
        bias: shift of that shape, or None.
        eps: added to the variance.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        ShapeError: the input does not end with ``normalized_shape``, or weight or bias have another shape.

    >>> import mycelia as ms
    >>> print(ms.ops.layer_norm(ms.Tensor([[1.0, 3.0]]), (2,), eps=0.0))
    [[-1.  1.]]
    """
    x = as_float(input, "layer_norm")
    shape = as_shape(normalized_shape, "layer_norm", "normalized_shape", minimum=1)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ShapeError(
            "layer_norm", "normalized_shape", got=str(shape), takes=f"the last lengths of 'input' of shape {x.shape}"
        )
    params = as_parameters("layer_norm", x, weight, bias, shape)
    for p, name in zip(params, ("weight", "bias"), strict=False):
        if p.shape != shape:
            raise ShapeError("layer_norm", name, got=f"shape {p.shape}", takes=f"normalized_shape {shape}")
    y, _, _ = apply(layer_norm_p, x, *params, begin=x.ndim - len(shape), epsilon=as_epsilon(eps, "layer_norm"))
    return y  # type: ignore[no-any-return]


# RMS normalization --------------------------------------------------------------------------------------


def _infer_rms_norm(x: TensorType, scale: TensorType, *, epsilon: float) -> tuple[TensorType, ...]:
    check_normalized("rms_norm", x, (scale,), ("x", "gamma"))
    if not scale.rank or scale.rank > x.rank or scale.shape != x.shape[x.rank - scale.rank :]:
        raise ShapeError(
            "rms_norm", "gamma", got=f"shape {scale.shape}", takes=f"the last lengths of 'x' of shape {x.shape}"
        )
    return x, TensorType(statistics_dtype(x.dtype), _leading(x, x.rank - scale.rank))


def _lower_rms_norm(x: Any, scale: Any, *, epsilon: float) -> tuple[Any, ...]:
    wide = widened(x)
    axes = _trailing_axes(x.ndim, x.ndim - scale.ndim)
    rstd = 1 / jnp.sqrt(jnp.square(wide).mean(axes, keepdims=True) + epsilon)
    return (wide * rstd * scale.astype(wide.dtype)).astype(x.dtype), rstd


def _vjp_rms_norm(cts: Any, x: Tensor, scale: Tensor, out: Any, *, epsilon: float) -> list[Any]:
    ct, d_rstd = cts
    rstd = out[1]
    grads = Shared(lambda: apply(rms_norm_grad_p, ct, x, rstd, scale))
    count = int(np.prod(scale.shape))

    def grad_x() -> Any:
        through = None
        if d_rstd is not None:
            through = cast(x, rstd.dtype) * (d_rstd * rstd * rstd * rstd * (-1.0 / count))
        return plus(None if ct is None else grads[0], through)

    return [grad_x, None if ct is None else lambda: grads[1]]


rms_norm_p = Primitive(
    "rms_norm", infer=_infer_rms_norm, lower=_lower_rms_norm, vjp=_vjp_rms_norm, multi=True,
    samples=lambda: [
        Sample((wave(3, 4), wave(4) + 2), {"epsilon": 1e-6}),
        Sample((wave(2, 3, 4), wave(3, 4)), {"epsilon": 1e-3}),
        Sample((np.zeros((0, 3)), wave(3)), {"epsilon": 1e-6}),
        Bad((wave(3, 4), wave(3)), {"epsilon": 1e-6}, ShapeError, "last lengths"),
    ],
)  # fmt: skip


def _infer_rms_norm_grad(ct: TensorType, x: TensorType, rstd: TensorType, scale: TensorType) -> Any:
    check_normalized("rms_norm_grad", x, (scale,))
    return x, scale


def _lower_rms_norm_grad(ct: Any, x: Any, rstd: Any, scale: Any) -> tuple[Any, ...]:
    dy, normal = widened(ct), widened(x) * rstd
    g = dy * scale.astype(dy.dtype)
    axes = _trailing_axes(x.ndim, x.ndim - scale.ndim)
    dx = rstd * (g - normal * (g * normal).mean(axes, keepdims=True))
    d_scale = (dy * normal).sum(tuple(range(x.ndim - scale.ndim)))
    return dx.astype(x.dtype), d_scale.astype(scale.dtype)


#: Gradients of an RMS norm's input and scale, its statistic taken as given.
rms_norm_grad_p = Primitive(
    "rms_norm_grad", infer=_infer_rms_norm_grad, lower=_lower_rms_norm_grad, multi=True,
    derived_vjp=True,
    samples=lambda: [Sample((wave(3, 4) ** 2, wave(3, 4), 1 + wave(3, 1) ** 2, wave(4)))],
)  # fmt: skip


@operator()
def rms_norm(x: Any, gamma: Any, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    """Divide by the root of the mean square over the last axes: ``x / sqrt(mean(x * x) + epsilon) * gamma``.

    Args:
        x: a tensor.
        gamma: scale whose shape is that of the last axes of ``x``.
        epsilon: added to the mean square.

    Returns:
        The normalized tensor, and the reciprocal root (with normalized axes of length 1).

    Raises:
        ShapeError: ``gamma`` does not fit the last axes.

    >>> import mycelia as ms
    >>> y, rstd = ms.ops.rms_norm(ms.Tensor([[3.0, 3.0]]), ms.Tensor([1.0, 2.0]), 0.0)
    >>> print(y)
    [[1. 2.]]
    """
    value, scale = as_float(x, "rms_norm", "x"), as_tensor(gamma, "rms_norm", "gamma")
    y, rstd = apply(rms_norm_p, value, scale, epsilon=as_epsilon(epsilon, "rms_norm", "epsilon"))
    return y, rstd


@operator()
def add_rms_norm(x1: Any, x2: Any, gamma: Any, epsilon: float = 1e-6) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`rms_norm` of a sum: the normalized tensor, the reciprocal root, and the sum.

    >>> import mycelia as ms
    >>> y, _, total = ms.ops.add_rms_norm(ms.Tensor([[1.0, 1.0]]), ms.Tensor([[2.0, 2.0]]), ms.Tensor([1.0, 2.0]))
    >>> print(total)
    [[3. 3.]]
    """
    total = as_float(x1, "add_rms_norm", "x1") + as_float(x2, "add_rms_norm", "x2")
    y, rstd = rms_norm(total, gamma, epsilon)
    return y, rstd, total


@operator()
def add_layer_norm(
    x1: Any, x2: Any, gamma: Any, beta: Any, epsilon: float = 1e-5, additional_out: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """:func:`layer_norm` of a sum over the axes of ``gamma``.

    Returns:
        The normalized tensor, mean, reciprocal standard deviation, and the sum (zeros of one element unless
        ``additional_out``).

    >>> import mycelia as ms
    >>> one = ms.ops.ones((1, 2))
    >>> y, *_ = ms.ops.add_layer_norm(one, ms.Tensor([[0.0, 2.0]]), one[0], one[0], epsilon=0.0)
    >>> print(y)
    [[0. 2.]]
    """
    total = as_float(x1, "add_layer_norm", "x1") + as_float(x2, "add_layer_norm", "x2")
    scale, shift = as_tensor(gamma, "add_layer_norm", "gamma"), as_tensor(beta, "add_layer_norm", "beta")
    y, mean, rstd = apply(
        layer_norm_p,
        total,
        scale,
        shift,
        begin=total.ndim - scale.ndim,
        epsilon=as_epsilon(epsilon, "add_layer_norm", "epsilon"),
    )
    return y, mean, rstd, total if additional_out else constant(np.zeros(1, total.dtype.np))


# Group and instance normalization -----------------------------------------------------------------------


def _grouped(shape: Axes, groups: int) -> Axes:
    return (shape[0], groups, shape[1] // groups, *shape[2:])


def _infer_group_norm(x: TensorType, *params: TensorType, groups: int, epsilon: float) -> tuple[TensorType, ...]:
    check_normalized("group_norm", x, params)
    if x.rank < 2:
        raise ShapeError("group_norm", "input", got=f"shape {x.shape}", takes="shape (batch, channels, ...)")
    if groups < 1 or x.shape[1] % groups:
        raise ArgumentValueError(
            "group_norm", "num_groups", got=str(groups), takes=f"a divisor of the {x.shape[1]} channels"
        )
    check_parameter_shapes("group_norm", params, (x.shape[1],), "one value a channel")
    statistics = TensorType(statistics_dtype(x.dtype), (x.shape[0], groups))
    return x, statistics, statistics


def _per_channel(p: Any, rank: int) -> Any:
    return p.reshape((1, -1) + (1,) * (rank - 2))


def _lower_group_norm(x: Any, *params: Any, groups: int, epsilon: float) -> tuple[Any, ...]:
    wide = widened(x).reshape(_grouped(x.shape, groups))
    mean, variance = moments(wide, _trailing_axes(wide.ndim, 2))
    rstd = 1 / jnp.sqrt(variance + epsilon)
    y = affine(((wide - mean) * rstd).reshape(x.shape), [_per_channel(p, x.ndim) for p in params])
    return y.astype(x.dtype), mean.reshape(x.shape[0], groups), rstd.reshape(x.shape[0], groups)


def _vjp_group_norm(cts: Any, x: Tensor, *params: Tensor, out: Any, groups: int, epsilon: float) -> list[Any]:
    ct, d_mean, d_rstd = cts
    _, mean, rstd = out
    split = _grouped(x.shape, groups)
    kept = (x.shape[0], groups, *(1 for _ in split[2:]))
    grads = Shared(lambda: apply(group_norm_grad_p, ct, x, mean, rstd, *params[:1], groups=groups))

    def grad_x() -> Any:
        d_variance = None if d_rstd is None else reshape(d_rstd * rstd * rstd * rstd * -0.5, kept)
        d_kept = None if d_mean is None else reshape(d_mean, kept)
        through = through_moments(reshape(x, split), reshape(mean, kept), d_kept, d_variance, int(np.prod(split[2:])))
        return plus(None if ct is None else grads[0], None if through is None else reshape(through, x.shape))

    if ct is None:
        return [grad_x, *[None for _ in params]]
    return [grad_x, lambda: grads[1], lambda: grads[2]][: 1 + len(params)]


def _group_norm_samples() -> list[Any]:
    attrs = {"groups": 2, "epsilon": 1e-5}
    return [
        Sample((wave(2, 4, 3, 2), wave(4) + 2, wave(4)), attrs), Sample((wave(2, 4, 3),), attrs),
        Sample((wave(2, 3, 4), wave(3), wave(3)), {"groups": 3, "epsilon": 1e-3}),
        Sample((wave(3, 4), wave(4)), attrs),
        Sample((np.zeros((0, 2, 3)),), attrs),
        Bad((wave(2, 3, 4),), attrs, ArgumentValueError, "divisor of the 3 channels"),
        Bad((wave(2, 4, 4), wave(3), wave(3)), attrs, ShapeError, "one value a channel"),
        Bad((wave(4),), attrs, ShapeError, "channels"),
    ]  # fmt: skip


group_norm_p = Primitive(
    "group_norm", infer=_infer_group_norm, lower=_lower_group_norm, vjp=_vjp_group_norm, multi=True,
    samples=_group_norm_samples,
)  # fmt: skip


def _infer_group_norm_grad(
    ct: TensorType, x: TensorType, mean: TensorType, rstd: TensorType, *scale: TensorType, groups: int
) -> tuple[TensorType, ...]:
    check_normalized("group_norm_grad", x, scale)
    return x, *scale, *scale


def _lower_group_norm_grad(ct: Any, x: Any, mean: Any, rstd: Any, *scale: Any, groups: int) -> tuple[Any, ...]:
    split = _grouped(x.shape, groups)
    kept = (*mean.shape, *(1 for _ in split[2:]))
    spread = jnp.broadcast_to(_per_channel(scale[0], x.ndim), x.shape).reshape(split) if scale else None
    dx, *rest = normalized_backward(
        ct.reshape(split),
        x.reshape(split),
        spread,
        mean.reshape(kept),
        rstd.reshape(kept),
        _trailing_axes(len(split), 2),
    )
    axes = tuple([i for i in range(x.ndim) if i != 1])
    folded = [g.reshape(x.shape).sum(axes).astype(s.dtype) for g in rest for s in scale]
    return (dx.reshape(x.shape).astype(x.dtype), *folded)


#: Gradients of a group norm's input, scale and shift, its statistics taken as given.
group_norm_grad_p = Primitive(
    "group_norm_grad", infer=_infer_group_norm_grad, lower=_lower_group_norm_grad,
    multi=True, derived_vjp=True,
    samples=lambda: [
        Sample((wave(2, 4, 3) ** 2, wave(2, 4, 3), wave(2, 2), 1 + wave(2, 2) ** 2, wave(4)), {"groups": 2}),
        Sample((wave(2, 4, 3) ** 2, wave(2, 4, 3), wave(2, 2), 1 + wave(2, 2) ** 2), {"groups": 2}),
    ],
)  # fmt: skip


@operator()
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalize the channels of each sample in groups.

    Args:
        input: a tensor of shape (batch, channels, ...).
        num_groups: number of groups, a divisor of the number of channels.
        weight: scale of shape (channels,), or None.
        bias: shift of shape (channels,), or None.
        eps: added to the variance.

    Raises:
        ArgumentValueError: the channels cannot be split into that many groups.

    >>> import mycelia as ms
    >>> print(ms.ops.group_norm(ms.Tensor([[1.0, 3.0, 5.0, 5.0]]), 2, eps=0.0))
    [[-1.  1. nan nan]]
    """
    x = as_float(input, "group_norm")
    if x.ndim < 2:
        raise ShapeError("group_norm", "input", got=f"shape {x.shape}", takes="shape (batch, channels, ...)")
    params = as_parameters("group_norm", x, weight, bias, (x.shape[1],))
    groups = as_int(num_groups, "group_norm", "num_groups")
    y, _, _ = apply(group_norm_p, x, *params, groups=groups, epsilon=as_epsilon(eps, "group_norm"))
    return y  # type: ignore[no-any-return]


@operator()
def instance_norm(input: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalize each channel of each sample over its spatial axes.

    Args:
        input: a tensor of shape (batch, channels, ...) with at least one spatial axis.
        weight: scale of shape (channels,), or None.
        bias: shift of shape (channels,), or None.
        eps: added to the variance.

    >>> import mycelia as ms
    >>> print(ms.ops.instance_norm(ms.Tensor([[[1.0, 3.0]]]), eps=0.0))
    [[[-1.  1.]]]
    """
    x = as_float(input, "instance_norm")
    if x.ndim < 3:
        raise ShapeError(
            "instance_norm", "input", got=f"shape {x.shape}", takes="shape (batch, channels, spatial axes...)"
        )
    params = as_parameters("instance_norm", x, weight, bias, (x.shape[1],))
    y, _, _ = apply(group_norm_p, x, *params, groups=x.shape[1], epsilon=as_epsilon(eps, "instance_norm"))
    return y  # type: ignore[no-any-return]
