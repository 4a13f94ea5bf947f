"""A variable is deleted in one branch.

Reading it afterwards would fail on that path.
"""

import mycelia as ms


@ms.jit
def f(x):
    y = x * 2
    if x.sum() > 0:
        del y
    return y


f(ms.Tensor([1.0, 2.0]))
