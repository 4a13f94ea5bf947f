"""Linear algebra: the names of ``mindspore.mint.linalg``."""

from mycelia.ops import (
    inverse as inv,
    norm,
)
from mycelia.ops.array_ext import (
    linalg_qr as qr,
)
from mycelia.ops.reduction_ext import (
    matrix_norm_ext as matrix_norm,
    vector_norm_ext as vector_norm,
)

__all__ = [
    "inv", "matrix_norm", "norm", "qr", "vector_norm",
]  # fmt: skip
