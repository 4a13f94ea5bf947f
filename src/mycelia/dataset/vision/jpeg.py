"""The fast way to the pixels of an ordinary JPEG file.

Pillow and OpenCV decode with the same library (libjpeg-turbo) and settings, so the pixels are equal; OpenCV gives
them as an array at once. Only files of which that is known are taken: 8 bits, gray or three components, complete.
The markers are those of ITU-T T.81, annex B.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

# Frames that libjpeg decodes: baseline, extended sequential and progressive, with Huffman codes.
_FRAMES = (0xC0, 0xC1, 0xC2)
# Other frames, markers that have no length, the data, and a fill byte.
_NOT_BEFORE = (0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF, *range(0xD0, 0xDB), 0xFF)
_MOST_PIXELS = 80_000_000  # Pillow warns of larger images
# IMREAD_COLOR_RGB | IMREAD_IGNORE_ORIENTATION
_FLAGS = 256 | 128

_found: dict[str, Any] = {}


def ordinary(data: memoryview) -> bool:
    """Whether these are the bytes of a whole JPEG file of 8 bits with one or three components."""
    size = len(data)
    if size < 20 or data[0] != 0xFF or data[1] != 0xD8 or data[size - 2] != 0xFF or data[size - 1] != 0xD9:
        return False
    place = 2
    while place + 9 < size and data[place] == 0xFF:
        marker = data[place + 1]
        if marker in _FRAMES:
            height, width = data[place + 5] << 8 | data[place + 6], data[place + 7] << 8 | data[place + 8]
            return data[place + 4] == 8 and data[place + 9] in (1, 3) and 0 < height * width <= _MOST_PIXELS
        if marker in _NOT_BEFORE or marker < 0xC0:
            return False
        place += 2 + (data[place + 2] << 8 | data[place + 3])
    return False


def _decoder() -> Any:
    """OpenCV's function, or None where it is not installed or too old to give RGB."""
    if "decoder" not in _found:
        try:
            cv2: Any = importlib.import_module("cv2")
        except ImportError:
            cv2 = None
        _found["decoder"] = cv2.imdecode if hasattr(cv2, "IMREAD_COLOR_RGB") else None
        _found["error"] = cv2.error if cv2 is not None else OSError
    return _found["decoder"]


def pixels_of(data: np.ndarray) -> np.ndarray | None:
    """The (H, W, 3) RGB pixels of an ordinary JPEG file in a uint8 array with one axis; None for any other."""
    decode = _decoder()
    if decode is None or not data.flags.c_contiguous or not ordinary(data.data):
        return None
    try:
        made: np.ndarray | None = decode(data, _FLAGS)
    except _found["error"]:
        return None
    return made
