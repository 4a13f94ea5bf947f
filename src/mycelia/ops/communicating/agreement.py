"""A check that ranks which meet in a collective have called the same one with tensors of one type.

With ``MYCELIA_CHECK_COLLECTIVES=1`` in the environment of all ranks, each collective that runs at once (not inside a
compiled graph) first tells the others of its group what it is, and compares. What would wait for ever, or mix up
memory, is then an error that names the rank that differs, or has not come within ``MYCELIA_CHECK_COLLECTIVES_SECONDS``
(60). It costs a few messages for each call, so it is off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import jax
import jax.numpy as jnp

from mycelia.core import cluster
from mycelia.core.errors import ShapeError, StateError
from mycelia.ir.types import TensorType
from mycelia.ops.communicating.store import TCPStore

#: Whether collectives are compared.
enabled = False


class _Meeting:
    """The store where ranks tell what they do, and how many times each group has met."""

    def __init__(self) -> None:
        self.store: TCPStore | None = None
        self.rounds: dict[str, int] = {}
        #: Seconds until a rank that has not come is reported.
        self.patience = float(os.environ.get("MYCELIA_CHECK_COLLECTIVES_SECONDS") or 60)


_meeting = _Meeting()


def start() -> None:
    """Begin to compare, if the environment asks for it; all ranks have to call it."""
    global enabled
    place = cluster.place()
    if os.environ.get("MYCELIA_CHECK_COLLECTIVES", "0") in ("", "0") or place.size < 2:
        return
    _meeting.__init__()  # type: ignore[misc]
    host = (place.address or "").rpartition(":")[0]
    time = timedelta(seconds=_meeting.patience)
    if place.rank == 0:
        _meeting.store = TCPStore(host, _free_port(host), place.size, True, time, wait_for_workers=False)
        port = _meeting.store.port
    else:
        port = 0
    port = int(cluster.Together(_port_of_all)(jnp.int32(port)))
    if place.rank:
        _meeting.store = TCPStore(host, port, place.size, False, time)
    enabled = True


def _port_of_all(port: Any) -> Any:
    return jax.lax.psum(port, cluster.AXIS)


def _free_port(host: str) -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def stop() -> None:
    """Compare no more."""
    global enabled
    enabled = False
    if _meeting.store is not None:
        _meeting.store.close()
    _meeting.__init__()  # type: ignore[misc]


def _exchange(name: str, ranks: Sequence[int], told: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """What each of the others tells in this round of a group."""
    store, me = _meeting.store, cluster.place().rank
    assert store is not None
    count = _meeting.rounds[name] = _meeting.rounds.get(name, 0) + 1
    store.set(f"{name}/{count}/{me}", json.dumps(told))
    if count > 2:  # who has come to this round has read the one before
        store.delete_key(f"{name}/{count - 2}/{me}")
    found = {}
    for rank in ranks:
        if rank == me:
            continue
        try:
            found[rank] = json.loads(store.wait_for(f"{name}/{count}/{rank}", _meeting.patience))
        except StateError:
            raise StateError(
                told["operator"], message=f"rank {rank} did not come to call {count} of the group {sorted(ranks)} "
                f"within {_meeting.patience:g} s; rank {me} is in {_words(told)}",
                hint="all ranks of a group have to call the same collectives in the same order",
            ) from None  # fmt: skip
    return found


def _words(told: dict[str, Any]) -> str:
    rest = ", ".join(f"{k} {v}" for k, v in told.items() if k not in ("operator", "type"))
    return f"{told['operator']} of {told['type']}" + (f" ({rest})" if rest else "")


def _refuse(mine: dict[str, Any], rank: int, its: dict[str, Any]) -> None:
    me = cluster.place().rank
    raise ShapeError(
        mine["operator"],
        message=f"the ranks do not agree: rank {me} calls {_words(mine)}, rank {rank} {_words(its)}",
        hint="all ranks of a group have to call the same collectives in the same order, with tensors of one type",
    )


def check(operator: str, type_: TensorType, ranks: Sequence[int], attrs: dict[str, Any]) -> None:
    """Compare a collective in which all ranks give tensors of one type.

    Raises:
        ShapeError: a rank calls another one, or with another type.
        StateError: a rank did not come in time.
    """
    told = {"operator": operator, "type": str(type_), **{k: v for k, v in attrs.items() if k != "ranks"}}
    for rank, its in _exchange(f"group {tuple(ranks)}", ranks, told).items():
        if its != json.loads(json.dumps(told)):
            _refuse(told, rank, its)


def check_pair(sender: int, to: int, type_: TensorType) -> None:
    """Compare what one rank sends and another gets.

    Raises:
        ShapeError: they are of different types.
        StateError: the other one did not come in time.
    """
    told = {"operator": "send" if sender == cluster.place().rank else "recv", "type": str(type_)}
    for rank, its in _exchange(f"pair {sender} {to}", (sender, to), told).items():
        if its["type"] != told["type"]:
            _refuse(told, rank, its)


def check_exchange(type_: TensorType, send: Sequence[int], recv: Sequence[int], ranks: Sequence[int]) -> None:
    """Compare how much each rank sends to each.

    Raises:
        ShapeError: a rank gets another number of rows than is sent to it, or rows of another type.
        StateError: a rank did not come in time.
    """
    rows = str(TensorType(type_.dtype, type_.shape[1:]))
    told = {"operator": "all_to_all", "type": rows, "sends": list(send), "gets": list(recv)}
    place = list(ranks).index(cluster.place().rank)
    for rank, its in _exchange(f"group {tuple(ranks)}", ranks, told).items():
        k = list(ranks).index(rank)
        fits = its["operator"] == "all_to_all" and its["type"] == rows and "sends" in its
        if not fits or its["sends"][place] != recv[k] or its["gets"][place] != send[k]:
            _refuse(told, rank, its)
