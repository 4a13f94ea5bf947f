"""A list grows in a loop that a tensor controls.

Make the tensor for all rounds before the loop, and write into it.
"""

import mycelia as ms
from mycelia import ops


@ms.jit
def collect(x, n):
    rows = []
    for i in range(n):
        rows.append(x * i)
    return ops.stack(rows)


collect(ms.Tensor([1.0, 2.0]), ms.Tensor(3))
