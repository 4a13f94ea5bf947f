"""An attribute is set in one branch only.

After the call it would be there or not, depending on a tensor.
"""

import mycelia as ms
from mycelia import nn


class Net(nn.Cell):
    def construct(self, x):
        if x.mean() > 0:
            self.last = x.mean()
        return x * 2


ms.set_context(mode=ms.GRAPH_MODE)
Net()(ms.Tensor([1.0, 2.0]))
