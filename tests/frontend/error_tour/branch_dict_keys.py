"""The branches give dicts with different keys.

The keys of a dict are Python's: they cannot depend on a tensor.
"""

import mycelia as ms


@ms.jit
def losses(x):
    out = {"main": x.sum()}
    if x.mean() > 0:
        out["extra"] = x.max()
    return out


losses(ms.Tensor([1.0, 2.0]))
