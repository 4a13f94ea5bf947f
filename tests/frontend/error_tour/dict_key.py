"""A tensor as the key of a dict.

A tensor is a key by identity, not by its value.
"""

import mycelia as ms

TABLE = {0: 0.5, 1: 2.0}


@ms.jit
def look_up(x, kind):
    return x * TABLE[kind]


look_up(ms.Tensor([1.0, 2.0]), ms.Tensor(1))
