"""Lists of tensors are compared.

Whether two lists are equal would depend on the values of their tensors.
"""

import mycelia as ms


@ms.jit
def same(x, y):
    if [x, y] == [y, x]:
        return x
    return x + y


same(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0]))
