"""MNIST and datasets in its format: idx files, plain or compressed with gzip.

The format (LeCun, Cortes, Burges, "The MNIST database of handwritten digits"): two zero bytes, a type code
(8 for unsigned bytes), the number of axes, the length of each axis as a big-endian 32-bit int, the data.
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from typing import Any, ClassVar

import numpy as np

from mycelia.core.errors import ArgumentValueError, FileFormatError
from mycelia.dataset import arguments
from mycelia.dataset.sources import ArraysDataset


def read_idx(path: str, ndim: int) -> np.ndarray:
    """Read an idx file of unsigned bytes.

    Args:
        path: the file; compressed if its name ends in ``.gz``.
        ndim: the number of axes it must have.

    Returns:
        A uint8 array with ``ndim`` axes.

    Raises:
        FileFormatError: another type or number of axes, a truncated file, or bytes left over.
    """
    try:
        if path.endswith(".gz"):
            with gzip.open(path, "rb") as stream:
                data = stream.read()
        else:
            with open(path, "rb") as stream:
                data = stream.read()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileFormatError("read_idx", message=f"{path!r} is truncated or no gzip file: {error}") from None
    head = 4 + 4 * ndim
    if len(data) < head:
        raise FileFormatError("read_idx", message=f"{path!r} is truncated: {len(data)} bytes, its head takes {head}")
    magic = struct.unpack(">I", data[:4])[0]
    if magic != 0x0800 + ndim:
        raise FileFormatError(
            "read_idx", message=f"{path!r} starts with {magic:#010x}; unsigned bytes with {ndim} axes start with "
            f"{0x0800 + ndim:#010x}",
        )  # fmt: skip
    shape = struct.unpack(f">{ndim}I", data[4:head])
    wanted = head + int(np.prod(shape, dtype=np.int64))
    if len(data) != wanted:
        state = "truncated" if len(data) < wanted else "longer than it says"
        raise FileFormatError(
            "read_idx", message=f"{path!r} is {state}: {len(data)} bytes, {wanted} for the shape {shape}"
        )
    return np.frombuffer(data, np.uint8, offset=head).reshape(shape)


class MnistDataset(ArraysDataset):
    """Handwritten digits: ``image`` (28, 28, 1) uint8 and ``label`` () uint32.

    Args:
        dataset_dir: directory with ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``,
            ``t10k-images-idx3-ubyte`` and ``t10k-labels-idx1-ubyte``, each plain or with ``.gz``.
        usage: ``"train"``, ``"test"`` or ``"all"``; by default all that are there, the test rows first.
        num_samples: how many rows at most.
        num_parallel_workers: accepted and not needed; the files are read once, into memory.
        shuffle: whether to shuffle; the default is True.
        sampler: which rows and in which order; excludes ``shuffle``, ``num_samples`` and the shards.
        num_shards, shard_id: give one of several equal shares.
        cache: not supported.

    Raises:
        ArgumentValueError: no such directory or files, or another usage.
        FileFormatError: when first read, a file that is truncated or no idx file, or images and labels
            whose numbers differ.

    >>> import mycelia.dataset as ds
    >>> from mycelia.demo import digits
    >>> data = ds.MnistDataset(str(digits.folder()), "test", shuffle=False)
    >>> data.output_shapes(), [str(t) for t in data.output_types()]
    ([[28, 28, 1], []], ['uint8', 'uint32'])
    """

    _has_classes = True
    _title: ClassVar[str] = "MNIST"
    _parts: ClassVar[dict[str, str]] = {"test": "t10k", "train": "train"}

    def __init__(
        self,
        dataset_dir: str,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)
        where = type(self).__name__
        self.dataset_dir = arguments.directory(where, "dataset_dir", dataset_dir)
        if usage is not None:
            arguments.choice(where, "usage", usage, ("train", "test", "all"))
        self.usage = usage or "all"
        parts = [prefix for name, prefix in self._parts.items() if self.usage in (name, "all")]
        if self.usage == "all":  # a directory may hold one of the two parts only
            parts = [p for p in parts if self._has(f"{p}-images-idx3-ubyte")] or parts
        self._files = [
            (self._find(f"{p}-images-idx3-ubyte"), self._find(f"{p}-labels-idx1-ubyte")) for p in parts
        ]  # fmt: skip
        self._data: list[np.ndarray] | None = None

    def _has(self, name: str) -> bool:
        return any(os.path.isfile(os.path.join(self.dataset_dir, n)) for n in (name, name + ".gz"))

    def _find(self, name: str) -> str:
        for candidate in (name, name + ".gz"):
            path = os.path.join(self.dataset_dir, candidate)
            if os.path.isfile(path):
                return path
        raise ArgumentValueError(
            type(self).__name__, "dataset_dir", got=f"{self.dataset_dir!r}, which has no {name} (nor {name}.gz)",
            takes=f"a directory with the {self._title} files",
        )  # fmt: skip

    def _columns(self) -> list[str]:
        return ["image", "label"]

    def _arrays(self) -> list[np.ndarray]:
        if self._data is None:
            images, labels = [], []
            for image_file, label_file in self._files:
                image, label = read_idx(image_file, 3), read_idx(label_file, 1)
                if len(image) != len(label):
                    raise FileFormatError(
                        type(self).__name__,
                        message=f"{image_file!r} has {len(image)} images, {label_file!r} has {len(label)} labels",
                        location=self._location,
                    )
                images.append(image)
                labels.append(label)
            if len({image.shape[1:] for image in images}) > 1:
                raise FileFormatError(
                    type(self).__name__, message="the training and test images differ in shape", location=self._location
                )
            self._data = [_join(images)[..., None], _join(labels).astype(np.uint32)]
        return self._data

    def num_classes(self) -> int | None:
        return 10


def _join(arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


class FashionMnistDataset(MnistDataset):
    """Fashion-MNIST (Xiao, Rasul, Vollgraf, 2017), in the files and columns of :class:`MnistDataset`."""

    _title = "Fashion-MNIST"


class KMnistDataset(MnistDataset):
    """Kuzushiji-MNIST (Clanuwat et al., 2018), in the files and columns of :class:`MnistDataset`."""

    _title = "Kuzushiji-MNIST"
