"""Cross entropy of logits with class indices or class probabilities, and negative log-likelihood.

With class indices the whole loss, from logits to the mean, is one primitive, and its gradient (softmax minus
the target) another, so that a training step in eager mode pays two calls. Weights, ignored indices and label
smoothing (C. Szegedy et al., 2016) are folded into one coefficient for each class: with ``q[c]`` the
coefficient of class ``c``, the loss is ``-sum(q * log_softmax(x))`` and its gradient ``sum(q) * softmax(x) - q``.
A label that is no class is refused where labels can be looked at; in a graph its place gives NaN, and so do its
gradients.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, OutOfRangeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.indexing import on_host
from mycelia.ops.linear import accumulator
from mycelia.ops.operands import as_int, as_tensor, cast
from mycelia.ops.registry import operator
from mycelia.ops.shape import broadcast_to, reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_X = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0], [0.0, 1.0, 2.0], [-1.0, 0.75, 0.5]])
_Y = np.array([0, 2, 1, 2])
_W = np.array([0.5, 2.0, 1.0])


def as_reduction(value: Any, where: str, allowed: tuple[str, ...] = ("none", "mean", "sum")) -> str:
    """One of the words that say how a loss is folded."""
    if value not in allowed:
        words = ", ".join(repr(a) for a in allowed)
        raise ArgumentValueError(where, "reduction", got=repr(value), takes=f"one of {words}")
    return str(value)


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The loss of each element, their mean, or their sum."""
    if reduction == "none":
        return loss
    from mycelia.ops.reduction import reduce_mean_p, reduce_sum_p

    folded = reduce_mean_p if reduction == "mean" else reduce_sum_p
    return apply(folded, loss, axes=tuple(range(loss.ndim)), keepdims=False)  # type: ignore[no-any-return]


def _class_axis(rank: int) -> int:
    return 1 if rank > 1 else 0


def _infer(
    x: TensorType, labels: TensorType, *weight: TensorType, ignore_index: int, smoothing: float, reduction: str,
    log_probs: bool,
) -> TensorType:  # fmt: skip
    where = "nll_loss" if log_probs else "cross_entropy"
    check_dtypes(where, (x,), dt.FLOATS)
    if not x.rank:
        raise ShapeError(where, "input", got="a zero-dimensional tensor", takes="an axis of classes")
    if not labels.dtype.is_integer:
        raise DTypeError(where, "target", got=f"dtype {labels.dtype}", takes="class indices of an integer dtype")
    axis = _class_axis(x.rank)
    places = x.shape[:axis] + x.shape[axis + 1 :]
    if labels.shape != places:
        raise ShapeError(
            where, "target", got=f"shape {labels.shape}",
            takes=f"shape {places}, that of 'input' {x.shape} without its class axis {axis}",
        )  # fmt: skip
    for w in weight:
        if w.shape != (x.shape[axis],):
            raise ShapeError(
                where, "weight", got=f"shape {w.shape}", takes=f"shape ({x.shape[axis]},), a value a class"
            )
        if w.dtype not in dt.FLOATS:
            raise DTypeError(where, "weight", got=f"dtype {w.dtype}", takes="a floating dtype")
    return TensorType(x.dtype, places if reduction == "none" else ())


def _wide(x: Any) -> Any:
    return x.astype(accumulator(x.dtype) or x.dtype)


def _log_softmax(x: Any, axis: int) -> Any:
    if not x.size:
        return x
    shifted = x - x.max(axis, keepdims=True)
    return shifted - jnp.log(jnp.exp(shifted).sum(axis, keepdims=True))


def _targets(x: Any, labels: Any, weight: Any, ignore_index: int) -> tuple[Any, Any, Any]:
    """Where labels count, labels with ignored ones made 0, and the weight of each place (0 where ignored).

    Labels that are no class become the number of classes.
    """
    labels = labels.astype(jnp.int64)
    classes = x.shape[_class_axis(x.ndim)]
    valid = labels != ignore_index
    safe = jnp.where(valid, jnp.where((labels >= 0) & (labels < classes), labels, classes), 0)
    if weight is None:
        return valid, safe, valid.astype(x.dtype)
    return valid, safe, jnp.where(valid, jnp.take(weight.astype(x.dtype), safe, mode="fill", fill_value=np.nan), 0)


def _lower(
    x: Any, labels: Any, weight: Any = None, *, ignore_index: int, smoothing: float, reduction: str, log_probs: bool
) -> Any:
    axis, dtype = _class_axis(x.ndim), x.dtype
    x = _wide(x)
    valid, safe, weights = _targets(x, labels, weight, ignore_index)
    logs = x if log_probs else _log_softmax(x, axis)
    picked = jnp.take_along_axis(logs, jnp.expand_dims(safe, axis), axis, mode="fill", fill_value=np.nan)
    loss = -jnp.squeeze(picked, axis) * weights
    if smoothing:
        spread = logs if weight is None else logs * _along(weight.astype(x.dtype), x.ndim, axis)
        loss = (1 - smoothing) * loss - smoothing / x.shape[axis] * spread.sum(axis)
    loss = jnp.where(valid, loss, 0)
    if reduction == "mean":
        loss = loss.sum() / weights.sum()
    elif reduction == "sum":
        loss = loss.sum()
    return loss.astype(dtype)


def _along(w: Any, rank: int, axis: int) -> Any:
    return w.reshape([-1 if i == axis else 1 for i in range(rank)])


def _infer_grad(ct: TensorType, x: TensorType, labels: TensorType, *weight: TensorType, **attrs: Any) -> Any:
    check_dtypes("cross_entropy_grad", (ct, x), dt.FLOATS, ("ct", "input"))
    return (x, *weight)


def _lower_grad(
    ct: Any, x: Any, labels: Any, weight: Any = None, *, ignore_index: int, smoothing: float, reduction: str,
    log_probs: bool,
) -> tuple[Any, ...]:  # fmt: skip
    axis, dtype = _class_axis(x.ndim), x.dtype
    x, ct = _wide(x), _wide(ct)
    valid, safe, weights = _targets(x, labels, weight, ignore_index)
    scale = jnp.where(valid, ct / weights.sum() if reduction == "mean" else ct, 0)
    scale = jnp.expand_dims(jnp.where(safe == x.shape[axis], np.nan, scale), axis)
    hit = _along(jnp.arange(x.shape[axis]), x.ndim, axis) == jnp.expand_dims(safe, axis)
    share = jnp.where(hit, 1 - smoothing, 0).astype(x.dtype) + smoothing / x.shape[axis]
    logs = x if log_probs else _log_softmax(x, axis)
    q = share * jnp.where(hit, jnp.expand_dims(weights, axis), 0)
    if smoothing:
        q = share * (1 if weight is None else _along(weight.astype(x.dtype), x.ndim, axis))
    dx = scale * (-q if log_probs else q.sum(axis, keepdims=True) * jnp.exp(logs) - q)
    if weight is None:
        return (dx.astype(dtype),)
    others = tuple([i for i in range(x.ndim) if i != axis])
    dw = -(scale * jnp.where(share == 0, 0, share * logs)).sum(others)
    if reduction == "mean":
        # the mean divides by the sum of weights, which is linear in them as well
        loss = -(scale * jnp.where(q == 0, 0, q * logs)).sum()
        counted = jnp.where(hit & jnp.expand_dims(valid, axis), 1, 0).astype(x.dtype).sum(others)
        dw = dw - counted * loss / weights.sum()
    return dx.astype(dtype), dw.astype(weight.dtype)


def _vjp(ct: Tensor, x: Tensor, labels: Tensor, *weight: Tensor, out: Tensor, **attrs: Any) -> list[Any]:
    dx, *dw = apply(cross_entropy_grad_p, ct, x, labels, *weight, **attrs)
    return [dx, None, *dw]


def _attrs(**given: Any) -> dict[str, Any]:
    return {"ignore_index": -100, "smoothing": 0.0, "reduction": "mean", "log_probs": False, **given}


def _cases() -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    image = np.sin(np.arange(24.0)).reshape(2, 3, 2, 2)
    places = np.array([[[0, 2], [1, -1]], [[-1, 1], [2, 0]]])
    made: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    for reduction in ("none", "mean", "sum"):
        made += [
            ((_X, _Y), _attrs(reduction=reduction)), ((_X, _Y, _W), _attrs(reduction=reduction, ignore_index=2)),
            ((image, places, _W), _attrs(reduction=reduction, ignore_index=-1, smoothing=0.2)),
            ((_X, _Y, _W), _attrs(reduction=reduction, log_probs=True)),
        ]  # fmt: skip
    return [
        *made, ((_X[0], np.array(1)), _attrs()), ((_X, _Y), _attrs(smoothing=0.1)),
        ((_X, _Y), _attrs(smoothing=0.1, log_probs=True)), ((np.zeros((0, 3)), _Y[:0]), _attrs(reduction="sum")),
    ]  # fmt: skip


def _samples() -> list[Any]:
    wild = np.array([[np.inf, 0.0], [-np.inf, 0.0], [np.nan, 1.0], [1e30, -1e30]])
    return [
        *[Sample(inputs, attrs) for inputs, attrs in _cases()],
        Sample((wild, np.array([1, 0, 0, 0])), _attrs(reduction="none"), grad=False, dtypes=False),
        Bad((_X, _Y[:2]), _attrs(), ShapeError, "without its class axis"),
        Bad((_X, _Y, _W[:2]), _attrs(), ShapeError, "a value a class"),
        Bad((_X, _Y * 1.0), _attrs(), DTypeError, "integer"),
    ]


cross_entropy_p = Primitive("cross_entropy", infer=_infer, lower=_lower, vjp=_vjp, samples=_samples)


def _grad_samples() -> list[Any]:
    made = []
    for inputs, attrs in _cases():
        shape = _infer(
            *[TensorType(dt.float64 if a.dtype == float else dt.int64, a.shape) for a in inputs], **attrs
        ).shape
        made.append(Sample((np.cos(np.arange(float(np.prod(shape)))).reshape(shape), *inputs), attrs))
    return made


#: The gradients of a cross entropy with respect to its logits and, if given, its weights.
cross_entropy_grad_p: Primitive = Primitive(
    "cross_entropy_grad", infer=_infer_grad, lower=_lower_grad, multi=True, derived_vjp=True, samples=_grad_samples
)  # fmt: skip


# Class probabilities ------------------------------------------------------------------------------------


def _infer_soft(x: TensorType, target: TensorType, *, axis: int) -> TensorType:
    check_dtypes("softmax_cross_entropy", (x, target), dt.FLOATS, ("logits", "labels"))
    if x.shape != target.shape:
        raise ShapeError(
            "softmax_cross_entropy", "labels", got=f"shape {target.shape}", takes=f"shape {x.shape} of the logits"
        )
    return TensorType(x.dtype, x.shape[:axis] + x.shape[axis + 1 :])


def _lower_soft(x: Any, target: Any, *, axis: int) -> Any:
    return -(_wide(target) * _log_softmax(_wide(x), axis)).sum(axis).astype(x.dtype)


def _infer_soft_grad(ct: TensorType, x: TensorType, target: TensorType, *, axis: int) -> tuple[TensorType, ...]:
    check_dtypes("softmax_cross_entropy", (ct, x, target), dt.FLOATS, ("ct", "logits", "labels"))
    return x, x


def _lower_soft_grad(ct: Any, x: Any, target: Any, *, axis: int) -> tuple[Any, ...]:
    logs, t, scale = _log_softmax(_wide(x), axis), _wide(target), jnp.expand_dims(_wide(ct), axis)
    dx = scale * (t.sum(axis, keepdims=True) * jnp.exp(logs) - t)
    return dx.astype(x.dtype), (-scale * logs).astype(x.dtype)


def _vjp_soft(ct: Tensor, x: Tensor, target: Tensor, out: Tensor, *, axis: int) -> list[Any]:
    dx, dt_ = apply(soft_cross_entropy_grad_p, ct, x, target, axis=axis)
    return [dx, dt_]


_T = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [0.5, 0.25, 0.25], [0.1, 0.1, 0.6]])

#: ``-sum(labels * log_softmax(logits))`` along an axis.
soft_cross_entropy_p = Primitive(
    "soft_cross_entropy", infer=_infer_soft, lower=_lower_soft, vjp=_vjp_soft,
    samples=lambda: [
        Sample((_X, _T), {"axis": 1}), Sample((_X, _T), {"axis": 0}), Sample((_X[:0], _T[:0]), {"axis": 1}),
        Sample((_X.reshape(2, 2, 3), _T.reshape(2, 2, 3)), {"axis": 2}),
        Bad((_X, _T[:2]), {"axis": 1}, ShapeError, "of the logits"),
    ],
)  # fmt: skip

#: Gradients of a cross entropy with class probabilities: of the logits and of the probabilities.
soft_cross_entropy_grad_p: Primitive = Primitive(
    "soft_cross_entropy_grad", infer=_infer_soft_grad, lower=_lower_soft_grad, multi=True,
    derived_vjp=True, samples=lambda: [Sample((np.array([1.0, -2.0, 0.5, 3.0]), _X, _T), {"axis": 1})],
)  # fmt: skip


# Public operators ---------------------------------------------------------------------------------------


def _smoothing(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(where, "label_smoothing", got=type(value).__name__, takes="a number from 0 to 1")
    if not 0 <= value <= 1:
        raise ArgumentValueError(where, "label_smoothing", got=str(value), takes="a number from 0 to 1")
    return float(value)


def check_labels(labels: Tensor, x: Tensor, ignore_index: int, where: str, argument: str = "target") -> None:
    """Refuse labels that are no class of ``x``, where they can be looked at: running at once on the CPU.

    Raises:
        OutOfRangeError: naming the first such label.
    """
    host = on_host(labels) if x.shape and labels.dtype.is_integer else None
    if host is None or not host.size:
        return
    classes = x.shape[_class_axis(x.ndim)]
    if host.min() >= 0 and host.max() < classes:
        return
    wrong = host[((host < 0) | (host >= classes)) & (host != ignore_index)]
    if wrong.size:
        takes = f"classes from 0 to {classes - 1}" if classes else "no label, as there are no classes"
        raise OutOfRangeError(
            where, argument, got=f"the label {wrong.flat[0]}", takes=f"{takes}, or {ignore_index} for what is ignored"
        )


@operator()
def cross_entropy(
    input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """Cross entropy of the softmax of logits.

    Args:
        input: logits of shape (batch, classes, ...), or (classes,).
        target: class indices, an integer tensor of shape (batch, ...), or the probability of each class, a
            float tensor of the shape of ``input``.
        weight: weight of each class, of shape (classes,), or None.
        ignore_index: places with this index count for nothing (indices only).
        reduction: ``"none"``, ``"sum"``, or ``"mean"``: over the places, weighted by the class weights if
            there are any and the target is indices.
        label_smoothing: this much of the target is spread evenly over all classes.

    Returns:
        A number, or with ``"none"`` a tensor of shape (batch, ...).

    Raises:
        ShapeError: the target fits neither form.
        OutOfRangeError: a label is no class and not ``ignore_index``. In a graph, where labels are not looked at, its
            place gives NaN.
        ArgumentValueError: an unknown reduction, or a smoothing outside [0, 1].

    >>> import mycelia as ms
    >>> loss = ms.ops.cross_entropy(ms.Tensor([[0.0, 0.0]]), ms.Tensor([1]))
    >>> print(f"{loss.item():.4f}")
    0.6931
    """
    x = as_float(input, "cross_entropy")
    y = target if isinstance(target, Tensor) else as_tensor(target, "cross_entropy", "target")
    fold, smooth = as_reduction(reduction, "cross_entropy"), _smoothing(label_smoothing, "cross_entropy")
    if y.dtype.is_inexact:
        return _soft(x, cast(y, x.dtype), weight, fold, smooth)
    operands = (x, y) if weight is None else (x, y, as_float(weight, "cross_entropy", "weight"))
    ignored = as_int(ignore_index, "cross_entropy", "ignore_index")
    check_labels(y, x, ignored, "cross_entropy")
    return apply(  # type: ignore[no-any-return]
        cross_entropy_p, *operands, ignore_index=ignored, smoothing=smooth, reduction=fold, log_probs=False
    )


def _soft(x: Tensor, target: Any, weight: Any, fold: str, smoothing: float) -> Tensor:
    if x.shape != target.shape or not x.ndim:
        raise ShapeError(
            "cross_entropy", "target", got=f"float values of shape {target.shape}",
            takes=f"class indices of an integer dtype, or probabilities of the shape {x.shape} of 'input'",
        )  # fmt: skip
    axis = _class_axis(x.ndim)
    if smoothing:
        target = target * (1 - smoothing) + smoothing / x.shape[axis]
    if weight is not None:
        w = cast(as_tensor(weight, "cross_entropy", "weight"), x.dtype)
        if w.shape != (x.shape[axis],):
            raise ShapeError(
                "cross_entropy", "weight", got=f"shape {w.shape}", takes=f"shape ({x.shape[axis]},), a value a class"
            )
        kept = tuple([-1 if i == axis else 1 for i in range(x.ndim)])
        target = target * broadcast_to(reshape(w, kept), x.shape)
    return reduced(apply(soft_cross_entropy_p, x, target, axis=axis), fold)


@operator()
def nll_loss(
    inputs: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """Negative log-likelihood: minus the log-probability of the target class.

    Args:
        inputs: log-probabilities of shape (batch, classes, ...), or (classes,).
        target: class indices, an integer tensor of shape (batch, ...).
        weight: weight of each class, of shape (classes,), or None.
        ignore_index: see :func:`cross_entropy`, like the rest.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
        label_smoothing: from 0 to 1.

    >>> import mycelia as ms
    >>> print(ms.ops.nll_loss(ms.Tensor([[-1.0, -2.0], [-3.0, -4.0]]), ms.Tensor([1, 0])))
    2.5
    """
    x = as_float(inputs, "nll_loss", "inputs")
    labels, ignored = as_tensor(target, "nll_loss", "target"), as_int(ignore_index, "nll_loss", "ignore_index")
    check_labels(labels, x, ignored, "nll_loss")
    operands: tuple[Tensor, ...] = (x, labels)
    if weight is not None:
        operands = (*operands, as_float(weight, "nll_loss", "weight"))
    return apply(  # type: ignore[no-any-return]
        cross_entropy_p, *operands, ignore_index=ignored, log_probs=True,
        smoothing=_smoothing(label_smoothing, "nll_loss"), reduction=as_reduction(reduction, "nll_loss"),
    )  # fmt: skip


def softmax_cross_entropy_with_logits(logits: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """Cross entropy with class probabilities for each row, and ``softmax(logits) - labels``.

    Args:
        logits: a tensor of shape (batch, classes).
        labels: probabilities of the same shape.

    >>> import mycelia as ms
    >>> loss, gradient = softmax_cross_entropy_with_logits(ms.Tensor([[0.0, 0.0]]), ms.Tensor([[0.0, 1.0]]))
    >>> print(gradient)
    [[ 0.5 -0.5]]
    """
    from mycelia.ops.softmax import softmax

    x = as_float(logits, "softmax_cross_entropy_with_logits", "logits")
    t = cast(as_tensor(labels, "softmax_cross_entropy_with_logits", "labels"), x.dtype)
    loss = apply(soft_cross_entropy_p, x, t, axis=x.ndim - 1)
    return loss, softmax(x) - t


def sparse_softmax_cross_entropy_with_logits(logits: Any, labels: Any, is_grad: bool = False) -> Tensor:
    """Mean cross entropy with class indices, or its gradient with respect to the logits.

    Args:
        logits: a tensor of shape (batch, classes).
        labels: class indices of shape (batch,).
        is_grad: give the gradient instead of the loss.

    >>> import mycelia as ms
    >>> print(sparse_softmax_cross_entropy_with_logits(ms.Tensor([[0.0, 0.0]]), ms.Tensor([1]), is_grad=True))
    [[ 0.5 -0.5]]
    """
    x = as_float(logits, "sparse_softmax_cross_entropy_with_logits", "logits")
    y = as_tensor(labels, "sparse_softmax_cross_entropy_with_logits", "labels")
    attrs = _attrs()
    check_labels(y, x, attrs["ignore_index"], "sparse_softmax_cross_entropy_with_logits", "labels")
    if not is_grad:
        return apply(cross_entropy_p, x, y, **attrs)  # type: ignore[no-any-return]
    from mycelia.tensor.dispatch import scalar

    (gradient,) = apply(cross_entropy_grad_p, scalar(1.0, x.dtype), x, y, **attrs)
    return gradient  # type: ignore[no-any-return]
