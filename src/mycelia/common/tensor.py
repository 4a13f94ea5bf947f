"""Tensors: the names of ``mindspore.common.tensor``."""

from mycelia.tensor import Tensor

tensor = Tensor

__all__ = [
    "Tensor", "tensor",
]  # fmt: skip
