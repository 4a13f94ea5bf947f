"""Memory for batches: aligned so that a tensor can share it, and filled row by row by whoever makes the rows.

XLA's CPU client takes an array as it is, without a copy, if it starts at a multiple of 64 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mycelia.dataset.rows import Row

ALIGNMENT = 64
_LEAST_BYTES = 1024  # smaller rows are stacked faster than they are handed around


class Aimed(NamedTuple):
    """A sample for a task of workers, and where its result may be written."""

    row: Row
    place: np.ndarray


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array without content that starts at a multiple of 64 bytes."""
    size = dtype.itemsize
    for length in shape:
        size *= length
    raw = np.empty(size + ALIGNMENT, np.uint8)
    skipped = -raw.ctypes.data % ALIGNMENT
    return raw[skipped : skipped + size].view(dtype).reshape(shape)


class Blocks:
    """Places for the rows of batches, in the memory of the batch they will belong to.

    The form of a row is learnt from the first batch. A place is only an offer: a row that has another form, or that was
    made elsewhere, is copied or leaves the batch to be stacked in the ordinary way.

    Args:
        size: rows per batch.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._form: tuple[tuple[int, ...], np.dtype] | None = None
        self._closed = False
        self._made: dict[int, tuple[np.ndarray, list[np.ndarray]]] = {}

    def place(self, row: int) -> np.ndarray | None:
        """Where row number ``row`` may be written; None while the form is not known."""
        if self._form is None:
            return None
        number, index = divmod(row, self._size)
        if number not in self._made:
            block = aligned_empty((self._size, *self._form[0]), self._form[1])
            self._made[number] = block, list(block)
        return self._made[number][1][index]

    def collect(self, number: int, rows: Sequence[np.ndarray]) -> np.ndarray | None:
        """Batch ``number``, made of ``rows``; None if they have to be stacked in the ordinary way."""
        found = self._made.pop(number, None)
        if found is None:
            self._learn(rows)
            return None
        block, places = found
        for row, place in zip(rows, places, strict=False):
            if row is not place:
                if row.shape != place.shape or row.dtype != place.dtype:
                    self._form, self._closed = None, True
                    return None
                place[...] = row
        return block[: len(rows)]

    def _learn(self, rows: Sequence[np.ndarray]) -> None:
        first = rows[0]
        if not self._closed and first.nbytes >= _LEAST_BYTES and first.ndim and first.dtype.kind in "biufc":
            self._form = first.shape, first.dtype
