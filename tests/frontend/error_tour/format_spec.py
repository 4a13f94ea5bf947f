"""A tensor in an f-string with a format.

The text is made while the graph is being built.
"""

import mycelia as ms


@ms.jit
def report(x):
    print(f"mean: {x.mean():.3f}")
    return x * 2


report(ms.Tensor([1.0, 2.0]))
