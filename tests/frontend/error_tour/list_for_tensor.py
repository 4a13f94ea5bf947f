"""A Python list where a tensor is due.

A list is not converted: its numbers would be constants of the graph.
"""

import mycelia as ms
from mycelia import nn


class Net(nn.Cell):
    def construct(self, x):
        return x.abs().sum()


ms.set_context(mode=ms.GRAPH_MODE)
Net()([1.0, -2.0])
