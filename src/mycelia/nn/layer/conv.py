"""The names of ``mindspore.nn.layer.conv``."""

from mycelia.nn.layers import Conv1d, Conv1dTranspose, Conv2d, Conv2dTranspose, Conv3d, Conv3dTranspose

__all__ = [
    "Conv1d", "Conv1dTranspose", "Conv2d", "Conv2dTranspose", "Conv3d", "Conv3dTranspose",
]  # fmt: skip
