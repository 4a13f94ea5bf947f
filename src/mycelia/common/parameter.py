"""Parameters: the names of ``mindspore.common.parameter``."""

from mycelia.nn.cell import ParameterTuple
from mycelia.tensor import Parameter, Tensor

__all__ = [
    "Parameter", "ParameterTuple", "Tensor",
]  # fmt: skip
