"""`nonzero` has as many rows as there are non-zero elements.

The shape of its result is only known when the graph runs.
"""

import mycelia as ms
from mycelia import ops


@ms.jit
def where_positive(x):
    return ops.nonzero(x)


where_positive(ms.Tensor([0.0, 2.0]))
