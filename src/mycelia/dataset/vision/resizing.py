"""Change the size of images: OpenCV for arrays, Pillow for PIL images."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ShapeError
from mycelia.dataset import arguments, seeds
from mycelia.dataset.vision.base import (
    ImageTransform,
    check_interpolation,
    cv_interpolation,
    each,
    height_width,
    image,
    like,
    need_dtype,
    opencv,
    pil_interpolation,
)
from mycelia.dataset.vision.crops import window
from mycelia.dataset.vision.enums import Inter


def resized(array: np.ndarray, where: str, height: int, width: int, interpolation: Inter) -> np.ndarray:
    """(H, W), (H, W, C) or (..., H, W, C) in another size.

    Raises:
        DTypeError: a dtype OpenCV does not resize.
    """
    if interpolation is Inter.PILCUBIC:
        return each(array, lambda one: _pil_cubic(one, where, height, width))
    number = cv_interpolation(where, interpolation)
    if array.dtype == np.bool_:
        return resized(array.astype(np.uint8), where, height, width, interpolation).astype(np.bool_)
    need_dtype(array, where, "uint8", "float32", "float64", "uint16", "int16")
    cv2 = opencv(where)

    def one(part: np.ndarray) -> np.ndarray:
        return like(cv2.resize(_taken(part), (width, height), interpolation=number), part)

    return each(array, one)


def _taken(part: np.ndarray) -> np.ndarray:
    """``part`` as OpenCV takes it: its pixels may lie in the rows of a larger image, but side by side."""
    beside = part.itemsize * (part.shape[2] if part.ndim == 3 else 1)
    whole = part.strides[1] == beside and part.strides[0] >= part.shape[1] * beside
    return part if whole and part.strides[-1] == part.itemsize else np.ascontiguousarray(part)


def _pil_cubic(array: np.ndarray, where: str, height: int, width: int) -> np.ndarray:
    from PIL import Image

    need_dtype(array, where, "uint8", "float32")
    if array.dtype == np.uint8 and (array.ndim == 2 or array.shape[2] in (3, 4)):
        return np.array(Image.fromarray(array).resize((width, height), Image.Resampling.BICUBIC))
    planes = array[:, :, None] if array.ndim == 2 else array
    made = [
        np.array(
            Image.fromarray(np.ascontiguousarray(planes[:, :, c])).resize((width, height), Image.Resampling.BICUBIC)
        )
        for c in range(planes.shape[2])
    ]
    return made[0] if array.ndim == 2 else np.stack(made, -1)


def output_size(size: tuple[int, int] | int, height: int, width: int) -> tuple[int, int]:
    """The (height, width) asked for; of one number, the shorter side has it and the shape is kept."""
    if isinstance(size, tuple):
        return size
    if height < width:
        return size, int(size * width / height)
    return int(size * height / width), size


def check_size(where: str, size: Any) -> tuple[int, int] | int:
    """A positive int, or a pair (height, width)."""
    if isinstance(size, (int, np.integer)) and not isinstance(size, bool):
        return arguments.integer(where, "size", size, 1)
    if isinstance(size, (list, tuple)) and len(size) == 1:
        return arguments.integer(where, "size", size[0], 1)
    return arguments.size_pair(where, "size", size)


class Resize(ImageTransform):
    """Resize an image.

    Args:
        size: height and width; or one int, which the shorter side gets, the shape being kept.
        interpolation: how pixels are computed.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        DTypeError: when called, on arrays of other than uint8, uint16, int16, float32, float64 or bool.
        UnsupportedError: when called on an array, without OpenCV.

    >>> import numpy as np
    >>> from mycelia.dataset import vision
    >>> vision.Resize(4)(np.zeros((8, 10, 3), np.uint8)).shape
    (4, 5, 3)
    """

    heavy = True

    def __init__(self, size: Any, interpolation: Inter = Inter.LINEAR) -> None:
        self.size = check_size("Resize", size)
        self.interpolation = check_interpolation("Resize", interpolation)

    def _array(self, array: np.ndarray) -> np.ndarray:
        height, width = output_size(self.size, *height_width(image(array, "Resize", batches=True)))
        return resized(array, "Resize", height, width, self.interpolation)

    def _pil(self, value: Any) -> Any:
        height, width = output_size(self.size, value.height, value.width)
        return value.resize((width, height), pil_interpolation("Resize", self.interpolation))


class RandomResize(ImageTransform):
    """Resize an image with an interpolation drawn from nearest, bilinear, bicubic and area.

    Args:
        size: as for :class:`Resize`.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    heavy = True
    random = True

    def __init__(self, size: Any) -> None:
        self.size = check_size("RandomResize", size)

    def _array(self, array: np.ndarray) -> np.ndarray:
        choice = seeds.sample_random().choice([Inter.NEAREST, Inter.BILINEAR, Inter.BICUBIC, Inter.AREA])
        height, width = output_size(self.size, *height_width(image(array, "RandomResize", batches=True)))
        return resized(array, "RandomResize", height, width, choice)


class ResizedCrop(ImageTransform):
    """Cut out a part and resize it.

    Args:
        top, left, height, width: the part.
        size: height and width, or one int for both.
        interpolation: how pixels are computed.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, on an image that the part leaves.
    """

    heavy = True

    def __init__(
        self, top: int, left: int, height: int, width: int, size: Any, interpolation: Inter = Inter.BILINEAR
    ) -> None:
        where = "ResizedCrop"
        self.place = arguments.integer(where, "top", top, 0), arguments.integer(where, "left", left, 0)
        self.part = arguments.integer(where, "height", height, 1), arguments.integer(where, "width", width, 1)
        self.size = arguments.size_pair(where, "size", size)
        self.interpolation = check_interpolation(where, interpolation)

    def _check(self, height: int, width: int) -> None:
        if self.place[0] + self.part[0] > height or self.place[1] + self.part[1] > width:
            raise ShapeError(
                "ResizedCrop", "img", got=f"height {height} and width {width}",
                takes=f"at least {self.place[0] + self.part[0]} and {self.place[1] + self.part[1]}",
            )  # fmt: skip

    def _array(self, array: np.ndarray) -> np.ndarray:
        self._check(*height_width(image(array, "ResizedCrop", batches=True)))
        return resized(window(array, *self.place, *self.part), "ResizedCrop", *self.size, self.interpolation)

    def _pil(self, value: Any) -> Any:
        self._check(value.height, value.width)
        (top, left), (height, width) = self.place, self.part
        part = value.crop((left, top, left + width, top + height))
        return part.resize(self.size[::-1], pil_interpolation("ResizedCrop", self.interpolation))


def random_part(
    height: int, width: int, scale: tuple[float, float], ratio: tuple[float, float], attempts: int
) -> tuple[int, int, int, int]:
    """(top, left, height, width) of a random part of an image.

    Its share of the area is uniform, and so is the logarithm of its width by height (Szegedy et al., "Going
    deeper with convolutions", 2015). In place of a part that never fits comes the largest middle part of
    an admitted shape.
    """
    draw = seeds.sample_random()
    for _ in range(attempts):
        area = height * width * draw.uniform(*scale)
        aspect = math.exp(draw.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return draw.randint(0, height - h), draw.randint(0, width - w), h, w
    aspect = min(max(width / height, ratio[0]), ratio[1])
    w, h = min(width, round(height * aspect)), min(height, round(width / aspect))
    w, h = max(w, 1), max(h, 1)
    return (height - h) // 2, (width - w) // 2, h, w


class RandomResizedCrop(ImageTransform):
    """Cut out a random part and resize it.

    Args:
        size: height and width, or one int for both.
        scale: (min, max) of the part's share of the area.
        ratio: (min, max) of width by height.
        interpolation: how pixels are computed.
        max_attempts: how often a part that does not fit is drawn anew; then the middle is taken.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    heavy = True
    random = True

    def __init__(
        self,
        size: Any,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Inter = Inter.BILINEAR,
        max_attempts: int = 10,
    ) -> None:
        where = type(self).__name__
        self.size = arguments.size_pair(where, "size", size)
        self.scale = arguments.interval(where, "scale", scale, 0.0)
        self.ratio = arguments.interval(where, "ratio", ratio, 1e-9)
        self.interpolation = check_interpolation(where, interpolation)
        self.max_attempts = arguments.integer(where, "max_attempts", max_attempts, 1)

    def _part(self, height: int, width: int) -> tuple[int, int, int, int]:
        return random_part(height, width, self.scale, self.ratio, self.max_attempts)

    def _array(self, array: np.ndarray) -> np.ndarray:
        image(array, self._name, batches=True)
        part = window(array, *self._part(*height_width(array)))
        return resized(part, self._name, *self.size, self.interpolation)

    def _pil(self, value: Any) -> Any:
        top, left, height, width = self._part(value.height, value.width)
        part = value.crop((left, top, left + width, top + height))
        return part.resize(self.size[::-1], pil_interpolation(self._name, self.interpolation))


class RandomCropDecodeResize(RandomResizedCrop):
    """Decode the bytes of an image file, cut out a random part and resize it.

    Args:
        size, scale, ratio, interpolation, max_attempts: as for :class:`RandomResizedCrop`.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        FileFormatError: when called, on bytes that are no image.
    """

    def __call__(self, *values: Any) -> Any:
        from mycelia.dataset.vision.files import decoded_array

        if len(values) != 1:
            raise ArgumentTypeError(self._name, "img", got=f"{len(values)} columns", takes="the bytes of one image")
        return super().__call__(decoded_array(values[0], self._name))
