"""7,000 handwritten digits: a subset of MNIST in MNIST's own files (see PROVENANCE.md)."""

from __future__ import annotations

from pathlib import Path


def folder() -> Path:
    """The folder with the four files, 6,000 training and 1,000 test images of 28 x 28 uint8.

    >>> sorted(file.name for file in folder().glob("*.gz"))[0]
    't10k-images-idx3-ubyte.gz'
    """
    return Path(__file__).parent
