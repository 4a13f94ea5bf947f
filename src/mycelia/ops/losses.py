"""Losses that compare predictions with targets element by element or row by row.

Where a loss has a stable form that differs from its definition it is a primitive of its own (cross entropies of
probabilities and of logits, the Kullback-Leibler divergence); the others are composed. ``reduction`` is
``"none"``, ``"mean"`` (the default of most) or ``"sum"``.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ops.activation import sigmoid
from mycelia.ops.calls import floats
from mycelia.ops.cross_entropy import as_reduction, reduced
from mycelia.ops.declare import Sample, elementwise
from mycelia.ops.elementary import exp, log, log1p
from mycelia.ops.extremum import maximum
from mycelia.ops.normalization import statistics_dtype
from mycelia.ops.operands import as_tensor, broadcast_shapes, cast
from mycelia.ops.power import square
from mycelia.ops.registry import operator
from mycelia.ops.rounding import abs as absolute
from mycelia.ops.selection import where
from mycelia.ops.special import wide
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_X = np.array([[0.9, 0.2, 0.5], [0.25, 0.75, 0.4]])
_T = np.array([[1.0, 0.0, 0.25], [0.5, 0.9, 0.0]])
_L = np.array([[1.5, -2.0, 0.3], [40.0, -30.0, -0.7]])

#: The least argument of a logarithm in ``binary_cross_entropy``, as in the framework whose API this is.
_LEAST = 1e-12


def _both(where_: str, input: Any, target: Any, names: tuple[str, str] = ("input", "target")) -> tuple[Any, Any]:
    x, t = floats(where_, input, target, names=names)
    broadcast_shapes(where_, [x.shape, t.shape], names)
    return x, t


def as_number(value: Any, where_: str, argument: str, least: float | None = None) -> float:
    """A float of a Python number, of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(where_, argument, got=type(value).__name__, takes="a number")
    if least is not None and not value >= least:
        raise ArgumentValueError(where_, argument, got=str(value), takes=f"a number of at least {least}")
    return float(value)


def _weighted(loss: Any, weight: Any, where_: str) -> Any:
    if weight is None:
        return loss
    w = cast(as_tensor(weight, where_, "weight"), loss.dtype)
    broadcast_shapes(where_, [loss.shape, w.shape], ("input", "weight"))
    return loss * w


# Primitives ---------------------------------------------------------------------------------------------


@wide
def _bce(x: Any, t: Any) -> Any:
    least = np.asarray(_LEAST, x.dtype)
    return -(t * jnp.log(jnp.maximum(x, least)) + (1 - t) * jnp.log(jnp.maximum(1 - x, least)))


def _vjp_bce(ct: Any, x: Any, t: Any, out: Tensor) -> tuple[Any, Any]:
    ct, x, t = (cast(v, statistics_dtype(v.dtype)) for v in (ct, x, t))

    def grad_x() -> Any:
        return ct * (x - t) / maximum(x * (1.0 - x), _LEAST)

    def grad_t() -> Any:
        return ct * (log(maximum(1.0 - x, _LEAST)) - log(maximum(x, _LEAST)))

    return grad_x, grad_t


#: ``-(t * log(x) + (1 - t) * log(1 - x))``.
bce_p = elementwise(
    "binary_cross_entropy", _bce, arity=2, dtypes=dt.FLOATS, names=("input", "target"), vjp=_vjp_bce,
    samples=lambda: [
        Sample((_X, _T)), Sample((_X, _T[:1])), Sample((np.zeros((0, 2)), np.zeros(2))), Sample((np.array(0.5), _T)),
        Sample((np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0, 0.0])), grad=False, dtypes=False),
    ],
)  # fmt: skip


@wide
def _bce_logits(x: Any, t: Any) -> Any:
    return jnp.maximum(x, 0) - x * t + jnp.log1p(jnp.exp(-jnp.abs(x)))


#: The cross entropy of ``sigmoid(x)`` with ``t``.
bce_logits_p = elementwise(
    "sigmoid_cross_entropy", _bce_logits, arity=2, dtypes=dt.FLOATS, names=("input", "target"),
    vjp=lambda ct, x, t, out: (lambda: ct * (sigmoid(x) - t), lambda: -(ct * x)),
    samples=lambda: [
        Sample((_L, _T)), Sample((_L, _T[:1])), Sample((np.zeros((0, 2)), np.zeros(2))),
        Sample((np.array([1e4, -1e4, np.nan]), np.array([0.0, 1.0, 1.0])), grad=False, dtypes=False),
    ],
)  # fmt: skip


@wide
def _bce_weighted(x: Any, t: Any, w: Any) -> Any:
    softplus = jnp.maximum(-x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))
    return (1 - t) * x + (1 + (w - 1) * t) * softplus


def _vjp_bce_weighted(ct: Any, x: Any, t: Any, w: Any, out: Tensor) -> tuple[Any, ...]:
    def softplus() -> Any:
        return apply(bce_logits_p, -x, t * 0.0)

    return (
        lambda: ct * ((1.0 - t) - (1.0 + (w - 1.0) * t) * sigmoid(-x)), lambda: ct * ((w - 1.0) * softplus() - x),
        lambda: ct * t * softplus(),
    )  # fmt: skip


#: The cross entropy of ``sigmoid(x)`` with ``t``, the positive part weighted by ``w``.
bce_weighted_p = elementwise(
    "weighted_sigmoid_cross_entropy", _bce_weighted, arity=3, dtypes=dt.FLOATS, names=("input", "target", "pos_weight"),
    vjp=_vjp_bce_weighted,
    samples=lambda: [Sample((_L, _T, np.array([0.5, 2.0, 1.0]))), Sample((_L, _T, np.array(3.0)))],
)  # fmt: skip


@wide
def _kl(x: Any, t: Any) -> Any:
    positive = t > 0
    return jnp.where(positive, t * (jnp.log(jnp.where(positive, t, 1)) - x), 0)


def _vjp_kl(ct: Any, x: Any, t: Any, out: Tensor) -> tuple[Any, Any]:
    positive = t > 0.0

    def grad_t() -> Any:
        logarithm: Any = log(where(positive, t, 1.0))
        return where(positive, ct * (logarithm + 1.0 - x), 0.0)

    return lambda: where(positive, -(ct * t), 0.0), grad_t


#: ``t * (log(t) - x)``, zero where ``t`` is not positive.
kl_p = elementwise(
    "kl_div", _kl, arity=2, dtypes=dt.FLOATS, names=("input", "target"), vjp=_vjp_kl,
    samples=lambda: [
        Sample((np.log(_X), _X[::-1] + 0.1)), Sample((np.log(_X), _X[:1])),
        Sample((np.array([-1.0, -2.0]), np.array([0.0, 1.0])), grad=False), Sample((np.zeros((0, 2)), np.zeros(2))),
    ],
)  # fmt: skip


# Element by element -------------------------------------------------------------------------------------


@operator()
def binary_cross_entropy(logits: Any, labels: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """Cross entropy of probabilities with binary targets: ``-(t * log(x) + (1 - t) * log(1 - x))``.

    Args:
        logits: probabilities from 0 to 1 (not logits, whatever the name says); logarithms are taken of at
            least 1e-12.
        labels: targets from 0 to 1, of a shape that broadcasts.
        weight: weight of each element, of a shape that broadcasts, or None.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    >>> import mycelia as ms
    >>> print(f"{ms.ops.binary_cross_entropy(ms.Tensor([0.5, 0.5]), ms.Tensor([1.0, 0.0])).item():.4f}")
    0.6931
    """
    fold = as_reduction(reduction, "binary_cross_entropy")
    x, t = _both("binary_cross_entropy", logits, labels, ("logits", "labels"))
    return reduced(_weighted(apply(bce_p, x, t), weight, "binary_cross_entropy"), fold)


@operator()
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """Cross entropy of ``sigmoid(input)`` with binary targets, without overflow.

    Args:
        input: logits.
        target: targets from 0 to 1, of a shape that broadcasts.
        weight: weight of each element, of a shape that broadcasts, or None.
        pos_weight: weight of the positive part, of a shape that broadcasts, or None.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    >>> import mycelia as ms
    >>> print(f"{ms.ops.binary_cross_entropy_with_logits(ms.Tensor([0.0]), ms.Tensor([1.0])).item():.4f}")
    0.6931
    """
    name = "binary_cross_entropy_with_logits"
    fold = as_reduction(reduction, name)
    x, t = _both(name, input, target)
    if pos_weight is None:
        loss = apply(bce_logits_p, x, t)
    else:
        loss = apply(bce_weighted_p, x, t, cast(as_tensor(pos_weight, name, "pos_weight"), x.dtype))
    return reduced(_weighted(loss, weight, name), fold)


@operator()
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Squared differences.

    Args:
        input: a tensor.
        target: a tensor whose shape broadcasts.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    >>> import mycelia as ms
    >>> print(ms.ops.mse_loss(ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, 4.0])))
    2.0
    """
    fold = as_reduction(reduction, "mse_loss")
    x, t = _both("mse_loss", input, target)
    return reduced(square(x - t), fold)


@operator()
def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Absolute differences; arguments as :func:`mse_loss`.

    >>> import mycelia as ms
    >>> print(ms.ops.l1_loss(ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, 4.0])))
    1.0
    """
    fold = as_reduction(reduction, "l1_loss")
    x, t = _both("l1_loss", input, target)
    return reduced(absolute(x - t), fold)


def _smooth(x: Any, t: Any, edge: float, slope: float) -> Any:
    """``slope`` times: a parabola up to a difference of ``edge``, then a line with slope 1."""
    difference = x - t
    size: Any = absolute(difference)
    if edge == 0:
        return size * slope
    return where(size < edge, difference * difference * (0.5 * slope / edge), (size - 0.5 * edge) * slope)


@operator()
def smooth_l1_loss(input: Any, target: Any, beta: float = 1.0, reduction: str = "none") -> Tensor:
    """Absolute differences, rounded off to a parabola below ``beta`` (R. Girshick, "Fast R-CNN", 2015).

    Args:
        input: a tensor.
        target: a tensor whose shape broadcasts.
        beta: where the parabola ends, not negative.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    >>> import mycelia as ms
    >>> print(ms.ops.smooth_l1_loss(ms.Tensor([1.0, 2.0]), ms.Tensor([1.5, 4.0])))
    [0.125 1.5  ]
    """
    fold = as_reduction(reduction, "smooth_l1_loss")
    edge = as_number(beta, "smooth_l1_loss", "beta", 0.0)
    x, t = _both("smooth_l1_loss", input, target)
    return reduced(_smooth(x, t, edge, 1.0), fold)


@operator()
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Half squared differences up to ``delta``, a line beyond (P. Huber, 1964).

    Args:
        input: a tensor.
        target: a tensor whose shape broadcasts.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
        delta: where the line begins, positive.

    >>> import mycelia as ms
    >>> print(ms.ops.huber_loss(ms.Tensor([1.0, 2.0]), ms.Tensor([1.5, 4.0]), "none"))
    [0.125 1.5  ]
    """
    fold = as_reduction(reduction, "huber_loss")
    edge = as_number(delta, "huber_loss", "delta")
    if not edge > 0:
        raise ArgumentValueError("huber_loss", "delta", got=str(delta), takes="a positive number")
    x, t = _both("huber_loss", input, target)
    return reduced(_smooth(x, t, edge, edge), fold)


@operator()
def kl_div(logits: Any, labels: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Kullback-Leibler divergence of targets from predictions: ``t * (log(t) - x)``.

    Args:
        logits: log-probabilities.
        labels: probabilities, or log-probabilities with ``log_target``.
        reduction: ``"none"``, ``"mean"``, ``"sum"``, or ``"batchmean"``: the sum divided by the batch.
        log_target: whether the targets are logarithms.

    >>> import mycelia as ms
    >>> x, t = ms.Tensor([[-1.0, -1.0]]), ms.Tensor([[0.0, 1.0]])
    >>> print(ms.ops.kl_div(x, t, "sum"))
    1.0
    """
    fold = as_reduction(reduction, "kl_div", ("none", "mean", "sum", "batchmean"))
    x, t = _both("kl_div", logits, labels, ("logits", "labels"))
    loss = exp(t) * (t - x) if log_target else apply(kl_p, x, t)
    if fold == "batchmean":
        total: Any = reduced(loss, "sum")
        return total / max(loss.shape[0] if loss.ndim else 1, 1)  # type: ignore[no-any-return]
    return reduced(loss, fold)


@operator()
def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """``log(1 + exp(-t * x))`` for targets of 1 and -1.

    >>> import mycelia as ms
    >>> print(f"{ms.ops.soft_margin_loss(ms.Tensor([0.0]), ms.Tensor([1.0])).item():.4f}")
    0.6931
    """
    fold = as_reduction(reduction, "soft_margin_loss")
    x, t = _both("soft_margin_loss", input, target)
    return reduced(softplus_of(-(t * x)), fold)


def softplus_of(x: Any) -> Any:
    """``log(1 + exp(x))`` without overflow."""
    return maximum(x, 0.0) + log1p(exp(-absolute(x)))


@operator()
def gaussian_nll_loss(
    x: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Negative log-likelihood of targets under normal distributions: ``(log(v) + (x - t)**2 / v) / 2``.

    Args:
        x: means.
        target: a tensor whose shape broadcasts.
        var: variances, of the shape of ``x``, or without its last axis or with 1 there.
        full: add the constant ``log(2 pi) / 2``.
        eps: the least variance; no gradient flows through this limit.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    >>> import mycelia as ms
    >>> print(ms.ops.gaussian_nll_loss(ms.Tensor([1.0]), ms.Tensor([3.0]), ms.Tensor([1.0])))
    2.0
    """
    from mycelia.ops.shape import reshape
    from mycelia.ops.state import stop_gradient

    fold = as_reduction(reduction, "gaussian_nll_loss")
    least = as_number(eps, "gaussian_nll_loss", "eps")
    if not least > 0:
        raise ArgumentValueError("gaussian_nll_loss", "eps", got=str(eps), takes="a positive number")
    mean, t, v = floats("gaussian_nll_loss", x, target, var, names=("x", "target", "var"))
    if v.shape != mean.shape and v.shape == mean.shape[:-1]:
        v = reshape(v, (*v.shape, 1))
    shape = broadcast_shapes("gaussian_nll_loss", [mean.shape, t.shape, v.shape], ("x", "target", "var"))
    limited: Any = v + stop_gradient(maximum(v, least) - v)
    loss: Any = (log(limited) + square(mean - t) / limited) * 0.5
    if full:
        loss = loss + 0.5 * float(np.log(2 * np.pi))
    if loss.shape != shape:
        raise ShapeError("gaussian_nll_loss", "var", got=f"shape {v.shape}", takes=f"shape {shape}")
    return reduced(loss, fold)


@operator()
def hinge_embedding_loss(inputs: Any, targets: Any, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """The input where the target is 1, and ``max(0, margin - input)`` where it is -1.

    Args:
        inputs: distances.
        targets: 1 or -1, of a shape that broadcasts.
        margin: a number.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    >>> import mycelia as ms
    >>> print(ms.ops.hinge_embedding_loss(ms.Tensor([0.5, 0.25]), ms.Tensor([1.0, -1.0]), reduction="none"))
    [0.5  0.75]
    """
    from mycelia.ops.rectifiers import relu

    fold = as_reduction(reduction, "hinge_embedding_loss")
    limit = as_number(margin, "hinge_embedding_loss", "margin")
    x, t = _both("hinge_embedding_loss", inputs, targets, ("inputs", "targets"))
    far: Any = where(t == 1.0, 0.0, relu(limit - x))
    return reduced(far + where(t == -1.0, 0.0, x), fold)


@operator()
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """``max(0, -t * (x1 - x2) + margin)``: with a target of 1 the first should be greater, with -1 the second.

    >>> import mycelia as ms
    >>> print(ms.ops.margin_ranking_loss(ms.Tensor([1.0]), ms.Tensor([3.0]), ms.Tensor([1.0])))
    2.0
    """
    from mycelia.ops.rectifiers import relu

    fold = as_reduction(reduction, "margin_ranking_loss")
    limit = as_number(margin, "margin_ranking_loss", "margin")
    x1, x2, t = floats("margin_ranking_loss", input1, input2, target, names=("input1", "input2", "target"))
    broadcast_shapes("margin_ranking_loss", [x1.shape, x2.shape, t.shape], ("input1", "input2", "target"))
    return reduced(relu(t * (x2 - x1) + limit), fold)
