"""Rotate, shear and warp images.

Affine maps follow OpenCV's and Pillow's conventions: the matrix takes places of the result to places of
the input, and the middle of the image is at ((W - 1) / 2, (H - 1) / 2).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.dataset import arguments, seeds
from mycelia.dataset.vision.base import (
    ImageTransform,
    channels,
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
from mycelia.dataset.vision.crops import check_fill
from mycelia.dataset.vision.enums import Inter

_DTYPES = ("uint8", "float32", "float64", "uint16", "int16")


def fill_for(array: np.ndarray, fill: Any) -> tuple[float, ...]:
    """Four numbers for OpenCV of one fill value or three."""
    values = fill if isinstance(fill, tuple) else (fill,) * max(channels(array), 1)
    return tuple(float(v) for v in (*values, 0, 0, 0, 0)[:4])


def pil_fill(value: Any, fill: Any) -> Any:
    """The fill value of a PIL image: one per band."""
    bands = len(value.getbands())
    if bands == 1:
        return fill[0] if isinstance(fill, tuple) else fill
    color = fill if isinstance(fill, tuple) else (fill,) * 3
    return (*color, 255)[:bands]


def warped(
    array: np.ndarray, where: str, matrix: np.ndarray, height: int, width: int, interpolation: Inter, fill: Any
) -> np.ndarray:
    """The image under an affine map.

    Places are rounded to 1/1024 and then to 1/32 of a pixel, or to whole pixels for ``NEAREST``: that is
    how OpenCV 4 does it, and every version of its ``remap`` gives the same for such places.

    Args:
        array: (H, W), (H, W, C) or (..., H, W, C).
        where: who asks, for messages.
        matrix: (2, 3), takes places (x, y) of the result to places of the input.
        height, width: of the result.
        interpolation: how pixels are computed.
        fill: the value outside, or three.
    """
    nearest = interpolation is Inter.NEAREST
    half = 512 if nearest else 16
    x, y = np.arange(width), np.arange(height)[:, None]
    places = []
    for a, b, c in matrix.tolist():
        along = np.rint((b * y + c) * 1024).astype(np.int64) + half
        places.append(np.rint(a * x * 1024).astype(np.int64) + along)
    return _sampled(array, where, [p >> (10 if nearest else 5) for p in places], interpolation, fill)


def _sampled(array: np.ndarray, where: str, places: list[np.ndarray], interpolation: Inter, fill: Any) -> np.ndarray:
    """The image at places (x, y): whole pixels for ``NEAREST``, else in 1/32 of a pixel."""
    cv2 = opencv(where)
    need_dtype(array, where, *_DTYPES)
    number = cv_interpolation(where, interpolation)
    if interpolation is Inter.AREA:
        number = cv2.INTER_LINEAR
    nearest = interpolation is Inter.NEAREST
    whole = np.stack([np.clip(p if nearest else p >> 5, -32768, 32767) for p in places], -1).astype(np.int16)
    parts = None if nearest else ((places[1] & 31) * 32 + (places[0] & 31)).astype(np.uint16)

    def one(part: np.ndarray) -> np.ndarray:
        made = cv2.remap(
            np.ascontiguousarray(part), whole, parts, number, borderMode=cv2.BORDER_CONSTANT,
            borderValue=fill_for(part, fill),
        )  # fmt: skip
        return like(made, part)

    return each(array, one)


def inverted(matrix: np.ndarray) -> np.ndarray:
    """The (2, 3) matrix of the inverse of an affine map."""
    linear = np.linalg.inv(matrix[:, :2])
    return np.concatenate([linear, -linear @ matrix[:, 2:]], 1)


def rotated(
    array: np.ndarray, where: str, degrees: float, interpolation: Inter, expand: bool, center: Any, fill: Any
) -> np.ndarray:
    """The image turned counter-clockwise."""
    height, width = height_width(array)
    middle = ((width - 1) / 2, (height - 1) / 2) if center is None else center
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turn = np.array([[cosine, sine], [-sine, cosine]])
    matrix = np.concatenate([turn, (np.array(middle) - turn @ np.array(middle))[:, None]], 1)
    if expand:
        wide, high = abs(width * cosine) + abs(height * sine), abs(width * sine) + abs(height * cosine)
        matrix[:, 2] += (wide - width) / 2, (high - height) / 2
        width, height = round(wide), round(high)
    return warped(array, where, inverted(matrix), height, width, interpolation, fill)


def check_center(where: str, center: Any) -> tuple[float, float] | None:
    """(x, y) of the point to turn around, or None for the middle."""
    if center is None:
        return None
    if not isinstance(center, tuple) or len(center) != 2:
        raise ArgumentTypeError(where, "center", got=repr(center), takes="a pair (x, y) or None")
    return arguments.real(where, "center", center[0]), arguments.real(where, "center", center[1])


class Rotate(ImageTransform):
    """Turn an image counter-clockwise.

    Args:
        degrees: the angle.
        resample: how pixels are computed.
        expand: make the image large enough for all of the turned one.
        center: (x, y) to turn around; the middle by default.
        fill_value: what is put outside, an int from 0 to 255 or three for RGB.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    heavy = True

    def __init__(
        self,
        degrees: float,
        resample: Inter = Inter.NEAREST,
        expand: bool = False,
        center: Any = None,
        fill_value: Any = 0,
    ) -> None:
        self.degrees = arguments.real("Rotate", "degrees", degrees)
        self.resample = check_interpolation("Rotate", resample, "resample")
        self.expand = arguments.boolean("Rotate", "expand", expand)
        self.center = check_center("Rotate", center)
        self.fill_value = check_fill("Rotate", fill_value)

    def _array(self, array: np.ndarray) -> np.ndarray:
        image(array, "Rotate", batches=True)
        return rotated(array, "Rotate", self.degrees, self.resample, self.expand, self.center, self.fill_value)


def check_degrees(where: str, degrees: Any) -> tuple[float, float]:
    """(min, max), or one number d of at least 0 for (-d, d)."""
    if isinstance(degrees, (int, float, np.integer, np.floating)) and not isinstance(degrees, bool):
        number = arguments.real(where, "degrees", degrees, 0.0)
        return -number, number
    return arguments.interval(where, "degrees", degrees)


class RandomRotation(ImageTransform):
    """Turn an image by a random angle.

    Args:
        degrees: (min, max) of the angle, counter-clockwise; or one number d for (-d, d).
        resample, expand, center, fill_value: as for :class:`Rotate`.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    heavy = True
    random = True

    def __init__(
        self,
        degrees: Any,
        resample: Inter = Inter.NEAREST,
        expand: bool = False,
        center: Any = None,
        fill_value: Any = 0,
    ) -> None:
        where = "RandomRotation"
        self.degrees = check_degrees(where, degrees)
        self.resample = check_interpolation(where, resample, "resample")
        self.expand = arguments.boolean(where, "expand", expand)
        self.center = check_center(where, center)
        self.fill_value = check_fill(where, fill_value)

    def _array(self, array: np.ndarray) -> np.ndarray:
        image(array, self._name, batches=True)
        angle = seeds.sample_random().uniform(*self.degrees)
        return rotated(array, self._name, angle, self.resample, self.expand, self.center, self.fill_value)

    def _pil(self, value: Any) -> Any:
        angle = seeds.sample_random().uniform(*self.degrees)
        resample = pil_interpolation(self._name, self.resample)
        return value.rotate(angle, resample, self.expand, self.center, fillcolor=pil_fill(value, self.fill_value))


def affine_matrix(
    center: tuple[float, float],
    degrees: float,
    translate: tuple[float, float],
    scale: float,
    shear: tuple[float, float],
) -> np.ndarray:
    """The (2, 3) matrix that takes places of the result to places of the input.

    The forward map moves the center to the origin, shears, turns clockwise, scales, and moves back and by
    ``translate``: T C R(degrees) Shear(shear) scale C^-1.
    """
    turn, shear_x, shear_y = math.radians(degrees), math.radians(shear[0]), math.radians(shear[1])
    # R(a) [[1, 0], [-tan(sy), 1]] [[1, -tan(sx)], [0, 1]] has determinant 1, so its inverse is at hand.
    a = math.cos(turn - shear_y) / math.cos(shear_y)
    b = -math.cos(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) - math.sin(turn)
    c = math.sin(turn - shear_y) / math.cos(shear_y)
    d = -math.sin(turn - shear_y) * math.tan(shear_x) / math.cos(shear_y) + math.cos(turn)
    inverse = np.array([[d, -b], [-c, a]]) / scale
    x, y = center[0] + translate[0], center[1] + translate[1]
    offset = np.array(center) - inverse @ np.array([x, y])
    return np.concatenate([inverse, offset[:, None]], 1)


def affine(
    array: np.ndarray,
    where: str,
    degrees: float,
    translate: tuple[float, float],
    scale: float,
    shear: tuple[float, float],
    interpolation: Inter,
    fill: Any,
) -> np.ndarray:
    """The image under an affine map; ``translate`` is in pixels."""
    height, width = height_width(array)
    matrix = affine_matrix(((width - 1) / 2, (height - 1) / 2), degrees, translate, scale, shear)
    return warped(array, where, matrix, height, width, interpolation, fill)


class Affine(ImageTransform):
    """Turn, move, scale and shear an image about its middle.

    Args:
        degrees: the angle, clockwise.
        translate: (x, y), each from -1 to 1: shares of the width and of the height.
        scale: a positive factor.
        shear: degrees along x, or a pair for x and y.
        resample: how pixels are computed.
        fill_value: what is put outside, an int from 0 to 255 or three for RGB.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    heavy = True

    def __init__(
        self,
        degrees: float,
        translate: Any,
        scale: float,
        shear: Any,
        resample: Inter = Inter.NEAREST,
        fill_value: Any = 0,
    ) -> None:
        where = "Affine"
        self.degrees = arguments.real(where, "degrees", degrees)
        self.translate = tuple(
            arguments.real(where, "translate", t, -1.0, 1.0) for t in arguments.reals(where, "translate", translate, 2)
        )
        self.scale = arguments.real(where, "scale", scale, 1e-9)
        if isinstance(shear, (int, float)) and not isinstance(shear, bool):
            shear = (shear, 0.0)
        self.shear = arguments.reals(where, "shear", shear, 2)
        self.resample = check_interpolation(where, resample, "resample")
        self.fill_value = check_fill(where, fill_value)

    def _array(self, array: np.ndarray) -> np.ndarray:
        height, width = height_width(image(array, "Affine"))
        moved = self.translate[0] * width, self.translate[1] * height
        shear = self.shear[0], self.shear[1]
        return affine(array, "Affine", self.degrees, moved, self.scale, shear, self.resample, self.fill_value)


class RandomAffine(ImageTransform):
    """Turn, move, scale and shear an image by random amounts.

    Args:
        degrees: (min, max) of the angle; or one number d for (-d, d).
        translate: (min, max) of the move along x as a share of the width, and optionally two more for y;
            for PIL images, the largest moves along x and y.
        scale: (min, max) of the factor.
        shear: (min, max) of the shear along x in degrees, or one number s for (-s, s); four numbers add
            those along y.
        resample: how pixels are computed.
        fill_value: what is put outside.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    heavy = True
    random = True

    def __init__(
        self,
        degrees: Any,
        translate: Any = None,
        scale: Any = None,
        shear: Any = None,
        resample: Inter = Inter.NEAREST,
        fill_value: Any = 0,
    ) -> None:
        where = "RandomAffine"
        self.degrees = check_degrees(where, degrees)
        self.translate = None
        if translate is not None:
            self.translate = arguments.reals(where, "translate", translate)
            if len(self.translate) not in (2, 4) or not all(-1 <= t <= 1 for t in self.translate):
                raise ArgumentValueError(where, "translate", got=repr(translate), takes="2 or 4 numbers from -1 to 1")
        self.scale = None if scale is None else arguments.interval(where, "scale", scale, 1e-9)
        self.shear = (0.0, 0.0, 0.0, 0.0) if shear is None else _check_shear(where, shear)
        self.resample = check_interpolation(where, resample, "resample")
        self.fill_value = check_fill(where, fill_value)

    def _drawn(
        self, height: int, width: int, symmetric: bool
    ) -> tuple[float, tuple[float, float], float, tuple[float, float]]:
        draw = seeds.sample_random()
        degrees = draw.uniform(*self.degrees)
        moved = 0.0, 0.0
        if self.translate is not None:
            t = self.translate
            if symmetric:
                bounds = (-abs(t[0]), abs(t[0]), -abs(t[1]), abs(t[1]))
            else:
                bounds = t if len(t) == 4 else (*t, 0.0, 0.0)  # type: ignore[assignment]
            moved = float(round(draw.uniform(*bounds[:2]) * width)), float(round(draw.uniform(*bounds[2:]) * height))
        scale = 1.0 if self.scale is None else draw.uniform(*self.scale)
        shear = draw.uniform(*self.shear[:2]), draw.uniform(*self.shear[2:])
        return degrees, moved, scale, shear

    def _array(self, array: np.ndarray) -> np.ndarray:
        image(array, self._name)
        drawn = self._drawn(*height_width(array), symmetric=False)
        return affine(array, self._name, *drawn, self.resample, self.fill_value)

    def _pil(self, value: Any) -> Any:
        from PIL import Image

        degrees, moved, scale, shear = self._drawn(value.height, value.width, symmetric=True)
        # Pillow counts places from the corners of pixels.
        matrix = affine_matrix((value.width / 2, value.height / 2), degrees, moved, scale, shear)
        return value.transform(
            value.size, Image.Transform.AFFINE, matrix.reshape(-1).tolist(),
            pil_interpolation(self._name, self.resample), fillcolor=pil_fill(value, self.fill_value),
        )  # fmt: skip


def _check_shear(where: str, shear: Any) -> tuple[float, float, float, float]:
    if isinstance(shear, (int, float)) and not isinstance(shear, bool):
        number = arguments.real(where, "shear", shear, 0.0)
        return -number, number, 0.0, 0.0
    values = arguments.reals(where, "shear", shear)
    if len(values) not in (2, 4):
        raise ArgumentValueError(where, "shear", got=f"{len(values)} numbers", takes="one number, or 2 or 4")
    x = arguments.interval(where, "shear", values[:2])
    y = arguments.interval(where, "shear", values[2:]) if len(values) == 4 else (0.0, 0.0)
    return *x, *y


def _corners(where: str, argument: str, points: Any) -> np.ndarray:
    if not isinstance(points, (list, tuple)) or len(points) != 4:
        raise ArgumentTypeError(where, argument, got=repr(points), takes="four points [x, y]")
    return np.array([arguments.reals(where, argument, p, 2) for p in points], np.float32)


def perspective(array: np.ndarray, where: str, start: np.ndarray, end: np.ndarray, interpolation: Inter) -> np.ndarray:
    """The image under the projective map that takes four points to four others; zeros outside."""
    height, width = height_width(array)
    matrix = projective(end, start)
    x, y = np.arange(width), np.arange(height)[:, None]
    u, v, w = (a * x + b * y + c for a, b, c in matrix.tolist())
    scale = np.divide(1.0 if interpolation is Inter.NEAREST else 32.0, w, out=np.zeros_like(w), where=w != 0)
    places = [np.rint(np.clip(p * scale, -(2**31), 2**31 - 1)).astype(np.int64) for p in (u, v)]
    return _sampled(array, where, places, interpolation, 0)


def projective(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The (3, 3) matrix of the projective map that takes four points to four others."""
    rows, right = [], []
    for (x, y), (u, v) in zip(start.tolist(), end.tolist(), strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    return np.append(np.linalg.solve(np.array(rows), np.array(right)), 1.0).reshape(3, 3)


def _pil_perspective(value: Any, where: str, start: np.ndarray, end: np.ndarray, interpolation: Inter) -> Any:
    from PIL import Image

    coefficients = projective(end, start).reshape(-1)[:8].tolist()
    return value.transform(
        value.size, Image.Transform.PERSPECTIVE, coefficients, pil_interpolation(where, interpolation)
    )


class Perspective(ImageTransform):
    """Warp an image so that four points of it come to four others.

    Args:
        start_points: four points [x, y] of the image: top left, top right, bottom right, bottom left.
        end_points: where they come to.
        interpolation: how pixels are computed.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    heavy = True

    def __init__(self, start_points: Any, end_points: Any, interpolation: Inter = Inter.BILINEAR) -> None:
        self.start = _corners("Perspective", "start_points", start_points)
        self.end = _corners("Perspective", "end_points", end_points)
        self.interpolation = check_interpolation("Perspective", interpolation)

    def _array(self, array: np.ndarray) -> np.ndarray:
        return perspective(image(array, "Perspective"), "Perspective", self.start, self.end, self.interpolation)

    def _pil(self, value: Any) -> Any:
        return _pil_perspective(value, "Perspective", self.start, self.end, self.interpolation)


class RandomPerspective(ImageTransform):
    """Move the corners of an image inwards by random amounts, with a probability.

    Args:
        distortion_scale: from 0 to 1; a corner moves by up to this share of half the size.
        prob: the probability.
        interpolation: how pixels are computed.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
    """

    heavy = True
    random = True

    def __init__(self, distortion_scale: float = 0.5, prob: float = 0.5, interpolation: Inter = Inter.BICUBIC) -> None:
        where = "RandomPerspective"
        self.distortion_scale = arguments.probability(where, distortion_scale, "distortion_scale")
        self.prob = arguments.probability(where, prob)
        self.interpolation = check_interpolation(where, interpolation)

    def _points(self, height: int, width: int) -> tuple[np.ndarray, np.ndarray] | None:
        draw = seeds.sample_random()
        if draw.random() >= self.prob:
            return None
        far_x, far_y = int(self.distortion_scale * (width // 2)), int(self.distortion_scale * (height // 2))
        right, low = width - 1, height - 1
        start = [(0, 0), (right, 0), (right, low), (0, low)]
        inwards = [(1, 1), (-1, 1), (-1, -1), (1, -1)]
        end = [
            (x + sx * draw.randint(0, far_x), y + sy * draw.randint(0, far_y))
            for (x, y), (sx, sy) in zip(start, inwards, strict=True)
        ]
        return np.array(start, np.float32), np.array(end, np.float32)

    def _array(self, array: np.ndarray) -> np.ndarray:
        points = self._points(*height_width(image(array, self._name)))
        return array if points is None else perspective(array, self._name, *points, self.interpolation)

    def _pil(self, value: Any) -> Any:
        points = self._points(value.height, value.width)
        return value if points is None else _pil_perspective(value, self._name, *points, self.interpolation)
