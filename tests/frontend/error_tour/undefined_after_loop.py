"""A variable is bound in a loop that may run zero times.

Give it a value before the loop.
"""

import mycelia as ms


@ms.jit
def last(x, n):
    for i in range(n):
        y = x * i
    return y


last(ms.Tensor([1.0, 2.0]), ms.Tensor(0))
