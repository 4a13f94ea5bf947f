"""An input that does not fit `set_inputs`.

The Cell was declared for other types.
"""

import mycelia as ms
from mycelia import nn, ops


class Net(nn.Cell):
    def construct(self, x):
        return x * 2


ms.set_context(mode=ms.GRAPH_MODE)
net = Net()
net.set_inputs(ms.Tensor(shape=[None, 3], dtype=ms.float32))
net(ops.ones((2, 4)))
