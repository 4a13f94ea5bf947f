"""A tensor as the index of a list.

Stack the choices into one tensor, and index that.
"""

import mycelia as ms


@ms.jit
def pick(x, i):
    choices = ["small", "large"]
    return x, choices[i]


pick(ms.Tensor([1.0, 2.0]), ms.Tensor(1))
