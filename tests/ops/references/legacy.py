"""References of the primitives of class forms: suppression of boxes, hooks, host calls."""

from __future__ import annotations

import numpy as np


def nms(boxes, *, threshold):
    """Greedy suppression, box by box."""
    kept = []
    for i, (x1, y1, x2, y2) in enumerate(boxes):
        free = True
        for j in kept:
            u1, v1, u2, v2 = boxes[j]
            common = max(min(x2, u2) - max(x1, u1), 0) * max(min(y2, v2) - max(y1, v1), 0)
            union = (x2 - x1) * (y2 - y1) + (u2 - u1) * (v2 - v1) - common
            free = free and not common / union > threshold
        kept += [i] if free else []
    return np.isin(np.arange(len(boxes)), kept)


REFERENCES = {
    "nms": nms,
    "gradient_hook": lambda x, *, hook: x,
    "host_effect": lambda x, *, tell: (),
    "host_call": lambda x, *, host: (np.sin(x),),
}
