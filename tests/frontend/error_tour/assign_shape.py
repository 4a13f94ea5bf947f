"""A parameter is assigned a tensor of another shape.

A parameter keeps its shape.
"""

import mycelia as ms
from mycelia import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.mean = ms.Parameter(ops.zeros((2,), ms.float32), name="mean")

    def construct(self, x):
        ops.assign(self.mean, x)
        return x - self.mean


ms.set_context(mode=ms.GRAPH_MODE)
Net()(ms.Tensor([1.0, 2.0, 3.0]))
