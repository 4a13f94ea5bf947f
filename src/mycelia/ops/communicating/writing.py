"""Collectives that write their results into tensors they are given: the functions of ``mint.distributed``.

Each returns a handle if ``async_op`` asks for one, else None. ``group`` None means all ranks. Ranks that are named
(``src``, ``dst``) are numbers in the world, not in the group.
"""

from __future__ import annotations

from typing import Any

from mycelia.core import cluster
from mycelia.ops import collectives
from mycelia.ops.communicating import returning, values
from mycelia.ops.communicating.groups import ReduceOp, members, place_of
from mycelia.ops.communicating.values import CommHandle
from mycelia.ops.joining import stack
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor

Handle = CommHandle | None


def _place(ranks: tuple[int, ...]) -> int:
    return ranks.index(cluster.place().rank)


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False) -> Handle:
    """Overwrite each rank's tensor with all of them put together.

    Args:
        tensor: of the same shape and dtype at all ranks.
        op: ``"sum"``, ``"prod"``, ``"max"``, ``"min"`` or ``"avg"``.
        group: the ranks that take part.
        async_op: whether to return a handle.

    >>> import mycelia as ms
    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> x = ms.Tensor([1.0, 2.0])
    >>> dist.all_reduce(x)
    >>> print(x)
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    x = values.tensor("all_reduce", "tensor", tensor)
    kind = values.reduction("all_reduce", op, x.dtype)
    wants = values.flag("all_reduce", async_op)
    values.write(x, values.reduced(x, kind, members("all_reduce", group)))
    return values.done([x], wants)


def reduce(
    tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False
) -> Handle:
    """Overwrite the tensor of rank ``dst`` with all of them put together; the others keep theirs.

    >>> import mycelia as ms
    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> x = ms.Tensor([1.0, 2.0])
    >>> dist.reduce(x, 0)
    >>> print(x)
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    x = values.tensor("reduce", "tensor", tensor)
    kind = values.reduction("reduce", op, x.dtype)
    wants = values.flag("reduce", async_op)
    ranks = members("reduce", group)
    root = place_of("reduce", "dst", dst, ranks)
    out = values.reduced_at(x, kind, root, ranks)
    if collectives.is_me(ranks[root]):
        values.write(x, out)
    return values.done([x], wants)


def broadcast(tensor: Tensor, src: int, group: str | None = None, async_op: bool = False) -> Handle:
    """Overwrite each rank's tensor with that of rank ``src``.

    >>> import mycelia as ms
    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> x = ms.Tensor([1.0, 2.0])
    >>> dist.broadcast(x, 0)
    >>> print(x)
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    x = values.tensor("broadcast", "tensor", tensor)
    wants = values.flag("broadcast", async_op)
    ranks = members("broadcast", group)
    values.write(x, collectives.broadcast(x, place_of("broadcast", "src", src, ranks), ranks))
    return values.done([x], wants)


def barrier(group: str | None = None, async_op: bool = False, device_ids: Any = None) -> Handle:
    """Return when all ranks of the group have called it; with ``async_op``, the handle's ``wait`` does.

    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> dist.barrier()
    >>> dist.destroy_process_group()
    """
    wants = values.flag("barrier", async_op)
    handle = returning.meeting(members("barrier", group))
    if wants:
        return handle
    handle.wait()
    return None


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: str | None = None, async_op: bool = False
) -> Handle:
    """Write the ranks' tensors of shape ``(x1, ...)`` behind each other into one of shape ``(N * x1, ...)``.

    >>> import mycelia as ms
    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> out = ms.ops.zeros(2)
    >>> dist.all_gather_into_tensor(out, ms.Tensor([1.0, 2.0]))
    >>> print(out)
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    where = "all_gather_into_tensor"
    x = values.tensor(where, "input_tensor", input_tensor)
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    rows = x.shape[0] if x.ndim else 1
    out = values.fits(where, "output_tensor", output_tensor, (rows * len(ranks), *x.shape[1:]), x.dtype)
    values.write(out, values.gathered(x, ranks))
    return values.done([out], wants)


def all_gather_into_tensor_uneven(
    output: Tensor, input: Tensor, output_split_sizes: Any = None, group: str | None = None, async_op: bool = False
) -> Handle:
    """Write the ranks' tensors, whose first axes differ in length, behind each other into one.

    Args:
        output: of as many rows as all of them have.
        input: this rank's tensor.
        output_split_sizes: how many rows each rank has; None: equally many.
        group: the ranks that take part.
        async_op: whether to return a handle.

    >>> import mycelia as ms
    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> out = ms.ops.zeros(2)
    >>> dist.all_gather_into_tensor_uneven(out, ms.Tensor([1.0, 2.0]), [2])
    >>> print(out)
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    where = "all_gather_into_tensor_uneven"
    x = values.tensor(where, "input", input)
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    out = values.tensor(where, "output", output)
    lengths = (
        values.sizes(where, "output_split_sizes", output_split_sizes, len(ranks))
        if output_split_sizes
        else values.evenly(where, "output", out.shape, len(ranks))
    )
    values.rows(where, "input", x, lengths[_place(ranks)])
    values.fits(where, "output", out, (sum(lengths), *x.shape[1:]), x.dtype)
    values.write(out, values.gathered_uneven(x, lengths, ranks))
    return values.done([out], wants)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False
) -> Handle:
    """Write this rank's part of the ranks' tensors, put together, into ``output``.

    >>> import mycelia as ms
    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> out = ms.ops.zeros(2)
    >>> dist.reduce_scatter_tensor(out, ms.Tensor([1.0, 2.0]))
    >>> print(out)
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    where = "reduce_scatter_tensor"
    x = values.tensor(where, "input", input)
    kind = values.reduction(where, op, x.dtype)
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    rows = values.evenly(where, "input", x.shape, len(ranks))[0]
    out = values.fits(where, "output", output, (rows, *x.shape[1:]), x.dtype)
    values.write(out, values.reduced_parts(x, kind, ranks))
    return values.done([out], wants)


def reduce_scatter_tensor_uneven(
    output: Tensor, input: Tensor, input_split_sizes: Any = None, op: str = ReduceOp.SUM, group: str | None = None,
    async_op: bool = False,
) -> Handle:  # fmt: skip
    """:func:`reduce_scatter_tensor` with parts of different lengths.

    Args:
        output: this rank's part.
        input: all parts behind each other, of the same shape at all ranks.
        input_split_sizes: how many rows each rank's part has; None: equally many.
        op: ``"sum"``, ``"prod"``, ``"max"``, ``"min"`` or ``"avg"``.
        group: the ranks that take part.
        async_op: whether to return a handle.

    >>> import mycelia as ms
    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> out = ms.ops.zeros(2)
    >>> dist.reduce_scatter_tensor_uneven(out, ms.Tensor([1.0, 2.0]), [2])
    >>> print(out)
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    where = "reduce_scatter_tensor_uneven"
    x = values.tensor(where, "input", input)
    kind = values.reduction(where, op, x.dtype)
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    lengths = (
        values.sizes(where, "input_split_sizes", input_split_sizes, len(ranks))
        if input_split_sizes
        else values.evenly(where, "input", x.shape, len(ranks))
    )
    values.rows(where, "input", x, sum(lengths))
    out = values.fits(where, "output", output, (lengths[_place(ranks)], *x.shape[1:]), x.dtype)
    values.write(out, values.reduced_parts_uneven(x, lengths, kind, ranks))
    return values.done([out], wants)


def scatter_tensor(
    output_tensor: Tensor, input_tensor: Tensor, src: int = 0, group: str | None = None, async_op: bool = False
) -> Handle:
    """Write this rank's part of the tensor that rank ``src`` has into ``output_tensor``.

    All ranks give an ``input_tensor``; only that of ``src`` counts.

    >>> import mycelia as ms
    >>> from mycelia.ops import communication as dist
    >>> dist.init_process_group("gloo")
    >>> out = ms.ops.zeros(2)
    >>> dist.scatter_tensor(out, ms.Tensor([1.0, 2.0]))
    >>> print(out)
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    where = "scatter_tensor"
    x = values.tensor(where, "input_tensor", input_tensor)
    out = values.tensor(where, "output_tensor", output_tensor)
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    root = place_of(where, "src", src, ranks)
    if collectives.is_me(ranks[root]):
        rows = values.evenly(where, "input_tensor", x.shape, len(ranks))[0]
        values.fits(where, "output_tensor", out, (rows, *x.shape[1:]), x.dtype)
    values.write(out, values.scattered(_like(x, out, ranks[root]), out.shape, root, ranks))
    return values.done([out], wants)


def _like(x: Tensor, out: Tensor, root: int) -> Tensor:
    """What stands for the input of a rank whose input does not count: something of the type of the output."""
    return x if collectives.is_me(root) else out


def gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, dst: int = 0, group: str | None = None, async_op: bool = False
) -> Handle:
    """Write the ranks' tensors behind each other into ``output_tensor`` of rank ``dst``; the others keep theirs.

    >>> import mycelia as ms
    >>> from mycelia.ops import communication as dist
    >>> dist.init_process_group("gloo")
    >>> out = ms.ops.zeros(2)
    >>> dist.gather_into_tensor(out, ms.Tensor([1.0, 2.0]))
    >>> print(out)
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    where = "gather_into_tensor"
    x = values.tensor(where, "input_tensor", input_tensor)
    out = values.tensor(where, "output_tensor", output_tensor)
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    root = place_of(where, "dst", dst, ranks)
    x = x if x.ndim else reshape(x, (1,))
    if collectives.is_me(ranks[root]):
        values.fits(where, "output_tensor", out, (x.shape[0] * len(ranks), *x.shape[1:]), x.dtype)
    made = values.gathered_at(x, root, ranks)
    if made is not None:
        values.write(out, made)
    return values.done([out], wants)


# lists of tensors -------------------------------------------------------------------------------------------------


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: str | None = None, async_op: bool = False) -> Handle:
    """Write the ranks' tensors into a list of tensors, one for each rank; they may differ in shape.

    >>> import mycelia as ms
    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> out = [ms.ops.zeros(2)]
    >>> dist.all_gather(out, ms.Tensor([1.0, 2.0]))
    >>> print(out[0])
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    where = "all_gather"
    x = values.tensor(where, "tensor", tensor)
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    outs = values.tensors(where, "tensor_list", tensor_list, len(ranks))
    place = _place(ranks)
    values.fits(where, f"tensor_list[{place}]", outs[place], x.shape, x.dtype)
    shapes = [t.shape for t in outs]
    if all(shape == x.shape for shape in shapes):
        every = collectives.all_gather(reshape(x, (1, *x.shape)), ranks)
        made = [every[i] for i in range(len(ranks))]
    else:
        lengths = tuple(values.count(shape) for shape in shapes)
        made = values.pieces(values.gathered_uneven(reshape(x, (-1,)), lengths, ranks), shapes, x.dtype)
    for out, value in zip(outs, made, strict=True):
        values.write(out, value)
    return values.done(outs, wants)


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: str = ReduceOp.SUM, group: str | None = None, async_op: bool = False
) -> Handle:
    """Write what all ranks have for this one in their lists, put together, into ``output``.

    The tensors of a list may differ in shape from each other, but not from rank to rank.

    >>> import mycelia as ms
    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> out = ms.ops.zeros(2)
    >>> dist.reduce_scatter(out, [ms.Tensor([1.0, 2.0])])
    >>> print(out)
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    where = "reduce_scatter"
    out = values.tensor(where, "output", output)
    kind = values.reduction(where, op, out.dtype)
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    given = values.tensors(where, "input_list", input_list, len(ranks))
    mine = given[_place(ranks)]
    values.fits(where, "output", out, mine.shape, mine.dtype)
    if all(t.shape == mine.shape for t in given):
        made = reshape(values.reduced_parts(stack(given, 0), kind, ranks), mine.shape)
    else:
        x, lengths = values.flat(given)
        made = reshape(values.reduced_parts_uneven(x, lengths, kind, ranks), mine.shape)
    values.write(out, made)
    return values.done([out], wants)


def scatter(
    tensor: Tensor, scatter_list: list[Tensor] | None, src: int = 0, group: str | None = None, async_op: bool = False
) -> Handle:
    """Write what rank ``src`` has for this one in its list into ``tensor``; the lists of others do not count.

    >>> import mycelia as ms
    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> out = ms.ops.zeros(2)
    >>> dist.scatter(out, [ms.Tensor([1.0, 2.0])])
    >>> print(out)
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    where = "scatter"
    out = values.tensor(where, "tensor", tensor)
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    root = place_of(where, "src", src, ranks)
    flat = reshape(out, (-1,))
    if collectives.is_me(ranks[root]):
        given = values.tensors(where, "scatter_list", scatter_list, len(ranks))
        for i, t in enumerate(given):
            values.fits(where, f"scatter_list[{i}]", t, out.shape, out.dtype)
        flat = values.flat(given)[0]
    values.write(out, reshape(values.scattered(flat, (values.count(out.shape),), root, ranks), out.shape))
    return values.done([out], wants)


def gather(
    tensor: Tensor, gather_list: list[Tensor] | None, dst: int = 0, group: str | None = None, async_op: bool = False
) -> Handle:
    """Write the ranks' tensors into the list of rank ``dst``; the lists of others do not count.

    >>> import mycelia as ms
    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> out = [ms.ops.zeros(2)]
    >>> dist.gather(ms.Tensor([1.0, 2.0]), out)
    >>> print(out[0])
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    where = "gather"
    x = values.tensor(where, "tensor", tensor)
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    root = place_of(where, "dst", dst, ranks)
    outs: list[Tensor] = []
    if collectives.is_me(ranks[root]):
        outs = values.tensors(where, "gather_list", gather_list, len(ranks))
        for i, t in enumerate(outs):
            values.fits(where, f"gather_list[{i}]", t, x.shape, x.dtype)
    every = values.gathered_at(reshape(x, (1, *x.shape)), root, ranks)
    if every is not None:
        for i, out in enumerate(outs):
            values.write(out, every[i])
    return values.done(outs, wants)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: str | None = None, async_op: bool = False
) -> Handle:
    """Send a tensor to each rank, and write what came from each into a list; any shapes that fit each other.

    >>> import mycelia as ms
    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> out = [ms.ops.zeros(2)]
    >>> dist.all_to_all(out, [ms.Tensor([1.0, 2.0])])
    >>> print(out[0])
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    where = "all_to_all"
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    sent = values.tensors(where, "input_tensor_list", input_tensor_list, len(ranks))
    outs = values.tensors(where, "output_tensor_list", output_tensor_list, len(ranks))
    for i, t in enumerate(outs):
        values.fits(where, f"output_tensor_list[{i}]", t, t.shape, sent[0].dtype)
    made = returning.all_to_all_of_shapes(where, [t.shape for t in outs], sent, ranks)
    for out, value in zip(outs, made, strict=True):
        values.write(out, value)
    return values.done(outs, wants)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None,
    group: str | None = None, async_op: bool = False,
) -> Handle:  # fmt: skip
    """Send parts of the first axis to the ranks, and write what came from each, behind each other, into ``output``.

    Args:
        output: where the rows go that come.
        input: what is sent.
        output_split_sizes: how many rows come from each rank; None: equally many.
        input_split_sizes: how many rows go to each rank; None: equally many.
        group: the ranks that take part.
        async_op: whether to return a handle.

    >>> import mycelia as ms
    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> out = ms.ops.zeros(2)
    >>> dist.all_to_all_single(out, ms.Tensor([1.0, 2.0]))
    >>> print(out)
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    where = "all_to_all_single"
    x = values.tensor(where, "input", input)
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    out = values.fits(where, "output", output, values.tensor(where, "output", output).shape, x.dtype)
    made = returning.all_to_all_of_rows(
        where, x, out.shape, output_split_sizes, input_split_sizes, ranks, ("input", "output")
    )
    values.write(out, made)
    return values.done([out], wants)


def all_to_all_v_c(
    output: Tensor, input: Tensor, send_count_matrix: list[int], group: str | None = None, async_op: bool = False
) -> Handle:
    """:func:`all_to_all_single` with the lengths of all ranks in one list.

    Args:
        output: where the rows go that come.
        input: what is sent.
        send_count_matrix: at ``i * N + j``, how many rows rank ``i`` sends to rank ``j``.
        group: the ranks that take part.
        async_op: whether to return a handle.

    >>> import mycelia as ms
    >>> from mycelia.ops import communication as dist
    >>> dist.init_process_group("gloo")
    >>> out = ms.ops.zeros(2)
    >>> dist.all_to_all_v_c(out, ms.Tensor([1.0, 2.0]), [2])
    >>> print(out)
    [1. 2.]
    >>> dist.destroy_process_group()
    """
    where = "all_to_all_v_c"
    x = values.tensor(where, "input", input)
    wants = values.flag(where, async_op)
    ranks = members(where, group)
    n, place = len(ranks), _place(ranks)
    counts = values.sizes(where, "send_count_matrix", send_count_matrix, n * n)
    send, recv = counts[place * n : place * n + n], counts[place::n]
    values.rows(where, "input", x, sum(send))
    out = values.fits(where, "output", output, (sum(recv), *x.shape[1:]), x.dtype)
    made = values.exchanged(x, send, recv, ranks)
    if made is not None:
        values.write(out, made)
    return values.done([out], wants)
