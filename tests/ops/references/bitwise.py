"""References of operations on bits."""

from __future__ import annotations

import numpy as np


def _shift(a, b, *, left):
    """Shifts in Python's unbounded integers, cut to the width of the dtype."""
    bits = a.dtype.itemsize * 8
    a, b = np.broadcast_arrays(a, b)
    moved = []
    for x, n in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True):
        whole = (x << n if left else x >> n) % 2**bits
        moved.append(whole - 2**bits if a.dtype.kind == "i" and whole >= 2 ** (bits - 1) else whole)
    return np.array(moved, a.dtype).reshape(a.shape)


REFERENCES = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_not": np.bitwise_not,
    "bitwise_left_shift": lambda a, b: _shift(a, b, left=True),
    "bitwise_right_shift": lambda a, b: _shift(a, b, left=False),
    "population_count": lambda x: np.array(
        [bin(v % 2 ** (8 * x.dtype.itemsize)).count("1") for v in x.ravel().tolist()], np.uint8
    ).reshape(x.shape),
}
