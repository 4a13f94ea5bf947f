"""Recursion that a tensor should end.

Both sides of the condition are staged, so the recursion never ends.
"""

import mycelia as ms


@ms.jit
def factorial(n):
    if n <= 1:
        return n
    return n * factorial(n - 1)


factorial(ms.Tensor(5))
