"""Class forms of collectives: ``AllReduce("sum")(x)``.

They return their results, are differentiable where their operators are, and can stand in compiled functions. Ranks in
their arguments are numbers in the group, as MindSpore has it, except ``Broadcast``'s, ``Send``'s and ``Receive``'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.core import cluster
from mycelia.core.dtypes import as_dtype
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ops import collectives
from mycelia.ops.communicating import messages, returning, values
from mycelia.ops.communicating.groups import ReduceOp, group_name, members, place_of
from mycelia.ops.creation import zeros
from mycelia.ops.joining import concat
from mycelia.ops.legacy.form import form
from mycelia.ops.operands import as_axis, as_int, as_shape
from mycelia.tensor import Tensor

__all__ = [
    "AllGather", "AllGatherV", "AllReduce", "AlltoAll", "AlltoAllV", "AlltoAllVC", "Barrier", "BatchISendIRecv",
    "Broadcast", "CollectiveGather", "CollectiveScatter", "NeighborExchange", "NeighborExchangeV2", "Receive", "Reduce",
    "ReduceOp", "ReduceScatter", "ReduceScatterV", "Send",
]  # fmt: skip

_WORLD = "hccl_world_group"
Ranks = tuple[int, ...]


def _in_group(where: str, group: Any, op: Any = None) -> None:
    if cluster.is_connected() and group is not None:  # an object may be made before that
        members(where, group)
    else:
        group_name(where, group)
    if op is not None:
        values.reduction(where, op, as_dtype("float32"))


def _checks(where: str) -> Any:
    def check(**given: Any) -> None:
        _in_group(where, given["group"], given.get("op"))

    return check


def _all_reduce(input_x: Any, op: str, group: str) -> Tensor:
    return returning.all_reduce(values.tensor("AllReduce", "input_x", input_x), op, group)[0]


def _all_gather(input_x: Any, group: str) -> Tensor:
    x = values.tensor("AllGather", "input_x", input_x)
    if not x.ndim:
        raise ShapeError("AllGather", "input_x", got="shape ()", takes="one axis or more")
    return returning.all_gather_into_tensor(x, group)[0]


def _reduce_scatter(input_x: Any, op: str, group: str) -> Tensor:
    return returning.reduce_scatter_tensor(values.tensor("ReduceScatter", "input_x", input_x), op, group)[0]


def _place(where: str, argument: str, place: Any, ranks: Ranks) -> int:
    number = as_int(place, where, argument)
    if not 0 <= number < len(ranks):
        raise ArgumentValueError(
            where, argument, got=str(number), takes=f"a number in the group, 0 to {len(ranks) - 1}"
        )
    return number


def _reduce(input_x: Any, dest_rank: int, op: str, group: str) -> Tensor:
    x = values.tensor("Reduce", "input_x", input_x)
    ranks = members("Reduce", group)
    kind = values.reduction("Reduce", op, x.dtype)
    return returning.reduce_to_place(x, _place("Reduce", "dest_rank", dest_rank, ranks), kind, ranks)


def _broadcast(input_x: Any, root_rank: int, group: str) -> tuple[Tensor, ...]:
    given = input_x if isinstance(input_x, (tuple, list)) else (input_x,)
    ranks = members("Broadcast", group)
    root = place_of("Broadcast", "root_rank", root_rank, ranks)
    return tuple([collectives.broadcast(values.tensor("Broadcast", "input_x", x), root, ranks) for x in given])


def _scatter(input_x: Any, src_rank: int, group: str) -> Tensor:
    where = "CollectiveScatter"
    ranks = members(where, group)
    x = values.tensor(where, "input_x", input_x)
    return returning.scatter_from_place(where, x, _place(where, "src_rank", src_rank, ranks), ranks)


def _gather(input_x: Any, dest_rank: int, group: str) -> Tensor:
    where = "CollectiveGather"
    ranks = members(where, group)
    x = values.tensor(where, "input_x", input_x)
    return returning.gather_to_place(x, _place(where, "dest_rank", dest_rank, ranks), ranks)


def _all_to_all(input_x: Any, split_count: int, split_dim: int, concat_dim: int, group: str) -> Tensor:
    where = "AlltoAll"
    x = values.tensor(where, "input_x", input_x)
    ranks = members(where, group)
    if split_count != len(ranks):
        raise ArgumentValueError(where, "split_count", got=str(split_count), takes=f"{len(ranks)}, the group's size")
    split, join = as_axis(split_dim, x.ndim, where, "split_dim"), as_axis(concat_dim, x.ndim, where, "concat_dim")
    if not x.ndim or x.shape[split] % len(ranks):
        takes = f"an axis {split} that {len(ranks)} ranks share evenly"
        raise ShapeError(where, "input_x", got=f"shape {x.shape}", takes=takes)
    return collectives.all_to_all(x, split, join, ranks)


def _vector(where: str, input_x: Any) -> Tensor:
    x = values.tensor(where, "input_x", input_x)
    if x.ndim != 1:
        raise ShapeError(where, "input_x", got=f"shape {x.shape}", takes="one axis", hint="reshape it to (-1,) first")
    return x


def _or_number(x: Tensor) -> Tensor:
    """A result; a number that says nothing where there is none."""
    return x if x.size else zeros((), x.dtype)


def _all_gather_v(input_x: Any, output_split_sizes: Any, group: str) -> Tensor:
    x = _vector("AllGatherV", input_x)
    ranks = members("AllGatherV", group)
    lengths = values.sizes("AllGatherV", "output_split_sizes", output_split_sizes, len(ranks))
    values.rows("AllGatherV", "input_x", x, lengths[ranks.index(cluster.place().rank)])
    return _or_number(values.gathered_uneven(x, lengths, ranks))


def _reduce_scatter_v(input_x: Any, input_split_sizes: Any, op: str, group: str) -> Tensor:
    x = _vector("ReduceScatterV", input_x)
    ranks = members("ReduceScatterV", group)
    kind = values.reduction("ReduceScatterV", op, x.dtype)
    lengths = values.sizes("ReduceScatterV", "input_split_sizes", input_split_sizes, len(ranks))
    values.rows("ReduceScatterV", "input_x", x, sum(lengths))
    return _or_number(values.reduced_parts_uneven(x, lengths, kind, ranks))


def _exchange(where: str, x: Tensor, send: Sequence[int], recv: Sequence[int], ranks: Ranks) -> Tensor:
    values.rows(where, "input_x", x, sum(send))
    made = values.exchanged(x, tuple(send), tuple(recv), ranks)
    return zeros((), x.dtype) if made is None else made


def _all_to_all_v(input_x: Any, send_numel_list: Any, recv_numel_list: Any, group: str, block_size: int) -> Tensor:
    where = "AlltoAllV"
    x = _vector(where, input_x)
    ranks = members(where, group)
    send = values.sizes(where, "send_numel_list", send_numel_list, len(ranks))
    recv = values.sizes(where, "recv_numel_list", recv_numel_list, len(ranks))
    return _exchange(where, x, [n * block_size for n in send], [n * block_size for n in recv], ranks)


def _all_to_all_v_c(input_x: Any, send_count_matrix: Any, group: str, block_size: int, transpose: bool) -> Tensor:
    where = "AlltoAllVC"
    x = _vector(where, input_x)
    ranks = members(where, group)
    n = len(ranks)
    place = ranks.index(cluster.place().rank)
    counts = [c * block_size for c in values.sizes(where, "send_count_matrix", send_count_matrix, n * n)]
    row, column = counts[place * n : place * n + n], counts[place::n]
    return _exchange(where, x, column, row, ranks) if transpose else _exchange(where, x, row, column, ranks)


def _barrier(group: str) -> None:
    returning.barrier(group)


def _send(input_x: Any, sr_tag: int, dest_rank: int, group: str, group_back: str) -> Tensor:
    x = values.tensor("Send", "input_x", input_x)
    to = members("Send", group)[_place("Send", "dest_rank", dest_rank, members("Send", group))]
    messages.moved("Send", [(messages.peer("Send", "dest_rank", to, members("Send", group)), x)], [])
    return x


def _receive(sr_tag: int, src_rank: int, shape: Any, dtype: Any, group: str, group_back: str) -> Tensor:
    ranks = members("Receive", group)
    source = messages.peer("Receive", "src_rank", ranks[_place("Receive", "src_rank", src_rank, ranks)], ranks)
    wanted = (source, as_shape(shape, "Receive", "shape"), as_dtype(dtype, "Receive", "dtype"))
    return messages.moved("Receive", [], [wanted])[0][0]


def _neighbors(
    where: str, sends: Sequence[Any], tensors: Sequence[Tensor], gets: Sequence[Any], shapes: Sequence[Any], dtype: Any,
    group: str,
) -> tuple[Tensor, ...]:  # fmt: skip
    ranks = members(where, group)
    to = [messages.peer(where, "send_rank_ids", ranks[_place(where, "send_rank_ids", r, ranks)], ranks) for r in sends]
    of = [messages.peer(where, "recv_rank_ids", ranks[_place(where, "recv_rank_ids", r, ranks)], ranks) for r in gets]
    wanted = [(r, tuple(shape), dtype) for r, shape in zip(of, shapes, strict=True)]
    return tuple(messages.moved(where, list(zip(to, tensors, strict=True)), wanted)[0])


def _neighbor_exchange(
    input_x: Any, send_rank_ids: Any, recv_rank_ids: Any, recv_shapes: Any, send_shapes: Any, recv_type: Any, group: str
) -> tuple[Tensor, ...]:
    where = "NeighborExchange"
    given = input_x if isinstance(input_x, (tuple, list)) else (input_x,)
    sent = values.tensors(where, "input_x", given, len(send_rank_ids))
    for i, (t, shape) in enumerate(zip(sent, send_shapes, strict=False)):
        if t.shape != tuple(shape):
            raise ShapeError(
                where, f"input_x[{i}]", got=f"shape {t.shape}", takes=f"{tuple(shape)}, its send_shapes[{i}]"
            )
    if len(recv_shapes) != len(recv_rank_ids):
        takes = f"{len(recv_rank_ids)}, one for each of recv_rank_ids"
        raise ArgumentValueError(where, "recv_shapes", got=f"{len(recv_shapes)} shapes", takes=takes)
    dtype = as_dtype(recv_type, where, "recv_type")
    return _neighbors(where, send_rank_ids, sent, recv_rank_ids, recv_shapes, dtype, group)


#: The sides of a map in the order of ``NeighborExchangeV2``'s ranks: rows and columns, -1 first, 1 last, 0 all.
_SIDES = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))


def _check_halo(**given: Any) -> None:
    where = "NeighborExchangeV2"
    _in_group(where, given["group"])
    size = cluster.place().size
    for name, count in (("send_rank_ids", 8), ("recv_rank_ids", 8), ("send_lens", 4), ("recv_lens", 4)):
        held = given[name]
        if not isinstance(held, (list, tuple)) or not all(type(n) is int for n in held):
            raise ArgumentTypeError(where, name, got=repr(held), takes=f"a list of {count} ints")
        least, most = (-1, size - 1) if count == 8 else (0, max((*held, 0)))
        if len(held) != count or not all(least <= n <= most for n in held):
            kind = f"ranks up to {most}, or -1" if count == 8 else "lengths of 0 or more"
            raise ArgumentValueError(where, name, got=str(list(held)), takes=f"{count} {kind}")
    if given["data_format"] != "NCHW":
        raise ArgumentValueError(where, "data_format", got=repr(given["data_format"]), takes='"NCHW"')


def _halo(
    input_x: Any, send_rank_ids: Any, send_lens: Any, recv_rank_ids: Any, recv_lens: Any, data_format: str, group: str
) -> Tensor:
    where = "NeighborExchangeV2"
    x = values.tensor(where, "input_x", input_x)
    if x.ndim != 4:
        raise ShapeError(where, "input_x", got=f"shape {x.shape}", takes="four axes (N, C, H, W)")
    n, c, height, width = x.shape
    if max(send_lens[:2]) > height or max(send_lens[2:]) > width:
        raise ShapeError(where, "input_x", got=f"shape {x.shape}", takes=f"rows and columns for send_lens {send_lens}")

    def cut(side: int, length: int, before: int, after: int) -> slice:
        return slice(0, before) if side < 0 else slice(length - after, length) if side > 0 else slice(0, length)

    sends: list[int] = []
    sent: list[Tensor] = []
    gets: list[int] = []
    shapes: list[tuple[int, ...]] = []
    at: dict[tuple[int, int], int] = {}
    for k, (row, column) in enumerate(_SIDES):
        rows, columns = cut(row, height, send_lens[0], send_lens[1]), cut(column, width, send_lens[2], send_lens[3])
        if send_rank_ids[k] != -1:
            sends.append(send_rank_ids[k])
            sent.append(x[:, :, rows, columns])
        high = (recv_lens[0], height, recv_lens[1])[row + 1]
        wide = (recv_lens[2], width, recv_lens[3])[column + 1]
        if recv_rank_ids[k] != -1:
            at[row, column] = len(gets)
            gets.append(recv_rank_ids[k])
            shapes.append((n, c, high, wide))
    came = _neighbors(where, sends, sent, gets, shapes, x.dtype, group)
    lines = []
    for row in (-1, 0, 1):
        parts = []
        for column in (-1, 0, 1):
            high = (recv_lens[0], height, recv_lens[1])[row + 1]
            wide = (recv_lens[2], width, recv_lens[3])[column + 1]
            if (row, column) == (0, 0):
                parts.append(x)
            elif (row, column) in at:
                parts.append(came[at[row, column]])
            else:
                parts.append(zeros((n, c, high, wide), x.dtype))
        lines.append(concat(parts, 3))
    made: Tensor = concat(lines, 2)
    return made


def _batch(
    input_x: Any, op_types: Any, remote_ranks: Any, receive_shapes: Any, receive_dtypes: Any, group: str
) -> tuple[Tensor, ...]:
    where = "BatchISendIRecv"
    ranks = members(where, group)
    shapes, dtypes = iter(receive_shapes or ()), iter(receive_dtypes or ())
    given = input_x if isinstance(input_x, (tuple, list)) else (input_x,)
    count = sum(kind == "isend" for kind in op_types)
    sent = [values.tensor(where, "input_x", t) for t in given if t is not None]
    if len(sent) != count:
        raise ArgumentValueError(where, "input_x", got=f"{len(sent)} tensors", takes=f"{count}, one for each isend")
    source = iter(sent)
    told = []
    for kind, place in zip(op_types, remote_ranks, strict=True):
        other = ranks[_place(where, "remote_ranks", place, ranks)]
        if kind == "isend":
            told.append(messages.P2POp(kind, next(source), other, group))
        else:
            told.append(messages.P2POp(kind, tuple(next(shapes)), other, group, recv_dtype=next(dtypes)))
    return messages.batch_isend_irecv(told)


def _check_batch(**given: Any) -> None:
    where = "BatchISendIRecv"
    _in_group(where, given["group"])
    kinds, gets = given["op_types"], 0
    for name in ("op_types", "remote_ranks", "receive_shapes", "receive_dtypes"):
        held = given[name]
        if not isinstance(held, (list, tuple)) and not (held is None and name.startswith("receive")):
            raise ArgumentTypeError(where, name, got=repr(held), takes="a list or tuple")
    for kind in kinds:
        if kind not in ("isend", "irecv"):
            raise ArgumentValueError(where, "op_types", got=repr(kind), takes='"isend" or "irecv"')
        gets += kind == "irecv"
    for name, count in (("remote_ranks", len(kinds)), ("receive_shapes", gets), ("receive_dtypes", gets)):
        if len(given[name] or ()) != count:
            raise ArgumentValueError(where, name, got=f"{len(given[name] or ())} entries", takes=f"{count}")


AllGather = form(f"AllGather(group='{_WORLD}')(input_x)", _all_gather, _checks("AllGather"))
AllGatherV = form(f"AllGatherV(group='{_WORLD}')(input_x, output_split_sizes)", _all_gather_v, _checks("AllGatherV"))
AllReduce = form(f"AllReduce(op='sum', group='{_WORLD}')(input_x)", _all_reduce, _checks("AllReduce"))
AlltoAll = form(
    f"AlltoAll(split_count, split_dim, concat_dim, group='{_WORLD}')(input_x)", _all_to_all, _checks("AlltoAll")
)
AlltoAllV = form(
    f"AlltoAllV(group='{_WORLD}', block_size=1)(input_x, send_numel_list, recv_numel_list)", _all_to_all_v,
    _checks("AlltoAllV"),
)  # fmt: skip
AlltoAllVC = form(
    f"AlltoAllVC(group='{_WORLD}', block_size=1, transpose=False)(input_x, send_count_matrix)", _all_to_all_v_c,
    _checks("AlltoAllVC"),
)  # fmt: skip
Barrier = form(f"Barrier(group='{_WORLD}')()", _barrier, _checks("Barrier"))
BatchISendIRecv = form(
    f"BatchISendIRecv(op_types, remote_ranks, receive_shapes=None, receive_dtypes=None, group='{_WORLD}')(input_x)",
    _batch, _check_batch,
)  # fmt: skip
Broadcast = form(f"Broadcast(root_rank, group='{_WORLD}')(input_x)", _broadcast, _checks("Broadcast"))
CollectiveGather = form(f"CollectiveGather(dest_rank, group='{_WORLD}')(input_x)", _gather, _checks("CollectiveGather"))
CollectiveScatter = form(
    f"CollectiveScatter(src_rank=0, group='{_WORLD}')(input_x)", _scatter, _checks("CollectiveScatter")
)
NeighborExchange = form(
    "NeighborExchange(send_rank_ids, recv_rank_ids, recv_shapes, send_shapes, recv_type, "
    f"group='{_WORLD}')(input_x)", _neighbor_exchange, _checks("NeighborExchange"),
)  # fmt: skip
NeighborExchangeV2 = form(
    "NeighborExchangeV2(send_rank_ids, send_lens, recv_rank_ids, recv_lens, data_format, "
    f"group='{_WORLD}')(input_x)", _halo, _check_halo,
)  # fmt: skip
Receive = form(
    f"Receive(sr_tag, src_rank, shape, dtype, group='{_WORLD}', group_back='{_WORLD}')()", _receive, _checks("Receive")
)
Reduce = form(f"Reduce(dest_rank, op='sum', group='{_WORLD}')(input_x)", _reduce, _checks("Reduce"))
ReduceScatter = form(f"ReduceScatter(op='sum', group='{_WORLD}')(input_x)", _reduce_scatter, _checks("ReduceScatter"))
ReduceScatterV = form(
    f"ReduceScatterV(op='sum', group='{_WORLD}')(input_x, input_split_sizes)", _reduce_scatter_v,
    _checks("ReduceScatterV"),
)  # fmt: skip
Send = form(f"Send(sr_tag, dest_rank, group='{_WORLD}', group_back='{_WORLD}')(input_x)", _send, _checks("Send"))
