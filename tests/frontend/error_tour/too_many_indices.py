"""More indices than axes.

The message says how many axes there are.
"""

import mycelia as ms


@ms.jit
def corner(x):
    return x[0, 0]


corner(ms.Tensor([1.0, 2.0]))
