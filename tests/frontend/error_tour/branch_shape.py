"""The branches of an `if` give a variable two shapes.

Both branches are compiled into one graph, where a tensor keeps its shape.
"""

import mycelia as ms
from mycelia import ops


@ms.jit
def widen(x):
    if x.max() > 1:
        y = ops.concat([x, x])
    else:
        y = x
    return y


widen(ms.Tensor([1.0, 2.0]))
