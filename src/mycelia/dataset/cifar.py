"""CIFAR-10 and CIFAR-100 in their binary version (Krizhevsky, 2009).

A row is one label byte (two for CIFAR-100: coarse, fine) and 3072 bytes, the red, green and blue plane of
32 x 32 pixels.
"""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np

from mycelia.core.errors import ArgumentValueError, FileFormatError
from mycelia.dataset import arguments
from mycelia.dataset.sources import ArraysDataset

_PIXELS = 3 * 32 * 32


class _Cifar(ArraysDataset):
    """What both have in common: files per usage, label columns, classes."""

    _has_classes = True
    _files: ClassVar[dict[str, list[str]]]
    _label_names: ClassVar[list[str]]
    _classes: ClassVar[int]

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
        names = [n for part, found in self._files.items() if self.usage in (part, "all") for n in found]
        self._paths = [os.path.join(self.dataset_dir, name) for name in names]
        for path in self._paths:
            if not os.path.isfile(path):
                raise ArgumentValueError(
                    where, "dataset_dir", got=f"{self.dataset_dir!r}, which has no {os.path.basename(path)}",
                    takes="a directory with the files of the binary version",
                )  # fmt: skip
        self._data: list[np.ndarray] | None = None

    def _columns(self) -> list[str]:
        return ["image", *self._label_names]

    def _arrays(self) -> list[np.ndarray]:
        if self._data is None:
            count = len(self._label_names)
            parts = []
            for path in self._paths:
                data = np.fromfile(path, np.uint8)
                if not len(data) or len(data) % (count + _PIXELS):
                    raise FileFormatError(
                        type(self).__name__, message=f"{path!r} has {len(data)} bytes, no whole number of rows of "
                        f"{count + _PIXELS}: it is truncated, or not of the binary version", location=self._location,
                    )  # fmt: skip
                parts.append(data.reshape(-1, count + _PIXELS))
            rows = np.concatenate(parts)
            images = np.ascontiguousarray(rows[:, count:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
            self._data = [images, *(rows[:, i].astype(np.uint32) for i in range(count))]
        return self._data

    def num_classes(self) -> int | None:
        return self._classes


class Cifar10Dataset(_Cifar):
    """Small photographs of 10 kinds: ``image`` (32, 32, 3) uint8 and ``label`` () uint32.

    Args:
        dataset_dir: directory with ``data_batch_1.bin`` to ``data_batch_5.bin`` and ``test_batch.bin``.
        usage: ``"train"``, ``"test"`` or ``"all"``; all by default, the training rows first.
        num_samples: how many rows at most.
        num_parallel_workers: accepted and not needed; the files are read once, into memory.
        shuffle: whether to shuffle; the default is True.
        sampler: which rows and in which order; excludes ``shuffle``, ``num_samples`` and the shards.
        num_shards, shard_id: give one of several equal shares.
        cache: not supported.

    Raises:
        ArgumentValueError: no such directory or files, or another usage.
        FileFormatError: when first read, a truncated file.
    """

    _files: ClassVar[dict[str, list[str]]] = {
        "train": [f"data_batch_{i}.bin" for i in range(1, 6)],
        "test": ["test_batch.bin"],
    }
    _label_names: ClassVar[list[str]] = ["label"]
    _classes = 10


class Cifar100Dataset(_Cifar):
    """Small photographs of 100 kinds in 20 groups.

    The columns are ``image`` (32, 32, 3) uint8, ``coarse_label`` and ``fine_label`` () uint32.

    Args:
        dataset_dir: directory with ``train.bin`` and ``test.bin``.
        usage: ``"train"``, ``"test"`` or ``"all"``; all by default, the test rows first.
        num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache: as for
            :class:`Cifar10Dataset`.

    Raises:
        ArgumentValueError: no such directory or files, or another usage.
        FileFormatError: when first read, a truncated file.
    """

    _files: ClassVar[dict[str, list[str]]] = {"test": ["test.bin"], "train": ["train.bin"]}
    _label_names: ClassVar[list[str]] = ["coarse_label", "fine_label"]
    _classes = 100
