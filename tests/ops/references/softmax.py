"""References of softmax and its relatives."""

from __future__ import annotations

import numpy as np
from scipy import special


def _ignoring(fn):
    def run(*args, **kwargs):
        with np.errstate(all="ignore"):
            return fn(*args, **kwargs)

    return run


@_ignoring
def _softmax(x, *, axes):
    return special.softmax(x, axis=axes) if x.size else x


@_ignoring
def _log_softmax(x, *, axes):
    return x - special.logsumexp(x, axis=axes, keepdims=True) if x.size and axes else x - x


def _softmax_grad(ct, y, *, axes):
    assert len(axes) == 1
    ct, y = np.moveaxis(ct, axes[0], -1), np.moveaxis(y, axes[0], -1)
    jacobian = y[..., :, None] * np.eye(y.shape[-1]) - y[..., :, None] * y[..., None, :]
    return np.moveaxis((jacobian @ ct[..., None])[..., 0], -1, axes[0])


def _log_softmax_grad(ct, y, *, axes):
    assert len(axes) == 1
    ct, y = np.moveaxis(ct, axes[0], -1), np.moveaxis(y, axes[0], -1)
    jacobian = np.eye(y.shape[-1]) - np.exp(y)[..., None, :]
    return np.moveaxis((ct[..., None, :] @ jacobian)[..., 0, :], -1, axes[0])


def _one_hot_of_max(x, *, axis):
    out = np.zeros_like(x)
    if x.size:
        np.put_along_axis(out, x.argmax(axis, keepdims=True), 1, axis)
    return out


REFERENCES = {
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "softmax_grad": _softmax_grad,
    "log_softmax_grad": _log_softmax_grad,
    "one_hot_of_max": _one_hot_of_max,
}
