"""The truth of a tensor of several elements.

Say whether any or all of the elements are meant.
"""

import mycelia as ms


@ms.jit
def gate(x):
    if x > 0:
        return x
    return -x


gate(ms.Tensor([1.0, -2.0]))
