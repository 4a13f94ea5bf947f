"""A layer that the Cell does not have.

The message names one that is written almost so.
"""

import mycelia as ms
from mycelia import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(2, 2)

    def construct(self, x):
        return self.dens(x)


ms.set_context(mode=ms.GRAPH_MODE)
Net()(ops.ones((1, 2)))
