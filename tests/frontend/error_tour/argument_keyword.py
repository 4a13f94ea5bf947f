"""An unknown keyword.

The call does not fit the signature.
"""

import mycelia as ms
from mycelia import nn


class Net(nn.Cell):
    def construct(self, x, scale=1.0):
        return x * scale


ms.set_context(mode=ms.GRAPH_MODE)
Net()(ms.Tensor([1.0]), scaling=2.0)
