"""A layer is called with too many arguments.

The hint is the signature of the layer.
"""

import mycelia as ms
from mycelia import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(2, 2)

    def construct(self, x):
        return self.dense(x, True)


ms.set_context(mode=ms.GRAPH_MODE)
Net()(ops.ones((1, 2)))
