"""What a transform is: a callable on the values of one row that tells the pipeline what it may do with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError


class Transform(ABC):
    """Base of the built-in transforms.

    A transform can be called by itself on an array, a list, a number, a tensor or an image, and in
    ``map``. It has no state that changes, so threads share it.

    Attributes:
        batches: ``on_batch`` gives for stacked values what a call gives for each of them.
        random: it draws from :func:`mycelia.dataset.seeds.sample_random`.
        heavy: it takes long enough that a thread for it pays.
        foreign: it calls functions of the user's.
        pixelwise: each number it gives depends on one number of an image and its channel only.
        mirrors: all it does is to mirror an image; see :class:`mycelia.dataset.fusion.Mirror`.
    """

    batches: bool = False
    random: bool = False
    heavy: bool = False
    foreign: bool = False
    pixelwise: bool = False
    mirrors: bool = False

    @abstractmethod
    def __call__(self, *values: Any) -> Any:
        """The results for the values of one row."""

    def on_batch(self, block: np.ndarray) -> np.ndarray:
        """The results for values stacked along the first axis, stacked."""
        return np.stack([self(value) for value in block])

    @property
    def _name(self) -> str:
        return type(self).__name__


class ArrayTransform(Transform):
    """A transform from one array to one value."""

    def __call__(self, *values: Any) -> Any:
        """Apply it to one value.

        Raises:
            ArgumentTypeError: not exactly one value, or it is not array-like.
        """
        if len(values) != 1:
            raise ArgumentTypeError(self._name, "input", got=f"{len(values)} columns", takes="one column")
        return self._on(as_array(values[0], self._name))

    @abstractmethod
    def _on(self, array: np.ndarray) -> Any:
        """The result for one array."""


def as_array(value: Any, where: str) -> np.ndarray:
    """A number, nested list, tensor, image or array as an array.

    Raises:
        ArgumentTypeError: anything else.
    """
    if type(value) is np.ndarray:
        return value
    if hasattr(value, "asnumpy"):
        array = value.asnumpy()
    elif value is None or isinstance(value, (dict, set)):
        raise ArgumentTypeError(where, "input", got=repr(value), takes="an array, a number, a string or a list of them")
    else:
        try:
            array = np.array(value)
        except (ValueError, TypeError):
            raise ArgumentTypeError(where, "input", got=f"a ragged {type(value).__name__}", takes="an array") from None
    if array.dtype.kind == "O":
        raise ArgumentTypeError(
            where, "input", got=f"{type(value).__name__} of objects", takes="an array of numbers, strings or bytes"
        )
    return array
