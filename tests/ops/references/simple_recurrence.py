"""References of GRU and Elman layers: loops over steps, from the definitions of the gates and of their derivatives."""

from __future__ import annotations

import numpy as np
from scipy.special import expit


def _steps(length, reverse):
    return range(length - 1, -1, -1) if reverse else range(length)


def _first_axis(a, batch_first):
    return np.swapaxes(a, 0, 1) if batch_first else a


def _layer(x, h, w_ih, w_hh, *bias, kind, batch_first, reverse, keep):
    steps = _first_axis(x, batch_first)
    length, batch, size = len(steps), *h.shape
    y, gates, parts = (np.zeros((length, batch, n)) for n in (size, 3 * size, size))
    b_ih, b_hh = (*bias, 0.0, 0.0)[:2]
    for t in _steps(length, reverse):
        given, old = steps[t] @ w_ih.T + b_ih, h @ w_hh.T + b_hh
        if kind == "gru":
            (xr, xz, xn), (hr, hz, hn) = np.split(given, 3, axis=1), np.split(old, 3, axis=1)
            r, z = expit(xr + hr), expit(xz + hz)
            n = np.tanh(xn + r * hn)
            h = (1 - z) * n + z * h
            gates[t], parts[t] = np.hstack([r, z, n]), hn
        else:
            h = np.tanh(given + old) if kind == "tanh" else np.clip(given + old, 0, None)
        y[t] = h
    y, gates, parts = (_first_axis(a, batch_first) for a in (y, gates, parts))
    return (y, h, gates, parts) if keep else (y, h)


def _layer_grad(x, h0, w_ih, w_hh, y, *rest, kind, given, batch_first, reverse, has_bias, wants_x):
    gates, parts = (rest[0], rest[1]) if kind == "gru" else (np.zeros((*y.shape[:2], 0)), np.zeros(y.shape))
    waiting = iter(rest[2:] if kind == "gru" else rest)
    shapes = [y.shape, h0.shape, gates.shape, parts.shape]
    there = (*given, False, False)[:4]
    dy, dh, dgates, dparts = (next(waiting) if g else np.zeros(s) for g, s in zip(there, shapes, strict=True))
    x, y, gates, parts, dy, dgates, dparts = (
        _first_axis(a, batch_first) for a in (x, y, gates, parts, dy, dgates, dparts)
    )
    order = list(_steps(len(x), reverse))
    dx, dw_ih, dw_hh = np.zeros(x.shape), np.zeros(w_ih.shape), np.zeros(w_hh.shape)
    db_ih, db_hh = np.zeros(len(w_hh)), np.zeros(len(w_hh))
    for k in reversed(range(len(order))):
        t = order[k]
        before = y[order[k - 1]] if k else h0
        dh = dh + dy[t]
        if kind == "gru":
            (r, z, n), (er, ez, en) = np.split(gates[t], 3, axis=1), np.split(dgates[t], 3, axis=1)
            inner = (dh * (1 - z) + en) * (1 - n) * (1 + n)
            of_update = (dh * (before - n) + ez) * z * (1 - z)
            of_reset = (inner * parts[t] + er) * r * (1 - r)
            of_input = np.hstack([of_reset, of_update, inner])
            of_state = np.hstack([of_reset, of_update, inner * r + dparts[t]])
            direct = dh * z
        else:
            of_input = of_state = dh * ((1 - y[t]) * (1 + y[t]) if kind == "tanh" else y[t] > 0)
            direct = 0.0
        dx[t] = of_input @ w_ih
        dw_ih += of_input.T @ x[t]
        dw_hh += of_state.T @ before
        db_ih += of_input.sum(0)
        db_hh += of_state.sum(0)
        dh = of_state @ w_hh + direct
    biases = [db_ih, db_hh][: 2 if kind == "gru" else 1] if has_bias else []
    return (*([_first_axis(dx, batch_first)] if wants_x else []), dh, dw_ih, dw_hh, *biases)


REFERENCES = {"recurrent_layer": _layer, "recurrent_layer_grad": _layer_grad}
