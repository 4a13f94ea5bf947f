"""Operators whose result has as many elements as the data say: nonzero, masked_select, unique.

They run at once only. While a graph is staged the values are not there and neither is the shape, so they
are refused with an error that says what to write instead; only on constants of the graph do they work.
``unique_with_pad`` has a fixed shape and works everywhere.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import DTypeError, GraphError
from mycelia.ir.graph import Value
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.operands import as_axis, as_tensor, broadcast_shapes, cast, same_dtype
from mycelia.ops.registry import OPERATORS, attach, operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant
from mycelia.tensor.mode import current_builder, is_staging


def _host(x: Tensor, where: str, argument: str) -> np.ndarray[Any, Any]:
    """The values of a tensor that decide a shape; a located error if a graph is being built and they are not known."""
    if not is_staging():
        return np.asarray(x._concrete(where))
    value = x._value
    known = current_builder().known(value) if type(value) is Value else None
    if known is None:
        raise GraphError(
            where,
            message=f"the shape of the result depends on the values of '{argument}', known only when the graph runs",
            hint="use ops.where or a mask and keep the shape, or run this function in PYNATIVE_MODE",
        )  # fmt: skip
    return known


@operator(methods=True)
def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not zero, in row-major order.

    Args:
        input: a tensor of any shape.
        as_tuple: give one index tensor for each axis, as indexing takes them.

    Returns:
        An int64 tensor of shape (number of elements found, number of axes), or a tuple of int64 vectors.

    Raises:
        GraphError: inside a graph, whose shapes cannot depend on values.

    >>> import mycelia as ms
    >>> print(ms.ops.nonzero(ms.Tensor([[1, 0], [0, 3]])))
    [[0 0]
     [1 1]]
    """
    array = _host(as_tensor(input, "nonzero"), "nonzero", "input")
    if as_tuple:
        return tuple([constant(i) for i in np.nonzero(np.atleast_1d(array))])
    return constant(np.ascontiguousarray(np.argwhere(array)))


@operator(methods=True)
def argwhere(input: Any) -> Tensor:
    """The indices of the elements that are not zero, one in each row (see :func:`nonzero`).

    >>> import mycelia as ms
    >>> print(ms.ops.argwhere(ms.Tensor([0, 7, 8])))
    [[1]
     [2]]
    """
    return constant(np.ascontiguousarray(np.argwhere(_host(as_tensor(input, "argwhere"), "argwhere", "input"))))


@operator(methods=True)
def masked_select(input: Any, mask: Any) -> Tensor:
    """The elements where ``mask`` is True, as a vector in row-major order.

    Args:
        input: a tensor.
        mask: a bool tensor that broadcasts with it.

    Raises:
        DTypeError: the mask is not of bools.
        ShapeError: the shapes do not broadcast.
        GraphError: inside a graph, whose shapes cannot depend on values.

    >>> import mycelia as ms
    >>> print(ms.ops.masked_select(ms.Tensor([1, 2, 3]), ms.Tensor([True, False, True])))
    [1 3]
    """
    x, m = as_tensor(input, "masked_select"), as_tensor(mask, "masked_select", "mask")
    if m.dtype is not dt.bool_:
        raise DTypeError("masked_select", "mask", got=f"dtype {m.dtype}", takes="Bool")
    shape = broadcast_shapes("masked_select", (x.shape, m.shape), ("input", "mask"))
    chosen = np.broadcast_to(_host(m, "masked_select", "mask"), shape)
    if x._node is None and not is_staging():
        return constant(np.broadcast_to(np.asarray(x._concrete("masked_select")), shape)[chosen])
    from mycelia.ops.shape import broadcast_to, reshape

    flat = reshape(broadcast_to(x, shape), (-1,)) if chosen.size else reshape(broadcast_to(x, shape), (0,))
    return OPERATORS["gather"](flat, constant(np.flatnonzero(chosen)), 0)  # type: ignore[no-any-return]


def _in_order_of_appearance(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    values, first, inverse = np.unique(array.reshape(-1), return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return values[order], rank[inverse].reshape(array.shape)


@operator()
def unique(input: Any) -> tuple[Tensor, Tensor]:
    """The different elements in the order in which they first appear, and where each element is among them.

    Args:
        input: a tensor of any shape.

    Returns:
        A vector of the different elements, and an int64 tensor of the shape of ``input`` with their places in it.

    Raises:
        GraphError: inside a graph, whose shapes cannot depend on values.

    >>> import mycelia as ms
    >>> y, index = ms.ops.unique(ms.Tensor([3, 1, 3]))
    >>> print(y, index)
    [3 1] [0 1 0]
    """
    values, index = _in_order_of_appearance(_host(as_tensor(input, "unique"), "unique", "input"))
    return constant(values), constant(index.astype(np.int64))


@operator()
def unique_ext(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The different elements, or the different slices along an axis.

    Args:
        input: a tensor.
        sorted: in ascending order; False keeps the order in which they first appear.
        return_inverse: also give the place of each element among the different ones.
        return_counts: also give how often each occurs.
        dim: compare slices along this axis; None compares single elements.

    Returns:
        The different elements; a tuple with inverse and counts (both int64) if asked for.

    Raises:
        GraphError: inside a graph, whose shapes cannot depend on values.

    >>> import mycelia as ms
    >>> print(ms.ops.unique_ext(ms.Tensor([3, 1, 3])))
    [1 3]
    """
    x = as_tensor(input, "unique")
    array = _host(x, "unique", "input")
    axis = None if dim is None else as_axis(dim, x.ndim, "unique", "dim")
    values, first, inverse, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    if not sorted:
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        values = values[order] if axis is None else np.take(values, order, axis)
        inverse, counts = rank[inverse], counts[order]
    inverse = inverse.reshape(array.shape if axis is None else -1)
    return _chosen(values, (return_inverse, inverse), (return_counts, counts))


def _chosen(values: np.ndarray[Any, Any], *extras: tuple[bool, np.ndarray[Any, Any]]) -> Any:
    made = [constant(np.ascontiguousarray(values))]
    made += [constant(np.ascontiguousarray(array).astype(np.int64)) for wanted, array in extras if wanted]
    return made[0] if len(made) == 1 else tuple(made)


@operator(methods=True)
def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or slices along an axis) that differ from the one before.

    Args:
        input: a tensor.
        return_inverse: also give the run that each element belongs to.
        return_counts: also give the length of each run.
        dim: compare slices along this axis; None compares the flattened elements.

    Raises:
        GraphError: inside a graph, whose shapes cannot depend on values.

    >>> import mycelia as ms
    >>> print(ms.ops.unique_consecutive(ms.Tensor([1, 1, 2, 1])))
    [1 2 1]
    """
    x = as_tensor(input, "unique_consecutive")
    array = _host(x, "unique_consecutive", "input")
    axis = None if dim is None else as_axis(dim, x.ndim, "unique_consecutive", "dim")
    rows = array.reshape(-1, 1) if axis is None else np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    starts = np.ones(len(rows), bool)
    starts[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    values = array.reshape(-1)[starts] if axis is None else np.compress(starts, array, axis)
    inverse = np.cumsum(starts) - 1
    counts = np.diff(np.append(np.flatnonzero(starts), len(rows)))
    inverse = inverse.reshape(array.shape) if axis is None else inverse
    return _chosen(values, (return_inverse, inverse), (return_counts, counts))


def _infer_unique(x: TensorType, pad: TensorType) -> tuple[TensorType, TensorType]:
    check_dtypes("unique_with_pad", (x, pad), dt.REALS, ("x", "pad_num"))
    return TensorType(x.dtype, (x.size,)), TensorType(dt.int64, x.shape)


def _lower_unique(x: Any, pad: Any) -> tuple[Any, Any]:
    n = x.size
    if n == 0:
        return x.reshape(0), jnp.zeros(x.shape, np.int64)
    values, first, inverse, counts = jnp.unique(
        x.reshape(-1), return_index=True, return_inverse=True, return_counts=True, size=n
    )
    order = jnp.argsort(jnp.where(counts > 0, first, n))
    rank = jnp.zeros(n, np.int64).at[order].set(jnp.arange(n))
    found = jnp.sum(counts > 0)
    return jnp.where(jnp.arange(n) < found, values[order], pad), rank[inverse.reshape(-1)].reshape(x.shape)


unique_with_pad_p = Primitive(
    "unique_with_pad", infer=_infer_unique, lower=_lower_unique, multi=True, differentiable=False,
    samples=lambda: [
        Sample((np.array([3, 1, 3, 2]), np.array(0))), Sample((np.array([[2.5, 1.0], [2.5, 2.5]]), np.array(-1.0))),
        Sample((np.zeros(0), np.array(1.0))), Bad((np.array([1.0]), np.array(1)), {}, DTypeError, "Int64"),
    ],
)  # fmt: skip


@operator(methods=True)
def unique_with_pad(x: Any, pad_num: Any) -> tuple[Tensor, Tensor]:
    """The different elements in the order in which they first appear, filled up to the size of ``x``.

    Args:
        x: a real tensor of any shape.
        pad_num: what the rest is filled with, a number.

    Returns:
        A vector with as many elements as ``x``, and an int64 tensor of its shape with the place of each element.

    >>> import mycelia as ms
    >>> y, index = ms.ops.unique_with_pad(ms.Tensor([1, 1, 2]), 0)
    >>> print(y, index)
    [1 2 0] [0 0 1]
    """
    t = as_tensor(x, "unique_with_pad", "x")
    pad = cast(same_dtype("unique_with_pad", t, pad_num, names=("x", "pad_num"))[1], t.dtype)
    return apply(unique_with_pad_p, t, pad)  # type: ignore[no-any-return]


attach("unique", unique_ext)
