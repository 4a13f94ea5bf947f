"""The names of ``mindspore.nn.layer.basic``."""

from mycelia.nn.layers import (
    ClipByNorm,
    Dense,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout2dExt,
    Dropout3d,
    DropoutExt,
    Flatten,
    Identity,
    L1Regularizer,
    Linear,
    MatrixDiag,
    MatrixDiagPart,
    MatrixSetDiag,
    Norm,
    OneHot,
    Pad,
    Roll,
    Tril,
    Triu,
    Unflatten,
    Unfold,
    Upsample,
)

__all__ = [
    "ClipByNorm", "Dense", "Dropout", "Dropout1d", "Dropout2d", "Dropout2dExt", "Dropout3d", "DropoutExt", "Flatten",
    "Identity", "L1Regularizer", "Linear", "MatrixDiag", "MatrixDiagPart", "MatrixSetDiag", "Norm", "OneHot", "Pad",
    "Roll", "Tril", "Triu", "Unflatten", "Unfold", "Upsample",
]  # fmt: skip
