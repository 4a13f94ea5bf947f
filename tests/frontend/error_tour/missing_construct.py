"""A Cell without `construct`.

Every Cell says what it computes.
"""

import mycelia as ms
from mycelia import nn


class Net(nn.Cell):
    def forward(self, x):
        return x * 2


ms.set_context(mode=ms.GRAPH_MODE)
Net()(ms.Tensor([1.0]))
