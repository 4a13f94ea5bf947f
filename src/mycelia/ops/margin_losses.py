"""Losses over rows: angles, triplets, and multi-class and multi-label margins."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float, floats
from mycelia.ops.cross_entropy import as_reduction, reduced
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.extremum import minimum
from mycelia.ops.linear import accumulator
from mycelia.ops.losses import as_number, softplus_of
from mycelia.ops.norms import p_norm
from mycelia.ops.operands import as_tensor, broadcast_shapes, cast
from mycelia.ops.rectifiers import relu
from mycelia.ops.reduction import reduce_sum
from mycelia.ops.registry import operator
from mycelia.ops.selection import where
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_X = np.array([[0.1, 0.6, -0.3, 0.9], [1.3, -0.2, 0.75, 0.35]])


@operator()
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """``1 - cos`` of the angle between rows where the target is 1, ``max(0, cos - margin)`` where it is -1.

    Args:
        input1: vectors of shape (batch, features), or (features,).
        input2: vectors of the same shape.
        target: 1 or -1, of shape (batch,), or ().
        margin: from -1 to 1.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    >>> import mycelia as ms
    >>> x = ms.Tensor([[1.0, 0.0]])
    >>> print(ms.ops.cosine_embedding_loss(x, ms.Tensor([[0.0, 2.0]]), ms.Tensor([1.0])))
    1.0
    """
    fold = as_reduction(reduction, "cosine_embedding_loss")
    limit = as_number(margin, "cosine_embedding_loss", "margin")
    if not -1 <= limit <= 1:
        raise ArgumentValueError("cosine_embedding_loss", "margin", got=str(margin), takes="a number from -1 to 1")
    x1, x2 = floats("cosine_embedding_loss", input1, input2, names=("input1", "input2"))
    t: Any = cast(as_tensor(target, "cosine_embedding_loss", "target"), x1.dtype)
    broadcast_shapes("cosine_embedding_loss", [x1.shape, x2.shape], ("input1", "input2"))
    axis = (max(x1.ndim, x2.ndim) - 1,)
    if not axis[0] + 1 or t.ndim != axis[0]:
        raise ShapeError(
            "cosine_embedding_loss", "target", got=f"shape {t.shape}", takes=f"one value for each row of {x1.shape}"
        )
    tiny = float(np.finfo(np.float32).eps) if x1.dtype is not dt.float64 else float(np.finfo(np.float64).eps)
    product: Any = reduce_sum(x1 * x2, axis)
    sizes: Any = (reduce_sum(x1 * x1, axis) + tiny) * (reduce_sum(x2 * x2, axis) + tiny)
    from mycelia.ops.elementary import sqrt

    cosine: Any = product / sqrt(sizes)
    near: Any = where(t == 1.0, 1.0 - cosine, 0.0)
    return reduced(near + where(t == -1.0, relu(cosine - limit), 0.0), fold)


@operator()
def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: Any = 2, eps: float = 1e-6, swap: bool = False,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with p-norm distances of rows.

    V. Balntas et al., "Learning shallow convolutional feature descriptors with triplet losses" (2016).

    Args:
        anchor: vectors on the last axis.
        positive: vectors that should be near, of a shape that broadcasts.
        negative: vectors that should be far, of a shape that broadcasts.
        margin: a number.
        p: order of the norm.
        eps: added to every difference.
        swap: use the smaller of the distances from the anchor and from the positive to the negative.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    >>> import mycelia as ms
    >>> a, b = ms.Tensor([[0.0, 0.0]]), ms.Tensor([[3.0, 4.0]])
    >>> print(f"{ms.ops.triplet_margin_loss(a, b, a).item():.3f}")
    6.000
    """
    fold = as_reduction(reduction, "triplet_margin_loss")
    limit, small = as_number(margin, "triplet_margin_loss", "margin"), as_number(eps, "triplet_margin_loss", "eps")
    order = as_number(p, "triplet_margin_loss", "p")
    names = ("anchor", "positive", "negative")
    a, near, far = floats("triplet_margin_loss", anchor, positive, negative, names=names)
    shape = broadcast_shapes("triplet_margin_loss", [a.shape, near.shape, far.shape], names)
    if not shape:
        raise ShapeError("triplet_margin_loss", "anchor", got="a zero-dimensional tensor", takes="vectors")

    def distance(x: Any, y: Any) -> Any:
        difference: Any = x - y + small
        return p_norm(difference, order, (difference.ndim - 1,))

    away = distance(a, far)
    if swap:
        away = minimum(away, distance(near, far))
    return reduced(relu(distance(a, near) - away + limit), fold)


# Margins ------------------------------------------------------------------------------------------------


def _rows(where_: str, x: TensorType, labels: TensorType, shape: tuple[int, ...], what: str) -> None:
    check_dtypes(where_, (x,), dt.FLOATS)
    if x.rank not in (1, 2):
        raise ShapeError(where_, "input", got=f"shape {x.shape}", takes="shape (batch, classes), or (classes,)")
    if not labels.dtype.is_integer:
        raise DTypeError(where_, "target", got=f"dtype {labels.dtype}", takes="class indices of an integer dtype")
    if labels.shape != shape:
        raise ShapeError(where_, "target", got=f"shape {labels.shape}", takes=f"shape {shape}, {what}")


def _infer_multi_margin(x: TensorType, labels: TensorType, *weight: TensorType, p: int, margin: float) -> TensorType:
    _rows("multi_margin_loss", x, labels, x.shape[:-1], "one class for each row")
    for w in weight:
        if w.shape != x.shape[-1:]:
            raise ShapeError("multi_margin_loss", "weight", got=f"shape {w.shape}", takes=f"shape {x.shape[-1:]}")
    return TensorType(x.dtype, labels.shape)


def _lower_multi_margin(x: Any, labels: Any, weight: Any = None, *, p: int, margin: float) -> Any:
    wide = x.astype(accumulator(x.dtype) or x.dtype)
    labels = labels.astype(jnp.int64)
    own = jnp.take_along_axis(wide, labels[..., None], -1, mode="fill", fill_value=np.nan)
    loss = jnp.maximum(margin - own + wide, 0) ** p
    if weight is not None:
        loss = loss * jnp.take(weight.astype(wide.dtype), labels, mode="fill", fill_value=np.nan)[..., None]
    loss = jnp.where(jnp.arange(x.shape[-1]) == labels[..., None], 0, loss)
    return (loss.sum(-1) / x.shape[-1]).astype(x.dtype)


#: ``sum over other classes of max(0, margin - x[own] + x[other]) ** p / classes`` for each row.
multi_margin_p = Primitive(
    "multi_margin_loss", infer=_infer_multi_margin, lower=_lower_multi_margin, derived_vjp=True,
    samples=lambda: [
        Sample((_X, np.array([1, 3])), {"p": 1, "margin": 1.0}), Sample((_X[0], np.array(2)), {"p": 2, "margin": 0.7}),
        Sample((_X, np.array([1, 3]), np.array([0.5, 1.0, 2.0, 0.1])), {"p": 2, "margin": 1.0}),
        Bad((_X, np.array([1])), {"p": 1, "margin": 1.0}, ShapeError, "one class for each row"),
        Bad((_X, _X[:, 0]), {"p": 1, "margin": 1.0}, DTypeError, "integer"),
    ],
)  # fmt: skip


@operator()
def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1, weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """Hinge loss of several classes: every other class should be ``margin`` below the right one.

    Args:
        input: scores of shape (batch, classes), or (classes,).
        target: class indices of shape (batch,), or ().
        p: power of the hinge, 1 or 2.
        margin: a number.
        weight: weight of each right class, of shape (classes,), or None.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    >>> import mycelia as ms
    >>> print(ms.ops.multi_margin_loss(ms.Tensor([[0.0, 0.5]]), ms.Tensor([1])))
    0.25
    """
    fold = as_reduction(reduction, "multi_margin_loss")
    if p not in (1, 2) or isinstance(p, bool):
        raise ArgumentValueError("multi_margin_loss", "p", got=repr(p), takes="1 or 2")
    limit = as_number(margin, "multi_margin_loss", "margin")
    x = as_float(input, "multi_margin_loss")
    operands: tuple[Tensor, ...] = (x, as_tensor(target, "multi_margin_loss", "target"))
    if weight is not None:
        operands = (*operands, cast(as_tensor(weight, "multi_margin_loss", "weight"), x.dtype))
    return reduced(apply(multi_margin_p, *operands, p=int(p), margin=limit), fold)


def _infer_multilabel(x: TensorType, labels: TensorType) -> TensorType:
    _rows("multilabel_margin_loss", x, labels, x.shape, "that of 'input': classes up to the first -1")
    return TensorType(x.dtype, x.shape[:-1])


def _lower_multilabel(x: Any, labels: Any) -> Any:
    wide = x.astype(accumulator(x.dtype) or x.dtype)
    labels, classes = labels.astype(jnp.int64), x.shape[-1]
    listed = jnp.cumprod(labels >= 0, axis=-1).astype(bool)
    safe = jnp.where(listed, labels, 0)
    own = jnp.take_along_axis(wide, safe, -1, mode="fill", fill_value=np.nan)
    is_target = ((safe[..., None] == jnp.arange(classes)) & listed[..., None]).any(-2)
    hinge = jnp.maximum(1 - own[..., :, None] + wide[..., None, :], 0)
    counted = listed[..., :, None] & ~is_target[..., None, :]
    return (jnp.where(counted, hinge, 0).sum((-1, -2)) / classes).astype(x.dtype)


#: ``sum over listed and unlisted classes of max(0, 1 - x[listed] + x[unlisted]) / classes`` for each row.
multilabel_margin_p = Primitive(
    "multilabel_margin_loss", infer=_infer_multilabel, lower=_lower_multilabel, derived_vjp=True,
    samples=lambda: [
        Sample((_X, np.array([[3, 0, -1, 1], [2, -1, 0, 0]]))), Sample((_X[0], np.array([-1, 2, 1, 0]))),
        Sample((_X, np.array([[0, 1, 2, 3], [1, 2, 3, -1]]))),
        Bad((_X, np.array([[1], [2]])), {}, ShapeError, "first -1"),
    ],
)  # fmt: skip


@operator()
def multilabel_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Hinge loss of several right classes: every other class should be 1 below each of them.

    Args:
        input: scores of shape (batch, classes), or (classes,).
        target: for each row the right classes, then -1, of the same shape.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    >>> import mycelia as ms
    >>> print(ms.ops.multilabel_margin_loss(ms.Tensor([[0.0, 0.5]]), ms.Tensor([[1, -1]])))
    0.25
    """
    fold = as_reduction(reduction, "multilabel_margin_loss")
    x = as_float(input, "multilabel_margin_loss")
    return reduced(apply(multilabel_margin_p, x, as_tensor(target, "multilabel_margin_loss", "target")), fold)


@operator()
def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """Mean over classes of the cross entropy of ``sigmoid(input)`` with binary targets.

    Args:
        input: logits of shape (batch, classes), or (classes,).
        target: 0 or 1, of the same shape.
        weight: weight of each class, of shape (classes,), or None.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    >>> import mycelia as ms
    >>> loss = ms.ops.multilabel_soft_margin_loss(ms.Tensor([[0.0, 0.0]]), ms.Tensor([[1.0, 0.0]]))
    >>> print(f"{loss.item():.4f}")
    0.6931
    """
    from mycelia.ops.reduction import mean

    fold = as_reduction(reduction, "multilabel_soft_margin_loss")
    x, t = floats("multilabel_soft_margin_loss", input, target, names=("input", "target"))
    if x.shape != t.shape or not x.ndim:
        raise ShapeError("multilabel_soft_margin_loss", "target", got=f"shape {t.shape}", takes=f"shape {x.shape}")
    loss: Any = t * softplus_of(-x) + (1.0 - t) * softplus_of(x)
    if weight is not None:
        loss = loss * cast(as_tensor(weight, "multilabel_soft_margin_loss", "weight"), x.dtype)
    return reduced(mean(loss, -1), fold)
