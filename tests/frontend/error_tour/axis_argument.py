"""A tensor as an axis.

Axes are part of the compiled graph.
"""

import mycelia as ms


@ms.jit
def total(x, axis):
    return x.sum(axis)


total(ms.Tensor([[1.0, 2.0], [3.0, 4.0]]), ms.Tensor(1))
