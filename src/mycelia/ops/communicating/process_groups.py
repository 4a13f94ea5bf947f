"""Meeting the other ranks and making groups, under the names of ``mint.distributed``."""

from __future__ import annotations

import hashlib
import os
import sys
from datetime import timedelta
from typing import Any

from mycelia.core import cluster
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.ops.communicating import groups
from mycelia.ops.communicating.store import TCPStore


def is_available() -> bool:
    """Whether processes can work together here: always.

    >>> from mycelia.mint import distributed as dist
    >>> dist.is_available()
    True
    """
    return True


def is_initialized() -> bool:
    """Whether this process has met the others.

    >>> from mycelia.mint import distributed as dist
    >>> dist.is_initialized()
    False
    """
    return cluster.is_connected()


def init_process_group(
    backend: str | None = "hccl", init_method: str | None = None, timeout: timedelta | None = None,
    world_size: int = -1, rank: int = -1, store: TCPStore | None = None, group_name: str = "", pg_options: Any = None,
    device_id: Any = None,
) -> None:  # fmt: skip
    """Meet the other ranks: those that the launcher has started, or those that the arguments tell of.

    Args:
        backend: ``"gloo"``, ``"mccl"``, ``"mpi"`` or ``"nccl"``. ``"hccl"``, MindSpore's default, means what the device
            needs, as there is no device here that HCCL serves; None means the same.
        init_method: ``"tcp://HOST:PORT"`` where rank 0 introduces the others, with ``world_size`` and ``rank``.
        timeout: how long to wait for the others.
        world_size: how many ranks there are.
        rank: this one's number.
        store: a store that all ranks share, in the place of ``init_method``.
        group_name: accepted; it must be a name of all ranks, or empty.
        pg_options, device_id: accepted; there is nothing to set.

    Raises:
        ArgumentValueError: both or incomplete arguments, or another size than the launcher's.
        StateError: the others did not come.

    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> dist.get_rank(), dist.get_world_size()
    (0, 1)
    >>> dist.destroy_process_group()
    """
    where = "init_process_group"
    for name, value, kind in (("world_size", world_size, int), ("rank", rank, int), ("group_name", group_name, str)):
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ArgumentTypeError(where, name, got=repr(value), takes=f"a value of type {kind.__name__}")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise ArgumentTypeError(where, "timeout", got=repr(timeout), takes="a datetime.timedelta")
    if init_method is not None and store is not None:
        raise ArgumentValueError(where, "store", got="a store beside an init_method", takes="one of them")
    if group_name and group_name not in cluster.WORLD:
        raise ArgumentValueError(where, "group_name", got=repr(group_name), takes="a name of all ranks, or nothing")
    chosen = None if backend == "hccl" else backend
    cluster.check_backend(chosen)
    if init_method is None and store is None:
        groups.init(chosen)
    else:
        _meet_by_arguments(where, chosen, init_method, timeout or timedelta(seconds=300), world_size, rank, store)
    if world_size not in (-1, cluster.place().size):
        raise ArgumentValueError(where, "world_size", got=str(world_size), takes=f"{cluster.place().size}, or -1")


def _meet_by_arguments(
    where: str, backend: str | None, init_method: str | None, timeout: timedelta, world_size: int, rank: int,
    store: TCPStore | None,
) -> None:  # fmt: skip
    if os.environ.get("MS_ROLE") == "MS_SCHED":
        print("mycelia: no scheduler process is needed, rank 0 introduces the ranks to each other", file=sys.stderr)
        raise SystemExit(0)
    if world_size < 1:
        raise ArgumentValueError(where, "world_size", got=str(world_size), takes="the number of ranks, 1 or more")
    if not 0 <= rank < world_size:
        raise ArgumentValueError(where, "rank", got=str(rank), takes=f"0 to {world_size - 1}")
    if cluster.is_connected():
        return
    seconds = timeout.total_seconds()
    address = _address_by_url(where, init_method) if init_method is not None else None
    if address is None:
        if not isinstance(store, TCPStore):
            raise ArgumentTypeError(where, "store", got=type(store).__name__, takes="a TCPStore")
        key = "mycelia/address"
        if rank == 0:
            address = f"{store.host}:{_free_port()}"
            store.set(key, address)
        else:
            address = store.wait_for(key, seconds).decode()
    told = cluster.from_environment()
    local = (told.local_rank, told.local_size) if told is not None and told.rank == rank else (rank, world_size)
    place = cluster.Place(rank, world_size, *local, address, "arguments")
    groups.meet(place, cluster.check_backend(backend), seconds)


def _address_by_url(where: str, url: Any) -> str:
    host, _, port = url[6:].rpartition(":") if isinstance(url, str) and url.startswith("tcp://") else ("", "", "")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ArgumentValueError(where, "init_method", got=repr(url), takes='"tcp://HOST:PORT"')
    return f"{host}:{port}"


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def destroy_process_group(group: str | None = None) -> None:
    """Forget a group; None, or a name of all ranks, leaves them.

    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> dist.destroy_process_group()
    >>> dist.is_initialized()
    False
    """
    if groups.group_name("destroy_process_group", group) in cluster.WORLD:
        groups.release()
    else:
        groups.destroy_group(groups.group_name("destroy_process_group", group))


def get_rank(group: str | None = None) -> int:
    """This process's number in a group, -1 if it is not in it.

    >>> from mycelia.mint import distributed as dist
    >>> dist.get_rank()
    0
    """
    name = groups.group_name("get_rank", group)
    ranks = cluster.ranks_of(name)
    if cluster.is_connected() and (ranks is None or cluster.place().rank not in ranks):
        return -1
    return groups.get_rank(name)


def get_world_size(group: str | None = None) -> int:
    """How many ranks a group has, -1 if there is none of that name or this process is not in it.

    >>> from mycelia.mint import distributed as dist
    >>> dist.get_world_size()
    1
    """
    name = groups.group_name("get_world_size", group)
    ranks = cluster.ranks_of(name)
    if cluster.is_connected() and (ranks is None or cluster.place().rank not in ranks):
        return -1
    return groups.get_group_size(name)


def new_group(
    ranks: list[int] | None = None, timeout: Any = None, backend: str | None = None, pg_options: Any = None,
    use_local_synchronization: bool = False, group_desc: str | None = None,
) -> str:  # fmt: skip
    """Make a group of some ranks, in ascending order, and return its name; None: all ranks.

    The ranks of the group have to call it, at about the same time; the others may. Ranks that make a group that there
    is get the same name.

    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> dist.get_world_size(dist.new_group([0]))
    1
    >>> dist.destroy_process_group()
    """
    if ranks is None:
        return groups.GlobalComm.WORLD_COMM_GROUP
    if not isinstance(ranks, list):
        raise ArgumentTypeError("new_group", "ranks", got=type(ranks).__name__, takes="a list of ints, or None")
    if backend is not None:
        cluster.check_backend(None if backend == "hccl" else backend)
    groups.require("new_group")
    members = sorted(ranks)
    digest = hashlib.sha1("_".join(map(str, members)).encode(), usedforsecurity=False).hexdigest()
    name = f"{backend or cluster.backend()}_{len(members)}_{digest}"
    groups.create_group(name, members)
    return name


def get_backend(group: str | None = None) -> str:
    """What moves data between the ranks of a group.

    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> dist.get_backend()
    'gloo'
    >>> dist.destroy_process_group()
    """
    groups.require("get_backend")
    groups.ranks_of("get_backend", group)
    return cluster.backend()


def get_global_rank(group: str | None, group_rank: int) -> int:
    """The rank that has a number in a group.

    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> dist.get_global_rank(None, 0)
    0
    >>> dist.destroy_process_group()
    """
    return groups.get_world_rank_from_group_rank(groups.group_name("get_global_rank", group), group_rank)


def get_group_rank(group: str | None, global_rank: int) -> int:
    """The number that a rank has in a group.

    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> dist.get_group_rank(None, 0)
    0
    >>> dist.destroy_process_group()
    """
    return groups.get_group_rank_from_world_rank(global_rank, groups.group_name("get_group_rank", group))


def get_process_group_ranks(group: str | None = None) -> list[int]:
    """The ranks of a group, in its order.

    >>> from mycelia.mint import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> dist.get_process_group_ranks()
    [0]
    >>> dist.destroy_process_group()
    """
    return groups.get_process_group_ranks(groups.group_name("get_process_group_ranks", group))
