"""References of recurrent layers: loops over steps, from the definitions of the gates and of their derivatives."""

from __future__ import annotations

import numpy as np
from scipy.special import expit


def _steps(length, reverse):
    return range(length - 1, -1, -1) if reverse else range(length)


def _first_axis(a, batch_first):
    return np.swapaxes(a, 0, 1) if batch_first else a


def _layer(x, h, c, w_ih, w_hh, *bias, batch_first, reverse, keep):
    steps = _first_axis(x, batch_first)
    length, batch, size = len(steps), *h.shape
    y, cells, gates = (
        np.zeros((length, batch, size)),
        np.zeros((length, batch, size)),
        np.zeros((length, batch, 4 * size)),
    )
    for t in _steps(length, reverse):
        before = steps[t] @ w_ih.T + h @ w_hh.T + sum(bias)
        i, f, g, o = np.split(before, 4, axis=1)
        c = expit(f) * c + expit(i) * np.tanh(g)
        h = expit(o) * np.tanh(c)
        y[t], cells[t], gates[t] = h, c, np.hstack([expit(i), expit(f), np.tanh(g), expit(o)])
    y, gates, cells = (_first_axis(a, batch_first) for a in (y, gates, cells))
    return (y, h, c, gates, cells) if keep else (y, h, c)


def _layer_grad(x, h0, c0, w_ih, w_hh, y, gates, cells, *cts, given, batch_first, reverse, has_bias, wants_x):
    shapes = [y.shape, h0.shape, c0.shape, gates.shape, cells.shape]
    rest = iter(cts)
    dy, dh, dc, dgates, dcells = (next(rest) if there else np.zeros(s) for there, s in zip(given, shapes, strict=True))
    x, y, gates, cells, dy, dgates, dcells = (
        _first_axis(a, batch_first) for a in (x, y, gates, cells, dy, dgates, dcells)
    )
    order = list(_steps(len(x), reverse))
    dx, dw_ih, dw_hh, db = np.zeros(x.shape), np.zeros(w_ih.shape), np.zeros(w_hh.shape), np.zeros(len(w_hh))
    for k in reversed(range(len(order))):
        t = order[k]
        h_before, c_before = (y[order[k - 1]], cells[order[k - 1]]) if k else (h0, c0)
        i, f, g, o = np.split(gates[t], 4, axis=1)
        extra = np.split(dgates[t], 4, axis=1)
        dh = dh + dy[t]
        dc = dc + dcells[t] + dh * o / np.cosh(cells[t]) ** 2
        inside = np.hstack([
            (dc * g + extra[0]) * i * (1 - i), (dc * c_before + extra[1]) * f * (1 - f),
            (dc * i + extra[2]) * (1 - g) * (1 + g), (dh * np.tanh(cells[t]) + extra[3]) * o * (1 - o),
        ])  # fmt: skip
        dx[t] = inside @ w_ih
        dw_ih += inside.T @ x[t]
        dw_hh += inside.T @ h_before
        db += inside.sum(0)
        dh, dc = inside @ w_hh, dc * f
    found = [_first_axis(dx, batch_first)] if wants_x else []
    return (*found, dh, dc, dw_ih, dw_hh, *([db] if has_bias else []))


REFERENCES = {"lstm_layer": _layer, "lstm_layer_grad": _layer_grad}
