"""A loop variable starts as None.

It is a tensor from the second round on.
"""

import mycelia as ms


@ms.jit
def peak(x):
    best = None
    while x.sum() < 10:
        best = x
        x = x * 2
    return x, best


peak(ms.Tensor([1.0, 2.0]))
