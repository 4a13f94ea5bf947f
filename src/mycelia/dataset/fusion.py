"""Several transforms of a ``map`` as one step, where the values stay the same to the last bit.

A transform is *pixelwise* if each number it gives depends on one number of the image and on its channel only. A run
of such transforms on bytes is a table of 256 entries per channel. The table is what the transforms themselves make
of an image that holds every byte, so it has their rounding, their dtype and their layout. Mirroring before them
commutes with that, and is done on single planes of bytes, which is cheaper than on pixels.

A step takes what it was made for: arrays of bytes, (H, W, C). For anything else it gives None before anything random
is drawn, and the transforms run one by one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from mycelia.core.errors import MyceliaError
from mycelia.dataset.memory import aligned_empty
from mycelia.dataset.transforms.base import Transform

_MOST_CHANNELS = 4
#: dtypes of the entries of a table that OpenCV takes.
_ENTRIES = ("uint8", "int8", "uint16", "int16", "int32", "float32", "float64")


class Mirror(Protocol):
    """A transform that mirrors, always or at random."""

    horizontal: bool

    def drawn(self) -> bool:
        """Whether to mirror the current image."""


class Table:
    """What pixelwise transforms make of bytes with a number of channels."""

    def __init__(self, entries: np.ndarray, channels_first: bool) -> None:
        # (1, 256) per plane, or (1, 256, C) for whole pixels.
        self.channels_first = channels_first
        self.planes = [np.ascontiguousarray(entries[:, c][None]) for c in range(entries.shape[1])]
        self.pixels = np.ascontiguousarray(entries[None])
        self.dtype = entries.dtype


def table_of(operations: Sequence[Callable[..., Any]], channels: int) -> Table | None:
    """The table of pixelwise transforms; None if they refuse such images or give something else."""
    every = np.repeat(np.arange(256, dtype=np.uint8)[:, None, None], channels, 2)
    made: Any = every
    try:
        with np.errstate(all="ignore"):  # of bytes that the user's images may not have
            for operation in operations:
                made = operation(made)
    except (MyceliaError, ArithmeticError, TypeError, ValueError):  # run one by one, they say it of the user's image
        return None
    if not isinstance(made, np.ndarray) or made.dtype.name not in _ENTRIES:
        return None
    if made.shape == (256, 1, channels):
        return Table(made[:, 0], False)
    if made.shape == (channels, 256, 1):
        return Table(made[:, :, 0].T, True)
    return None


class Step:
    """Mirroring, if any, and then pixelwise transforms.

    Args:
        mirrors: the first transforms, which mirror.
        pixelwise: the transforms after them; at least one.
    """

    def __init__(self, mirrors: Sequence[Mirror], pixelwise: Sequence[Callable[..., Any]]) -> None:
        self.mirrors, self.pixelwise = list(mirrors), list(pixelwise)
        self.length = len(self.mirrors) + len(self.pixelwise)
        self._tables: dict[int, Table | None] = {}

    def table(self, channels: int) -> Table | None:
        """The table for images with so many channels."""
        if channels not in self._tables:
            self._tables[channels] = table_of(self.pixelwise, channels) if channels <= _MOST_CHANNELS else None
        return self._tables[channels]

    def apply(self, values: tuple[Any, ...], place: np.ndarray | None = None) -> np.ndarray | None:
        """The result for one image, in ``place`` if that has its form; None if this step is not for it."""
        image = values[0]
        if len(values) != 1 or type(image) is not np.ndarray or image.dtype != np.uint8 or image.ndim != 3:
            return None
        height, width, channels = image.shape
        table = self.table(channels) if image.size and image.flags.c_contiguous else None
        if table is None:
            return None
        cv2 = importlib.import_module("cv2")
        flip = _flip_code(self.mirrors)
        shape = (channels, height, width) if table.channels_first else (height, width, channels)
        if place is None or place.shape != shape or place.dtype != table.dtype:
            place = np.empty(shape, table.dtype)
        if not table.channels_first:
            if flip is not None:
                image = cv2.flip(image, flip).reshape(image.shape)
            entries, target = table.pixels, place
            if channels == 1:
                image, entries, target = image[..., 0], table.planes[0], place[..., 0]
            cv2.LUT(image, entries, dst=target)
            return place
        planes = cv2.split(image) if channels > 1 else [image[:, :, 0]]
        for plane, entries, target in zip(planes, table.planes, place, strict=True):
            cv2.LUT(plane if flip is None else cv2.flip(plane, flip), entries, dst=target)
        return place

    def on_block(self, block: np.ndarray, last: bool) -> np.ndarray | None:
        """The results for stacked images, stacked; None if this step is not for them.

        Args:
            block: the images.
            last: no other step follows, so the memory should be such that a tensor can share it.
        """
        if self.mirrors or block.ndim != 4 or block.dtype != np.uint8 or not block.size:
            return None
        count, height, width, channels = block.shape
        table = self.table(channels) if block.flags.c_contiguous else None
        if table is None:
            return None
        shape = (count, channels, height, width) if table.channels_first else block.shape
        target = aligned_empty(shape, table.dtype) if last else np.empty(shape, table.dtype)
        if channels > 1:
            for image, place in zip(block, target, strict=True):
                self.apply((image,), place)
            return target
        rows = count * height
        importlib.import_module("cv2").LUT(block.reshape(rows, width), table.planes[0], dst=target.reshape(rows, width))
        return target


def _flip_code(mirrors: Sequence[Mirror]) -> int | None:
    """OpenCV's number for what the mirrors come to; None for the image as it is."""
    across = down = False
    for mirror in mirrors:
        if mirror.drawn():
            if mirror.horizontal:
                across = not across
            else:
                down = not down
    if across and down:
        return -1
    return 1 if across else 0 if down else None


def fused(operations: Sequence[Callable[..., Any]]) -> list[Callable[..., Any] | Step]:
    """``operations`` with a :class:`Step` in the place of every run that can be one."""
    try:
        importlib.import_module("cv2")
    except ImportError:
        return list(operations)
    made: list[Any] = []
    at = 0
    while at < len(operations):
        after_mirrors = at
        while after_mirrors < len(operations) and _built_in(operations[after_mirrors], "mirrors"):
            after_mirrors += 1
        end = after_mirrors
        while end < len(operations) and _built_in(operations[end], "pixelwise"):
            end += 1
        if end > after_mirrors:
            mirrors: Any = operations[at:after_mirrors]
            made.append(Step(mirrors, operations[after_mirrors:end]))
            at = end
        else:
            made.append(operations[at])
            at += 1
    return made


def _built_in(operation: Any, mark: str) -> bool:
    """Whether a transform of this package, not one derived from it, has a mark."""
    return (
        isinstance(operation, Transform)
        and getattr(operation, mark)
        and type(operation).__module__.startswith("mycelia.")
    )
