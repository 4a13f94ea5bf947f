"""A value that does not fit where it is written.

The message says the shape of the place.
"""

import mycelia as ms
from mycelia import ops


@ms.jit
def f(x):
    x[0] = ops.ones((3,), ms.float32)
    return x


f(ops.ones((2, 2)))
