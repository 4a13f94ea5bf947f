"""References of attention: one row of scores after the other."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax


def _whole(given, layout):
    """Query, key and value with heads second, and the biases."""
    if layout == "packed":
        return [x.swapaxes(1, 2) for x in np.moveaxis(given[0], 2, 0)], given[1:]
    return [x if layout == "heads" else x.swapaxes(1, 2) for x in given[:3]], given[3:]


def _rows(q, k, bias, scale, before, after, from_end, fill):
    """For each row: where it is, its key head, the scores, which of them count, and which are those of the inputs."""
    batch, heads, length, _ = q.shape
    each, reach = heads // k.shape[1], k.shape[2]
    shift = reach - length if from_end else 0
    for b, h, s in np.ndindex(batch, heads, length):
        scores = k[b, h // each] @ q[b, h, s] * scale
        allowed = np.array([s + shift - before <= t <= s + shift + after for t in range(reach)])
        chosen = np.ones(reach, bool)
        for extra in bias:
            full = np.broadcast_to(extra, (batch, heads, length, reach))[b, h, s]
            if extra.dtype == bool:
                chosen &= full
            else:
                scores = scores + full
        scores = np.where(chosen, scores, fill)
        yield (b, h, s), (b, h // each), scores, allowed & (scores > -np.inf), allowed & chosen


def _attention(*given, scale, before, after, from_end, fill, layout, closed):
    (q, k, v), bias = _whole(given, layout)
    out, log = np.zeros((*q.shape[:3], v.shape[3])), np.full(q.shape[:3], -np.inf)
    for place, head, scores, allowed, _ in _rows(q, k, bias, scale, before, after, from_end, fill):
        if allowed.any():
            out[place] = softmax(scores[allowed]) @ v[head][allowed]
            log[place] = logsumexp(scores[allowed])
        elif closed == "nan":
            out[place] = np.nan
    return out if layout == "heads" else out.swapaxes(1, 2), log


def _gradients(given, statistic, scale, before, after, from_end, fill, layout):
    ct, out, log, *rest = given
    d_log = rest.pop(0) if statistic else np.zeros(log.shape)
    (q, k, v), bias = _whole(rest, layout)
    if layout != "heads":
        ct, out = ct.swapaxes(1, 2), out.swapaxes(1, 2)
    dq, dk, dv = np.zeros(q.shape), np.zeros(k.shape), np.zeros(v.shape)
    d_scores = np.zeros((*q.shape[:3], k.shape[2]))
    for place, head, scores, allowed, own in _rows(q, k, bias, scale, before, after, from_end, fill):
        weights = np.where(allowed, np.exp(scores - log[place]), 0)
        ds = np.where(own, weights * (v[head] @ ct[place] - ct[place] @ out[place] + d_log[place]), 0)
        d_scores[place] = ds
        dq[place] = ds @ k[head] * scale
        dk[head] += np.outer(ds, q[place]) * scale
        dv[head] += np.outer(weights, ct[place])
    return dq, dk, dv, d_scores, bias


def _attention_grad(*given, statistic, scale, before, after, from_end, fill, layout, closed):
    made = _gradients(given, statistic, scale, before, after, from_end, fill, layout)[:3]
    if layout == "heads":
        return made
    made = [g.swapaxes(1, 2) for g in made]
    return (np.stack(made, 2),) if layout == "packed" else tuple(made)


def _attention_bias_grad(*given, statistic, which, scale, before, after, from_end, fill, layout, closed):
    *_, d_scores, bias = _gradients(given, statistic, scale, before, after, from_end, fill, layout)
    shape = (1,) * (4 - bias[which].ndim) + bias[which].shape
    spread = tuple(i for i in range(4) if shape[i] == 1)
    return d_scores.sum(spread, keepdims=True).reshape(bias[which].shape)


REFERENCES = {
    "attention": _attention, "attention_grad": _attention_grad, "attention_bias_grad": _attention_bias_grad
}  # fmt: skip
