"""A tensor is kept in an attribute for the next call.

Keep state in a Parameter: it is read and written by the graph.
"""

import mycelia as ms
from mycelia import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.previous = None

    def construct(self, x):
        y = x if self.previous is None else x + self.previous
        self.previous = y
        return y


ms.set_context(mode=ms.GRAPH_MODE)
net = Net()
net(ms.Tensor([1.0]))
net(ms.Tensor([2.0]))
