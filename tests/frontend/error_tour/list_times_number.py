"""A Python list is multiplied by a number.

Python repeats or refuses lists: make a Tensor of it.
"""

import mycelia as ms
from mycelia import nn


class Net(nn.Cell):
    def construct(self, x):
        return x * 0.5


ms.set_context(mode=ms.GRAPH_MODE)
Net()([1.0, -2.0])
