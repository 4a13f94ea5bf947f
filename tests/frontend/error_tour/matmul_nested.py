"""Shapes that do not multiply, in a nested Cell.

The message says the line of the Cell that multiplies.
"""

import mycelia as ms
from mycelia import nn, ops


class Head(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = ms.Parameter(ops.ones((8, 3), ms.float32), name="weight")

    def construct(self, x):
        return ops.matmul(x, self.weight)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.head = Head()

    def construct(self, x):
        return self.head(x * 2)


ms.set_context(mode=ms.GRAPH_MODE)
Net()(ops.ones((2, 4)))
