"""A text with a tensor in it is returned.

The text is made while the graph is being built.
"""

import mycelia as ms


@ms.jit
def describe(x):
    return f"mean {x.mean()}"


describe(ms.Tensor([1.0, 2.0]))
