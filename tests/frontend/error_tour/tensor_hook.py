"""A hook on a tensor of a graph.

Hooks see values, which a graph has only when it runs.
"""

import mycelia as ms


@ms.jit
def f(x):
    y = x * 2
    y.register_hook(print)
    return y.sum()


f(ms.Tensor([1.0, 2.0]))
