"""None is used as a tensor.

A forgotten argument reaches an operator.
"""

import mycelia as ms
from mycelia import nn


class Net(nn.Cell):
    def construct(self, x, mask=None):
        return x * mask


ms.set_context(mode=ms.GRAPH_MODE)
Net()(ms.Tensor([1.0, 2.0]))
