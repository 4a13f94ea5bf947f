"""A tensor kept from inside a graph and printed outside.

It stands for a value of the graph and holds none itself; return it.
"""

import mycelia as ms
from mycelia import nn


class Net(nn.Cell):
    def construct(self, x):
        self.hidden = x * 2
        return self.hidden + 1


ms.set_context(mode=ms.GRAPH_MODE)
net = Net()
net(ms.Tensor([1.0, 2.0]))
net.hidden.asnumpy()
