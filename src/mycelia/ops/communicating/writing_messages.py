"""Messages that are written into tensors: what ``mint.distributed`` has in the place of some of ``messages``."""

from __future__ import annotations

from mycelia.ops.communicating import messages, values
from mycelia.ops.communicating.messages import P2POp
from mycelia.ops.communicating.values import CommHandle
from mycelia.tensor import Tensor


def recv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> int:
    """Overwrite a tensor with what rank ``src`` (a number in the world) sends. Returns 0.

    Raises:
        ArgumentValueError: ``src`` is this rank, or not in the group.
    """
    values.write(tensor, messages.received("recv", tensor, src, group, tag))
    return 0


def irecv(tensor: Tensor, src: int = 0, group: str | None = None, tag: int = 0) -> CommHandle:
    """Overwrite a tensor with what rank ``src`` sends; the handle's ``wait`` returns when it has come.

    Raises:
        ArgumentValueError: ``src`` is this rank, or not in the group.
    """
    values.write(tensor, messages.received("irecv", tensor, src, group, tag))
    return CommHandle([tensor])


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[CommHandle]:
    """Send several messages and write others into their tensors, at once: a list of one handle for all of them.

    Raises:
        ArgumentTypeError: no list of :class:`P2POp`, or one that has a shape in the place of a tensor.
        ArgumentValueError: they are of different groups, or name this rank or one that is not in theirs.
    """
    if isinstance(p2p_op_list, (list, tuple)):
        for i, one in enumerate(p2p_op_list):
            if isinstance(one, P2POp):
                values.tensor("batch_isend_irecv", f"p2p_op_list[{i}].tensor", one.tensor)
    told, came, results = messages.batch(p2p_op_list)
    for one, value in zip([m for m in told if m.op == "irecv"], came, strict=True):
        values.write(one.tensor, value)
    return [CommHandle(results)]
