"""A list held by a Cell grows in one branch.

Its length would depend on a tensor.
"""

import mycelia as ms
from mycelia import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.seen = []

    def construct(self, x):
        if x.mean() > 0:
            self.seen.append(x.mean())
        return x * 2


ms.set_context(mode=ms.GRAPH_MODE)
Net()(ms.Tensor([1.0, 2.0]))
