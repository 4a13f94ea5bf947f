"""The gradient of a function that returns no tensor.

There is nothing to differentiate.
"""

import mycelia as ms


def describe(x):
    return "mean", 3


ms.set_context(mode=ms.GRAPH_MODE)
ms.grad(describe)(ms.Tensor([1.0, 2.0]))
