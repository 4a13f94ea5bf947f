"""An assertion on a tensor fails.

It is checked when the graph runs; the message shows the values.
"""

import mycelia as ms


@ms.jit
def root(x):
    assert x.min() >= 0, f"negative input: {x}"
    return x.sqrt()


root(ms.Tensor([4.0, -9.0]))
