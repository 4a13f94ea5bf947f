"""An attribute becomes a tensor in one branch and stays None in the other.

Start with a tensor.
"""

import mycelia as ms
from mycelia import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.best = None

    def construct(self, x):
        if x.mean() > 0:
            self.best = x
        return x * 2


ms.set_context(mode=ms.GRAPH_MODE)
Net()(ms.Tensor([1.0, 2.0]))
