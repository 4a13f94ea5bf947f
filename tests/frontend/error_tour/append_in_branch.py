"""A list from outside grows in one branch.

Its length would depend on a tensor.
"""

import mycelia as ms

history = []


@ms.jit
def log(x):
    if x.mean() > 0:
        history.append(x.mean())
    return x * 2


log(ms.Tensor([1.0, 2.0]))
