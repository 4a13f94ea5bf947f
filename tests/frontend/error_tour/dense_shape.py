"""An input of the wrong width for a Dense layer.

The message says what the layer takes.
"""

import mycelia as ms
from mycelia import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(8, 3)

    def construct(self, x):
        return self.dense(x)


ms.set_context(mode=ms.GRAPH_MODE)
Net()(ops.ones((2, 4)))
