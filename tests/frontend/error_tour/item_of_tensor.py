"""`item()` of a tensor.

A Python number is needed while the graph is being built.
"""

import mycelia as ms


@ms.jit
def normalise(x):
    return x / x.max().item()


normalise(ms.Tensor([1.0, 2.0, 3.0]))
