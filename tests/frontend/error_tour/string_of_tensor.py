"""A tensor is part of a string key.

The text is made while the graph is being built, when the tensor has no value.
"""

import mycelia as ms

SCALES = {"1": 0.5, "2": 2.0}


@ms.jit
def scale(x, level):
    return x * SCALES[str(level)]


scale(ms.Tensor([1.0]), ms.Tensor(2))
