"""`math.sqrt` of a tensor.

Functions of the standard library take Python numbers.
"""

import math

import mycelia as ms


@ms.jit
def norm(x):
    return x / math.sqrt((x * x).sum())


norm(ms.Tensor([3.0, 4.0]))
