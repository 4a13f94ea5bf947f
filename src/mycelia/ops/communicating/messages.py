"""Messages from one rank to another: send, recv, and several of them at once.

A message waits for its receiver. Messages from one rank to another arrive in the order in which they were sent;
``tag`` is accepted and says nothing. What is sent together with :func:`batch_isend_irecv` is put into an order in
which no two ranks wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycelia.core import cluster
from mycelia.core.dtypes import DType, as_dtype
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.ops import collectives
from mycelia.ops.collectives import Step
from mycelia.ops.communicating import values
from mycelia.ops.communicating.groups import HCCL_WORLD_COMM_GROUP, members, place_of
from mycelia.ops.communicating.values import CommHandle
from mycelia.ops.creation import zeros
from mycelia.ops.operands import as_int, as_shape
from mycelia.tensor import Tensor

Ranks = tuple[int, ...]


def peer(where: str, argument: str, rank: Any, ranks: Ranks) -> int:
    """Another rank of a group, named by its number in the world.

    Raises:
        ArgumentTypeError: no int.
        ArgumentValueError: not in the group, or this rank itself.
    """
    place_of(where, argument, rank, ranks)
    if rank == cluster.place().rank:
        raise ArgumentValueError(where, argument, got=f"rank {rank}, which is this one", takes="another rank")
    return int(rank)


def moved(where: str, sends: Sequence[tuple[int, Tensor]], gets: Sequence[tuple[int, tuple[int, ...], DType]]) -> tuple[
    list[Tensor], list[Tensor]
]:  # fmt: skip
    """Send tensors to ranks and get others from some: what came, and everything that tells when it is done."""
    me = cluster.place().rank
    steps: list[Step] = [(me, to, t.shape, t.dtype) for to, t in sends]
    steps += [(source, me, shape, dtype) for source, shape, dtype in gets]
    if not steps:
        return [], []
    order = collectives.in_order(steps)
    made = collectives.transfers([sends[k][1] for k in order if k < len(sends)], [steps[k] for k in order])
    came: list[Tensor | None] = [None] * len(gets)
    for k, t in zip([k for k in order if k >= len(sends)], made, strict=False):
        came[k - len(sends)] = t
    return [t for t in came if t is not None], list(made)


def _tag(where: str, tag: Any) -> None:
    as_int(tag, where, "tag")


def send_to(where: str, tensor: Any, dst: Any, group: Any, tag: Any) -> CommHandle:
    """Send a tensor: the handle."""
    x = values.tensor(where, "tensor", tensor)
    _tag(where, tag)
    to = peer(where, "dst", dst, members(where, group))
    return CommHandle(moved(where, [(to, x)], [])[1])


def received(where: str, tensor: Any, src: Any, group: Any, tag: Any) -> Tensor:
    """What rank ``src`` sends, of the shape and dtype of ``tensor``."""
    like = values.tensor(where, "tensor", tensor)
    _tag(where, tag)
    source = peer(where, "src", src, members(where, group))
    return moved(where, [], [(source, like.shape, like.dtype)])[0][0]


def send(tensor: Tensor, dst: int = 0, group: str | None = HCCL_WORLD_COMM_GROUP, tag: int = 0) -> None:
    """Send a tensor to rank ``dst`` (a number in the world), and wait until it has it.

    Raises:
        ArgumentValueError: ``dst`` is this rank, or not in the group.
    """
    send_to("send", tensor, dst, group, tag).wait()


def isend(tensor: Tensor, dst: int = 0, group: str | None = HCCL_WORLD_COMM_GROUP, tag: int = 0) -> CommHandle:
    """Begin to send a tensor to rank ``dst``; the handle's ``wait`` returns when it has it.

    Raises:
        ArgumentValueError: ``dst`` is this rank, or not in the group.
    """
    return send_to("isend", tensor, dst, group, tag)


def recv(tensor: Tensor, src: int = 0, group: str | None = HCCL_WORLD_COMM_GROUP, tag: int = 0) -> Tensor:
    """What rank ``src`` (a number in the world) sends, of the shape and dtype of ``tensor``.

    Raises:
        ArgumentValueError: ``src`` is this rank, or not in the group.
    """
    return received("recv", tensor, src, group, tag)


def irecv(
    tensor: Tensor, src: int = 0, group: str | None = HCCL_WORLD_COMM_GROUP, tag: int = 0
) -> tuple[Tensor, CommHandle]:
    """:func:`recv` and the handle whose ``wait`` returns when it has come.

    Raises:
        ArgumentValueError: ``src`` is this rank, or not in the group.
    """
    out = received("irecv", tensor, src, group, tag)
    return out, CommHandle([out])


class P2POp:
    """A message that :func:`batch_isend_irecv` is to send or get.

    Args:
        op: ``"isend"`` or ``"irecv"``, or the function of that name.
        tensor: what is sent, or what is to be got; for ``"irecv"`` a shape, too.
        peer: the other rank, by its number in the world.
        group: the ranks among which it goes.
        tag: accepted if it is 0.
        recv_dtype: the dtype, where ``tensor`` is a shape.

    Raises:
        ArgumentValueError: another ``op``.
        ArgumentTypeError: no tensor, or a shape without a dtype.

    >>> import mycelia as ms
    >>> from mycelia.mint.distributed import P2POp
    >>> P2POp("isend", ms.Tensor([1.0]), 1).peer
    1
    """

    def __init__(
        self, op: Any, tensor: Any, peer: int, group: str | None = None, tag: int = 0, *,
        recv_dtype: DType | None = None,
    ) -> None:  # fmt: skip
        name = op if isinstance(op, str) else getattr(op, "__name__", "")
        if name not in ("isend", "irecv"):
            takes = '"isend" or "irecv", or the function of that name'
            raise ArgumentValueError("P2POp", "op", got=repr(op), takes=takes)
        if isinstance(tensor, (tuple, list)) and name == "irecv":
            if recv_dtype is None:
                raise ArgumentTypeError("P2POp", "recv_dtype", got="None", takes="a dtype, beside a shape")
            tensor = as_shape(tensor, "P2POp", "tensor")
            as_dtype(recv_dtype, "P2POp", "recv_dtype")
        else:
            values.tensor("P2POp", "tensor", tensor)
        as_int(peer, "P2POp", "peer")
        if tag != 0:
            raise ArgumentValueError("P2POp", "tag", got=repr(tag), takes="0")
        self.op, self.tensor, self.recv_dtype = name, tensor, recv_dtype
        self.peer, self.group, self.tag = peer, group, tag


def batch(p2p_op_list: Any) -> tuple[list[P2POp], list[Tensor], list[Tensor]]:
    """The messages; what came for each that gets something; everything that tells when it is done."""
    where = "batch_isend_irecv"
    if not isinstance(p2p_op_list, (list, tuple)) or not p2p_op_list:
        raise ArgumentTypeError(where, "p2p_op_list", got=repr(p2p_op_list), takes="a list of P2POp that is not empty")
    sends: list[tuple[int, Tensor]] = []
    gets: list[tuple[int, tuple[int, ...], DType]] = []
    for i, one in enumerate(p2p_op_list):
        if not isinstance(one, P2POp):
            raise ArgumentTypeError(where, f"p2p_op_list[{i}]", got=type(one).__name__, takes="a P2POp")
        if one.group != p2p_op_list[0].group:
            raise ArgumentValueError(
                where, f"p2p_op_list[{i}].group", got=repr(one.group),
                takes=f"{p2p_op_list[0].group!r}, as the first one",
            )  # fmt: skip
        other = peer(where, f"p2p_op_list[{i}].peer", one.peer, members(where, one.group))
        if one.op == "isend":
            sends.append((other, one.tensor))
        elif isinstance(one.tensor, Tensor):
            gets.append((other, one.tensor.shape, one.tensor.dtype))
        else:
            gets.append((other, one.tensor, as_dtype(one.recv_dtype)))
    came, results = moved(where, sends, gets)
    return list(p2p_op_list), came, results


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> tuple[Tensor, ...]:
    """Send and get several messages at once.

    Returns:
        For each of them, what came; for one that sends, a number that says nothing.
    """
    messages, came, _ = batch(p2p_op_list)
    found = iter(came)
    return tuple([next(found) if one.op == "irecv" else zeros((), one.tensor.dtype) for one in messages])
