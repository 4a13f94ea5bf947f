"""What image transforms share: arrays (H, W) or (H, W, C), PIL images, and the two libraries behind them.

An array is worked on by NumPy or OpenCV, a PIL image by Pillow; as in MindSpore, a transform gives a PIL
image back where Pillow has it, and an array otherwise.
"""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, DTypeError, ShapeError, UnsupportedError
from mycelia.dataset.transforms.base import Transform
from mycelia.dataset.vision.enums import Border, Inter


def opencv(where: str) -> Any:
    """The module ``cv2``.

    Raises:
        UnsupportedError: OpenCV is not installed.
    """
    try:
        return importlib.import_module("cv2")
    except ImportError:
        raise UnsupportedError(
            where,
            message="on arrays this takes OpenCV",
            hint="pip install opencv-python-headless, or work on PIL images (ToPIL)",
        ) from None


def is_pil(value: Any) -> bool:
    """Whether ``value`` is a PIL image; Pillow is not imported to find out."""
    return any(cls.__module__.startswith("PIL.") and cls.__name__ == "Image" for cls in type(value).__mro__)


def pixels(value: Any, where: str) -> np.ndarray:
    """An array, a tensor or a PIL image as an array.

    Raises:
        ArgumentTypeError: anything else.
    """
    if type(value) is np.ndarray:
        return value
    if is_pil(value):
        return np.array(value)
    if hasattr(value, "asnumpy"):
        array: np.ndarray = value.asnumpy()
        return array
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    raise ArgumentTypeError(where, "img", got=f"a {type(value).__name__}", takes="an array or a PIL image")


def image(array: np.ndarray, where: str, *, batches: bool = False) -> np.ndarray:
    """``array`` if it is (H, W) or (H, W, C), or (..., H, W, C) where batches are accepted.

    Raises:
        ShapeError: another number of axes, or an empty axis.
    """
    if array.ndim not in (2, 3) and not (batches and array.ndim > 3):
        extra = " or (..., H, W, C)" if batches else ""
        hint = (
            "Decode() turns the bytes of a file into an image" if array.ndim == 1 and array.dtype == np.uint8 else None
        )
        raise ShapeError(where, "img", got=f"shape {array.shape}", takes=f"(H, W) or (H, W, C){extra}", hint=hint)
    if 0 in array.shape:
        raise ShapeError(where, "img", got=f"shape {array.shape}", takes="an image that is not empty")
    return array


def height_width(array: np.ndarray) -> tuple[int, int]:
    """Height and width of (H, W), (H, W, C) or (..., H, W, C)."""
    return (array.shape[0], array.shape[1]) if array.ndim == 2 else (array.shape[-3], array.shape[-2])


def channels(array: np.ndarray) -> int:
    """The number of channels; 1 for (H, W)."""
    return 1 if array.ndim == 2 else array.shape[-1]


def need_rgb(array: np.ndarray, where: str) -> np.ndarray:
    """``array`` if it is (H, W, 3)."""
    if image(array, where).ndim != 3 or array.shape[-1] != 3:
        raise ShapeError(where, "img", got=f"shape {array.shape}", takes="(H, W, 3)")
    return array


def need_dtype(array: np.ndarray, where: str, *allowed: str) -> np.ndarray:
    """``array`` if its dtype is one of the named ones."""
    if array.dtype.name not in allowed:
        raise DTypeError(
            where,
            "img",
            got=str(array.dtype),
            takes=" or ".join(allowed),
            hint=f"convert it with transforms.TypeCast({allowed[0]!r})",
        )
    return array


def each(array: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """``function`` of an image, or of each image of (..., H, W, C), stacked."""
    if array.ndim <= 3:
        return function(array)
    flat = array.reshape(-1, *array.shape[-3:])
    made = np.stack([function(one) for one in flat])
    return made.reshape(*array.shape[:-3], *made.shape[1:])


def like(made: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Give back the last axis of length 1 that OpenCV drops."""
    return made[..., None] if before.ndim == 3 and made.ndim == 2 else made


def check_interpolation(where: str, value: Any, argument: str = "interpolation") -> Inter:
    """``value`` as an :class:`Inter`."""
    if not isinstance(value, Inter):
        raise ArgumentTypeError(where, argument, got=repr(value), takes="an Inter, such as Inter.BILINEAR")
    return value


def check_border(where: str, value: Any) -> Border:
    """``value`` as a :class:`Border`."""
    if not isinstance(value, Border):
        raise ArgumentTypeError(where, "padding_mode", got=repr(value), takes="a Border, such as Border.CONSTANT")
    return value


def cv_interpolation(where: str, value: Inter) -> int:
    """OpenCV's number of an interpolation."""
    table = {Inter.NEAREST: 0, Inter.BILINEAR: 1, Inter.BICUBIC: 2, Inter.AREA: 3}
    if value not in table:
        raise UnsupportedError(
            where, message=f"Inter.{value.name} is for PIL images, the input is an array", hint="put ToPIL() before it"
        )
    return table[value]


def pil_interpolation(where: str, value: Inter) -> int:
    """Pillow's number of an interpolation."""
    table = {Inter.NEAREST: 0, Inter.ANTIALIAS: 1, Inter.BILINEAR: 2, Inter.BICUBIC: 3, Inter.PILCUBIC: 3}
    if value not in table:
        raise UnsupportedError(
            where, message=f"Inter.{value.name} is for arrays, the input is a PIL image", hint="put ToNumpy() before it"
        )
    return table[value]


class ImageTransform(Transform):
    """A transform of one image: ``_array`` for arrays, ``_pil`` for PIL images if Pillow does it."""

    def __call__(self, *values: Any) -> Any:
        """Apply it to one image, an array, a tensor or a PIL image.

        Raises:
            ArgumentTypeError: something else, or not exactly one image.
        """
        if len(values) != 1:
            raise ArgumentTypeError(self._name, "img", got=f"{len(values)} columns", takes="one image")
        value = values[0]
        if type(value) is not np.ndarray and is_pil(value):
            return self._pil(value)
        return self._array(pixels(value, self._name))

    @abstractmethod
    def _array(self, array: np.ndarray) -> Any:
        """The result for one array."""

    def _pil(self, value: Any) -> Any:
        return self._array(np.array(value))
