"""`int()` of a tensor.

A Python number is needed while the graph is being built, and the tensor has no value yet.
"""

import mycelia as ms


@ms.jit
def crop(x, length):
    return x[: int(length)]


crop(ms.Tensor([1.0, 2.0, 3.0]), ms.Tensor(2))
