"""A tensor kept from inside a graph and used outside.

It stands for a value of the graph and holds none itself; return it.
"""

import mycelia as ms

kept = []


@ms.jit
def double(x):
    y = x * 2
    kept.append(y)
    return y + 1


double(ms.Tensor([1.0, 2.0]))
print(kept[0] + 1)
