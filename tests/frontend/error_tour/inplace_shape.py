"""An in-place operator that would change a shape.

A tensor written in place keeps its shape.
"""

import mycelia as ms
from mycelia import ops


@ms.jit
def f(x, y):
    x += y
    return x


f(ops.ones((2,)), ops.ones((3,)))
