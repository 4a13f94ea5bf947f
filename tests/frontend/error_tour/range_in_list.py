"""A list over the range of a tensor.

The length of the list is only known when the graph runs.
"""

import mycelia as ms


@ms.jit
def steps(x, n):
    return [x * i for i in range(n)]


steps(ms.Tensor([1.0, 2.0]), ms.Tensor(3))
