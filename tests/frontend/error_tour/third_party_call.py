"""A library that needs values.

SciPy, pandas and the like cannot compute with tensors of a graph.
"""

from scipy.special import expit

import mycelia as ms


@ms.jit
def gate(x):
    return x * expit(x)


gate(ms.Tensor([0.25, 0.5]))
