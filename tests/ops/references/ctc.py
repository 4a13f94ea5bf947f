"""References of connectionist temporal classification: every alignment, one by one."""

from __future__ import annotations

import itertools

import numpy as np


def _collapsed(path, blank):
    merged = [c for i, c in enumerate(path) if i == 0 or c != path[i - 1]]
    return tuple(c for c in merged if c != blank)


def _likelihood(logs, path):
    return np.exp(sum(logs[t, c] for t, c in enumerate(path)))


def _states(labels, blank):
    """Blank, label, blank, ...: what a path walks along, staying or going on."""
    states = [blank]
    for c in labels:
        states += [int(c), blank]
    return states


def _walks(states, steps, blank):
    """All walks of a number of steps over the states that may be labels of one path."""
    walks = [[0], [1]] if len(states) > 1 else [[0]]
    for _ in range(steps - 1):
        further = []
        for w in walks:
            here = w[-1]
            nexts = [here, here + 1]
            if here + 2 < len(states) and states[here + 2] not in (blank, states[here]):
                nexts.append(here + 2)
            further += [[*w, n] for n in nexts if n < len(states)]
        walks = further
    return walks


def _loss(logs, labels, frames, lengths, *, blank):
    loss = np.zeros(logs.shape[1])
    for b in range(logs.shape[1]):
        wanted = tuple(int(c) for c in labels[b, : lengths[b]])
        paths = itertools.product(range(logs.shape[2]), repeat=int(frames[b]))
        total = sum(_likelihood(logs[:, b], p) for p in paths if _collapsed(p, blank) == wanted)
        loss[b] = -np.log(total) if total else np.inf
    return loss


def _alpha(logs, labels, frames, lengths, *, blank):
    steps, batch, _ = logs.shape
    alpha = np.full((batch, steps, 2 * labels.shape[1] + 1), -np.inf)
    for b in range(batch):
        states = _states(labels[b, : lengths[b]], blank)
        for t in range(frames[b]):
            reached = np.zeros(len(states))
            for w in _walks(states, t + 1, blank):
                reached[w[-1]] += _likelihood(logs[:, b], [states[i] for i in w])
            with np.errstate(divide="ignore"):
                alpha[b, t, : len(states)] = np.log(reached)
    return alpha


def _best_path(logits, frames, *, merge):
    steps, batch, classes = logits.shape
    path, score = np.full((batch, steps), -1), np.zeros((batch, 1))
    for b in range(batch):
        last = None
        for t in range(frames[b]):
            c = int(logits[t, b].argmax())
            score[b] -= logits[t, b, c]
            if c != classes - 1 and not (merge and c == last):
                path[b, t] = c
            last = c
    return path, score


REFERENCES = {"ctc_loss": _loss, "ctc_alpha": _alpha, "ctc_best_path": _best_path}
