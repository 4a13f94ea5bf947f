"""Collectives that return their results: the names of ``mindspore.communication.comm_func``."""

from mycelia.ops.communicating.groups import GlobalComm, ReduceOp
from mycelia.ops.communicating.messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from mycelia.ops.communicating.returning import (
    all_gather_into_tensor,
    all_reduce,
    all_to_all_single_with_output_shape,
    all_to_all_with_output_shape,
    barrier,
    broadcast,
    gather_into_tensor,
    reduce,
    reduce_scatter_tensor,
    scatter_tensor,
)
from mycelia.ops.communicating.values import CommHandle
from mycelia.ops.communicating.writing import all_to_all_v_c

__all__ = [
    "CommHandle", "GlobalComm", "P2POp", "ReduceOp", "all_gather_into_tensor", "all_reduce",
    "all_to_all_single_with_output_shape", "all_to_all_v_c", "all_to_all_with_output_shape", "barrier",
    "batch_isend_irecv", "broadcast", "gather_into_tensor", "irecv", "isend", "recv", "reduce",
    "reduce_scatter_tensor", "scatter_tensor", "send",
]  # fmt: skip
