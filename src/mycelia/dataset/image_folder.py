"""Images in folders that are named after their classes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.dataset import arguments
from mycelia.dataset.failures import SampleFailure
from mycelia.dataset.pipeline import no_more
from mycelia.dataset.rows import Row
from mycelia.dataset.run import Run
from mycelia.dataset.sources import MappableDataset
from mycelia.dataset.vision.files import decoded_array
from mycelia.dataset.workers import ThreadPool, attempt, in_order

EXTENSIONS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")


class _ReadTask:
    """Read a file, and decode it, as a task of workers."""

    def __init__(self, decode: bool) -> None:
        self.decode = decode

    def run(self, key: int, sample: int, value: tuple[str, int], isolated: bool) -> Row:
        path, label = value
        data: Any = np.fromfile(path, np.uint8)
        if self.decode:
            data = decoded_array(data, "ImageFolderDataset")
        return data, np.array(label, np.int32)

    def report(self, error: BaseException, sample: int) -> SampleFailure:
        return SampleFailure("reading the file", "read", (), sample, error)


class ImageFolderDataset(MappableDataset):
    """Image files in one folder per class: ``image`` and ``label`` () int32.

    Files and folders are taken in the order of their names; ``image`` is the bytes of the file, one axis
    of uint8, or with ``decode`` the image, (H, W, 3) uint8 in RGB.

    Args:
        dataset_dir: directory with a folder for each class.
        num_samples: how many rows at most.
        num_parallel_workers: threads that read and decode; the result does not depend on it.
        shuffle: whether to shuffle; the default is True.
        sampler: which rows and in which order; excludes ``shuffle``, ``num_samples`` and the shards.
        extensions: endings of the names of files to take, with dots; by default those of image files.
        class_indexing: from folder name to label, of the folders to take; by default all, numbered in the
            order of their names.
        decode: give images rather than the bytes of files.
        num_shards, shard_id: give one of several equal shares.
        cache, decrypt: not supported.

    Raises:
        ArgumentValueError: no such directory, no class folders, or no image files in them.
        ArgumentTypeError: wrong types.
        TransformError: while iterating, when a file is no image.
    """

    _has_classes = True

    def __init__(
        self,
        dataset_dir: str,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: Any = None,
        extensions: list[str] | None = None,
        class_indexing: dict[str, int] | None = None,
        decode: bool = False,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
        decrypt: Any = None,
    ) -> None:
        super().__init__(num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)
        where = "ImageFolderDataset"
        no_more(where, "decrypt", decrypt)
        self.dataset_dir = arguments.directory(where, "dataset_dir", dataset_dir)
        self.decode = arguments.boolean(where, "decode", decode)
        endings: tuple[str, ...] = EXTENSIONS
        if extensions is not None:
            endings = tuple(name.lower() for name in arguments.names(where, "extensions", extensions))
        self._indexing = self._classes(class_indexing)
        self._files = [
            (os.path.join(folder, name), label)
            for title, label in sorted(self._indexing.items())
            for folder in [os.path.join(self.dataset_dir, title)]
            for name in sorted(os.listdir(folder))
            if name.lower().endswith(endings) and os.path.isfile(os.path.join(folder, name))
        ]
        if not self._files:
            raise ArgumentValueError(
                where, "dataset_dir",
                got=f"{self.dataset_dir!r}, whose folders have no files ending in {', '.join(endings)}",
                takes="a directory with image files in a folder for each class",
            )  # fmt: skip

    def _classes(self, class_indexing: Any) -> dict[str, int]:
        where = "ImageFolderDataset"
        folders = sorted(entry.name for entry in os.scandir(self.dataset_dir) if entry.is_dir())
        if not folders:
            raise ArgumentValueError(
                where, "dataset_dir", got=f"{self.dataset_dir!r}, which has no folders", takes="a folder for each class"
            )
        if class_indexing is None:
            return {name: label for label, name in enumerate(folders)}
        if not isinstance(class_indexing, dict):
            raise ArgumentTypeError(
                where, "class_indexing", got=repr(class_indexing), takes="a dict from name to label"
            )
        for name, label in class_indexing.items():
            arguments.integer(where, "class_indexing", label, 0)
            if name not in folders:
                raise ArgumentValueError(where, "class_indexing", got=repr(name), takes=f"one of {', '.join(folders)}")
        return dict(class_indexing)

    def _columns(self) -> list[str]:
        return ["image", "label"]

    def _light(self) -> bool:
        return False

    def _total(self) -> int:
        return len(self._files)

    def _labels(self, name: str) -> np.ndarray:
        if name != "label":
            raise ArgumentValueError("PKSampler", "class_column", got=repr(name), takes="'label'")
        return np.array([label for _, label in self._files], np.int32)

    def _rows(self, run: Run) -> Iterator[Row]:
        wanted = [self._files[number] for number in self._order(run).tolist()]
        task = _ReadTask(self.decode)
        workers = self.num_parallel_workers or 1
        results: Iterator[Any]
        if workers == 1 or run.inline:
            results = (attempt(task, 0, sample, value) for sample, value in enumerate(wanted))
        else:
            results = in_order(run.pool(self, lambda: ThreadPool(task, workers)), 0, wanted)
        for sample, result in enumerate(results):
            if isinstance(result, SampleFailure):
                result.action = f"reading {wanted[sample][0]!r}"
                raise result.as_error("ImageFolderDataset", self._location) from result.cause
            yield result

    def num_classes(self) -> int | None:
        return len(self._indexing)

    def get_class_indexing(self) -> dict[str, int]:
        return dict(self._indexing)
