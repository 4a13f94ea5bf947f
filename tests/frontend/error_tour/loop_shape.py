"""The shape of a loop variable grows.

A loop that a tensor controls cannot change shapes from round to round.
"""

import mycelia as ms
from mycelia import ops


@ms.jit
def repeat(x, n):
    for _ in range(n):
        x = ops.concat([x, x])
    return x


repeat(ms.Tensor([1.0, 2.0]), ms.Tensor(3))
