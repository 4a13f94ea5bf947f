"""The branches of an `if` give a variable two dtypes.

A tensor keeps one dtype, whichever way the condition goes.
"""

import mycelia as ms


@ms.jit
def scale(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x.astype(ms.int32)
    return y


scale(ms.Tensor([1.0, 2.0]))
