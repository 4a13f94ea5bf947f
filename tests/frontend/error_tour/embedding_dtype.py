"""Floats given to an Embedding.

It takes integers, the rows of its table.
"""

import mycelia as ms
from mycelia import nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def construct(self, ids):
        return self.table(ids)


ms.set_context(mode=ms.GRAPH_MODE)
Net()(ms.Tensor([1.0, 2.0]))
