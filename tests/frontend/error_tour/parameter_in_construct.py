"""A Parameter is created in `construct`.

Every call would make a new one; create it in `__init__`.
"""

import mycelia as ms
from mycelia import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        weight = ms.Parameter(ops.ones((2,), ms.float32), name="weight")
        return x * weight


ms.set_context(mode=ms.GRAPH_MODE)
Net()(ms.Tensor([1.0, 2.0]))
