"""Image files: decode, encode, read and write, by Pillow."""

from __future__ import annotations

import io
import os
import tempfile
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, FileFormatError, ShapeError
from mycelia.dataset import arguments
from mycelia.dataset.transforms.base import Transform
from mycelia.dataset.vision import jpeg
from mycelia.dataset.vision.base import height_width, image, is_pil, pixels
from mycelia.dataset.vision.enums import ImageReadMode
from mycelia.dataset.vision.pixels import to_pil


def decoded(data: Any, where: str, mode: str | None = "RGB") -> Any:
    """The bytes of an image file as a PIL image.

    Args:
        data: a uint8 array with one axis, or bytes.
        where: who asks, for messages.
        mode: the kind of image to convert to; None leaves it.

    Raises:
        ArgumentTypeError: something else.
        ShapeError: an array with more axes.
        FileFormatError: bytes that are no image, or not all of one.
    """
    from PIL import Image, UnidentifiedImageError

    if isinstance(data, (bytes, bytearray, memoryview)):
        raw = bytes(data)
    else:
        array = pixels(data, where)
        if array.dtype.kind == "S" and array.ndim == 0:
            raw = array.item()
        elif array.dtype != np.uint8:
            raise ArgumentTypeError(where, "img", got=f"an array of {array.dtype}", takes="uint8, the bytes of a file")
        elif array.ndim != 1:
            raise ShapeError(
                where, "img", got=f"shape {array.shape}", takes="one axis, the bytes of a file",
                hint="an image that is decoded already needs no Decode()",
            )  # fmt: skip
        else:
            raw = array.tobytes()
    try:
        with Image.open(io.BytesIO(raw)) as opened:
            opened.load()
            return opened.copy() if mode is None else opened.convert(mode)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise FileFormatError(where, message=f"{len(raw)} bytes are no image, or not all of one: {error}") from None


def decoded_array(data: Any, where: str) -> np.ndarray:
    """The bytes of an image file as a (H, W, 3) uint8 array in RGB; arguments and errors of :func:`decoded`."""
    if type(data) is np.ndarray and data.dtype == np.uint8 and data.ndim == 1:
        made = jpeg.pixels_of(data)
        if made is not None:
            return made
    return np.array(decoded(data, where))


class Decode(Transform):
    """Decode the bytes of an image file to RGB.

    Args:
        to_pil: give a PIL image; else a (H, W, 3) uint8 array.

    Raises:
        ArgumentTypeError: not a bool.
        FileFormatError: when called, on bytes that are no image.

    >>> import numpy as np
    >>> from mycelia.dataset import vision
    >>> data = vision.encode_png(np.zeros((4, 5, 3), np.uint8))
    >>> vision.Decode()(data).shape
    (4, 5, 3)
    """

    heavy = True

    def __init__(self, to_pil: bool = False) -> None:
        self.to_pil = arguments.boolean("Decode", "to_pil", to_pil)

    def __call__(self, *values: Any) -> Any:
        if len(values) != 1:
            raise ArgumentTypeError("Decode", "img", got=f"{len(values)} columns", takes="the bytes of one image")
        return decoded(values[0], "Decode") if self.to_pil else decoded_array(values[0], "Decode")


def _path(where: str, filename: Any) -> str:
    if not isinstance(filename, (str, os.PathLike)):
        raise ArgumentTypeError(where, "filename", got=repr(filename), takes="the path of a file")
    return str(os.fspath(filename))


def read_file(filename: str) -> np.ndarray:
    """The bytes of a file as a uint8 array with one axis.

    Raises:
        ArgumentTypeError: not a path.
        ArgumentValueError: no such file.
    """
    path = _path("read_file", filename)
    if not os.path.isfile(path):
        raise ArgumentValueError("read_file", "filename", got=repr(path), takes="the path of an existing file")
    return np.fromfile(path, np.uint8)


def read_image(filename: str, mode: ImageReadMode = ImageReadMode.UNCHANGED) -> np.ndarray:
    """Read an image file as a (H, W, C) uint8 array.

    Args:
        filename: the file.
        mode: as it is (C is 1, 3 or 4), gray (C = 1) or RGB (C = 3).

    Raises:
        ArgumentTypeError: not a path, or not an :class:`ImageReadMode`.
        ArgumentValueError: no such file.
        FileFormatError: no image.
    """
    if not isinstance(mode, ImageReadMode):
        raise ArgumentTypeError("read_image", "mode", got=repr(mode), takes="an ImageReadMode")
    kind = {ImageReadMode.UNCHANGED: None, ImageReadMode.GRAYSCALE: "L", ImageReadMode.COLOR: "RGB"}[mode]
    made = decoded(read_file(filename), "read_image", kind)
    if made.mode not in ("L", "RGB", "RGBA"):
        made = made.convert("RGBA" if "transparency" in made.info or made.mode in ("PA", "LA") else "RGB")
    array = np.array(made)
    return array[..., None] if array.ndim == 2 else array


def _encoded(where: str, value: Any, kind: str, **options: Any) -> np.ndarray:
    array = image(pixels(value, where), where)
    if array.ndim == 3 and array.shape[2] not in (1, 3):
        raise ShapeError(where, "image", got=f"shape {array.shape}", takes="(H, W), (H, W, 1) or (H, W, 3)")
    if array.dtype != np.uint8:
        raise ArgumentTypeError(where, "image", got=f"an array of {array.dtype}", takes="uint8")
    stream = io.BytesIO()
    to_pil(array, where).save(stream, kind, **options)
    return np.frombuffer(stream.getvalue(), np.uint8).copy()


def encode_jpeg(image: Any, quality: int = 75) -> np.ndarray:
    """Encode a (H, W), (H, W, 1) or (H, W, 3) uint8 image as JPEG: a uint8 array with one axis.

    Args:
        image: the image.
        quality: from 1 to 100.

    Raises:
        ArgumentTypeError, ArgumentValueError, ShapeError: wrong types, values or shape.
    """
    return _encoded("encode_jpeg", image, "JPEG", quality=arguments.integer("encode_jpeg", "quality", quality, 1, 100))


def encode_png(image: Any, compression_level: int = 6) -> np.ndarray:
    """Encode a (H, W), (H, W, 1) or (H, W, 3) uint8 image as PNG: a uint8 array with one axis.

    Args:
        image: the image.
        compression_level: from 0 to 9.

    Raises:
        ArgumentTypeError, ArgumentValueError, ShapeError: wrong types, values or shape.
    """
    level = arguments.integer("encode_png", "compression_level", compression_level, 0, 9)
    return _encoded("encode_png", image, "PNG", compress_level=level)


def write_file(filename: str, data: Any) -> None:
    """Write a uint8 array with one axis to a file; the file appears when it is complete.

    Raises:
        ArgumentTypeError, ShapeError: not such an array.
        ArgumentValueError: the directory does not exist.
    """
    path = _path("write_file", filename)
    array = pixels(data, "write_file")
    if array.dtype != np.uint8:
        raise ArgumentTypeError("write_file", "data", got=f"an array of {array.dtype}", takes="uint8")
    if array.ndim != 1:
        raise ShapeError("write_file", "data", got=f"shape {array.shape}", takes="one axis")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise ArgumentValueError("write_file", "filename", got=repr(path), takes="a path in an existing directory")
    handle, beside = tempfile.mkstemp(dir=folder, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(array.tobytes())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def write_jpeg(filename: str, image: Any, quality: int = 75) -> None:
    """Write an image as JPEG; see :func:`encode_jpeg` and :func:`write_file`."""
    write_file(filename, encode_jpeg(image, quality))


def write_png(filename: str, image: Any, compression_level: int = 6) -> None:
    """Write an image as PNG; see :func:`encode_png` and :func:`write_file`."""
    write_file(filename, encode_png(image, compression_level))


def get_image_size(image: Any) -> list[int]:
    """[height, width] of an array or a PIL image.

    Raises:
        ArgumentTypeError, ShapeError: no image.
    """
    if is_pil(image):
        return [image.height, image.width]
    array = pixels(image, "get_image_size")
    if array.ndim < 2:
        raise ShapeError("get_image_size", "image", got=f"shape {array.shape}", takes="at least two axes")
    return list(height_width(array))


def get_image_num_channels(image: Any) -> int:
    """The number of channels of an array, 1 for (H, W), or of a PIL image.

    Raises:
        ArgumentTypeError, ShapeError: no image.
    """
    if is_pil(image):
        return len(image.getbands())
    array = pixels(image, "get_image_num_channels")
    if array.ndim < 2:
        raise ShapeError("get_image_num_channels", "image", got=f"shape {array.shape}", takes="at least two axes")
    return 1 if array.ndim == 2 else int(array.shape[-1])
