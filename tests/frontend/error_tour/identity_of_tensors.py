"""`is` between a tensor and a value.

Identity of objects is Python's and never depends on a value: this condition is always false.
"""

import mycelia as ms


@ms.jit
def check(x):
    y = x.sum() > 0
    assert y is True, "the sum is not positive"
    return x


check(ms.Tensor([1.0, 2.0]))
