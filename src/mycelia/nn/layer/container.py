"""The names of ``mindspore.nn.layer.container``."""

from mycelia.nn.layers import CellDict, CellList, SequentialCell

__all__ = [
    "CellDict", "CellList", "SequentialCell",
]  # fmt: skip
