"""A generator function is compiled.

A compiled function returns its values at once.
"""

import mycelia as ms


@ms.jit
def halves(x):
    for _ in range(3):
        x = x / 2
        yield x


halves(ms.Tensor([1.0]))
