"""Too many arguments.

The call does not fit the signature.
"""

import mycelia as ms
from mycelia import nn


class Net(nn.Cell):
    def construct(self, x, scale):
        return x * scale


ms.set_context(mode=ms.GRAPH_MODE)
Net()(ms.Tensor([1.0]), 2.0, 3.0)
