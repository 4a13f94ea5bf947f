"""Shorthands of the tests of data sets."""

from __future__ import annotations

from typing import Any

import mycelia.dataset as ds


def column(data: ds.Dataset, name: str | None = None) -> list[Any]:
    """The values of one column, the first by default, of one pass."""
    columns = None if name is None else [name]
    found = data.create_tuple_iterator(columns, num_epochs=1, output_numpy=True)
    return [row[0].tolist() for row in found]


def numbers(count: int, **keywords: Any) -> ds.NumpySlicesDataset:
    """Rows 0, 1, ... in a column ``a``, in order unless told otherwise."""
    if "sampler" not in keywords:
        keywords.setdefault("shuffle", False)
    return ds.NumpySlicesDataset({"a": list(range(count))}, **keywords)


def epochs(data: ds.Dataset, count: int) -> list[list[Any]]:
    """The first column of several passes of one iterator."""
    iterator = data.create_tuple_iterator(num_epochs=count, output_numpy=True)
    return [[row[0].tolist() for row in iterator] for _ in range(count)]
