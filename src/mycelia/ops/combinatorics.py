"""All choices of elements: cartesian products and combinations."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ops.indexing import taken
from mycelia.ops.joining import stack
from mycelia.ops.operands import as_int, as_tensor, same_dtype
from mycelia.ops.registry import operator
from mycelia.ops.shape import broadcast_to, reshaped
from mycelia.tensor import Tensor


def _vectors(values: tuple[Any, ...], where: str) -> tuple[Tensor, ...]:
    names = [f"inputs[{i}]" for i in range(len(values))]
    if not values:
        raise ArgumentValueError(where, "inputs", got="nothing", takes="at least one vector")
    made = same_dtype(where, *values, names=names)
    for x, name in zip(made, names, strict=True):
        if x.ndim != 1:
            raise ShapeError(where, name, got=f"shape {x.shape}", takes="one axis")
    return made


@operator()
def cartesian_prod(*inputs: Any) -> Tensor:
    """All ways to take one element of each vector, one way in each row, the last vector running fastest.

    Args:
        inputs: vectors.

    Returns:
        A tensor of shape (product of the lengths, number of vectors).

    Raises:
        ShapeError: an input that is not a vector.

    >>> import mycelia as ms
    >>> print(ms.ops.cartesian_prod(ms.Tensor([1, 2]), ms.Tensor([5, 6])))
    [[1 5]
     [1 6]
     [2 5]
     [2 6]]
    """
    vectors = _vectors(inputs, "cartesian_prod")
    lengths = tuple([v.shape[0] for v in vectors])
    columns = []
    for i, v in enumerate(vectors):
        shape = tuple([d if i == k else 1 for k, d in enumerate(lengths)])
        columns.append(reshaped(broadcast_to(reshaped(v, shape), lengths), (int(np.prod(lengths)),)))
    return stack(columns, 1)  # type: ignore[no-any-return]


@operator()
def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ways to take ``r`` elements of a vector in their order, one way in each row.

    Args:
        input: a vector.
        r: how many, at least 0.
        with_replacement: whether an element may be taken again.

    Returns:
        A tensor of shape (number of ways, r).

    Raises:
        ShapeError: ``input`` is not a vector.
        ArgumentValueError: ``r`` is negative.

    >>> import mycelia as ms
    >>> print(ms.ops.combinations(ms.Tensor([1, 2, 3])))
    [[1 2]
     [1 3]
     [2 3]]
    """
    x = as_tensor(input, "combinations")
    count = as_int(r, "combinations", "r")
    if x.ndim != 1:
        raise ShapeError("combinations", "input", got=f"shape {x.shape}", takes="one axis")
    if count < 0:
        raise ArgumentValueError("combinations", "r", got=str(count), takes="an int of at least 0")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    ways = list(choose(range(x.shape[0]), count))
    return taken(x, np.array(ways, np.int64).reshape(len(ways), count), 0)
