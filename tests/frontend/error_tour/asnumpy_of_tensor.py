"""`asnumpy()` inside a graph.

NumPy computes with values, and the tensor has none yet.
"""

import mycelia as ms


@ms.jit
def clip(x):
    low = x.asnumpy().min()
    return x - float(low)


clip(ms.Tensor([1.0, 2.0, 3.0]))
