"""Normalization of an element by its neighbours: by the size of its vector, or by near channels."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.linear import accumulator
from mycelia.ops.norms import as_order
from mycelia.ops.operands import as_axes
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_A = np.array([[1.5, -2.0, 0.5], [0.25, 3.0, -1.0]])
_IMAGE = np.sin(np.arange(24.0)) * 2


def _infer_l2(x: TensorType, *, axes: tuple[int, ...], epsilon: float) -> TensorType:
    check_dtypes("l2_normalize", (x,), dt.FLOATS)
    return x


def _lower_l2(x: Any, *, axes: tuple[int, ...], epsilon: float) -> Any:
    wide = x.astype(accumulator(x.dtype) or x.dtype)
    total = jnp.maximum((wide * wide).sum(axes, keepdims=True), epsilon)
    return (wide / jnp.sqrt(total)).astype(x.dtype)


#: ``x / sqrt(max(sum(x * x), epsilon))``.
l2_normalize_p = Primitive(
    "l2_normalize", infer=_infer_l2, lower=_lower_l2, derived_vjp=True,
    samples=lambda: [
        Sample((_A,), {"axes": (1,), "epsilon": 1e-4}), Sample((_A * 1e-3,), {"axes": (0,), "epsilon": 1e-4}),
        Sample((_A,), {"axes": (0, 1), "epsilon": 1e-4}), Sample((np.zeros((0, 3)),), {"axes": (1,), "epsilon": 1e-4}),
    ],
)  # fmt: skip


def l2_normalize(x: Any, axis: Any = 0, epsilon: float = 1e-4) -> Tensor:
    """Divide by the root of the sum of squares over axes, which counts as at least ``epsilon``.

    Args:
        x: a float tensor.
        axis: an axis or several.
        epsilon: the least sum of squares.

    >>> import mycelia as ms
    >>> print(l2_normalize(ms.Tensor([3.0, 4.0])))
    [0.6 0.8]
    """
    t = as_float(x, "l2_normalize", "x")
    axes = as_axes(axis, t.ndim, "l2_normalize")
    return apply(l2_normalize_p, t, axes=axes, epsilon=as_order(epsilon, "l2_normalize", "epsilon"))  # type: ignore[no-any-return]


def _infer_lrn(x: TensorType, *, radius: int, bias: float, alpha: float, beta: float) -> TensorType:
    check_dtypes("lrn", (x,), dt.FLOATS, ("x",))
    if x.rank != 4:
        raise ShapeError("lrn", "x", got=f"shape {x.shape}", takes="shape (batch, channels, height, width)")
    return x


def _lower_lrn(x: Any, *, radius: int, bias: float, alpha: float, beta: float) -> Any:
    wide = x.astype(accumulator(x.dtype) or x.dtype)
    padded = jnp.pad(wide * wide, ((0, 0), (radius, radius), (0, 0), (0, 0)))
    channels = x.shape[1]
    total: Any = 0
    for offset in range(2 * radius + 1):
        total = total + padded[:, offset : offset + channels]
    return (wide / (bias + alpha * total) ** beta).astype(x.dtype)


lrn_p = Primitive(
    "lrn", infer=_infer_lrn, lower=_lower_lrn, derived_vjp=True,
    samples=lambda: [
        Sample((_IMAGE.reshape(1, 6, 2, 2),), {"radius": 2, "bias": 1.0, "alpha": 0.5, "beta": 0.75}),
        Sample((_IMAGE.reshape(2, 3, 2, 2),), {"radius": 5, "bias": 2.0, "alpha": 1.0, "beta": 0.5}),
        Sample((np.zeros((0, 3, 2, 2)),), {"radius": 1, "bias": 2.0, "alpha": 1.0, "beta": 0.5}),
        Bad((_A,), {"radius": 1, "bias": 2.0, "alpha": 1.0, "beta": 0.5}, ShapeError, "channels"),
    ],
)  # fmt: skip


@operator()
def lrn(
    x: Any, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
    norm_region: str = "ACROSS_CHANNELS",
) -> Tensor:  # fmt: skip
    """Local response normalization: divide by ``(bias + alpha * sum of squares of near channels) ** beta``.

    A. Krizhevsky, I. Sutskever and G. Hinton, "ImageNet classification with deep convolutional neural
    networks" (2012).

    Args:
        x: a float tensor of shape (batch, channels, height, width).
        depth_radius: how many channels on each side count.
        bias: see the formula, like ``alpha`` and ``beta``.
        alpha: a number.
        beta: a number.
        norm_region: ``"ACROSS_CHANNELS"``.

    >>> import mycelia as ms
    >>> print(ms.ops.lrn(ms.ops.ones((1, 1, 1, 1)), bias=3.0).flatten())
    [0.5]
    """
    if norm_region != "ACROSS_CHANNELS":
        raise ArgumentValueError("lrn", "norm_region", got=repr(norm_region), takes='"ACROSS_CHANNELS"')
    if isinstance(depth_radius, bool) or not isinstance(depth_radius, int) or depth_radius < 0:
        raise ArgumentValueError("lrn", "depth_radius", got=repr(depth_radius), takes="an int that is not negative")
    return apply(  # type: ignore[no-any-return]
        lrn_p, as_float(x, "lrn", "x"), radius=depth_radius, bias=as_order(bias, "lrn", "bias"),
        alpha=as_order(alpha, "lrn", "alpha"), beta=as_order(beta, "lrn", "beta"),
    )  # fmt: skip
