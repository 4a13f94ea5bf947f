"""A name that does not exist.

The code of a function is run while its graph is being built.
"""

import mycelia as ms


@ms.jit
def scale(x):
    return x * bias  # noqa: F821


scale(ms.Tensor([1.0, 2.0]))
