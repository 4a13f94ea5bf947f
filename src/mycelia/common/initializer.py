"""Initial values of parameters: the public face of :mod:`mycelia.nn.initializer`."""

from mycelia.nn.initializer import (
    Constant as Constant,
    Dirac as Dirac,
    HeNormal as HeNormal,
    HeUniform as HeUniform,
    Identity as Identity,
    Initializer as Initializer,
    Normal as Normal,
    One as One,
    Orthogonal as Orthogonal,
    Sparse as Sparse,
    TruncatedNormal as TruncatedNormal,
    Uniform as Uniform,
    VarianceScaling as VarianceScaling,
    XavierNormal as XavierNormal,
    XavierUniform as XavierUniform,
    Zero as Zero,
    initializer as initializer,
)
from mycelia.tensor import Tensor as Tensor

__all__ = [
    "Constant", "Dirac", "HeNormal", "HeUniform", "Identity", "Initializer", "Normal", "One", "Orthogonal", "Sparse",
    "TruncatedNormal", "Uniform", "VarianceScaling", "XavierNormal", "XavierUniform", "Zero", "initializer",
]  # fmt: skip
