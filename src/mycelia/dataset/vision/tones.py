"""Transforms that map every gray level to another: invert, solarize, posterize, equalize, stretch."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.dataset import arguments, seeds
from mycelia.dataset.vision.base import ImageTransform, channels, image, need_dtype


class Invert(ImageTransform):
    """255 minus each pixel.

    >>> import numpy as np
    >>> from mycelia.dataset import vision
    >>> vision.Invert()(np.array([[[0, 55, 255]]], np.uint8))
    array([[[255, 200,   0]]], dtype=uint8)
    """

    def _array(self, array: np.ndarray) -> np.ndarray:
        return (255 - image(array, self._name)).astype(array.dtype)

    def _pil(self, value: Any) -> Any:
        from PIL import ImageOps

        return ImageOps.invert(value)


class Solarize(ImageTransform):
    """Invert the pixels within a range.

    Args:
        threshold: (min, max), both included; or one number for (number, 255).

    Raises:
        ArgumentTypeError, ArgumentValueError: not such numbers, from 0 to 255.
    """

    def __init__(self, threshold: Any) -> None:
        if isinstance(threshold, (int, float)) and not isinstance(threshold, bool):
            threshold = (threshold, 255)
        self.threshold = arguments.interval("Solarize", "threshold", threshold, 0.0, 255.0)

    def _array(self, array: np.ndarray) -> np.ndarray:
        return solarized(image(array, self._name), *self.threshold)


def solarized(array: np.ndarray, low: float, high: float) -> np.ndarray:
    """``array`` with the pixels from ``low`` to ``high`` inverted."""
    within = (array >= low) & (array <= high)
    return np.where(within, (255 - array).astype(array.dtype), array)


class RandomSolarize(ImageTransform):
    """Invert the pixels within a random part of a range.

    Args:
        threshold: (min, max) of the range, ints from 0 to 255. A part of one level reaches up to 255.

    Raises:
        ArgumentTypeError, ArgumentValueError: not such numbers.
    """

    random = True

    def __init__(self, threshold: tuple[int, int] = (0, 255)) -> None:
        low, high = arguments.interval("RandomSolarize", "threshold", threshold, 0, 255)
        self.threshold = int(low), int(high)

    def _array(self, array: np.ndarray) -> np.ndarray:
        draw = seeds.sample_random()
        low, high = sorted((draw.randint(*self.threshold), draw.randint(*self.threshold)))
        return solarized(image(array, self._name), low, 255 if low == high else high)


class Posterize(ImageTransform):
    """Keep the highest bits of each pixel.

    Args:
        bits: how many, from 0 to 8.

    Raises:
        ArgumentTypeError, ArgumentValueError: not such an int.
        DTypeError: when called, on other than uint8.
    """

    def __init__(self, bits: int) -> None:
        self.bits = arguments.integer("Posterize", "bits", bits, 0, 8)

    def _array(self, array: np.ndarray) -> np.ndarray:
        return posterized(array, self.bits, self._name)


def posterized(array: np.ndarray, bits: int, where: str) -> np.ndarray:
    """``array`` with all but the highest ``bits`` cleared."""
    need_dtype(image(array, where), where, "uint8")
    return array & np.uint8(0xFF << (8 - bits) & 0xFF)


class RandomPosterize(ImageTransform):
    """Keep a random number of the highest bits of each pixel.

    Args:
        bits: (min, max) from 1 to 8; or one int.

    Raises:
        ArgumentTypeError, ArgumentValueError: not such ints.
        DTypeError: when called, on other than uint8.
    """

    random = True

    def __init__(self, bits: Any = (8, 8)) -> None:
        if isinstance(bits, int) and not isinstance(bits, bool):
            bits = (bits, bits)
        low, high = arguments.interval("RandomPosterize", "bits", bits, 1, 8)
        self.bits = int(low), int(high)

    def _array(self, array: np.ndarray) -> np.ndarray:
        return posterized(array, seeds.sample_random().randint(*self.bits), self._name)


def _by_plane(array: np.ndarray, function: Any) -> np.ndarray:
    if channels(array) == 1:
        made: np.ndarray = function(array)
        return made
    return np.stack([function(array[..., c]) for c in range(array.shape[-1])], -1)


class Equalize(ImageTransform):
    """Spread the levels of each channel so that all occur about equally often.

    Raises:
        DTypeError: when called, on other than uint8.
    """

    def _array(self, array: np.ndarray) -> np.ndarray:
        return _by_plane(need_dtype(image(array, self._name), self._name, "uint8"), equalized)

    def _pil(self, value: Any) -> Any:
        from PIL import ImageOps

        return ImageOps.equalize(value)


def equalized(plane: np.ndarray) -> np.ndarray:
    """One channel with its levels spread: the table is the running sum of the histogram, as OpenCV's."""
    histogram = np.bincount(plane.reshape(-1), minlength=256)
    first = int(np.flatnonzero(histogram)[0])
    rest = plane.size - int(histogram[first])
    if not rest:
        return plane.copy()
    histogram[: first + 1] = 0
    table = np.rint(np.cumsum(histogram).astype(np.float32) * np.float32(255 / rest)).astype(np.uint8)
    return table[plane]


class AutoContrast(ImageTransform):
    """Stretch the levels of each channel to 0..255.

    Args:
        cutoff: percent of the lightest and of the darkest pixels to leave out, from 0 to 50.
        ignore: a level or a list of levels that do not count.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        DTypeError: when called, on other than uint8.
    """

    def __init__(self, cutoff: float = 0.0, ignore: Any = None) -> None:
        where = type(self).__name__
        self.cutoff = arguments.real(where, "cutoff", cutoff, 0.0, 50.0)
        levels = [] if ignore is None else list(ignore) if isinstance(ignore, (list, tuple)) else [ignore]
        self.ignore = [arguments.integer(where, "ignore", level, 0, 255) for level in levels]

    def _array(self, array: np.ndarray) -> np.ndarray:
        need_dtype(image(array, self._name), self._name, "uint8")
        return _by_plane(array, lambda plane: stretched(plane, self.cutoff, self.ignore))

    def _pil(self, value: Any) -> Any:
        from PIL import ImageOps

        return ImageOps.autocontrast(value, self.cutoff, self.ignore or None)


def stretched(plane: np.ndarray, cutoff: float, ignore: list[int]) -> np.ndarray:
    """One channel with its levels stretched to 0..255."""
    histogram = np.bincount(plane.reshape(-1), minlength=256)
    histogram[ignore] = 0
    drop = int(histogram.sum() * cutoff / 100)
    for order in (range(256), range(255, -1, -1)):
        left = drop
        for level in order:
            taken = min(left, int(histogram[level]))
            histogram[level] -= taken
            left -= taken
            if not left:
                break
    present = np.flatnonzero(histogram)
    if not len(present) or present[-1] <= present[0]:
        return plane.copy()
    low, high = int(present[0]), int(present[-1])
    scale = np.float32(255.0) / np.float32(high - low)
    levels = np.arange(256, dtype=np.float32) * scale - np.float32(low) * scale
    table = np.clip(levels.astype(np.int64), 0, 255).astype(np.uint8)
    return table[plane]


class _Sometimes(ImageTransform):
    """A transform that is applied with a probability."""

    random = True

    def __init__(self, prob: float, inner: ImageTransform) -> None:
        self.prob = arguments.probability(type(self).__name__, prob)
        self._inner = inner

    def _array(self, array: np.ndarray) -> np.ndarray:
        image(array, self._name)
        made: np.ndarray = self._inner._array(array) if seeds.sample_random().random() < self.prob else array
        return made

    def _pil(self, value: Any) -> Any:
        return self._inner._pil(value) if seeds.sample_random().random() < self.prob else value


class RandomInvert(_Sometimes):
    """255 minus each pixel, with a probability.

    Args:
        prob: the probability.

    Raises:
        ArgumentTypeError, ArgumentValueError: not a number from 0 to 1.
    """

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(prob, Invert())


class RandomEqualize(_Sometimes):
    """:class:`Equalize`, with a probability.

    Args:
        prob: the probability.

    Raises:
        ArgumentTypeError, ArgumentValueError: not a number from 0 to 1.
    """

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(prob, Equalize())


class RandomAutoContrast(_Sometimes):
    """:class:`AutoContrast`, with a probability.

    Args:
        cutoff, ignore: as for :class:`AutoContrast`.
        prob: the probability.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    def __init__(self, cutoff: float = 0.0, ignore: Any = None, prob: float = 0.5) -> None:
        super().__init__(prob, AutoContrast(cutoff, ignore))
