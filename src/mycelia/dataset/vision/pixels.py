"""Transforms that treat every pixel alike: scaling, normalization, layout, kind of image."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError, UnsupportedError
from mycelia.dataset import arguments
from mycelia.dataset.transforms.arrays import TypeCast, numpy_dtype
from mycelia.dataset.transforms.base import Transform, as_array
from mycelia.dataset.vision.base import ImageTransform, image, is_pil, pixels


class Rescale(ImageTransform):
    """Multiply by ``rescale`` and add ``shift``, both float32; the result is float32, rounded once.

    Args:
        rescale: the factor.
        shift: what is added.

    Raises:
        ArgumentTypeError: not numbers.

    >>> import numpy as np
    >>> from mycelia.dataset import vision
    >>> vision.Rescale(0.25, -1)(np.array([[0, 4, 10]], np.uint8))
    array([[-1. ,  0. ,  1.5]], dtype=float32)
    """

    batches = True
    pixelwise = True

    def __init__(self, rescale: float, shift: float) -> None:
        self.rescale = arguments.real("Rescale", "rescale", rescale)
        self.shift = arguments.real("Rescale", "shift", shift)

    def _array(self, array: np.ndarray) -> np.ndarray:
        if array.dtype.kind not in "biuf":
            raise DTypeError("Rescale", "img", got=str(array.dtype), takes="numbers")
        if not self.shift:
            return np.multiply(array, np.float32(self.rescale), dtype=np.float32)
        if array.dtype == np.uint8:
            made: np.ndarray = self._exact(np.arange(256))[array]
            return made
        return self._exact(array)

    def _exact(self, array: np.ndarray) -> np.ndarray:
        made = array * np.float64(np.float32(self.rescale)) + np.float64(np.float32(self.shift))
        return made.astype(np.float32)

    def on_batch(self, block: np.ndarray) -> np.ndarray:
        return self._array(block)


class Normalize(ImageTransform):
    """Subtract a mean and divide by a standard deviation, per channel, in float32.

    Args:
        mean: one number per channel, or a single one for all, each from 0 to 255.
        std: as many numbers, above 0 and up to 255.
        is_hwc: the channels are the last axis; else the third from the end.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, another number of channels.

    >>> import numpy as np
    >>> from mycelia.dataset import vision
    >>> vision.Normalize([10.0], [2.0])(np.array([[8, 12]], np.uint8))
    array([[-1.,  1.]], dtype=float32)
    """

    batches = True
    pixelwise = True

    def __init__(self, mean: Any, std: Any, is_hwc: bool = True) -> None:
        where = type(self).__name__
        self.mean, self.std = _mean_std(where, mean, std)
        self.is_hwc = arguments.boolean(where, "is_hwc", is_hwc)

    def _array(self, array: np.ndarray) -> np.ndarray:
        if array.ndim < 2:
            raise ShapeError(self._name, "img", got=f"shape {array.shape}", takes="at least two axes")
        return self._normalized(array, array.ndim)

    def on_batch(self, block: np.ndarray) -> np.ndarray:
        if block.ndim < 3:
            raise ShapeError(self._name, "img", got=f"shape {block.shape[1:]}", takes="at least two axes")
        return self._normalized(block, block.ndim - 1)

    def _normalized(self, array: np.ndarray, ndim: int) -> np.ndarray:
        if array.dtype.kind not in "biuf":
            raise DTypeError(self._name, "img", got=str(array.dtype), takes="numbers")
        mean, std = self.mean, self.std
        count = 1 if ndim == 2 else array.shape[-1 if self.is_hwc else -3]
        if len(mean) not in (1, count):
            raise ShapeError(
                self._name, "img", got=f"{count} channel(s) in the shape {array.shape[array.ndim - ndim:]}",
                takes=f"{len(mean)} channels, as mean and std have",
                hint="is_hwc says whether the channels are the last axis" if count != len(mean) and ndim > 2 else None,
            )  # fmt: skip
        if not self.is_hwc and ndim > 2:
            mean, std = mean[:, None, None], std[:, None, None]
        made = np.subtract(array, mean, dtype=np.float32)
        np.divide(made, std, out=made)
        return made


def _mean_std(where: str, mean: Any, std: Any) -> tuple[np.ndarray, np.ndarray]:
    means, stds = arguments.reals(where, "mean", mean), arguments.reals(where, "std", std)
    if len(means) != len(stds) or not means:
        raise ArgumentValueError(where, "std", got=f"{len(stds)} numbers", takes=f"as many as mean has, {len(means)}")
    for value in means:
        if not 0 <= value <= 255:
            raise ArgumentValueError(where, "mean", got=str(value), takes="numbers from 0 to 255")
    for value in stds:
        if not 0 < value <= 255:
            raise ArgumentValueError(where, "std", got=str(value), takes="numbers above 0 and up to 255")
    return np.array(means, np.float32), np.array(stds, np.float32)


class NormalizePad(Normalize):
    """Normalize, and add a fourth channel of zeros.

    Args:
        mean, std, is_hwc: as for :class:`Normalize`.
        dtype: ``"float32"`` or ``"float16"``, of the result.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, on other than three channels.
    """

    batches = False
    pixelwise = False

    def __init__(self, mean: Any, std: Any, dtype: str = "float32", is_hwc: bool = True) -> None:
        super().__init__(mean, std, is_hwc)
        self.dtype = np.dtype(arguments.choice("NormalizePad", "dtype", dtype, ("float32", "float16")))

    def _array(self, array: np.ndarray) -> np.ndarray:
        axis = -1 if self.is_hwc else 0
        if array.ndim != 3 or array.shape[axis] != 3:
            raise ShapeError(self._name, "img", got=f"shape {array.shape}", takes="three axes, with three channels")
        made = super()._array(array)
        zeros = np.zeros_like(made[..., :1] if self.is_hwc else made[:1])
        return np.concatenate([made, zeros], axis).astype(self.dtype)


class HWC2CHW(ImageTransform):
    """Move the channels to the front: (H, W, C) to (C, H, W); (H, W) stays as it is.

    >>> import numpy as np
    >>> from mycelia.dataset import vision
    >>> vision.HWC2CHW()(np.zeros((4, 5, 3))).shape
    (3, 4, 5)
    """

    batches = True
    pixelwise = True

    def _array(self, array: np.ndarray) -> np.ndarray:
        image(array, "HWC2CHW")
        return array if array.ndim == 2 else np.ascontiguousarray(array.transpose(2, 0, 1))

    def on_batch(self, block: np.ndarray) -> np.ndarray:
        if block.ndim == 3:
            return block
        image(block[0], "HWC2CHW")
        return np.ascontiguousarray(block.transpose(0, 3, 1, 2))


class ToTensor(ImageTransform):
    """(H, W, C) or (H, W) to (C, H, W), divided by 255.

    Args:
        output_type: dtype of the result, float32 by default.

    Raises:
        ArgumentTypeError: not a dtype.
        ShapeError: when called, another number of axes.

    >>> import numpy as np
    >>> from mycelia.dataset import vision
    >>> vision.ToTensor()(np.full((2, 3), 51, np.uint8)).shape
    (1, 2, 3)
    """

    batches = True
    pixelwise = True

    def __init__(self, output_type: Any = np.float32) -> None:
        self.output_type = numpy_dtype("ToTensor", "output_type", output_type)

    def _array(self, array: np.ndarray) -> np.ndarray:
        return self.on_batch(image(array, "ToTensor")[None])[0]

    def on_batch(self, block: np.ndarray) -> np.ndarray:
        image(block[0], "ToTensor")
        if block.dtype.kind not in "biuf":
            raise DTypeError("ToTensor", "img", got=str(block.dtype), takes="numbers")
        block = block[:, None] if block.ndim == 3 else block.transpose(0, 3, 1, 2)
        made = np.multiply(block, np.float32(1 / 255), dtype=np.float32, order="C")
        return made.astype(self.output_type, copy=False)


class ToPIL(Transform):
    """Make a PIL image of an array: (H, W, 3) uint8 is RGB, (H, W, 4) RGBA, (H, W) or (H, W, 1) gray.

    Raises:
        ShapeError: when called, another shape.
        DTypeError: when called, another dtype.

    >>> import numpy as np
    >>> from mycelia.dataset import vision
    >>> vision.ToPIL()(np.zeros((4, 5, 3), np.uint8)).size
    (5, 4)
    """

    def __call__(self, *values: Any) -> Any:
        if len(values) != 1:
            raise ArgumentTypeError("ToPIL", "img", got=f"{len(values)} columns", takes="one image")
        if is_pil(values[0]):
            return values[0]
        return to_pil(pixels(values[0], "ToPIL"), "ToPIL")


def to_pil(array: np.ndarray, where: str) -> Any:
    """A PIL image of (H, W), (H, W, 1), (H, W, 2), (H, W, 3) or (H, W, 4).

    Raises:
        ShapeError, DTypeError: another shape or dtype.
    """
    from PIL import Image

    image(array, where)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim == 3 and array.shape[2] > 4:
        raise ShapeError(where, "img", got=f"shape {array.shape}", takes="up to four channels")
    gray = array.ndim == 2
    allowed = {"uint8", "bool", "int32", "float32", "uint16"} if gray else {"uint8"}
    if array.dtype.name not in allowed:
        raise DTypeError(
            where, "img", got=str(array.dtype), takes="uint8 (gray images also bool, uint16, int32 or float32)",
            hint='scale to 0..255 and convert with transforms.TypeCast("uint8")',
        )  # fmt: skip
    return Image.fromarray(np.ascontiguousarray(array))


class ToNumpy(Transform):
    """Make an array of a PIL image; anything else that NumPy takes becomes an array too.

    >>> import numpy as np
    >>> from mycelia.dataset import vision
    >>> vision.ToNumpy()(vision.ToPIL()(np.zeros((4, 5, 3), np.uint8))).shape
    (4, 5, 3)
    """

    def __call__(self, *values: Any) -> np.ndarray:
        if len(values) != 1:
            raise ArgumentTypeError("ToNumpy", "img", got=f"{len(values)} columns", takes="one image")
        return np.array(values[0]) if is_pil(values[0]) else as_array(values[0], "ToNumpy")


class ToType(TypeCast):
    """Convert to a dtype; the same as :class:`mycelia.dataset.transforms.TypeCast`.

    Args:
        data_type: a tensor dtype, a NumPy dtype or a name.

    Raises:
        ArgumentTypeError: not a dtype.
    """

    def __init__(self, data_type: Any) -> None:
        self.dtype = numpy_dtype("ToType", "data_type", data_type)


class LinearTransformation(ImageTransform):
    """Flatten, subtract a mean vector and multiply by a square matrix; whitening, for instance.

    Args:
        transformation_matrix: (D, D), with D the number of entries of the image.
        mean_vector: (D,).

    Raises:
        ArgumentTypeError: not arrays.
        ShapeError: other shapes; also when called, on an image of other than D entries.
    """

    def __init__(self, transformation_matrix: Any, mean_vector: Any) -> None:
        where = "LinearTransformation"
        for name, value in (("transformation_matrix", transformation_matrix), ("mean_vector", mean_vector)):
            if not isinstance(value, np.ndarray):
                raise ArgumentTypeError(where, name, got=type(value).__name__, takes="a NumPy array")
        if transformation_matrix.ndim != 2 or transformation_matrix.shape[0] != transformation_matrix.shape[1]:
            raise ShapeError(
                where, "transformation_matrix", got=f"shape {transformation_matrix.shape}", takes="a square matrix"
            )
        if mean_vector.shape != transformation_matrix.shape[:1]:
            raise ShapeError(
                where, "mean_vector", got=f"shape {mean_vector.shape}", takes=f"shape {transformation_matrix.shape[:1]}"
            )
        self.matrix, self.mean = transformation_matrix, mean_vector

    def _array(self, array: np.ndarray) -> np.ndarray:
        if array.size != len(self.mean):
            raise ShapeError(
                self._name, "img", got=f"shape {array.shape}, {array.size} entries", takes=f"{len(self.mean)} entries"
            )
        made: np.ndarray = (array.reshape(-1) - self.mean) @ self.matrix
        return made.reshape(array.shape)

    def _pil(self, value: Any) -> Any:
        raise UnsupportedError(self._name, message="a PIL image is not accepted", hint="put ToTensor() before it")
