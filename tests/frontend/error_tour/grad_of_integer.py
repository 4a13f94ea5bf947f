"""A gradient with respect to integers.

Only floating and complex tensors have derivatives.
"""

import mycelia as ms


@ms.jit
def slope(x):
    return ms.grad(lambda v: (v * v).sum())(x)


slope(ms.Tensor([1, 2]))
