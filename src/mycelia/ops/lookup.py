"""Tables looked up by integers: ``one_hot`` and ``embedding``.

An index outside the table is refused when the operator runs at once on the CPU; elsewhere ``embedding``
gives a row of zeros and that index takes no part in the gradient.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, DTypeError, OutOfRangeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.indexing import add_at_p, as_index, check_integers, check_range, gather_elements, limit_index_p, taken
from mycelia.ops.joining import stack
from mycelia.ops.operands import as_axis, as_int, as_tensor, broadcast_shapes, cast
from mycelia.ops.outputs import one
from mycelia.ops.registry import attach, operator
from mycelia.ops.shape import broadcast_tensors, broadcast_to, filled, reshaped
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant, scalar, set_value

_TABLE = np.arange(12.0).reshape(3, 4)


def _infer_one_hot(index: TensorType, on: TensorType, off: TensorType, *, depth: int, axis: int) -> TensorType:
    check_integers("one_hot", index, "indices")
    for value, name in ((on, "on_value"), (off, "off_value")):
        if value.shape or value.dtype is not on.dtype:
            raise DTypeError("one_hot", name, got=str(value), takes=f"one number of dtype {on.dtype}")
    return TensorType(on.dtype, (*index.shape[:axis], depth, *index.shape[axis:]))


def _lower_one_hot(index: Any, on: Any, off: Any, *, depth: int, axis: int) -> Any:
    places = jnp.arange(depth, dtype=index.dtype if depth <= np.iinfo(index.dtype).max else np.int64)
    shape = [1] * (index.ndim + 1)
    shape[axis] = depth
    return jnp.where(jnp.expand_dims(index, axis) == places.reshape(shape), on, off)


def _vjp_one_hot(
    ct: Tensor, index: Tensor, on: Tensor, off: Tensor, out: Tensor, *, depth: int, axis: int
) -> list[Any]:
    from mycelia.ops.reduction import reduce_sum

    every = tuple(range(ct.ndim))

    def share(here: int) -> Any:
        mask: Any = one(one_hot_p, index, scalar(here, ct.dtype), scalar(1 - here, ct.dtype), depth=depth, axis=axis)
        return reduce_sum(ct * mask, every)

    return [None, lambda: share(1), lambda: share(0)]


one_hot_p: Primitive = Primitive(
    "one_hot", infer=_infer_one_hot, lower=_lower_one_hot, vjp=_vjp_one_hot, onnx="OneHot",
    samples=lambda: [
        Sample((np.array([0, 2, -1, 5]), np.array(2.0), np.array(-1.0)), {"depth": 3, "axis": 1}),
        Sample((np.array([[0, 1], [2, 2]]), np.array(1.0), np.array(0.0)), {"depth": 3, "axis": 0}),
        Sample((np.array(1), np.array(1.0), np.array(0.0)), {"depth": 3, "axis": 0}),
        Bad((np.array([0.5]), np.array(1.0), np.array(0.0)), {"depth": 3, "axis": 1}, TypeError, "integers"),
    ],
)  # fmt: skip


@operator()
def one_hot(indices: Any, depth: int, on_value: Any = 1, off_value: Any = 0, axis: int = -1) -> Tensor:
    """A new axis with ``on_value`` at each index and ``off_value`` elsewhere.

    Args:
        indices: integers of any shape; one outside ``[0, depth)`` gives ``off_value`` everywhere.
        depth: the length of the new axis.
        on_value: a number or zero-dimensional tensor; its dtype is that of the result (ints give int64).
        off_value: likewise, converted to that dtype.
        axis: where the new axis stands in the result; -1 is last.

    Raises:
        OutOfRangeError: there is no such place.
        ArgumentValueError: ``depth`` is negative.

    >>> import mycelia as ms
    >>> print(ms.ops.one_hot(ms.Tensor([0, 2]), 3))
    [[1 0 0]
     [0 0 1]]
    """
    index = as_index(indices, "one_hot", "indices")
    count = as_int(depth, "one_hot", "depth")
    if count < 0:
        raise ArgumentValueError("one_hot", "depth", got=str(count), takes="an int of at least 0")
    on = as_tensor(on_value, "one_hot", "on_value")
    off = cast(as_tensor(off_value, "one_hot", "off_value"), on.dtype)
    return one(
        one_hot_p,
        index,
        reshaped(on, ()),
        reshaped(off, ()),
        depth=count,
        axis=as_axis(axis, index.ndim + 1, "one_hot"),
    )


def _infer_embedding(ids: TensorType, weight: TensorType, *, padding_idx: int | None, by_frequency: bool) -> TensorType:
    check_integers("embedding", ids, "input")
    check_dtypes("embedding", (weight,), dt.FLOATS + dt.COMPLEX, ("weight",))
    if weight.rank != 2:
        raise ShapeError(
            "embedding", "weight", got=f"shape {weight.shape}", takes="two axes (number of rows, length of a row)"
        )
    return TensorType(weight.dtype, (*ids.shape, weight.shape[1]))


def _vjp_embedding(
    ct: Any, ids: Tensor, weight: Tensor, out: Tensor, *, padding_idx: int | None, by_frequency: bool
) -> list[Any]:
    from mycelia.ops.selection import where

    def gradient() -> Tensor:
        rows = weight.shape[0]
        given = ct
        if by_frequency:
            counts = one(add_at_p, filled(1, dt.float32, ids.shape), ids, length=rows, axis=0, batch_dims=0)
            given = given / cast(reshaped(taken(counts, ids, 0), (*ids.shape, 1)), ct.dtype)
        added = one(add_at_p, given, ids, length=rows, axis=0, batch_dims=0)
        if padding_idx is None:
            return added
        kept = constant((np.arange(rows) != padding_idx)[:, None])
        return where(kept, added, 0)  # type: ignore[no-any-return]

    return [None, gradient]


embedding_p: Primitive = Primitive(
    "embedding", infer=_infer_embedding, vjp=_vjp_embedding, shard="...,vd->...d", onnx="Gather",
    lower=lambda ids, weight, *, padding_idx, by_frequency: jnp.take(weight, ids, 0, mode="fill", fill_value=0),
    samples=lambda: [
        Sample((np.array([[0, 2], [1, 2]]), _TABLE), {"padding_idx": None, "by_frequency": False}),
        Sample((np.array([0, 9, -1]), _TABLE), {"padding_idx": None, "by_frequency": False}),
        Sample((np.zeros((0,), int), _TABLE), {"padding_idx": 1, "by_frequency": False}),
        Bad((np.array([0.5]), _TABLE), {"padding_idx": None, "by_frequency": False}, TypeError, "integers"),
        Bad((np.array([0]), _TABLE[0]), {"padding_idx": None, "by_frequency": False}, ShapeError, "two axes"),
    ],
)  # fmt: skip


def _shrink_rows(weight: Any, ids: Tensor, longest: float, norm_type: float) -> None:
    """Scale the rows that are looked up to a norm of at most ``longest``, in place; gradients pass it by."""
    from mycelia.ops.norms import vector_norm
    from mycelia.ops.selection import where
    from mycelia.ops.state import stop_gradient

    table = stop_gradient(weight)
    used = one(add_at_p, filled(1, dt.int32, ids.shape), ids, length=table.shape[0], axis=0, batch_dims=0)
    norms: Any = vector_norm(table, norm_type, 1, True)
    looked_up: Any = reshaped(used, (table.shape[0], 1))
    long = (norms > longest) & (looked_up > 0)
    set_value(weight, weight + where(long, table * (longest / (norms + 1e-7)) - table, 0))


@operator()
def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of a table at given indices.

    Args:
        input: integers of any shape.
        weight: the table, of shape (number of rows, length of a row).
        padding_idx: a row that gets no gradient.
        max_norm: if given, rows that are looked up are first scaled in place to at most this norm.
        norm_type: which p-norm that is.
        scale_grad_by_freq: divide the gradient of a row by how often it was looked up.

    Returns:
        A tensor of shape ``input.shape + (length of a row,)``.

    Raises:
        OutOfRangeError: an index outside the table.
        ShapeError: the table does not have two axes.

    >>> import mycelia as ms
    >>> print(ms.ops.embedding(ms.Tensor([1, 0]), ms.Tensor([[1.0, 2.0], [3.0, 4.0]])))
    [[3. 4.]
     [1. 2.]]
    """
    ids, table = as_index(input, "embedding", "input"), as_tensor(weight, "embedding", "weight")
    if table.ndim != 2:
        raise ShapeError(
            "embedding", "weight", got=f"shape {table.shape}", takes="two axes (number of rows, length of a row)"
        )
    rows = table.shape[0]
    check_range(ids, rows, "embedding", "input")
    if padding_idx is not None:
        padding_idx = as_int(padding_idx, "embedding", "padding_idx")
        if not -rows <= padding_idx < rows:
            raise OutOfRangeError(
                "embedding", "padding_idx", got=str(padding_idx), takes=f"a row from {-rows} to {rows - 1}"
            )
        padding_idx %= rows
    if max_norm is not None:
        _shrink_rows(table, ids, float(max_norm), norm_type)
    return one(embedding_p, ids, table, padding_idx=padding_idx, by_frequency=bool(scale_grad_by_freq))


def _choose(self: Tensor, choices: Any, mode: str = "clip") -> Tensor:
    """For each index the element at its place in the choice of that number; all broadcast together.

    Indices outside are clipped (``mode="clip"``), taken modulo their number (``"wrap"``) or refused (``"raise"``).
    """
    if isinstance(choices, Tensor):
        table: Tensor = choices
    else:
        table = stack(
            broadcast_tensors(*[as_tensor(c, "Tensor.choose", f"choices[{i}]") for i, c in enumerate(choices)])
        )
    index = as_index(self, "Tensor.choose", "self")
    if mode not in ("clip", "wrap", "raise"):
        raise ArgumentValueError("Tensor.choose", "mode", got=repr(mode), takes='"clip", "wrap" or "raise"')
    if mode == "raise":
        check_range(index, table.shape[0], "Tensor.choose", "self")
    else:
        index = one(limit_index_p, index, length=table.shape[0], mode=mode)
    shape = broadcast_shapes("Tensor.choose", (index.shape, table.shape[1:]), ("self", "choices"))
    table = broadcast_to(
        reshaped(table, (table.shape[0], *(1,) * (len(shape) - table.ndim + 1), *table.shape[1:])),
        (table.shape[0], *shape),
    )
    return reshaped(gather_elements(table, 0, reshaped(broadcast_to(index, shape), (1, *shape))), shape)


attach("choose", _choose)
