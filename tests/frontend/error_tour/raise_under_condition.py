"""An error raised under a condition on a tensor.

It is raised when the graph runs, with the line that raises it.
"""

import mycelia as ms


@ms.jit
def step(loss, limit):
    if loss > limit:
        raise ValueError("loss", loss, "is above", limit)
    return loss * 2


step(ms.Tensor(7.5), ms.Tensor(5.0))
