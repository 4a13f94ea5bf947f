"""Special functions: the names of ``mindspore.mint.special``."""

from mycelia.ops import (
    erfc as erfc,
    exp2 as exp2,
    expm1 as expm1,
    log1p as log1p,
    round as round,
    sinc as sinc,
)
from mycelia.ops.neural_ext import (
    log_softmax_ext as log_softmax,
)
