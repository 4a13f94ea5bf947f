"""A tensor and a number take turns in a loop.

The variable must have the type that it ends with from the start.
"""

import mycelia as ms


@ms.jit
def total(x, n):
    acc = 0
    for i in range(n):
        acc = acc + x
    return acc


total(ms.Tensor([1.0, 2.0]), ms.Tensor(3))
