"""An unknown option of `jit`.

The message lists what there is.
"""

import mycelia as ms


@ms.jit(jit_level="O9")
def double(x):
    return x * 2


double(ms.Tensor([1.0]))
