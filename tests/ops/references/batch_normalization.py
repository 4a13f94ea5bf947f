"""References of batch normalization, from the formulas in float64."""

from __future__ import annotations

import numpy as np


def _along(p, rank, axis):
    return np.reshape(p, [-1 if i == axis else 1 for i in range(rank)])


def _inference(x, scale, shift, mean, variance, *, axis, epsilon):
    scale, shift, mean, variance = (_along(p, x.ndim, axis) for p in (scale, shift, mean, variance))
    return (x - mean) / np.sqrt(variance + epsilon) * scale + shift


def _batch_norm(x, scale=1.0, shift=0.0, *, axis, epsilon):
    axes = tuple(i for i in range(x.ndim) if i != axis)
    mean, variance = x.mean(axes), x.var(axes)
    ones = np.ones_like(mean)
    return _inference(x, scale * ones, shift * ones, mean, variance, axis=axis, epsilon=epsilon), mean, variance


def _batch_norm_grad(ct, x, mean, variance, scale=None, *, axis, epsilon):
    rows, ct_rows = (np.moveaxis(a, axis, 0).reshape(a.shape[axis], -1) for a in (x, ct))
    rstd = 1 / np.sqrt(variance + epsilon)
    weighted = ct_rows if scale is None else ct_rows * scale[:, None]
    normal, n = (rows - mean[:, None]) * rstd[:, None], rows.shape[1]
    jacobian = rstd[:, None, None] * (np.eye(n) - 1 / n - normal[:, :, None] * normal[:, None, :] / n)
    dx = (weighted[:, None, :] @ jacobian)[:, 0].reshape(np.moveaxis(x, axis, 0).shape)
    dx = np.moveaxis(dx, 0, axis)
    if scale is None:
        return (dx,)
    return dx, (ct_rows * normal).sum(1), ct_rows.sum(1)


def _running(running_mean, running_var, mean, variance, *, momentum, count):
    unbiased = variance * count / max(count - 1, 1)
    return (1 - momentum) * running_mean + momentum * mean, (1 - momentum) * running_var + momentum * unbiased


REFERENCES = {
    "batch_norm": _batch_norm,
    "batch_norm_grad": _batch_norm_grad,
    "batch_norm_inference": _inference,
    "running_statistics": _running,
}
