"""Collectives that return their results: the functions of ``communication.comm_func``."""

from __future__ import annotations

from typing import Any

from mycelia.ops import collectives
from mycelia.ops.communicating import values
from mycelia.ops.communicating.groups import HCCL_WORLD_COMM_GROUP, ReduceOp, members, place_of
from mycelia.ops.communicating.values import CommHandle
from mycelia.ops.creation import zeros
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant

Handled = tuple[Tensor, CommHandle | None]


def all_reduce(
    tensor: Tensor, op: str = ReduceOp.SUM, group: str | None = HCCL_WORLD_COMM_GROUP, async_op: bool = False
) -> Handled:
    """The ranks' tensors put together, element by element, at each of them.

    Args:
        tensor: of the same shape and dtype at all ranks.
        op: ``"sum"``, ``"prod"``, ``"max"``, ``"min"`` or ``"avg"``.
        group: the ranks that take part.
        async_op: whether to return a handle as well.

    Returns:
        The result, of the shape and dtype of ``tensor``; and the handle or None.

    >>> import mycelia as ms
    >>> from mycelia.communication import comm_func, init, release
    >>> init()
    >>> print(comm_func.all_reduce(ms.Tensor([1.0, 2.0]))[0])
    [1. 2.]
    >>> release()
    """
    where = "all_reduce"
    x = values.tensor(where, "tensor", tensor)
    kind = values.reduction(where, op, x.dtype)
    wants = values.flag(where, async_op)
    out = values.reduced(x, kind, members(where, group))
    return out, values.done([out], wants)


def all_gather_into_tensor(
    tensor: Tensor, group: str | None = HCCL_WORLD_COMM_GROUP, async_op: bool = False
) -> Handled:
    """The ranks' tensors of shape ``(x1, ...)``, behind each other: of shape ``(N * x1, ...)``.

    >>> import mycelia as ms
    >>> from mycelia.communication import comm_func, init, release
    >>> init()
    >>> print(comm_func.all_gather_into_tensor(ms.Tensor([1.0, 2.0]))[0])
    [1. 2.]
    >>> release()
    """
    where = "all_gather_into_tensor"
    x = values.tensor(where, "tensor", tensor)
    wants = values.flag(where, async_op)
    out = values.gathered(x, members(where, group))
    return out, values.done([out], wants)


def reduce_scatter_tensor(
    tensor: Tensor, op: str = ReduceOp.SUM, group: str | None = HCCL_WORLD_COMM_GROUP, async_op: bool = False
) -> Handled:
    """The part of the ranks' tensors, put together, that belongs to this rank: ``(N * y, ...)`` becomes ``(y, ...)``.

    Raises:
        ShapeError: the ranks cannot share the first axis evenly.

    >>> import mycelia as ms
    >>> from mycelia.communication import comm_func, init, release
    >>> init()
    >>> print(comm_func.reduce_scatter_tensor(ms.Tensor([1.0, 2.0]))[0])
    [1. 2.]
    >>> release()
    """
    where = "reduce_scatter_tensor"
    x = values.tensor(where, "tensor", tensor)
    kind = values.reduction(where, op, x.dtype)
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    values.evenly(where, "tensor", x.shape, len(ranks))
    out = values.reduced_parts(x, kind, ranks)
    return out, values.done([out], wants)


def reduce(tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: str | None = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """The ranks' tensors put together at rank ``dst``; the others get a tensor of shape ``(1,)`` that says nothing.

    >>> import mycelia as ms
    >>> from mycelia.communication import comm_func, init, release
    >>> init()
    >>> print(comm_func.reduce(ms.Tensor([1.0, 2.0]), 0))
    [1. 2.]
    >>> release()
    """
    where = "reduce"
    x = values.tensor(where, "tensor", tensor)
    kind = values.reduction(where, op, x.dtype)
    ranks = members(where, group)
    return reduce_to_place(x, place_of(where, "dst", dst, ranks), kind, ranks)


def reduce_to_place(x: Tensor, root: int, op: str, ranks: tuple[int, ...]) -> Tensor:
    """:func:`reduce` to the rank at place ``root``."""
    out = values.reduced_at(x, op, root, ranks)
    return out if collectives.is_me(ranks[root]) else zeros((1,), x.dtype)


def scatter_tensor(tensor: Tensor, src: int = 0, group: str | None = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """This rank's part of the tensor that rank ``src`` has: ``(N * y, ...)`` becomes ``(y, ...)``.

    All ranks give a tensor of one shape; only the values of ``src`` count.

    >>> import mycelia as ms
    >>> from mycelia.communication import comm_func, init, release
    >>> init()
    >>> print(comm_func.scatter_tensor(ms.Tensor([1.0, 2.0])))
    [1. 2.]
    >>> release()
    """
    where = "scatter_tensor"
    x = values.tensor(where, "tensor", tensor)
    ranks = members(where, group)
    return scatter_from_place(where, x, place_of(where, "src", src, ranks), ranks)


def scatter_from_place(where: str, x: Tensor, root: int, ranks: tuple[int, ...]) -> Tensor:
    """:func:`scatter_tensor` from the rank at place ``root``."""
    rows = values.evenly(where, "tensor", x.shape, len(ranks))[0]
    return values.scattered(x, (rows, *x.shape[1:]), root, ranks)


def gather_into_tensor(tensor: Tensor, dst: int = 0, group: str | None = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """The ranks' tensors behind each other at rank ``dst``; the others get a tensor of shape ``(1,)`` of zero.

    >>> import mycelia as ms
    >>> from mycelia.communication import comm_func, init, release
    >>> init()
    >>> print(comm_func.gather_into_tensor(ms.Tensor([1.0, 2.0])))
    [1. 2.]
    >>> release()
    """
    where = "gather_into_tensor"
    x = values.tensor(where, "tensor", tensor)
    ranks = members(where, group)
    return gather_to_place(x, place_of(where, "dst", dst, ranks), ranks)


def gather_to_place(x: Tensor, root: int, ranks: tuple[int, ...]) -> Tensor:
    """:func:`gather_into_tensor` to the rank at place ``root``."""
    out = values.gathered_at(x if x.ndim else reshape(x, (1,)), root, ranks)
    return zeros((1,), x.dtype) if out is None else out


def broadcast(tensor: Tensor, src: int = 0, group: str | None = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """The tensor of rank ``src`` at each rank; all give one of the same shape and dtype.

    >>> import mycelia as ms
    >>> from mycelia.communication import comm_func, init, release
    >>> init()
    >>> print(comm_func.broadcast(ms.Tensor([1.0, 2.0])))
    [1. 2.]
    >>> release()
    """
    where = "broadcast"
    x = values.tensor(where, "tensor", tensor)
    ranks = members(where, group)
    return collectives.broadcast(x, place_of(where, "src", src, ranks), ranks)


def barrier(group: str | None = HCCL_WORLD_COMM_GROUP) -> None:
    """Return when all ranks of the group have called it.

    >>> from mycelia.communication import comm_func, init, release
    >>> init()
    >>> comm_func.barrier()
    >>> release()
    """
    meeting(members("barrier", group)).wait()


def meeting(ranks: tuple[int, ...]) -> CommHandle:
    """The handle of a meeting of some ranks."""
    import numpy as np

    return CommHandle([collectives.all_reduce(constant(np.zeros((), np.int32)), "sum", ranks)])


def _shape(where: str, argument: str, given: Any) -> tuple[int, ...]:
    from mycelia.ops.operands import as_shape

    return given.shape if isinstance(given, Tensor) else as_shape(given, where, argument)


def all_to_all_with_output_shape(
    output_shape_list: Any, input_tensor_list: Any, group: str | None = None, async_op: bool = False
) -> tuple[tuple[Tensor, ...], CommHandle | None]:
    """A tensor for each rank, and what came from each; any shapes.

    Args:
        output_shape_list: the shapes of what comes, one for each rank, or tensors of these shapes.
        input_tensor_list: what is sent, one tensor for each rank, of one dtype.
        group: the ranks that take part.
        async_op: whether to return a handle as well.

    >>> import mycelia as ms
    >>> from mycelia.communication import comm_func, init, release
    >>> init()
    >>> print(comm_func.all_to_all_with_output_shape([(2,)], [ms.Tensor([1.0, 2.0])])[0][0])
    [1. 2.]
    >>> release()
    """
    where = "all_to_all_with_output_shape"
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    sent = values.tensors(where, "input_tensor_list", input_tensor_list, len(ranks))
    shapes = [_shape(where, f"output_shape_list[{i}]", s) for i, s in enumerate(output_shape_list)]
    out = tuple(all_to_all_of_shapes(where, shapes, sent, ranks))
    return out, values.done(out, wants)


def all_to_all_of_shapes(
    where: str, shapes: list[tuple[int, ...]], sent: list[Tensor], ranks: tuple[int, ...]
) -> list[Tensor]:
    """What came from each rank, of some shapes."""
    recv = values.sizes(where, "output_shape_list", [values.count(s) for s in shapes], len(ranks))
    x, send = values.flat(sent)
    return values.pieces(values.exchanged(x, send, recv, ranks), shapes, x.dtype)


def all_to_all_single_with_output_shape(
    output_shape: Any, tensor: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None,
    group: str | None = None, async_op: bool = False,
) -> Handled:  # fmt: skip
    """Parts of the first axis for each rank, and what came from each, behind each other.

    Args:
        output_shape: the shape of the result, or a tensor of it.
        tensor: what is sent.
        output_split_sizes: how many rows come from each rank; None: equally many.
        input_split_sizes: how many rows go to each rank; None: equally many.
        group: the ranks that take part.
        async_op: whether to return a handle as well.

    >>> import mycelia as ms
    >>> from mycelia.communication import comm_func, init, release
    >>> init()
    >>> print(comm_func.all_to_all_single_with_output_shape((2,), ms.Tensor([1.0, 2.0]))[0])
    [1. 2.]
    >>> release()
    """
    where = "all_to_all_single_with_output_shape"
    x = values.tensor(where, "tensor", tensor)
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    shape = _shape(where, "output_shape", output_shape)
    out = all_to_all_of_rows(where, x, shape, output_split_sizes, input_split_sizes, ranks)
    return out, values.done([out], wants)


def all_to_all_of_rows(
    where: str, x: Tensor, shape: tuple[int, ...], output_split_sizes: Any, input_split_sizes: Any,
    ranks: tuple[int, ...], names: tuple[str, str] = ("tensor", "output_shape"),
) -> Tensor:  # fmt: skip
    """Rows for each rank, and the rows that came."""
    n = len(ranks)
    send = (
        values.sizes(where, "input_split_sizes", input_split_sizes, n)
        if input_split_sizes
        else values.evenly(where, names[0], x.shape, n)
    )
    recv = (
        values.sizes(where, "output_split_sizes", output_split_sizes, n)
        if output_split_sizes
        else values.evenly(where, names[1], shape, n)
    )
    values.rows(where, names[0], x, sum(send))
    if shape != (sum(recv), *x.shape[1:]):
        values.wrong_shape(where, names[1], shape, (sum(recv), *x.shape[1:]))
    out = values.exchanged(x, send, recv, ranks)
    return zeros(shape, x.dtype) if out is None else out
