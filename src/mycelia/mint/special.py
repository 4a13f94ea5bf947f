"""Special functions: the names of ``mindspore.mint.special``."""

from mycelia.ops import (
    erfc,
    exp2,
    expm1,
    log1p,
    round,
    sinc,
)
from mycelia.ops.neural_ext import (
    log_softmax_ext as log_softmax,
)

__all__ = [
    "erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc",
]  # fmt: skip
