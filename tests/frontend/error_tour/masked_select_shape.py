"""`masked_select` keeps an unknown number of elements.

The shape of its result is only known when the graph runs.
"""

import mycelia as ms
from mycelia import ops


@ms.jit
def keep(x):
    return ops.masked_select(x, x > 0)


keep(ms.Tensor([-1.0, 2.0]))
