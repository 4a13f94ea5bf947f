"""A method that a tensor does not have.

The message names one that is written almost so.
"""

import mycelia as ms


@ms.jit
def f(x):
    return x.flaten()


f(ms.Tensor([[1.0, 2.0]]))
