"""A tensor as a shape.

Shapes are part of the compiled graph.
"""

import mycelia as ms
from mycelia import ops


@ms.jit
def blank(x, n):
    return ops.zeros((n, 2), ms.float32) + x


blank(ms.Tensor([1.0, 2.0]), ms.Tensor(3))
