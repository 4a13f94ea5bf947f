"""Communication between ranks, written into tensors: the names of ``mindspore.mint.distributed``."""

from mycelia.ops.communicating.groups import ReduceOp
from mycelia.ops.communicating.messages import P2POp, isend, send
from mycelia.ops.communicating.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from mycelia.ops.communicating.process_groups import (
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_initialized,
    new_group,
)
from mycelia.ops.communicating.store import TCPStore
from mycelia.ops.communicating.values import CommHandle
from mycelia.ops.communicating.writing import (
    all_gather,
    all_gather_into_tensor,
    all_gather_into_tensor_uneven,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    gather_into_tensor,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    reduce_scatter_tensor_uneven,
    scatter,
    scatter_tensor,
)
from mycelia.ops.communicating.writing_messages import batch_isend_irecv, irecv, recv

__all__ = [
    "CommHandle", "P2POp", "ReduceOp", "TCPStore", "all_gather", "all_gather_into_tensor",
    "all_gather_into_tensor_uneven", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single",
    "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "destroy_process_group", "gather",
    "gather_into_tensor", "gather_object", "get_backend", "get_global_rank", "get_group_rank",
    "get_process_group_ranks", "get_rank", "get_world_size", "init_process_group", "irecv", "is_available",
    "is_initialized", "isend", "new_group", "recv", "recv_object_list", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "reduce_scatter_tensor_uneven", "scatter", "scatter_object_list", "scatter_tensor",
    "send", "send_object_list",
]  # fmt: skip
