"""A variable is bound in one branch only.

Reading it afterwards would fail on the other path.
"""

import mycelia as ms


@ms.jit
def residual(x):
    if x.sum() > 0:
        bonus = x * 2
    return x + bonus


residual(ms.Tensor([1.0, 2.0]))
