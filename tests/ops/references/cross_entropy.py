"""References of cross entropy: a loop over places, from the definition."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax


def _axis(x):
    return 1 if x.ndim > 1 else 0


def _coefficients(x, labels, weight, ignore_index, smoothing):
    """For each place: the coefficient of each class and the weight of its label."""
    classes = x.shape[_axis(x)]
    w = np.ones(classes) if weight is None else weight
    q, weights = np.zeros((*labels.shape, classes)), np.zeros(labels.shape)
    for place in np.ndindex(*labels.shape):
        label = labels[place]
        if label == ignore_index:
            continue
        q[place] = smoothing / classes * w
        q[(*place, label)] += (1 - smoothing) * w[label]
        weights[place] = w[label]
    return q, weights


def _cross_entropy(x, labels, weight=None, *, ignore_index, smoothing, reduction, log_probs):
    q, weights = _coefficients(x, labels, weight, ignore_index, smoothing)
    rows = np.moveaxis(x, _axis(x), -1)
    with np.errstate(all="ignore"):
        logs = rows if log_probs or not x.size else rows - logsumexp(rows, -1, keepdims=True)
        loss = -np.where(q == 0, 0, q * logs).sum(-1)
    if not log_probs:  # a row that holds NaN or +inf has no distribution
        loss = np.where(np.isnan(rows).any(-1) | np.isposinf(rows).any(-1), np.nan, loss)
    if reduction == "none":
        return loss
    return loss.sum() / weights.sum() if reduction == "mean" else loss.sum()


def _cross_entropy_grad(ct, x, labels, weight=None, *, ignore_index, smoothing, reduction, log_probs):
    q, weights = _coefficients(x, labels, weight, ignore_index, smoothing)
    total = weights.sum()
    scale = np.broadcast_to(ct / total if reduction == "mean" else ct, labels.shape)[..., None]
    rows = np.moveaxis(x, _axis(x), -1)
    logs = rows if log_probs else _logs(rows, -1)
    dx = -q if log_probs or not x.size else q.sum(-1, keepdims=True) * softmax(rows, -1) - q
    dx = np.moveaxis(dx * scale, -1, _axis(x))
    if weight is None:
        return (dx,)
    share, dw = _coefficients(x, labels, None, ignore_index, smoothing)[0], np.zeros(len(weight))
    for place in np.ndindex(*labels.shape):
        dw -= scale[(*place, 0)] * share[place] * logs[place]
        if reduction == "mean" and labels[place] != ignore_index:
            loss = -(q * logs).sum() / total
            dw[labels[place]] -= ct * loss / total
    return dx, dw


def _logs(x, axis):
    return x - logsumexp(x, axis, keepdims=True) if x.size else x


def _soft_grad(ct, x, target, *, axis):
    scale = np.expand_dims(ct, axis)
    return scale * (target.sum(axis, keepdims=True) * softmax(x, axis) - target), -scale * _logs(x, axis)


REFERENCES = {
    "cross_entropy": _cross_entropy,
    "cross_entropy_grad": _cross_entropy_grad,
    "soft_cross_entropy": lambda x, target, *, axis: -(target * _logs(x, axis)).sum(axis),
    "soft_cross_entropy_grad": _soft_grad,
}
