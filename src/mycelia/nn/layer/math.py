"""The names of ``mindspore.nn.layer.math``."""

from mycelia.nn.layers import (
    DiGamma,
    IGamma,
    LBeta,
    LGamma,
    MatDet,
    MatInverse,
    MatMul,
    Moments,
    Range,
    ReduceLogSumExp,
)

__all__ = [
    "DiGamma", "IGamma", "LBeta", "LGamma", "MatDet", "MatInverse", "MatMul", "Moments", "Range", "ReduceLogSumExp",
]  # fmt: skip
