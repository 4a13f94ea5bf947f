"""Channels, brightness, contrast, saturation, hue, sharpness."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError, UnsupportedError
from mycelia.dataset import arguments, seeds
from mycelia.dataset.vision.base import (
    ImageTransform,
    channels,
    image,
    is_pil,
    like,
    need_dtype,
    need_rgb,
    opencv,
    pixels,
)
from mycelia.dataset.vision.enums import ConvertMode

_CONVERT = {
    ConvertMode.COLOR_BGR2BGRA: ("COLOR_BGR2BGRA", 3), ConvertMode.COLOR_BGRA2BGR: ("COLOR_BGRA2BGR", 4),
    ConvertMode.COLOR_BGR2RGBA: ("COLOR_BGR2RGBA", 3), ConvertMode.COLOR_RGBA2BGR: ("COLOR_RGBA2BGR", 4),
    ConvertMode.COLOR_BGR2RGB: ("COLOR_BGR2RGB", 3), ConvertMode.COLOR_BGRA2RGBA: ("COLOR_BGRA2RGBA", 4),
    ConvertMode.COLOR_BGR2GRAY: ("COLOR_BGR2GRAY", 3), ConvertMode.COLOR_RGB2GRAY: ("COLOR_RGB2GRAY", 3),
    ConvertMode.COLOR_GRAY2BGR: ("COLOR_GRAY2BGR", 1), ConvertMode.COLOR_GRAY2BGRA: ("COLOR_GRAY2BGRA", 1),
    ConvertMode.COLOR_BGRA2GRAY: ("COLOR_BGRA2GRAY", 4), ConvertMode.COLOR_RGBA2GRAY: ("COLOR_RGBA2GRAY", 4),
}  # fmt: skip


class ConvertColor(ImageTransform):
    """Convert between orders of channels; gray is (H, W).

    Args:
        convert_mode: from what to what.

    Raises:
        ArgumentTypeError: not a :class:`ConvertMode`.
        ShapeError: when called, another number of channels.
        DTypeError: when called, other than uint8, uint16 or float32.
    """

    heavy = True

    def __init__(self, convert_mode: ConvertMode) -> None:
        if not isinstance(convert_mode, ConvertMode):
            raise ArgumentTypeError("ConvertColor", "convert_mode", got=repr(convert_mode), takes="a ConvertMode")
        self.convert_mode = convert_mode

    def _array(self, array: np.ndarray) -> np.ndarray:
        name, count = _CONVERT[self.convert_mode]
        if channels(image(array, "ConvertColor")) != count:
            raise ShapeError("ConvertColor", "img", got=f"shape {array.shape}", takes=f"{count} channel(s) for {name}")
        need_dtype(array, "ConvertColor", "uint8", "float32", "uint16")
        cv2 = opencv("ConvertColor")
        made: np.ndarray = cv2.cvtColor(np.ascontiguousarray(array), getattr(cv2, name))
        return made


class Grayscale(ImageTransform):
    """Make a PIL image gray.

    Args:
        num_output_channels: 1, or 3 for three equal channels.

    Raises:
        ArgumentTypeError, ArgumentValueError: neither 1 nor 3.
        UnsupportedError: when called on an array.
    """

    def __init__(self, num_output_channels: int = 1) -> None:
        self.num_output_channels = arguments.choice("Grayscale", "num_output_channels", num_output_channels, (1, 3))

    def _array(self, array: np.ndarray) -> np.ndarray:
        raise UnsupportedError(
            self._name, message="an array is not accepted", hint="put ToPIL() before it, or use ConvertColor"
        )

    def _pil(self, value: Any) -> Any:
        return _gray(value, self.num_output_channels)


def _gray(value: Any, count: int) -> Any:
    from PIL import Image

    made = value.convert("L")
    return made if count == 1 else Image.merge("RGB", (made, made, made))


class RandomGrayscale(Grayscale):
    """Make a PIL image gray with a probability; the number of channels stays.

    Args:
        prob: the probability.

    Raises:
        ArgumentTypeError, ArgumentValueError: not a number from 0 to 1.
        UnsupportedError: when called on an array.
    """

    random = True

    def __init__(self, prob: float = 0.1) -> None:
        self.prob = arguments.probability("RandomGrayscale", prob)

    def _pil(self, value: Any) -> Any:
        if seeds.sample_random().random() >= self.prob:
            return value
        return _gray(value, 1 if value.mode == "L" else 3)


def _rounded(made: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Floats as ``dtype``, rounded and kept within its range."""
    if dtype.kind == "f":
        return made.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(made), limits.min, limits.max).astype(dtype)


def _mixed(first: np.ndarray, second: np.ndarray, share: float, where: str) -> np.ndarray:
    """The rest of the first and ``share`` of the second; OpenCV rounds in this order."""
    made: np.ndarray = opencv(where).addWeighted(
        np.ascontiguousarray(first), 1 - share, np.ascontiguousarray(second), share, 0
    )
    return like(made, first)


def _gray_plane(array: np.ndarray, where: str) -> np.ndarray:
    cv2 = opencv(where)
    made: np.ndarray = cv2.cvtColor(np.ascontiguousarray(array), cv2.COLOR_RGB2GRAY)
    return made


def brighter(array: np.ndarray, factor: float, where: str) -> np.ndarray:
    """The image times a factor."""
    return _rounded(array.astype(np.float32) * np.float32(factor), array.dtype)


def contrasted(array: np.ndarray, factor: float, where: str) -> np.ndarray:
    """A mixture of the image and its mean gray."""
    plane = _gray_plane(need_rgb(array, where), where)
    mean = plane.mean(dtype=np.float64)
    if array.dtype.kind != "f":
        mean = np.floor(mean + 0.5)
    return _mixed(np.full_like(array, mean), array, float(np.float32(factor)), where)


def saturated(array: np.ndarray, factor: float, where: str) -> np.ndarray:
    """A mixture of the image and its gray version."""
    plane = _gray_plane(need_rgb(array, where), where)
    return _mixed(np.repeat(plane[..., None], 3, -1), array, float(np.float32(factor)), where)


def hue_shifted(array: np.ndarray, factor: float, where: str) -> np.ndarray:
    """The image with its hue turned by ``factor`` of the circle."""
    cv2 = opencv(where)
    need_dtype(need_rgb(array, where), where, "uint8", "float32")
    # Of bytes, the full circle is 0..255.
    hsv = cv2.cvtColor(np.ascontiguousarray(array), cv2.COLOR_RGB2HSV_FULL)
    hue = hsv[..., 0]
    if array.dtype == np.uint8:
        hsv[..., 0] = ((hue.astype(np.int64) + int(factor * 255)) % 256).astype(np.uint8)
    else:
        hsv[..., 0] = np.mod(hue + np.float32(factor * 360), np.float32(360))
    made: np.ndarray = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB_FULL)
    return made


def gamma_corrected(array: np.ndarray, gamma: float, gain: float) -> np.ndarray:
    """Gain * x ** gamma, for x from 0 to 1; bytes stand for x * 255."""
    if array.dtype.kind == "f":
        return np.clip(np.float32(gain) * np.power(array, np.float32(gamma)), 0.0, 1.0).astype(array.dtype)
    return np.array(gamma_table(gamma, gain), np.uint8)[need_dtype(array, "AdjustGamma", "uint8")]


def gamma_table(gamma: float, gain: float) -> list[int]:
    """Gain * x ** gamma of every byte; just under 256 levels are spread over the bytes, as in MindSpore."""
    return [min(max(int((255 + 1 - 1e-3) * gain * pow(x / 255.0, gamma)), 0), 255) for x in range(256)]


def sharpened(array: np.ndarray, factor: float, where: str) -> np.ndarray:
    """A mixture of the image and a smooth version of it that keeps the outer pixels."""
    if min(array.shape[:2]) < 3:
        return array.copy()
    x = array.astype(np.float32)
    inner = sum(x[1 + dy : x.shape[0] - 1 + dy, 1 + dx : x.shape[1] - 1 + dx] for dy in (-1, 0, 1) for dx in (-1, 0, 1))
    smooth = array.copy()
    smooth[1:-1, 1:-1] = _rounded((inner + 4 * x[1:-1, 1:-1]) / 13, array.dtype)
    return _mixed(array, smooth, 1 - float(np.float32(factor)), where)


class _Adjust(ImageTransform):
    """One factor: ``function`` for arrays, the ImageEnhance class ``enhancer`` for PIL images."""

    heavy = True
    enhancer = ""

    def __init__(self, factor: Any, argument: str, low: float | None = 0.0, high: float | None = None) -> None:
        self.factor = arguments.real(type(self).__name__, argument, factor, low, high)

    @staticmethod
    @abstractmethod
    def function(array: np.ndarray, factor: float, where: str) -> np.ndarray:
        """The result for one array."""

    def _array(self, array: np.ndarray) -> np.ndarray:
        return self.function(image(array, self._name), self.factor, self._name)

    def _pil(self, value: Any) -> Any:
        return enhanced(value, self.enhancer, self.factor) if self.enhancer else super()._pil(value)


def enhanced(value: Any, enhancer: str, factor: float) -> Any:
    """A PIL image through one of Pillow's enhancers."""
    from PIL import ImageEnhance

    return getattr(ImageEnhance, enhancer)(value).enhance(factor)


class AdjustBrightness(_Adjust):
    """Multiply the brightness.

    Args:
        brightness_factor: 0 is black, 1 changes nothing.

    Raises:
        ArgumentTypeError, ArgumentValueError: not a number of at least 0.
    """

    enhancer = "Brightness"
    function = staticmethod(brighter)

    def __init__(self, brightness_factor: float) -> None:
        super().__init__(brightness_factor, "brightness_factor")


class AdjustContrast(_Adjust):
    """Multiply the distance to the mean gray.

    Args:
        contrast_factor: 0 is plain gray, 1 changes nothing.

    Raises:
        ArgumentTypeError, ArgumentValueError: not a number of at least 0.
    """

    enhancer = "Contrast"
    function = staticmethod(contrasted)

    def __init__(self, contrast_factor: float) -> None:
        super().__init__(contrast_factor, "contrast_factor")


class AdjustSaturation(_Adjust):
    """Multiply the distance of each pixel to its gray.

    Args:
        saturation_factor: 0 is gray, 1 changes nothing.

    Raises:
        ArgumentTypeError, ArgumentValueError: not a number of at least 0.
    """

    enhancer = "Color"
    function = staticmethod(saturated)

    def __init__(self, saturation_factor: float) -> None:
        super().__init__(saturation_factor, "saturation_factor")


class AdjustSharpness(_Adjust):
    """Multiply the distance to the smoothed image.

    Args:
        sharpness_factor: 0 is smooth, 1 changes nothing.

    Raises:
        ArgumentTypeError, ArgumentValueError: not a number of at least 0.
    """

    function = staticmethod(sharpened)

    def __init__(self, sharpness_factor: float) -> None:
        super().__init__(sharpness_factor, "sharpness_factor")


class AdjustHue(_Adjust):
    """Turn the hue.

    Args:
        hue_factor: from -0.5 to 0.5, a share of the circle of colors.

    Raises:
        ArgumentTypeError, ArgumentValueError: not such a number.
    """

    function = staticmethod(hue_shifted)

    def __init__(self, hue_factor: float) -> None:
        super().__init__(hue_factor, "hue_factor", -0.5, 0.5)

    def _pil(self, value: Any) -> Any:
        return _pil_hue(value, self.factor)


def _pil_hue(value: Any, factor: float) -> Any:
    from PIL import Image

    if value.mode in ("L", "1", "I", "F"):
        return value
    h, s, v = value.convert("HSV").split()
    turned = (np.array(h).astype(np.int64) + int(factor * 255)) % 256
    return Image.merge("HSV", (Image.fromarray(turned.astype(np.uint8)), s, v)).convert(value.mode)


class AdjustGamma(ImageTransform):
    """gain * x ** gamma for x from 0 to 1.

    Args:
        gamma: the exponent, at least 0.
        gain: the factor.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    def __init__(self, gamma: float, gain: float = 1) -> None:
        self.gamma = arguments.real("AdjustGamma", "gamma", gamma, 0.0)
        self.gain = arguments.real("AdjustGamma", "gain", gain)

    def _array(self, array: np.ndarray) -> np.ndarray:
        return gamma_corrected(image(array, "AdjustGamma"), self.gamma, self.gain)

    def _pil(self, value: Any) -> Any:
        return value.point(gamma_table(self.gamma, self.gain) * len(value.getbands()))


def _range(
    where: str, argument: str, value: Any, center: float, low: float | None, high: float | None
) -> tuple[float, float]:
    """(min, max) of a pair, or of a number d: center - d to center + d, kept within the bounds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = arguments.real(where, argument, value, 0.0, high if center == 0 else None)
        first = center - number
        return (max(first, low) if low is not None else first), center + number
    return arguments.interval(where, argument, value, low, high)


class RandomColorAdjust(ImageTransform):
    """Change brightness, contrast, saturation and hue by random factors, in random order.

    Args:
        brightness, contrast, saturation: (min, max) of the factor; or one number d for 1 - d to 1 + d.
        hue: (min, max) from -0.5 to 0.5; or one number d for (-d, d).

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, on an array other than (H, W, 3).
    """

    heavy = True
    random = True

    def __init__(
        self, brightness: Any = (1, 1), contrast: Any = (1, 1), saturation: Any = (1, 1), hue: Any = (0, 0)
    ) -> None:
        where = "RandomColorAdjust"
        self.ranges = {
            "Brightness": _range(where, "brightness", brightness, 1.0, 0.0, None),
            "Contrast": _range(where, "contrast", contrast, 1.0, 0.0, None),
            "Color": _range(where, "saturation", saturation, 1.0, 0.0, None),
            "Hue": _range(where, "hue", hue, 0.0, -0.5, 0.5),
        }

    def _drawn(self) -> list[tuple[str, float]]:
        draw = seeds.sample_random()
        factors = [(name, draw.uniform(*bounds)) for name, bounds in self.ranges.items()]
        draw.shuffle(factors)
        return [(name, f) for name, f in factors if f != (0.0 if name == "Hue" else 1.0)]

    def _array(self, array: np.ndarray) -> np.ndarray:
        functions = {"Brightness": brighter, "Contrast": contrasted, "Color": saturated, "Hue": hue_shifted}
        need_rgb(array, self._name)
        for name, factor in self._drawn():
            array = functions[name](array, factor, self._name)
        return array

    def _pil(self, value: Any) -> Any:
        for name, factor in self._drawn():
            value = _pil_hue(value, factor) if name == "Hue" else enhanced(value, name, factor)
        return value


class _RandomFactor(ImageTransform):
    heavy = True
    random = True

    def __init__(self, degrees: tuple[float, float] = (0.1, 1.9)) -> None:
        self.degrees = arguments.interval(type(self).__name__, "degrees", degrees, 0.0)


class RandomColor(_RandomFactor):
    """Change the saturation by a random factor.

    Args:
        degrees: (min, max) of the factor; 0 is gray, 1 changes nothing.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    def _array(self, array: np.ndarray) -> np.ndarray:
        return saturated(array, seeds.sample_random().uniform(*self.degrees), self._name)

    def _pil(self, value: Any) -> Any:
        return enhanced(value, "Color", seeds.sample_random().uniform(*self.degrees))


class RandomSharpness(_RandomFactor):
    """Change the sharpness by a random factor.

    Args:
        degrees: (min, max) of the factor; 0 is smooth, 1 changes nothing.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    def _array(self, array: np.ndarray) -> np.ndarray:
        factor = seeds.sample_random().uniform(*self.degrees)
        return sharpened(image(array, self._name), factor, self._name)

    def _pil(self, value: Any) -> Any:
        return enhanced(value, "Sharpness", seeds.sample_random().uniform(*self.degrees))


class RandomAdjustSharpness(ImageTransform):
    """Change the sharpness by a factor, with a probability.

    Args:
        degree: the factor; 0 is smooth, 1 changes nothing.
        prob: the probability.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    heavy = True
    random = True

    def __init__(self, degree: float, prob: float = 0.5) -> None:
        self.degree = arguments.real("RandomAdjustSharpness", "degree", degree, 0.0)
        self.prob = arguments.probability("RandomAdjustSharpness", prob)

    def _array(self, array: np.ndarray) -> np.ndarray:
        image(array, self._name)
        return sharpened(array, self.degree, self._name) if seeds.sample_random().random() < self.prob else array


class RandomLighting(ImageTransform):
    """Add noise along the principal colors of ImageNet (Krizhevsky et al., 2012) to an RGB image.

    Args:
        alpha: standard deviation of the noise, at least 0.

    Raises:
        ArgumentTypeError, ArgumentValueError: not such a number.
        ShapeError: when called, on an array other than (H, W, 3).
    """

    random = True
    values = np.array([55.46, 4.794, 1.148], np.float32)
    vectors = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]], np.float32)

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = arguments.real("RandomLighting", "alpha", alpha, 0.0)

    def _array(self, array: np.ndarray) -> np.ndarray:
        need_rgb(array, self._name)
        draw = seeds.sample_random()
        noise = np.array([draw.gauss(0.0, self.alpha) for _ in range(3)], np.float32)
        return _rounded(array.astype(np.float32) + self.vectors @ (self.values * noise), array.dtype)

    def _pil(self, value: Any) -> Any:
        from PIL import Image

        return Image.fromarray(self._array(np.array(value.convert("RGB"))))


class GaussianBlur(ImageTransform):
    """Smooth with a Gaussian kernel; the image is mirrored at its edge.

    Args:
        kernel_size: odd int, or a pair (along x, along y).
        sigma: standard deviation, or a pair; by default 0.3 * ((size - 1) / 2 - 1) + 0.8.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    heavy = True

    def __init__(self, kernel_size: Any, sigma: Any = None) -> None:
        where = "GaussianBlur"
        self.kernel_size = arguments.size_pair(where, "kernel_size", kernel_size)
        if not all(n % 2 for n in self.kernel_size):
            raise ArgumentValueError(where, "kernel_size", got=repr(kernel_size), takes="odd ints")
        if sigma is None:
            self.sigma = 0.0, 0.0
        elif isinstance(sigma, (int, float)):
            self.sigma = (arguments.real(where, "sigma", sigma, 0.0),) * 2
        else:
            x, y = arguments.reals(where, "sigma", sigma, 2)
            self.sigma = arguments.real(where, "sigma", x, 0.0), arguments.real(where, "sigma", y, 0.0)

    def _array(self, array: np.ndarray) -> np.ndarray:
        need_dtype(image(array, "GaussianBlur"), "GaussianBlur", "uint8", "float32", "float64", "uint16", "int16")
        cv2 = opencv("GaussianBlur")
        sizes = [0.3 * ((n - 1) * 0.5 - 1) + 0.8 for n in self.kernel_size]
        sigma = [s or default for s, default in zip(self.sigma, sizes, strict=True)]
        return like(cv2.GaussianBlur(np.ascontiguousarray(array), self.kernel_size, sigma[0], sigmaY=sigma[1]), array)


class RgbToHsv(ImageTransform):
    """RGB to hue (0 to 1), saturation (0 to 1) and value (as the input), float64.

    Args:
        is_hwc: the channels are the last axis; else the third from the end.

    Raises:
        ArgumentTypeError: not a bool, or, when called, a PIL image.
        ShapeError: when called, other than three channels.
    """

    def __init__(self, is_hwc: bool = False) -> None:
        self.is_hwc = arguments.boolean(type(self).__name__, "is_hwc", is_hwc)

    def __call__(self, *values: Any) -> Any:
        if len(values) != 1 or is_pil(values[0]):
            raise ArgumentTypeError(self._name, "img", got="a PIL image or several columns", takes="one array")
        return self._array(pixels(values[0], self._name))

    def _array(self, array: np.ndarray) -> np.ndarray:
        axis = -1 if self.is_hwc else -3
        if array.ndim not in (3, 4) or array.shape[axis] != 3:
            raise ShapeError(
                self._name, "img", got=f"shape {array.shape}", takes=f"3 or 4 axes, three channels on axis {axis}"
            )
        parts = np.moveaxis(array.astype(np.float64), axis, 0)
        return np.stack(self._converted(*parts), axis)

    @staticmethod
    def _converted(r: np.ndarray, g: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
        top, low = np.maximum(np.maximum(r, g), b), np.minimum(np.minimum(r, g), b)
        span = top - low
        safe = np.where(span == 0, 1.0, span)
        red, green, blue = (top - r) / safe, (top - g) / safe, (top - b) / safe
        hue = np.where(top == r, blue - green, np.where(top == g, 2.0 + red - blue, 4.0 + green - red))
        hue = np.where(span == 0, 0.0, (hue / 6.0) % 1.0)
        return [hue, np.where(top == 0, 0.0, span / np.where(top == 0, 1.0, top)), top]


class HsvToRgb(RgbToHsv):
    """Hue (0 to 1), saturation (0 to 1) and value to RGB, float64.

    Args:
        is_hwc: the channels are the last axis; else the third from the end.

    Raises:
        ArgumentTypeError: not a bool, or, when called, a PIL image.
        ShapeError: when called, other than three channels.
    """

    @staticmethod
    def _converted(h: np.ndarray, s: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
        sector = np.floor(h * 6.0)
        f = h * 6.0 - sector
        p, q, t = v * (1 - s), v * (1 - s * f), v * (1 - s * (1 - f))
        which = sector.astype(np.int64) % 6
        return [
            np.choose(which, [v, q, p, p, t, v]),
            np.choose(which, [t, v, v, q, p, p]),
            np.choose(which, [p, p, t, v, v, q]),
        ]
