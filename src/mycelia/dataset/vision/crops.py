"""Cut images out and put borders around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError, UnsupportedError
from mycelia.dataset import arguments, seeds
from mycelia.dataset.vision.base import (
    ImageTransform,
    channels,
    check_border,
    height_width,
    image,
)
from mycelia.dataset.vision.enums import Border, SliceMode

_NUMPY_MODE = {Border.EDGE: "edge", Border.REFLECT: "reflect", Border.SYMMETRIC: "symmetric"}


def window(array: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    """A part of (H, W) or (..., H, W, C), in the memory of the whole."""
    rows, columns = slice(top, top + height), slice(left, left + width)
    return array[rows, columns] if array.ndim == 2 else array[..., rows, columns, :]


def cut(array: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    """A part of (H, W) or (..., H, W, C), as an array of its own."""
    return window(array, top, left, height, width).copy()


def bordered(
    array: np.ndarray, where: str, left: int, top: int, right: int, bottom: int, fill: Any, mode: Border
) -> np.ndarray:
    """``array`` with a border; ``fill`` is a number or one per channel.

    Raises:
        ShapeError: three fill values for other than three channels.
    """
    around = [(top, bottom), (left, right)]
    widths = around if array.ndim == 2 else [(0, 0)] * (array.ndim - 3) + around + [(0, 0)]
    if mode is not Border.CONSTANT:
        return np.pad(array, widths, _NUMPY_MODE[mode])  # type: ignore[call-overload]
    value = fill
    if isinstance(fill, tuple):
        value = np.array(fill) if channels(array) == len(fill) else fill[0]
    shape = [n + a + b for n, (a, b) in zip(array.shape, widths, strict=True)]
    made = np.empty(shape, array.dtype)
    made[...] = np.asarray(value).astype(array.dtype)
    inner = tuple(slice(a, a + n) for n, (a, _) in zip(array.shape, widths, strict=True))
    made[inner] = array
    return made


def bordered_pil(value: Any, where: str, left: int, top: int, right: int, bottom: int, fill: Any, mode: Border) -> Any:
    """A PIL image with a border."""
    from PIL import Image, ImageOps

    if mode is Border.CONSTANT:
        bands = len(value.getbands())
        color = fill if bands == 3 else (fill[0] if isinstance(fill, tuple) else fill)
        if bands == 3 and not isinstance(color, tuple):
            color = (color,) * 3
        return ImageOps.expand(value, (left, top, right, bottom), color)
    return Image.fromarray(bordered(np.array(value), where, left, top, right, bottom, fill, mode))


def check_padding(where: str, padding: Any) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) of an int, a pair (left and right, top and bottom) or four ints."""
    if isinstance(padding, (int, np.integer)) and not isinstance(padding, bool):
        padding = (padding,) * 4
    if not isinstance(padding, (list, tuple)):
        raise ArgumentTypeError(where, "padding", got=repr(padding), takes="an int or 2 or 4 of them")
    if len(padding) not in (2, 4):
        raise ArgumentValueError(where, "padding", got=f"{len(padding)} ints", takes="an int or 2 or 4 of them")
    numbers = [arguments.integer(where, "padding", n, 0) for n in padding]
    a, b = numbers[:2]
    return (a, b, a, b) if len(numbers) == 2 else (a, b, numbers[2], numbers[3])


def check_fill(where: str, fill: Any) -> Any:
    """An int from 0 to 255, or a tuple of three."""
    if isinstance(fill, tuple):
        if len(fill) != 3:
            raise ArgumentValueError(where, "fill_value", got=f"{len(fill)} values", takes="one value or three")
        return tuple(arguments.integer(where, "fill_value", v, 0, 255) for v in fill)
    return arguments.integer(where, "fill_value", fill, 0, 255)


class Crop(ImageTransform):
    """Cut out a part.

    Args:
        coordinates: (top, left) of the part.
        size: its height and width, or one int for both.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, on an image that the part leaves.

    >>> import numpy as np
    >>> from mycelia.dataset import vision
    >>> vision.Crop((0, 1), 2)(np.arange(9).reshape(3, 3))
    array([[1, 2],
           [4, 5]])
    """

    def __init__(self, coordinates: Any, size: Any) -> None:
        if not isinstance(coordinates, (list, tuple)) or len(coordinates) != 2:
            raise ArgumentTypeError("Crop", "coordinates", got=repr(coordinates), takes="a pair (top, left)")
        self.top, self.left = (arguments.integer("Crop", "coordinates", c, 0) for c in coordinates)
        self.size = arguments.size_pair("Crop", "size", size)

    def _array(self, array: np.ndarray) -> np.ndarray:
        image(array, "Crop")
        _inside("Crop", array, self.top, self.left, *self.size)
        return cut(array, self.top, self.left, *self.size)


def _inside(where: str, array: np.ndarray, top: int, left: int, height: int, width: int) -> None:
    have = height_width(array)
    if top + height > have[0] or left + width > have[1]:
        raise ShapeError(
            where, "img", got=f"height {have[0]} and width {have[1]}",
            takes=f"at least {top + height} and {left + width}, to cut {height} x {width} at ({top}, {left})",
        )  # fmt: skip


class CenterCrop(ImageTransform):
    """Cut out the middle; an image that is too small gets a border of zeros.

    Args:
        size: height and width, or one int for both.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.

    >>> import numpy as np
    >>> from mycelia.dataset import vision
    >>> vision.CenterCrop((1, 2))(np.arange(12).reshape(3, 4))
    array([[5, 6]])
    """

    def __init__(self, size: Any) -> None:
        self.size = arguments.size_pair("CenterCrop", "size", size)

    def _array(self, array: np.ndarray) -> np.ndarray:
        image(array, "CenterCrop", batches=True)
        (height, width), (have_h, have_w) = self.size, height_width(array)
        if height > have_h or width > have_w:
            more_h, more_w = max(height - have_h, 0), max(width - have_w, 0)
            top, left = -(-more_h // 2), -(-more_w // 2)
            array = bordered(array, "CenterCrop", left, top, more_w - left, more_h - top, 0, Border.CONSTANT)
            have_h, have_w = have_h + more_h, have_w + more_w
        return cut(array, (have_h - height) // 2, (have_w - width) // 2, height, width)

    def _pil(self, value: Any) -> Any:
        return _center_pil(value, *self.size)


def _center_pil(value: Any, height: int, width: int) -> Any:
    top, left = round((value.height - height) / 2), round((value.width - width) / 2)
    return value.crop((left, top, left + width, top + height))


class Pad(ImageTransform):
    """Put a border around an image.

    Args:
        padding: one int for all sides, (left and right, top and bottom), or (left, top, right, bottom).
        fill_value: what a constant border is filled with: an int from 0 to 255, or three for RGB.
        padding_mode: the kind of border.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.

    >>> import numpy as np
    >>> from mycelia.dataset import vision
    >>> vision.Pad((1, 0), 7)(np.array([[1, 2]], np.uint8))
    array([[7, 1, 2, 7]], dtype=uint8)
    """

    def __init__(self, padding: Any, fill_value: Any = 0, padding_mode: Border = Border.CONSTANT) -> None:
        self.padding = check_padding("Pad", padding)
        self.fill_value = check_fill("Pad", fill_value)
        self.padding_mode = check_border("Pad", padding_mode)

    def _array(self, array: np.ndarray) -> np.ndarray:
        return bordered(image(array, "Pad"), "Pad", *self.padding, self.fill_value, self.padding_mode)

    def _pil(self, value: Any) -> Any:
        return bordered_pil(value, "Pad", *self.padding, self.fill_value, self.padding_mode)


class PadToSize(ImageTransform):
    """Put a border around an image so that it gets a size.

    Args:
        size: height and width, or one int for both.
        offset: (rows above, columns to the left), or one int for both; by default the image is centered.
        fill_value, padding_mode: as for :class:`Pad`.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, on an image that is larger.
    """

    def __init__(
        self, size: Any, offset: Any = None, fill_value: Any = 0, padding_mode: Border = Border.CONSTANT
    ) -> None:
        where = "PadToSize"
        self.size = arguments.size_pair(where, "size", size)
        if isinstance(offset, (int, np.integer)) and not isinstance(offset, bool):
            offset = (offset, offset)
        if offset is not None and (not isinstance(offset, (list, tuple)) or len(offset) not in (0, 2)):
            raise ArgumentTypeError(where, "offset", got=repr(offset), takes="an int, a pair (top, left) or None")
        self.offset = tuple(arguments.integer(where, "offset", n, 0) for n in offset) if offset else None
        self.fill_value = check_fill(where, fill_value)
        self.padding_mode = check_border(where, padding_mode)

    def _array(self, array: np.ndarray) -> np.ndarray:
        height, width = height_width(image(array, "PadToSize"))
        more_h, more_w = self.size[0] - height, self.size[1] - width
        top, left = self.offset if self.offset is not None else (more_h // 2, more_w // 2)
        if min(more_h - top, more_w - left, more_h, more_w) < 0:
            raise ShapeError(
                "PadToSize", "img", got=f"height {height} and width {width}",
                takes=f"at most {self.size[0] - max(top, 0)} and {self.size[1] - max(left, 0)}",
            )  # fmt: skip
        return bordered(array, "PadToSize", left, top, more_w - left, more_h - top, self.fill_value, self.padding_mode)


class RandomCrop(ImageTransform):
    """Cut out a part at a random place.

    Args:
        size: height and width, or one int for both.
        padding: a border to put around the image first, as for :class:`Pad`.
        pad_if_needed: put a border around images that are smaller than ``size``.
        fill_value, padding_mode: as for :class:`Pad`.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, on an image that is too small.
    """

    random = True

    def __init__(
        self,
        size: Any,
        padding: Any = None,
        pad_if_needed: bool = False,
        fill_value: Any = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self.size = arguments.size_pair("RandomCrop", "size", size)
        self.padding = None if padding is None else check_padding("RandomCrop", padding)
        self.pad_if_needed = arguments.boolean("RandomCrop", "pad_if_needed", pad_if_needed)
        self.fill_value = check_fill("RandomCrop", fill_value)
        self.padding_mode = check_border("RandomCrop", padding_mode)

    def _steps(self, height: int, width: int) -> tuple[tuple[int, int, int, int], int, int]:
        """The border to add, and the place of the part in the image with it."""
        left, top, right, bottom = self.padding or (0, 0, 0, 0)
        if self.pad_if_needed:
            more_h = max(self.size[0] - height - top - bottom, 0)
            more_w = max(self.size[1] - width - left - right, 0)
            left, top, right, bottom = left + more_w, top + more_h, right + more_w, bottom + more_h
        room_h, room_w = height + top + bottom - self.size[0], width + left + right - self.size[1]
        if min(room_h, room_w) < 0:
            raise ShapeError(
                "RandomCrop", "img", got=f"height {height} and width {width}",
                takes=f"at least {self.size[0]} and {self.size[1]}", hint="pad_if_needed=True adds a border",
            )  # fmt: skip
        draw = seeds.sample_random()
        return (left, top, right, bottom), draw.randint(0, room_h), draw.randint(0, room_w)

    def _array(self, array: np.ndarray) -> np.ndarray:
        image(array, "RandomCrop", batches=True)
        border, top, left = self._steps(*height_width(array))
        if any(border):
            array = bordered(array, "RandomCrop", *border, self.fill_value, self.padding_mode)
        return cut(array, top, left, *self.size)

    def _pil(self, value: Any) -> Any:
        border, top, left = self._steps(value.height, value.width)
        if any(border):
            value = bordered_pil(value, "RandomCrop", *border, self.fill_value, self.padding_mode)
        return value.crop((left, top, left + self.size[1], top + self.size[0]))


class FiveCrop(ImageTransform):
    """Cut out the four corners and the middle, of a PIL image: a tuple of five PIL images.

    Args:
        size: height and width, or one int for both.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, on an image that is smaller.
    """

    def __init__(self, size: Any) -> None:
        self.size = arguments.size_pair(type(self).__name__, "size", size)

    def _array(self, array: np.ndarray) -> Any:
        raise UnsupportedError(self._name, message="an array is not accepted", hint="put ToPIL() before it")

    def _pil(self, value: Any) -> tuple[Any, ...]:
        return self._five(value)

    def _five(self, value: Any) -> tuple[Any, ...]:
        height, width = self.size
        if height > value.height or width > value.width:
            raise ShapeError(
                self._name,
                "img",
                got=f"height {value.height} and width {value.width}",
                takes=f"at least {height} and {width}",
            )
        right, low = value.width - width, value.height - height
        corners = [(0, 0), (right, 0), (0, low), (right, low)]
        parts = [value.crop((x, y, x + width, y + height)) for x, y in corners]
        return (*parts, _center_pil(value, height, width))


class TenCrop(FiveCrop):
    """The crops of :class:`FiveCrop`, and those of the mirrored image.

    Args:
        size: height and width, or one int for both.
        use_vertical_flip: mirror upside down instead of left to right.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, on an image that is smaller.
    """

    def __init__(self, size: Any, use_vertical_flip: bool = False) -> None:
        super().__init__(size)
        self.use_vertical_flip = arguments.boolean("TenCrop", "use_vertical_flip", use_vertical_flip)

    def _pil(self, value: Any) -> tuple[Any, ...]:
        from PIL import Image

        method = Image.Transpose.FLIP_TOP_BOTTOM if self.use_vertical_flip else Image.Transpose.FLIP_LEFT_RIGHT
        return (*self._five(value), *self._five(value.transpose(method)))


class SlicePatches(ImageTransform):
    """Cut an image into a grid of patches of one size, row by row: a tuple of arrays.

    Args:
        num_height: rows of the grid.
        num_width: columns of the grid.
        slice_mode: whether the last patches are filled up, or what does not fit is dropped.
        fill_value: an int from 0 to 255 to fill up with.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, on an image smaller than the grid.
    """

    def __init__(
        self, num_height: int = 1, num_width: int = 1, slice_mode: SliceMode = SliceMode.PAD, fill_value: int = 0
    ) -> None:
        where = "SlicePatches"
        self.grid = (
            arguments.integer(where, "num_height", num_height, 1),
            arguments.integer(where, "num_width", num_width, 1),
        )
        if not isinstance(slice_mode, SliceMode):
            raise ArgumentTypeError(where, "slice_mode", got=repr(slice_mode), takes="a SliceMode")
        self.slice_mode, self.fill_value = slice_mode, arguments.integer(where, "fill_value", fill_value, 0, 255)

    def _array(self, array: np.ndarray) -> tuple[np.ndarray, ...]:
        height, width = height_width(image(array, "SlicePatches"))
        rows, columns = self.grid
        if height < rows or width < columns:
            raise ShapeError(
                "SlicePatches", "img", got=f"height {height} and width {width}", takes=f"at least {rows} and {columns}"
            )
        if self.slice_mode is SliceMode.PAD:
            tall, wide = -(-height // rows), -(-width // columns)
            more = tall * rows - height, wide * columns - width
            array = bordered(array, "SlicePatches", 0, 0, more[1], more[0], self.fill_value, Border.CONSTANT)
        else:
            tall, wide = height // rows, width // columns
        return tuple([cut(array, y * tall, x * wide, tall, wide) for y in range(rows) for x in range(columns)])


class CutOut(ImageTransform):
    """Put black squares at random places (DeVries and Taylor, 2017).

    Args:
        length: side of a square.
        num_patches: how many.
        is_hwc: the image is (H, W, C); else (C, H, W).

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, on other than three axes.
    """

    random = True

    def __init__(self, length: int, num_patches: int = 1, is_hwc: bool = True) -> None:
        self.length = arguments.integer("CutOut", "length", length, 1)
        self.num_patches = arguments.integer("CutOut", "num_patches", num_patches, 1)
        self.is_hwc = arguments.boolean("CutOut", "is_hwc", is_hwc)

    def _array(self, array: np.ndarray) -> np.ndarray:
        if array.ndim != 3:
            raise ShapeError("CutOut", "img", got=f"shape {array.shape}", takes="three axes")
        made = array.copy()
        view = made if self.is_hwc else made.transpose(1, 2, 0)
        draw = seeds.sample_random()
        for _ in range(self.num_patches):
            top = draw.randrange(view.shape[0]) - self.length // 2
            left = draw.randrange(view.shape[1]) - self.length // 2
            view[max(top, 0) : max(top + self.length, 0), max(left, 0) : max(left + self.length, 0)] = 0
        return made


class Erase(ImageTransform):
    """Fill a rectangle.

    Args:
        top, left, height, width: the rectangle.
        value: a number, or one per channel.
        inplace: change the input itself.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, on an image that the rectangle leaves.
    """

    def __init__(self, top: int, left: int, height: int, width: int, value: Any = 0.0, inplace: bool = False) -> None:
        where = "Erase"
        self.place = arguments.integer(where, "top", top, 0), arguments.integer(where, "left", left, 0)
        self.size = arguments.integer(where, "height", height, 1), arguments.integer(where, "width", width, 1)
        self.value = check_erase_value(where, value)
        self.inplace = arguments.boolean(where, "inplace", inplace)

    def _array(self, array: np.ndarray) -> np.ndarray:
        image(array, "Erase", batches=True)
        _inside("Erase", array, *self.place, *self.size)
        made = array if self.inplace else array.copy()
        (top, left), (height, width) = self.place, self.size
        part = made[top : top + height, left : left + width] if made.ndim == 2 else (
            made[..., top : top + height, left : left + width, :]
        )  # fmt: skip
        part[...] = np.asarray(self.value).astype(made.dtype)
        return made


def check_erase_value(where: str, value: Any) -> Any:
    """A number from 0 to 255, or a tuple of three."""
    if isinstance(value, (tuple, list)):
        if len(value) != 3:
            raise ArgumentValueError(where, "value", got=f"{len(value)} values", takes="one value or three")
        return tuple(arguments.real(where, "value", v, 0, 255) for v in value)
    return arguments.real(where, "value", value, 0, 255)


class RandomErasing(ImageTransform):
    """Fill a random rectangle of a (C, H, W) array (Zhong et al., 2017).

    Args:
        prob: the probability that it is done.
        scale: (min, max) of the rectangle's share of the area.
        ratio: (min, max) of height by width.
        value: a number or three from 0 to 255, or ``"random"`` for normal noise.
        inplace: change the input itself.
        max_attempts: how often a rectangle that does not fit is drawn anew; then nothing is erased.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, on other than three axes.
    """

    random = True

    def __init__(
        self,
        prob: float = 0.5,
        scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
        max_attempts: int = 10,
    ) -> None:
        where = "RandomErasing"
        self.prob = arguments.probability(where, prob)
        self.scale = arguments.interval(where, "scale", scale, 0.0)
        self.ratio = arguments.interval(where, "ratio", ratio, 1e-9)
        if isinstance(value, str) and value != "random":
            raise ArgumentValueError(where, "value", got=repr(value), takes='numbers or "random"')
        self.value = value if isinstance(value, str) else check_erase_value(where, value)
        self.inplace = arguments.boolean(where, "inplace", inplace)
        self.max_attempts = arguments.integer(where, "max_attempts", max_attempts, 1)

    def _array(self, array: np.ndarray) -> np.ndarray:
        if array.ndim != 3:
            raise ShapeError("RandomErasing", "img", got=f"shape {array.shape}", takes="(C, H, W)")
        draw = seeds.sample_random()
        if draw.random() >= self.prob:
            return array
        total = array.shape[1] * array.shape[2]
        for _ in range(self.max_attempts):
            area = total * draw.uniform(*self.scale)
            aspect = np.exp(draw.uniform(*np.log(self.ratio)))
            height, width = round(float(np.sqrt(area * aspect))), round(float(np.sqrt(area / aspect)))
            if 0 < height < array.shape[1] and 0 < width < array.shape[2]:
                top, left = draw.randint(0, array.shape[1] - height), draw.randint(0, array.shape[2] - width)
                made = array if self.inplace else array.copy()
                part = made[:, top : top + height, left : left + width]
                if isinstance(self.value, str):
                    part[...] = seeds.sample_generator().standard_normal(part.shape).astype(made.dtype)
                else:
                    part[...] = np.asarray(self.value).reshape(-1, 1, 1).astype(made.dtype)
                return made
        return array

    def _pil(self, value: Any) -> Any:
        raise UnsupportedError(self._name, message="a PIL image is not accepted", hint="put ToTensor() before it")
