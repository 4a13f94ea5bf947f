"""The names of ``mindspore.nn.layer.image``."""

from mycelia.nn.layers import MSSSIM, PSNR, SSIM, CentralCrop, ImageGradients, PixelShuffle, PixelUnshuffle

__all__ = [
    "MSSSIM",
    "PSNR",
    "SSIM",
    "CentralCrop",
    "ImageGradients",
    "PixelShuffle",
    "PixelUnshuffle",
]  # fmt: skip
