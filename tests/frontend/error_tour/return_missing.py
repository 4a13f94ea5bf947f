"""Only one path returns a value.

The other path reaches the end of the function, which returns None.
"""

import mycelia as ms


@ms.jit
def first_positive(x):
    for i in range(3):
        if x[i] > 0:
            return x[i]


first_positive(ms.Tensor([-1.0, 2.0, 3.0]))
