"""A tensor is called.

It is not a function.
"""

import mycelia as ms


@ms.jit
def scale(x, factor):
    return x(factor)


scale(ms.Tensor([1.0]), 2.0)
