"""The branches give two kinds of container.

Containers must have the same kind and length on both paths.
"""

import mycelia as ms


@ms.jit
def pack(x):
    if x.sum() > 0:
        pair = (x, x)
    else:
        pair = [x, x]
    return pair


pack(ms.Tensor([1.0, 2.0]))
