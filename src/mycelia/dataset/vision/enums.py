"""The choices that image transforms take."""

from __future__ import annotations

import enum


class Inter(enum.IntEnum):
    """How pixels between pixels are computed. ``ANTIALIAS`` is for PIL images only, ``AREA`` for arrays only."""

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(enum.StrEnum):
    """What is put around an image: one value, the edge, or the mirrored image without or with the edge."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class ConvertMode(enum.IntEnum):
    """Conversions between orders of channels."""

    COLOR_BGR2BGRA = COLOR_RGB2RGBA = 0
    COLOR_BGRA2BGR = COLOR_RGBA2RGB = 1
    COLOR_BGR2RGBA = COLOR_RGB2BGRA = 2
    COLOR_RGBA2BGR = COLOR_BGRA2RGB = 3
    COLOR_BGR2RGB = COLOR_RGB2BGR = 4
    COLOR_BGRA2RGBA = COLOR_RGBA2BGRA = 5
    COLOR_BGR2GRAY = 6
    COLOR_RGB2GRAY = 7
    COLOR_GRAY2BGR = COLOR_GRAY2RGB = 8
    COLOR_GRAY2BGRA = COLOR_GRAY2RGBA = 9
    COLOR_BGRA2GRAY = 10
    COLOR_RGBA2GRAY = 11


class ImageBatchFormat(enum.IntEnum):
    """Where the channels of a batch of images stand."""

    NHWC = 0
    NCHW = 1


class ImageReadMode(enum.IntEnum):
    """What a file is read as: as it is, gray, or RGB."""

    UNCHANGED = 0
    GRAYSCALE = 1
    COLOR = 2


class SliceMode(enum.IntEnum):
    """What to do with the rest when an image is cut into patches: fill the last ones up, or drop it."""

    PAD = 0
    DROP = 1


class AutoAugmentPolicy(enum.StrEnum):
    """The learned policies of AutoAugment."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"
