"""Mix the images of a batch, and their labels: MixUp (Zhang et al., 2018) and CutMix (Yun et al., 2019).

They go into ``map`` after ``batch``, with the image and the label column as inputs.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.dataset import arguments, seeds
from mycelia.dataset.transforms.base import Transform
from mycelia.dataset.vision.base import pixels
from mycelia.dataset.vision.enums import ImageBatchFormat


class _OnBatch(Transform):
    """A transform of a batch of images (N, ...) and their one-hot labels (N, C) or (N, M, C)."""

    random = True

    def __call__(self, *values: Any) -> Any:
        if len(values) != 2:
            raise ArgumentTypeError(
                self._name, "input", got=f"{len(values)} columns", takes="the images and the labels of a batch"
            )
        images, labels = pixels(values[0], self._name), pixels(values[1], self._name)
        if images.ndim != 4:
            raise ShapeError(
                self._name, "images", got=f"shape {images.shape}",
                takes="a batch of images, (N, H, W, C) or (N, C, H, W)", hint="put it into .map(...) after .batch(...)",
            )  # fmt: skip
        if labels.ndim not in (2, 3) or len(labels) != len(images):
            raise ShapeError(
                self._name, "labels", got=f"shape {labels.shape}", takes=f"one-hot labels ({len(images)}, classes)",
                hint="transforms.OneHot makes them",
            )  # fmt: skip
        if labels.dtype.kind not in "iuf":
            raise DTypeError(self._name, "labels", got=str(labels.dtype), takes="numbers")
        return self._mix(images, labels)

    @abstractmethod
    def _mix(self, images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The images and the labels, mixed."""


class MixUpBatch(_OnBatch):
    """Mix each image with another one of the batch, and the labels alike; the labels become float32.

    Args:
        alpha: parameter of the symmetric beta distribution of the share; above 0.

    Raises:
        ArgumentTypeError, ArgumentValueError: not such a number.
        ShapeError: when called, no batch of images, or labels that are not one-hot.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = _positive("MixUpBatch", "alpha", alpha)

    def _mix(self, images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        draw = seeds.sample_generator()
        share = np.float32(draw.beta(self.alpha, self.alpha))
        order = draw.permutation(len(images))
        mixed = images.astype(np.float32) * share + images[order].astype(np.float32) * (1 - share)
        if images.dtype.kind != "f":
            mixed = np.rint(mixed)
        values = labels.astype(np.float32)
        return mixed.astype(images.dtype), values * share + values[order] * (1 - share)


class CutMixBatch(_OnBatch):
    """Put a rectangle of another image of the batch into each image, and mix the labels by area (float32).

    Args:
        image_batch_format: where the channels stand.
        alpha: parameter of the symmetric beta distribution of the share; above 0.
        prob: the probability that an image is changed.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, no batch of images, or labels that are not one-hot.
    """

    def __init__(self, image_batch_format: ImageBatchFormat, alpha: float = 1.0, prob: float = 1.0) -> None:
        if not isinstance(image_batch_format, ImageBatchFormat):
            raise ArgumentTypeError(
                "CutMixBatch", "image_batch_format", got=repr(image_batch_format), takes="an ImageBatchFormat"
            )
        self.image_batch_format = image_batch_format
        self.alpha = _positive("CutMixBatch", "alpha", alpha)
        self.prob = arguments.probability("CutMixBatch", prob)

    def _mix(self, images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        draw = seeds.sample_generator()
        mixed, values = images.copy(), labels.astype(np.float32)
        hwc = self.image_batch_format is ImageBatchFormat.NHWC
        height, width = images.shape[1:3] if hwc else images.shape[2:4]
        order = draw.permutation(len(images))
        given = values.copy()
        for i, other in enumerate(order.tolist()):
            if draw.random() >= self.prob:
                continue
            side = math.sqrt(1.0 - draw.beta(self.alpha, self.alpha))
            y, x = int(draw.integers(height)), int(draw.integers(width))
            half_h, half_w = int(height * side) // 2, int(width * side) // 2
            rows = slice(max(y - half_h, 0), min(y + half_h, height))
            columns = slice(max(x - half_w, 0), min(x + half_w, width))
            place = (i, rows, columns) if hwc else (i, slice(None), rows, columns)
            mixed[place] = images[(other, *place[1:])]
            share = 1.0 - (rows.stop - rows.start) * (columns.stop - columns.start) / (height * width)
            given[i] = values[i] * np.float32(share) + values[other] * np.float32(1 - share)
        return mixed, given


class MixUp(Transform):
    """Mix the images of a batch: with each other, or with those of the batch before.

    Args:
        batch_size: images in a batch.
        alpha: parameter of the symmetric beta distribution of the shares; above 0.
        is_single: mix within the batch; else each batch with the one before it (the first with itself).

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.
        ShapeError: when called, another number of images or labels.
    """

    random = True

    def __init__(self, batch_size: int, alpha: float, is_single: bool = True) -> None:
        self.batch_size = arguments.integer("MixUp", "batch_size", batch_size, 1)
        self.alpha = _positive("MixUp", "alpha", alpha)
        self.is_single = arguments.boolean("MixUp", "is_single", is_single)
        self._before: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, *values: Any) -> Any:
        if len(values) != 2:
            raise ArgumentTypeError("MixUp", "input", got=f"{len(values)} columns", takes="images and labels")
        images, labels = pixels(values[0], "MixUp"), pixels(values[1], "MixUp")
        if len(images) != self.batch_size or len(labels) != self.batch_size:
            raise ShapeError(
                "MixUp",
                "input",
                got=f"{len(images)} images and {len(labels)} labels",
                takes=f"{self.batch_size} of each",
            )
        draw = seeds.sample_generator()
        shares = draw.beta(self.alpha, self.alpha, self.batch_size)
        if self.is_single:
            order = draw.permutation(self.batch_size)
            other_images, other_labels = images[order], labels[order]
        else:
            other_images, other_labels = self._before or (images, labels)
            self._before = images, labels

        def mixed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            share = shares.reshape(-1, *[1] * (a.ndim - 1))
            made: np.ndarray = a * share + b * (1 - share)
            return made

        return mixed(images, other_images), mixed(labels, other_labels)


def _positive(where: str, argument: str, value: Any) -> float:
    number = arguments.real(where, argument, value)
    if number <= 0:
        raise ArgumentValueError(where, argument, got=repr(value), takes="a number above 0")
    return number
