"""The names of ``mindspore.nn.layer.combined``."""

from mycelia.nn.layers import Conv2dBnAct, DenseBnAct

__all__ = [
    "Conv2dBnAct", "DenseBnAct",
]  # fmt: skip
