"""`yield` in a loop that a tensor controls.

The number of values would only be known when the graph runs.
"""

import mycelia as ms


def rows(x, n):
    for i in range(n):
        yield x * i


@ms.jit
def total(x, n):
    return sum(rows(x, n))


total(ms.Tensor([1.0]), ms.Tensor(3))
