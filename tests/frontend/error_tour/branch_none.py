"""One branch gives a Tensor, the other None.

Whether a value exists cannot depend on a tensor; use a tensor and a flag.
"""

import mycelia as ms


@ms.jit
def maybe(x):
    cache = None
    if x.sum() > 0:
        cache = x * 2
    return cache


maybe(ms.Tensor([1.0, 2.0]))
