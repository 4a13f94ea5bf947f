"""Batch normalization: statistics of each channel over the batch and the spatial axes.

S. Ioffe and C. Szegedy, "Batch normalization: accelerating deep network training by reducing internal
covariate shift" (2015). ``batch_norm`` gives the result with the batch's mean and (biased) variance,
``batch_norm_inference`` uses given ones, ``running_statistics`` blends them with the unbiased variance.
``axis`` is that of the channels. Half inputs may have float32 parameters; statistics are then float32.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.normalization import (
    Shared,
    affine,
    as_epsilon,
    as_parameters,
    check_normalized,
    check_parameter_shapes,
    moments,
    normalized_backward,
    plus,
    statistics_dtype,
    through_moments,
    wave,
    widened,
)
from mycelia.ops.operands import as_tensor, cast
from mycelia.ops.reduction import reduce_sum
from mycelia.ops.registry import operator
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant, set_value

_NAMES = ("input", "weight", "bias", "running_mean", "running_var")


def _others(rank: int, axis: int) -> tuple[int, ...]:
    return tuple([i for i in range(rank) if i != axis])


def _along(p: Any, rank: int, axis: int) -> Any:
    """One value a channel as an array that broadcasts against the input."""
    return p.reshape([-1 if i == axis else 1 for i in range(rank)])


def _check_input(x: TensorType, params: tuple[TensorType, ...], axis: int) -> None:
    check_normalized("batch_norm", x, params, _NAMES)
    if x.rank < 2:
        raise ShapeError("batch_norm", "input", got=f"shape {x.shape}", takes="shape (batch, channels, ...)")
    check_parameter_shapes(
        "batch_norm", params, (x.shape[axis],), f"one value for each channel of 'input' {x.shape}", _NAMES
    )


def _infer_batch_norm(x: TensorType, *params: TensorType, axis: int, epsilon: float) -> tuple[TensorType, ...]:
    _check_input(x, params, axis)
    if x.size == x.shape[axis] and x.size:
        raise ShapeError(
            "batch_norm",
            "input",
            got=f"shape {x.shape}, one value a channel",
            takes="more than one value a channel in training",
        )
    statistics = TensorType(statistics_dtype(x.dtype), (x.shape[axis],))
    return x, statistics, statistics


def _lower_batch_norm(x: Any, *params: Any, axis: int, epsilon: float) -> tuple[Any, ...]:
    wide = widened(x)
    mean, variance = moments(wide, _others(x.ndim, axis))
    y = affine((wide - mean) * (1 / jnp.sqrt(variance + epsilon)), [_along(p, x.ndim, axis) for p in params])
    return y.astype(x.dtype), mean.reshape(-1), variance.reshape(-1)


def _vjp_batch_norm(cts: Any, x: Tensor, *params: Tensor, out: Any, axis: int, epsilon: float) -> list[Any]:
    ct, d_mean, d_variance = cts
    _, mean, variance = out
    kept = tuple([x.shape[axis] if i == axis else 1 for i in range(x.ndim)])
    grads = Shared(lambda: apply(batch_norm_grad_p, ct, x, mean, variance, *params[:1], axis=axis, epsilon=epsilon))

    def grad_x() -> Any:
        through = through_moments(
            x, reshape(mean, kept), None if d_mean is None else reshape(d_mean, kept),
            None if d_variance is None else reshape(d_variance, kept), x.size // x.shape[axis],
        )  # fmt: skip
        return plus(None if ct is None else grads[0], through)

    if ct is None:
        return [grad_x, *[None for _ in params]]
    return [grad_x, lambda: grads[1], lambda: grads[2]][: 1 + len(params)]


def _batch_norm_samples() -> list[Any]:
    attrs = {"axis": 1, "epsilon": 1e-5}
    return [
        Sample((wave(3, 2, 2, 2), wave(2) + 3, wave(2)), attrs), Sample((wave(5, 3), wave(3), wave(3)), attrs),
        Sample((wave(3, 2, 3),), attrs), Sample((wave(3, 2, 2, 4), wave(4), wave(4)), {"axis": 3, "epsilon": 1e-3}),
        Bad((wave(3, 2, 2), wave(3), wave(3)), attrs, ShapeError, "one value for each channel"),
        Bad((wave(3), wave(3), wave(3)), attrs, ShapeError, "channels"),
        Bad((wave(1, 3), wave(3), wave(3)), attrs, ShapeError, "more than one value a channel"),
    ]  # fmt: skip


batch_norm_p = Primitive(
    "batch_norm", infer=_infer_batch_norm, lower=_lower_batch_norm, vjp=_vjp_batch_norm, multi=True,
    samples=_batch_norm_samples,
)  # fmt: skip


def _infer_batch_norm_grad(
    ct: TensorType, x: TensorType, mean: TensorType, variance: TensorType, *scale: TensorType, axis: int, epsilon: float
) -> tuple[TensorType, ...]:
    check_normalized("batch_norm_grad", x, scale)
    return x, *scale, *scale


def _lower_batch_norm_grad(
    ct: Any, x: Any, mean: Any, variance: Any, *scale: Any, axis: int, epsilon: float
) -> tuple[Any, ...]:
    rank, axes = x.ndim, _others(x.ndim, axis)
    rstd = _along(1 / jnp.sqrt(variance + epsilon), rank, axis)
    spread = _along(scale[0], rank, axis) if scale else None
    dx, *rest = normalized_backward(ct, x, spread, _along(mean, rank, axis), rstd, axes)
    folded = [g.sum(axes).astype(s.dtype) for g in rest for s in scale]
    return (dx.astype(x.dtype), *folded)


#: Gradients of a batch norm's input, scale and shift, its statistics taken as given.
batch_norm_grad_p = Primitive(
    "batch_norm_grad", infer=_infer_batch_norm_grad, lower=_lower_batch_norm_grad, multi=True, derived_vjp=True,
    samples=lambda: [
        Sample(
            (wave(3, 2, 2) ** 2, wave(3, 2, 2), wave(2), 1 + wave(2) ** 2, wave(2)), {"axis": 1, "epsilon": 1e-5}
        ),
        Sample((wave(3, 2) ** 2, wave(3, 2), wave(2), 1 + wave(2) ** 2), {"axis": 1, "epsilon": 1e-5}),
    ],
)  # fmt: skip


def _infer_inference(
    x: TensorType, scale: TensorType, shift: TensorType, mean: TensorType, variance: TensorType, *, axis: int,
    epsilon: float,
) -> TensorType:  # fmt: skip
    _check_input(x, (scale, shift, mean, variance), axis)
    return x


def _lower_inference(x: Any, scale: Any, shift: Any, mean: Any, variance: Any, *, axis: int, epsilon: float) -> Any:
    wide = widened(x)
    scale, shift, mean, variance = (_along(p.astype(wide.dtype), x.ndim, axis) for p in (scale, shift, mean, variance))
    return ((wide - mean) * (scale / jnp.sqrt(variance + epsilon)) + shift).astype(x.dtype)


def _vjp_inference(
    ct: Tensor, x: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, variance: Tensor, *, out: Tensor, axis: int,
    epsilon: float,
) -> list[Any]:  # fmt: skip
    from mycelia.ops.elementary import rsqrt

    wide, axes = statistics_dtype(x.dtype), _others(x.ndim, axis)
    kept = tuple([x.shape[axis] if i == axis else 1 for i in range(x.ndim)])
    c: Any = cast(ct, wide)
    rstd: Any = rsqrt(cast(variance, wide) + epsilon)
    gain: Any = cast(scale, wide) * rstd

    def total() -> Any:
        return reduce_sum(c, axes)

    def correlated() -> Any:
        return reduce_sum(c * (cast(x, wide) - reshape(cast(mean, wide), kept)), axes)

    return [
        lambda: c * reshape(gain, kept), lambda: correlated() * rstd, total, lambda: -(total() * gain),
        lambda: correlated() * gain * rstd * rstd * -0.5,
    ]  # fmt: skip


batch_norm_inference_p = Primitive(
    "batch_norm_inference", infer=_infer_inference, lower=_lower_inference, vjp=_vjp_inference,
    samples=lambda: [
        Sample((wave(3, 2, 2), wave(2), wave(2), wave(2), 1 + wave(2) ** 2), {"axis": 1, "epsilon": 1e-5}),
        Sample((wave(1, 3), wave(3), wave(3), wave(3), 1 + wave(3) ** 2), {"axis": 1, "epsilon": 1e-3}),
        Sample((np.zeros((0, 2, 2)), wave(2), wave(2), wave(2), 1 + wave(2) ** 2), {"axis": 1, "epsilon": 1e-5}),
        Sample((wave(2, 2, 3), wave(3), wave(3), wave(3), 1 + wave(3) ** 2), {"axis": 2, "epsilon": 1e-5}),
        Bad(
            (wave(3, 2, 2), wave(2), wave(2), wave(3), wave(2)), {"axis": 1, "epsilon": 1e-5}, ShapeError,
            "running_mean",
        ),
    ],
)  # fmt: skip


def _infer_running(
    running_mean: TensorType,
    running_var: TensorType,
    mean: TensorType,
    variance: TensorType,
    *,
    momentum: float,
    count: int,
) -> tuple[TensorType, ...]:
    types = (running_mean, running_var, mean, variance)
    for t, name in zip(types, ("running_mean", "running_var", "mean", "variance"), strict=True):
        check_dtypes("batch_norm", (t,), dt.FLOATS, (name,))
        if t.shape != mean.shape:
            raise ShapeError(
                "batch_norm", name, got=f"shape {t.shape}", takes=f"shape {mean.shape}, one value a channel"
            )
    return running_mean, running_var


def _lower_running(
    running_mean: Any, running_var: Any, mean: Any, variance: Any, *, momentum: float, count: int
) -> tuple[Any, ...]:
    unbiased = variance * (count / max(count - 1, 1))
    return tuple(
        [
            ((1 - momentum) * widened(old) + momentum * new.astype(widened(old).dtype)).astype(old.dtype)
            for old, new in ((running_mean, mean), (running_var, unbiased))
        ]
    )


#: Running mean and variance after a batch of ``count`` values a channel; ``momentum`` weighs the new ones.
running_statistics_p = Primitive(
    "running_statistics", infer=_infer_running, lower=_lower_running, multi=True, differentiable=False,
    samples=lambda: [
        Sample((wave(3), 1 + wave(3) ** 2, -wave(3), 2 + wave(3) ** 2), {"momentum": 0.1, "count": 8}),
        Sample((wave(3), 1 + wave(3) ** 2, -wave(3), wave(3) ** 2), {"momentum": 1.0, "count": 1}),
        Bad((wave(2), wave(3), wave(3), wave(3)), {"momentum": 0.1, "count": 8}, ShapeError, "running_mean"),
    ],
)  # fmt: skip


def batch_norm_training(
    x: Tensor, params: tuple[Tensor, ...], running_mean: Tensor | None, running_var: Tensor | None, momentum: float,
    epsilon: float, axis: int = 1,
) -> Tensor:  # fmt: skip
    """Normalize with the batch's statistics and blend them into the running ones, which are overwritten.

    Args:
        x: a float tensor.
        params: scale and shift of shape (channels,), or nothing.
        running_mean: overwritten if given, together with ``running_var``.
        running_var: see above.
        momentum: weight of the new statistics.
        epsilon: added to the variance.
        axis: the axis of the channels.
    """
    y, mean, variance = apply(batch_norm_p, x, *params, axis=axis, epsilon=epsilon)
    if running_mean is not None and running_var is not None:
        count = x.size // max(x.shape[axis], 1)
        new_mean, new_var = apply(
            running_statistics_p, running_mean, running_var, mean, variance, momentum=momentum, count=count
        )
        set_value(running_mean, new_mean)
        set_value(running_var, new_var)
    return y  # type: ignore[no-any-return]


@operator()
def batch_norm(
    input_x: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Normalize each channel over the batch and the spatial axes.

    Args:
        input_x: a tensor of shape (batch, channels, ...).
        running_mean: mean of each channel, of shape (channels,); with ``training`` it is overwritten by
            ``(1 - momentum) * running_mean + momentum * mean``. None in training: nothing is kept.
        running_var: variance of each channel; overwritten likewise, with the unbiased variance.
        weight: scale of shape (channels,), or None.
        bias: shift of shape (channels,), or None.
        training: use the statistics of this batch instead of the running ones.
        momentum: weight of the new statistics.
        eps: added to the variance.

    Returns:
        A tensor of the input's shape and dtype.

    Raises:
        ShapeError: a parameter has another number of values than there are channels, or, in training, a
            channel has a single value.
        ArgumentTypeError: running statistics that cannot be overwritten, or none without ``training``.

    >>> import mycelia as ms
    >>> x, mean, var = ms.Tensor([[1.0], [3.0]]), ms.Tensor([0.0]), ms.Tensor([1.0])
    >>> print(ms.ops.batch_norm(x, mean, var, training=True, eps=0.0).flatten())
    [-1.  1.]
    >>> print(mean, var)
    [0.2] [1.1]
    """
    x = as_float(input_x, "batch_norm", "input_x")
    if x.ndim < 2:
        raise ShapeError("batch_norm", "input_x", got=f"shape {x.shape}", takes="shape (batch, channels, ...)")
    if isinstance(momentum, bool) or not isinstance(momentum, (int, float)):
        raise ArgumentTypeError("batch_norm", "momentum", got=type(momentum).__name__, takes="a number from 0 to 1")
    if not 0 <= momentum <= 1:
        raise ArgumentValueError("batch_norm", "momentum", got=str(momentum), takes="a number from 0 to 1")
    epsilon = as_epsilon(eps, "batch_norm")
    params = as_parameters("batch_norm", x, weight, bias, (x.shape[1],))
    if len(params) == 1:
        params = (*params, constant(np.zeros(x.shape[1], x.dtype.np)))
    running = {"running_mean": running_mean, "running_var": running_var}
    if training:
        for name, value in running.items():
            if value is not None and not isinstance(value, Tensor):
                raise ArgumentTypeError(
                    "batch_norm", name, got=type(value).__name__, takes="a Tensor, which training overwrites"
                )
        return batch_norm_training(x, params, running_mean, running_var, float(momentum), epsilon)
    for name, value in running.items():
        if value is None:
            raise ArgumentTypeError("batch_norm", name, got="None", takes="a Tensor unless training")
    if not params:
        channels = x.shape[1]
        ones, zeros = np.ones(channels, x.dtype.np), np.zeros(channels, x.dtype.np)
        params = (constant(ones), constant(zeros))
    given = [as_tensor(v, "batch_norm", n) for n, v in running.items()]
    return apply(batch_norm_inference_p, x, *params, *given, axis=1, epsilon=epsilon)  # type: ignore[no-any-return]
