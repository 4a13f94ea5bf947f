"""Batches of sequences of different lengths: masks of what belongs to them, and their order reversed."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, OutOfRangeError, ShapeError
from mycelia.ops.indexing import as_index, gather_p
from mycelia.ops.operands import as_axis, as_int, as_tensor, cast
from mycelia.ops.outputs import one
from mycelia.ops.registry import operator
from mycelia.ops.shape import moveaxis, reshaped
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant


@operator()
def sequence_mask(lengths: Any, maxlen: Any = None) -> Tensor:
    """For each length that many True and then False.

    Args:
        lengths: integers of any shape.
        maxlen: the length of the new last axis; the largest of ``lengths`` by default.

    Returns:
        A bool tensor of shape ``lengths.shape + (maxlen,)``.

    Raises:
        ArgumentValueError: ``maxlen`` is negative.
        GraphError: in a graph, without ``maxlen``: the shape would depend on values.

    >>> import mycelia as ms
    >>> print(ms.ops.sequence_mask(ms.Tensor([1, 3]), 4))
    [[ True False False False]
     [ True  True  True False]]
    """
    sizes = as_index(lengths, "sequence_mask", "lengths")
    if maxlen is None:
        most = int(np.max(np.asarray(sizes._concrete("sequence_mask without maxlen")), initial=0))
    else:
        most = as_int(maxlen, "sequence_mask", "maxlen")
    if most < 0:
        raise ArgumentValueError("sequence_mask", "maxlen", got=str(most), takes="an int of at least 0")
    places: Any = constant(np.arange(most))
    return places < reshaped(cast(sizes, dt.int64), (*sizes.shape, 1))  # type: ignore[no-any-return]


@operator(methods=True)
def reverse_sequence(x: Any, seq_lengths: Any, seq_dim: int, batch_dim: int = 0) -> Tensor:
    """Reverse the first elements of each sequence of a batch; what comes after them stays.

    Args:
        x: a tensor.
        seq_lengths: a vector with the number of elements to reverse in each sequence.
        seq_dim: the axis the sequences run along.
        batch_dim: the axis that counts the sequences.

    Raises:
        ShapeError: not one length for each sequence.
        OutOfRangeError: there is no such axis.
        ArgumentValueError: both axes are the same.

    >>> import mycelia as ms
    >>> print(ms.ops.reverse_sequence(ms.Tensor([[1, 2, 3], [4, 5, 6]]), ms.Tensor([2, 3]), 1))
    [[2 1 3]
     [6 5 4]]
    """
    from mycelia.ops.selection import where

    name = "reverse_sequence"
    t = as_tensor(x, name, "x")
    along, batch = as_axis(seq_dim, t.ndim, name, "seq_dim"), as_axis(batch_dim, t.ndim, name, "batch_dim")
    if t.ndim < 2 or along == batch:
        raise ArgumentValueError(
            name, "seq_dim", got=str(seq_dim), takes=f"an axis of {t.shape} other than 'batch_dim'"
        )
    sizes = as_index(seq_lengths, name, "seq_lengths")
    if sizes.shape != (t.shape[batch],):
        raise ShapeError(
            name,
            "seq_lengths",
            got=f"shape {sizes.shape}",
            takes=f"one length for each of the {t.shape[batch]} sequences",
        )
    length = t.shape[along]
    if not sizes.is_symbolic and sizes.size and int(sizes.asnumpy().max()) > length:
        raise OutOfRangeError(
            name, "seq_lengths", got=str(int(sizes.asnumpy().max())), takes=f"lengths of at most {length}"
        )
    places: Any = constant(np.arange(length))
    column: Any = reshaped(cast(sizes, dt.int64), (sizes.shape[0], 1))
    order = where(places < column, column - 1 - places, places)
    rows = moveaxis(t, (batch, along), (0, 1))
    return moveaxis(one(gather_p, rows, order, axis=1, batch_dims=1), (0, 1), (batch, along))
