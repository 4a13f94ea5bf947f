"""A constant index out of range.

The shape is known while the graph is being built, so it is checked then.
"""

import mycelia as ms


@ms.jit
def third(x):
    return x[3]


third(ms.Tensor([1.0, 2.0]))
