"""A zero-dimensional tensor is unpacked.

It has no axis to go over.
"""

import mycelia as ms


@ms.jit
def split(loss):
    value, extra = loss
    return value + extra


split(ms.Tensor(1.0))
