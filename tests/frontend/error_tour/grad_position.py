"""`grad_position` names an argument that is not there.

Positions count from 0.
"""

import mycelia as ms


def loss(x, y):
    return (x * y).sum()


ms.set_context(mode=ms.GRAPH_MODE)
ms.grad(loss, grad_position=2)(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0]))
