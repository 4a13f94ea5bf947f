"""A NumPy function on a tensor.

NumPy computes with values; use the operator of `ops` or `mint`.
"""

import numpy as np

import mycelia as ms


@ms.jit
def logit(x):
    return np.log(x / (1 - x))


logit(ms.Tensor([0.25, 0.5]))
