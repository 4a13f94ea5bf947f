"""A comprehension that filters by tensors.

Which elements are kept decides how many there are.
"""

import mycelia as ms


@ms.jit
def large(x):
    return sum([v for v in x if v > 1])


large(ms.Tensor([1.0, 2.0, 3.0]))
