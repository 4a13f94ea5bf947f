"""References of normalization, from the formulas in float64."""

from __future__ import annotations

import numpy as np


def _normal(x, axes, epsilon):
    if not x.size:
        return x, np.nan, np.nan
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    return (x - mean) * rstd, mean, rstd


def _layer_norm(x, scale=1.0, shift=0.0, *, begin, epsilon):
    y, mean, rstd = _normal(x, tuple(range(begin, x.ndim)), epsilon)
    kept = x.shape[:begin] + (1,) * (x.ndim - begin)
    return y * scale + shift, np.broadcast_to(mean, kept), np.broadcast_to(rstd, kept)


def _layer_norm_grad(ct, x, mean, rstd, scale=None, *, begin):
    """The vector-Jacobian product with the Jacobian of a normalization written out, sample by sample."""
    n = int(np.prod(x.shape[begin:]))
    normal = (x - mean) * rstd
    g = ct if scale is None else ct * scale
    flat_g, flat_n = g.reshape(-1, n), normal.reshape(-1, n)
    rows = np.broadcast_to(rstd, x.shape).reshape(-1, n)[:, :1, None]
    jacobian = rows * (np.eye(n) - 1 / n - flat_n[:, :, None] * flat_n[:, None, :] / n)
    dx = (flat_g[:, None, :] @ jacobian)[:, 0].reshape(x.shape)
    if scale is None:
        return (dx,)
    lead = tuple(range(x.ndim - scale.ndim))
    return dx, (ct * normal).sum(lead), ct.sum(lead)


def _rms_norm(x, scale, *, epsilon):
    axes = tuple(range(x.ndim - scale.ndim, x.ndim))
    rstd = 1 / np.sqrt((x**2).mean(axes, keepdims=True) + epsilon)
    return x * rstd * scale, rstd


def _rms_norm_grad(ct, x, rstd, scale):
    n = scale.size
    normal = (x * rstd).reshape(-1, n)
    g = (ct * scale).reshape(-1, n)
    jacobian = np.eye(n) - normal[:, :, None] * normal[:, None, :] / n
    dx = (g[:, None, :] @ jacobian)[:, 0].reshape(x.shape) * rstd
    return dx, (ct * x * rstd).sum(tuple(range(x.ndim - scale.ndim)))


def _channels(p, rank):
    return p.reshape((1, -1) + (1,) * (rank - 2))


def _group_norm(x, scale=None, shift=None, *, groups, epsilon):
    split = x.reshape((x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
    y, mean, rstd = _normal(split, tuple(range(2, split.ndim)), epsilon)
    y = y.reshape(x.shape)
    y = y if scale is None else y * _channels(scale, x.ndim)
    y = y if shift is None else y + _channels(shift, x.ndim)
    kept = (x.shape[0], groups, *(1 for _ in split.shape[2:]))
    flat = (x.shape[0], groups)
    return y, np.broadcast_to(mean, kept).reshape(flat), np.broadcast_to(rstd, kept).reshape(flat)


def _group_norm_grad(ct, x, mean, rstd, scale=None, *, groups):
    split = (x.shape[0], groups, -1)
    weighted = ct if scale is None else ct * _channels(scale, x.ndim)
    (dx,) = _layer_norm_grad(weighted.reshape(split), x.reshape(split), mean[:, :, None], rstd[:, :, None], begin=2)
    dx = dx.reshape(x.shape)
    if scale is None:
        return (dx,)
    normal = ((x.reshape(split) - mean[:, :, None]) * rstd[:, :, None]).reshape(x.shape)
    axes = tuple(i for i in range(x.ndim) if i != 1)
    return dx, (ct * normal).sum(axes), ct.sum(axes)


REFERENCES = {
    "layer_norm": _layer_norm,
    "layer_norm_grad": _layer_norm_grad,
    "rms_norm": _rms_norm,
    "rms_norm_grad": _rms_norm_grad,
    "group_norm": _group_norm,
    "group_norm_grad": _group_norm_grad,
}
