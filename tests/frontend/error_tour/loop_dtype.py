"""The dtype of a loop variable changes.

Every round starts with the types of the one before.
"""

import mycelia as ms


@ms.jit
def halve(x):
    while x.sum() > 1:
        x = x.astype(ms.float16) / 2
    return x


halve(ms.Tensor([1.0, 2.0]))
