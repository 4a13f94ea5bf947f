"""A tensor in a `with` statement.

A tensor is not a context manager.
"""

import mycelia as ms


@ms.jit
def f(x):
    with x:
        return x * 2


f(ms.Tensor([1.0]))
