"""`range` of a float tensor.

A range counts in integers.
"""

import mycelia as ms


@ms.jit
def grow(x):
    for _ in range(x.max()):
        x = x + 1
    return x


grow(ms.Tensor([1.0, 2.0]))
