"""References of the different elements of a tensor."""

from __future__ import annotations

import numpy as np


def _unique_with_pad(x, pad):
    seen = list(dict.fromkeys(x.ravel().tolist()))
    index = np.array([seen.index(v) for v in x.ravel().tolist()], np.int64).reshape(x.shape)
    return np.array(seen + [pad.item()] * (x.size - len(seen)), x.dtype), index


REFERENCES = {"unique_with_pad": _unique_with_pad}
