"""Meeting the other ranks, and the groups that they form."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any, Final

import jax

from mycelia.core import cluster
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError, UnsupportedError
from mycelia.ops import collectives
from mycelia.ops.communicating import agreement
from mycelia.tensor import Tensor

HCCL_WORLD_COMM_GROUP: Final = "hccl_world_group"
NCCL_WORLD_COMM_GROUP: Final = "nccl_world_group"
MCCL_WORLD_COMM_GROUP: Final = "mccl_world_group"

Ranks = tuple[int, ...]


class ReduceOp:
    """How the ranks' tensors are put together: ``SUM``, ``MAX``, ``MIN``, ``PROD``, or ``AVG``, their mean.

    >>> import mycelia as ms
    >>> ms.ops.ReduceOp.SUM
    'sum'
    """

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    AVG = "avg"


class _Global(type):
    """What :class:`GlobalComm` tells is asked at the time."""

    @property
    def BACKEND(cls) -> str:
        """What moves data between ranks; empty before ``init``."""
        return cluster.backend()

    @property
    def WORLD_COMM_GROUP(cls) -> str:
        """The name of the group of all ranks."""
        names = {"": HCCL_WORLD_COMM_GROUP, "nccl": NCCL_WORLD_COMM_GROUP}
        return names.get(cluster.backend(), MCCL_WORLD_COMM_GROUP)

    @property
    def INITED(cls) -> bool:
        """Whether ``init`` has been called."""
        return cluster.is_connected()


class GlobalComm(metaclass=_Global):
    """What holds for all ranks: ``BACKEND``, ``WORLD_COMM_GROUP``, ``INITED``. All names of the world are understood.

    >>> from mycelia.communication import GlobalComm
    >>> GlobalComm.INITED
    False
    """

    CHECK_ENVS = True


def init(backend_name: str | None = None) -> None:
    """Meet the other ranks that the launcher has started; alone, be rank 0 of 1. Called again it does nothing.

    Args:
        backend_name: what moves the data: ``"gloo"`` (or ``"mccl"``) or ``"mpi"`` between CPUs, ``"nccl"`` between
            GPUs. None takes what the device needs.

    Raises:
        UnsupportedError: ``"hccl"``, or ``"nccl"`` without a GPU.
        StateError: tensors were made already, or the others did not come.

    A process that was started as a scheduler (``MS_ROLE=MS_SCHED``) ends here: rank 0 does what it would have done.

    >>> from mycelia import communication
    >>> communication.init()
    >>> communication.get_rank(), communication.get_group_size()
    (0, 1)
    >>> communication.release()
    """
    if os.environ.get("MS_ROLE") == "MS_SCHED":
        print("mycelia: no scheduler process is needed, rank 0 introduces the ranks to each other", file=sys.stderr)
        raise SystemExit(0)
    if cluster.is_connected():
        return
    meet(cluster.from_environment() or cluster.Place(0, 1, 0, 1, None, "none"), cluster.check_backend(backend_name))


def meet(place: cluster.Place, backend: str, seconds: float = 600) -> None:
    """Connect as rank ``place`` and start what comes with it."""
    if backend == "nccl" and not _has_gpu_plugin():
        raise UnsupportedError(
            "init", "backend_name", got='"nccl"', takes='"gloo" or "mpi" here',
            hint="NCCL moves data between GPUs; install jax's plugin for CUDA (jax[cuda12] or jax[cuda13]) to use them",
        )  # fmt: skip
    cluster.connect(place, backend, seconds)
    agreement.start()


def _has_gpu_plugin() -> bool:
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        return False
    names = ("jax_cuda12_plugin", "jax_cuda13_plugin", "jax_rocm60_plugin", "jax_rocm7_plugin")
    return any(importlib.util.find_spec(name) is not None for name in names)


def release() -> None:
    """Leave the other ranks; groups are forgotten.

    >>> from mycelia import communication
    >>> communication.init()
    >>> communication.release()
    """
    agreement.stop()
    cluster.disconnect()


# names ------------------------------------------------------------------------------------------------------------


def group_name(where: str, group: Any) -> str:
    """The name of a group, that of the world for None; a str in any case."""
    if group is None:
        return GlobalComm.WORLD_COMM_GROUP
    if not isinstance(group, str):
        raise ArgumentTypeError(where, "group", got=f"{group!r} ({type(group).__name__})", takes="the name of a group")
    return group


def require(where: str) -> None:
    """Refuse what needs other ranks before they have met."""
    if not cluster.is_connected():
        raise StateError(
            where, message="the ranks have not met yet",
            hint="call mycelia.communication.init() first, right after importing",
        )  # fmt: skip


def ranks_of(where: str, group: Any) -> Ranks:
    """The ranks of a group.

    Raises:
        ArgumentTypeError: no name.
        ArgumentValueError: there is no group of that name.
    """
    name = group_name(where, group)
    found = cluster.ranks_of(name)
    if found is None:
        known = [GlobalComm.WORLD_COMM_GROUP, *cluster.group_names()]
        raise ArgumentValueError(
            where, "group", got=repr(name), takes="one of " + ", ".join(map(repr, known)),
            hint="make it with create_group first",
        )  # fmt: skip
    return found


def members(where: str, group: Any) -> Ranks:
    """The ranks of a group that this rank belongs to, for communicating in it.

    Raises:
        StateError: the ranks have not met, or this one is not in the group.
    """
    require(where)
    ranks = ranks_of(where, group)
    me = cluster.place().rank
    if me not in ranks:
        raise StateError(where, message=f"rank {me} is not in the group {group!r} of ranks {list(ranks)}")
    return ranks


def _alone() -> cluster.Place:
    """Where this process stands, before it has met the others by what the environment tells."""
    if cluster.is_connected():
        return cluster.place()
    return cluster.from_environment() or cluster.place()


# asking -----------------------------------------------------------------------------------------------------------


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """This process's number in a group; before ``init`` that which the launcher has told, or 0.

    Raises:
        StateError: it is not in the group.

    >>> from mycelia import communication
    >>> communication.get_rank()
    0
    """
    if not cluster.is_connected() and group_name("get_rank", group):
        return _alone().rank
    return members("get_rank", group).index(cluster.place().rank)


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """How many ranks a group has; before ``init`` what the launcher has told, or 1.

    >>> from mycelia import communication
    >>> communication.get_group_size()
    1
    """
    if not cluster.is_connected() and group_name("get_group_size", group):
        return _alone().size
    return len(ranks_of("get_group_size", group))


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """This process's number among those of its machine.

    >>> from mycelia import communication
    >>> communication.get_local_rank()
    0
    """
    if not cluster.is_connected() and group_name("get_local_rank", group):
        return _alone().local_rank
    members("get_local_rank", group)
    return cluster.place().local_rank


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """How many processes this machine has.

    >>> from mycelia import communication
    >>> communication.get_local_rank_size()
    1
    """
    if not cluster.is_connected() and group_name("get_local_rank_size", group):
        return _alone().local_size
    members("get_local_rank_size", group)
    return cluster.place().local_size


def _whole(where: str, argument: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="an int")
    return value


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The rank that has a number in a group.

    >>> from mycelia import communication
    >>> communication.init()
    >>> communication.get_world_rank_from_group_rank("hccl_world_group", 0)
    0
    >>> communication.release()
    """
    where = "get_world_rank_from_group_rank"
    number = _whole(where, "group_rank_id", group_rank_id)
    require(where)
    ranks = ranks_of(where, group)
    if not 0 <= number < len(ranks):
        raise ArgumentValueError(where, "group_rank_id", got=str(number), takes=f"0 to {len(ranks) - 1}")
    return ranks[number]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The number that a rank has in a group.

    >>> from mycelia import communication
    >>> communication.init()
    >>> communication.get_group_rank_from_world_rank(0, "hccl_world_group")
    0
    >>> communication.release()
    """
    where = "get_group_rank_from_world_rank"
    require(where)
    return place_of(where, "world_rank_id", world_rank_id, ranks_of(where, group))


def place_of(where: str, argument: str, rank: Any, ranks: Ranks) -> int:
    """The place of a rank, which the user names by its number in the world, in a group."""
    number = _whole(where, argument, rank)
    if number not in ranks:
        raise ArgumentValueError(where, argument, got=f"rank {number}", takes=f"a rank of the group, {list(ranks)}")
    return ranks.index(number)


def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """The ranks of a group, in its order.

    >>> from mycelia import communication
    >>> communication.init()
    >>> communication.get_process_group_ranks()
    [0]
    >>> communication.release()
    """
    require("get_process_group_ranks")
    return list(ranks_of("get_process_group_ranks", group))


def get_comm_name(group: str = HCCL_WORLD_COMM_GROUP) -> str:
    """The name under which the connections of a group are kept: that of the group.

    >>> from mycelia import communication
    >>> communication.init()
    >>> communication.get_comm_name()
    'hccl_world_group'
    >>> communication.release()
    """
    require("get_comm_name")
    ranks_of("get_comm_name", group)
    return group_name("get_comm_name", group)


# making -----------------------------------------------------------------------------------------------------------


def create_group(group: str, rank_ids: list[int], options: Any = None) -> None:
    """Give some ranks a name, under which they communicate among themselves.

    All ranks of the group have to call it, at about the same time (within 30 s); then they are connected. The others
    may, to know its ranks; they cannot communicate in it. Called again with the same ranks it does nothing.

    Args:
        group: the name.
        rank_ids: the ranks; their order is that of the group.
        options: accepted; there is nothing to set.

    Raises:
        ArgumentTypeError: the name is no str, or the ranks are no list of ints.
        ArgumentValueError: no ranks, a rank twice or one there is not; or the name stands for other ranks.

    >>> from mycelia import communication
    >>> communication.init()
    >>> communication.create_group("all", [0])
    >>> communication.get_group_size("all")
    1
    >>> communication.release()
    """
    where = "create_group"
    if not isinstance(group, str):
        raise ArgumentTypeError(where, "group", got=f"{group!r} ({type(group).__name__})", takes="a str")
    if not isinstance(rank_ids, list):
        raise ArgumentTypeError(where, "rank_ids", got=type(rank_ids).__name__, takes="a list of ints")
    require(where)
    ranks = tuple(_whole(where, "rank_ids", r) for r in rank_ids)
    size, me = cluster.place().size, cluster.place().rank
    if not ranks or len(set(ranks)) != len(ranks) or not all(0 <= r < size for r in ranks):
        takes = f"ranks from 0 to {size - 1}, each once" if size > 1 else "[0], the one rank there is"
        raise ArgumentValueError(where, "rank_ids", got=str(rank_ids), takes=takes)
    if group in cluster.WORLD:
        raise ArgumentValueError(where, "group", got=repr(group), takes="a name that does not mean all ranks already")
    if group in cluster.group_names():
        held = cluster.ranks_of(group)
        if held != ranks:
            raise ArgumentValueError(
                where, "rank_ids", got=str(rank_ids), takes=f"{list(held or ())}, the ranks of the group {group!r}",
                hint="destroy_group it first, or take another name",
            )  # fmt: skip
        return
    if me in ranks and len(ranks) > 1:
        connection = collectives.all_reduce(Tensor(1.0), "sum", ranks)
        jax.block_until_ready(connection._value)
    cluster.add_group(group, ranks)


def destroy_group(group: str) -> None:
    """Forget a group.

    Raises:
        ArgumentValueError: there is none of that name, or it is that of all ranks.

    >>> from mycelia import communication
    >>> communication.init()
    >>> communication.create_group("all", [0])
    >>> communication.destroy_group("all")
    >>> communication.release()
    """
    if not isinstance(group, str):
        raise ArgumentTypeError("destroy_group", "group", got=f"{group!r} ({type(group).__name__})", takes="a str")
    require("destroy_group")
    if group in cluster.WORLD:
        raise ArgumentValueError(
            "destroy_group", "group", got=repr(group), takes="a group that create_group has made",
            hint="release() leaves all ranks",
        )  # fmt: skip
    ranks_of("destroy_group", group)
    cluster.remove_group(group)
