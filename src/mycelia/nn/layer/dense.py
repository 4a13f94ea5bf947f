"""The names of ``mindspore.nn.layer.dense``."""

from mycelia.nn.layers import BiDense

__all__ = [
    "BiDense",
]  # fmt: skip
