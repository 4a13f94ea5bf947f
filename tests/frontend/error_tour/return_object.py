"""A branch returns an object that is not a tensor.

A function object cannot be the result of a choice made by a graph.
"""

import mycelia as ms
from mycelia import ops


@ms.jit
def activation(x):
    if x.mean() > 0:
        return ops.relu
    return ops.tanh


activation(ms.Tensor([1.0, 2.0]))
