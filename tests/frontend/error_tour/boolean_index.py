"""Indexing with a boolean tensor.

How many elements `x[x > 0]` has is only known when the graph runs.
"""

import mycelia as ms


@ms.jit
def positives(x):
    return x[x > 0].mean()


positives(ms.Tensor([-1.0, 2.0]))
