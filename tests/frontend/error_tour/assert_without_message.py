"""An assertion without a message fails.

The condition itself is shown.
"""

import mycelia as ms


@ms.jit
def root(x):
    y = x.sqrt()
    assert (y >= 1).all()
    return y


root(ms.Tensor([4.0, 0.25]))
