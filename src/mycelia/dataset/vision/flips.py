"""Mirror images."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core.errors import ShapeError
from mycelia.dataset import arguments, seeds
from mycelia.dataset.vision.base import ImageTransform


class _Flip(ImageTransform):
    """Mirror along one axis: ``horizontal`` is left to right."""

    batches = True
    mirrors = True
    horizontal = True

    def drawn(self) -> bool:
        """Whether to mirror the current image: always."""
        return True

    def _array(self, array: np.ndarray) -> np.ndarray:
        if array.ndim < 2:
            raise ShapeError(self._name, "img", got=f"shape {array.shape}", takes="(H, W) or (..., H, W, C)")
        axis = (1 if self.horizontal else 0) if array.ndim == 2 else (-2 if self.horizontal else -3)
        return np.ascontiguousarray(np.flip(array, axis))

    def on_batch(self, block: np.ndarray) -> np.ndarray:
        if block.ndim < 3:
            raise ShapeError(self._name, "img", got=f"shape {block.shape[1:]}", takes="(H, W) or (..., H, W, C)")
        axis = (2 if self.horizontal else 1) if block.ndim == 3 else (-2 if self.horizontal else -3)
        return np.flip(block, axis)


class HorizontalFlip(_Flip):
    """Mirror left to right.

    >>> import numpy as np
    >>> from mycelia.dataset import vision
    >>> vision.HorizontalFlip()(np.array([[1, 2], [3, 4]]))
    array([[2, 1],
           [4, 3]])
    """


class VerticalFlip(_Flip):
    """Mirror upside down.

    >>> import numpy as np
    >>> from mycelia.dataset import vision
    >>> vision.VerticalFlip()(np.array([[1, 2], [3, 4]]))
    array([[3, 4],
           [1, 2]])
    """

    horizontal = False


class _RandomFlip(_Flip):
    batches = False
    random = True

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = arguments.probability(type(self).__name__, prob)

    def drawn(self) -> bool:
        """Whether to mirror the current image: drawn with the probability."""
        return seeds.sample_random().random() < self.prob

    def _array(self, array: np.ndarray) -> np.ndarray:
        return super()._array(array) if self.drawn() else array

    def _pil(self, value: Any) -> Any:
        from PIL import Image

        if self.drawn():
            method = Image.Transpose.FLIP_LEFT_RIGHT if self.horizontal else Image.Transpose.FLIP_TOP_BOTTOM
            return value.transpose(method)
        return value


class RandomHorizontalFlip(_RandomFlip):
    """Mirror left to right with a probability.

    Args:
        prob: the probability.

    Raises:
        ArgumentTypeError, ArgumentValueError: not a number from 0 to 1.
    """


class RandomVerticalFlip(_RandomFlip):
    """Mirror upside down with a probability.

    Args:
        prob: the probability.

    Raises:
        ArgumentTypeError, ArgumentValueError: not a number from 0 to 1.
    """

    horizontal = False
