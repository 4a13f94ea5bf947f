"""Axes of length 1 added and removed, and questions about the shape.

All of it is ``reshape`` and Python arithmetic on shapes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, OutOfRangeError
from mycelia.ops.keywords import as_keyword, renaming
from mycelia.ops.operands import as_axes, as_int, as_tensor, varargs
from mycelia.ops.outputs import one
from mycelia.ops.registry import attach, operator
from mycelia.ops.shape import reshape, reshape_p
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant


def _insert_axis(x: Tensor, axis: Any, where: str, argument: str) -> Tensor:
    value = as_int(axis, where, argument)
    rank = x.ndim + 1
    if not -rank <= value < rank:
        raise OutOfRangeError(where, argument, got=str(value), takes=f"an axis from {-rank} to {rank - 1}")
    value %= rank
    return one(reshape_p, x, shape=(*x.shape[:value], 1, *x.shape[value:]))


@operator(methods=True)
def expand_dims(input_x: Any, axis: int) -> Tensor:
    """Insert an axis of length 1.

    Args:
        input_x: a tensor.
        axis: where it stands in the result.

    Raises:
        OutOfRangeError: there is no such place.

    >>> import mycelia as ms
    >>> ms.ops.expand_dims(ms.Tensor([1, 2]), 0).shape
    (1, 2)
    """
    return _insert_axis(as_tensor(input_x, "expand_dims", "input_x"), axis, "expand_dims", "axis")


@operator(methods=True)
def unsqueeze(input: Any, dim: int) -> Tensor:
    """Insert an axis of length 1; like :func:`expand_dims`.

    >>> import mycelia as ms
    >>> ms.ops.unsqueeze(ms.Tensor([1, 2]), -1).shape
    (2, 1)
    """
    return _insert_axis(as_tensor(input, "unsqueeze"), dim, "unsqueeze", "dim")


def _squeeze(input: Any, axis: Any = None) -> Tensor:
    """Remove axes of length 1.

    Args:
        input: a tensor.
        axis: the axis or axes to remove, all those of length 1 by default; also called ``dim``. An axis of
            another length stays.

    Raises:
        OutOfRangeError: there is no such axis.

    >>> import mycelia as ms
    >>> ms.ops.squeeze(ms.ops.ones((1, 2, 1))).shape
    (2,)
    """
    x = as_tensor(input, "squeeze")
    axes = tuple(range(x.ndim)) if axis is None else as_axes(axis, x.ndim, "squeeze") if axis != () else ()
    return reshape(x, tuple([d for i, d in enumerate(x.shape) if d != 1 or i not in axes]))


_squeeze.__name__ = _squeeze.__qualname__ = "squeeze"
squeeze = operator()(renaming(_squeeze, dim="axis"))


def _squeeze_method(self: Tensor, *axis: Any) -> Tensor:
    """Remove axes of length 1: all, or those given as ints or one tuple."""
    return _squeeze(self, varargs(axis) if axis else None)


attach("squeeze", renaming(as_keyword(_squeeze_method, "axis"), dim="axis"))


def _at_least(inputs: Any, rank: int) -> Any:
    where = f"atleast_{rank}d"
    if isinstance(inputs, (tuple, list)) and any(isinstance(x, Tensor) for x in inputs):
        return tuple([_at_least(x, rank) for x in inputs])
    x = as_tensor(inputs, where, "inputs")
    if x.ndim >= rank:
        return x
    if rank == 3 and x.ndim:
        return reshape(x, (1, *x.shape, 1) if x.ndim == 1 else (*x.shape, 1))
    return reshape(x, (1,) * (rank - x.ndim) + x.shape)


@operator()
def atleast_1d(inputs: Any) -> Any:
    """A tensor, or each of a list, with at least one axis.

    >>> import mycelia as ms
    >>> ms.ops.atleast_1d(ms.Tensor(2.0)).shape
    (1,)
    """
    return _at_least(inputs, 1)


@operator()
def atleast_2d(inputs: Any) -> Any:
    """A tensor, or each of a list, with at least two axes; new axes come first.

    >>> import mycelia as ms
    >>> ms.ops.atleast_2d(ms.Tensor([1, 2])).shape
    (1, 2)
    """
    return _at_least(inputs, 2)


@operator()
def atleast_3d(inputs: Any) -> Any:
    """A tensor, or each of a list, with at least three axes: (N,) gives (1, N, 1), (M, N) gives (M, N, 1).

    >>> import mycelia as ms
    >>> ms.ops.atleast_3d(ms.Tensor([1, 2])).shape
    (1, 2, 1)
    """
    return _at_least(inputs, 3)


# asking for the shape


def _known(x: Any, where: str) -> Tensor:
    if not isinstance(x, Tensor):
        raise ArgumentTypeError(where, "input_x", got=type(x).__name__, takes="a Tensor")
    return x


@operator()
def shape(input_x: Tensor) -> tuple[int, ...]:
    """The lengths of the axes.

    >>> import mycelia as ms
    >>> ms.ops.shape(ms.ops.ones((2, 3)))
    (2, 3)
    """
    return _known(input_x, "shape").shape


@operator()
def dyn_shape(input_x: Tensor) -> Tensor:
    """The lengths of the axes as an int64 tensor.

    >>> import mycelia as ms
    >>> print(ms.ops.dyn_shape(ms.ops.ones((2, 3))))
    [2 3]
    """
    return constant(np.array(_known(input_x, "dyn_shape").shape, dt.int64.np))


@operator()
def size(input_x: Tensor) -> int:
    """The number of elements.

    >>> import mycelia as ms
    >>> ms.ops.size(ms.ops.ones((2, 3)))
    6
    """
    return _known(input_x, "size").size


@operator(methods=("numel", "nelement"))
def numel(input: Tensor) -> int:
    """The number of elements.

    >>> import mycelia as ms
    >>> ms.ops.numel(ms.ops.ones((2, 3)))
    6
    """
    return _known(input, "numel").size


@operator()
def rank(input_x: Tensor) -> int:
    """The number of axes.

    >>> import mycelia as ms
    >>> ms.ops.rank(ms.ops.ones((2, 3)))
    2
    """
    return _known(input_x, "rank").ndim


def _rank_method(self: Tensor) -> int:
    """The number of axes."""
    return self.ndim


attach("dim", _rank_method)
attach("ndimension", _rank_method)
