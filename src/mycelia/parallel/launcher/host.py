"""The launcher of node 0: it knows all machines, gives out numbers, and decides what happens after a failure."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any, Final

from mycelia.parallel.launcher.display import Display
from mycelia.parallel.launcher.environment import Assignment
from mycelia.parallel.launcher.failure import Failure
from mycelia.parallel.launcher.options import Options
from mycelia.parallel.launcher.supervisor import Supervisor, lost
from mycelia.parallel.launcher.wire import VERSION, Wire

#: How long after the first sign of a failure others are heard that may have come before it, in seconds.
_SETTLE: Final = 0.5
#: How much longer if all that was told was brought about by something else.
_CAUSE: Final = 2.5


@dataclass
class Peer:
    """The launcher of another machine.

    Attributes:
        asked: the number it asked for; -1: any.
        node: its number in this start.
        workers: how many ranks it has.
        first: the number of the first of them in this start.
        phase: "new" (has not said who it is), "here", "run", "done" (its ranks ended well), "stopped".
    """

    wire: Wire
    address: str
    host: str = "?"
    asked: int = -1
    node: int = -1
    workers: int = 0
    first: int = 0
    phase: str = "new"


class Host(Supervisor):
    """See the module.

    Raises:
        OSError: ``--master_port`` is taken, and other machines would look for the launcher there.
    """

    def __init__(self, options: Options, display: Display) -> None:
        super().__init__(options, display)
        self.peers: list[Peer] = []
        self.failures: list[tuple[bool, float, Failure]] = []
        self.attempt = 0
        self._deadline = self._window()
        self._listener: socket.socket | None = None
        self._reserved: socket.socket | None = None
        self._port = options.master_port
        if not options.single:
            self._listener = listen(options.master_addr, options.master_port)
            self.watch(self._listener, self._accept)

    def _window(self) -> float:
        limit = self.options.cluster_time_out
        return float("inf") if limit < 0 else time.monotonic() + limit

    # who is there

    def _accept(self) -> None:
        assert self._listener is not None
        with contextlib.suppress(OSError):
            connection, address = self._listener.accept()
            peer = Peer(Wire(connection), str(address[0]))
            self.peers.append(peer)
            self.watch(connection, lambda: self._hear(peer))

    def _hear(self, peer: Peer) -> None:
        for message in peer.wire.receive():
            try:
                self._take(peer, message)
            except (KeyError, TypeError, ValueError):  # it does not speak our language
                self._drop(peer)

    def _take(self, peer: Peer, message: dict[str, Any]) -> None:
        kind = message["kind"]
        if kind == "hello":
            self._greet(peer, message)
        elif peer.phase == "new" or kind == "beat":
            return
        elif kind == "failure":
            self._note(Failure.of_message(message["failure"]))
        elif kind == "done":
            peer.phase = "done"
        elif kind == "stopped":
            peer.phase = "stopped"

    def _greet(self, peer: Peer, message: dict[str, Any]) -> None:
        peer.host, peer.asked, workers = str(message["host"]), int(message["node"]), int(message["workers"])
        total, here = self.options.worker_num, self._workers()
        known = [p for p in self.peers if p is not peer and p.phase != "new"]
        why = ""
        if message["version"] != VERSION:
            why = "its version of the launcher is another one"
        elif message["worker_num"] != total:
            why = f"it was started with --worker_num {message['worker_num']}, node 0 with {total}"
        elif self.state != "gather":
            peer.wire.send("busy")
            peer.wire.flush()
            self._drop(peer)
            return
        elif peer.asked == 0 or (peer.asked > 0 and any(p.asked == peer.asked for p in known)):
            other = next((p.host for p in known if p.asked == peer.asked), self.crew.host)
            why = f"there is a node {peer.asked} already, {other}"
        elif here + workers > total:
            why = f"it has {workers} ranks, and {here} of {total} are there already"
        if why:
            self.display.say(f"refused {peer.host} ({peer.address}): {why}")
            peer.wire.send("refuse", why=why)
            self._drop(peer)
            return
        peer.workers, peer.phase = workers, "here"
        self.display.say(f"{peer.host} ({peer.address}) has come, {self._workers()} of {total} ranks are there")

    def _workers(self) -> int:
        return self.options.local_worker_num + sum(peer.workers for peer in self._known())

    def _known(self) -> list[Peer]:
        return [peer for peer in self.peers if peer.phase != "new"]

    def _drop(self, peer: Peer) -> None:
        self.unwatch(peer.wire.socket)
        peer.wire.finish(0.2)
        peer.wire.release()
        if peer in self.peers:
            self.peers.remove(peer)

    def _tell(self, kind: str, **fields: Any) -> None:
        for peer in self._known():
            peer.wire.send(kind, **fields)

    def talk(self) -> None:
        now = time.monotonic()
        for peer in list(self.peers):
            peer.wire.beat()
            silent = now - peer.wire.heard
            if not peer.wire.closed and silent <= self.options.heartbeat:
                continue
            how = lost(peer.wire.closed and silent <= self.options.heartbeat, self.options)
            self._drop(peer)
            if peer.phase == "new":
                continue
            if self.state == "gather":
                self.display.say(f"{peer.host} ({peer.address}) {how}")
            else:
                ranks = [str(r) for r in range(peer.first, peer.first + peer.workers)]
                how += f"; with it rank {ranks[0]}" if len(ranks) == 1 else f"; with it ranks {ranks[0]} to {ranks[-1]}"
                self._note(Failure(peer.host, peer.node, None, how, ago=silent))

    # what is done

    def while_gather(self) -> None:
        """Until all ranks have a machine."""
        here, total = self._workers(), self.options.worker_num
        enough = self.attempt > 0 and 0 < self.options.min_worker_num <= here
        if here == total or enough:
            self._begin()
        elif time.monotonic() >= self._deadline:
            self.display.say(self._missing())
            self._tell("finish", code=1, why=self._missing())
            self.code = 1

    def _missing(self) -> str:
        here, total, each = self._workers(), self.options.worker_num, self.options.local_worker_num
        taken = {peer.asked for peer in self._known() if peer.asked > 0}
        free = [n for n in range(1, total + 1) if n not in taken]
        free = free[sum(peer.asked < 0 for peer in self._known()) :]
        count = max(1, -(-(total - here) // each))
        names = ", ".join(f"node {n}" for n in free[:count])
        came = ", ".join([f"node 0 ({self.crew.host}, {each})", *(
            f"node {p.asked if p.asked > 0 else '?'} ({p.host}, {p.workers})" for p in self._known())])  # fmt: skip
        return (
            f"{total - here} of {total} ranks did not come within {self.options.cluster_time_out:g} s: {names} "
            f"missing; here with their ranks: {came}"
        )

    def _begin(self) -> None:
        if self.attempt and self._workers() < self.options.worker_num:
            self.display.say(f"goes on with {self._workers()} of {self.options.worker_num} ranks")
        taken = {peer.asked for peer in self._known()}
        free = iter(n for n in range(1, self.options.worker_num + 1) if n not in taken)
        for peer in self._known():
            peer.node = peer.asked if peer.asked > 0 else next(free)
        first = self.options.local_worker_num
        for peer in sorted(self._known(), key=lambda p: p.node):
            peer.first, first = first, first + peer.workers
        world, port = self._workers(), self._choose_port()
        self.failures = []
        for peer in self._known():
            peer.phase = "run"
            peer.wire.send("start", first=peer.first, local=peer.workers, world=world, node=peer.node,
                           port=port, attempt=self.attempt)  # fmt: skip
        self.state = "run"
        self.start_ranks(
            Assignment(0, self.options.local_worker_num, world, 0, self.options.master_addr, port, self.attempt)
        )

    def _choose_port(self) -> int:
        """The port where rank 0 introduces the ranks: --master_port if it is free, on one machine."""
        if not self.options.single:  # the launchers meet at --master_port
            self._port += 1
            while not is_free(self._port) and self._port < 65535:
                self._port += 1
            return self._port
        wanted = self.options.master_port
        if self.attempt == 0 and wanted:
            self._reserved = reserve(wanted)
            if self._reserved is not None and is_free(wanted):
                return wanted
        with socket.socket() as s:
            s.bind(("", 0))
            chosen = int(s.getsockname()[1])
        if self.attempt == 0 and wanted:
            self.display.say(f"--master_port {wanted} is taken; uses {chosen}")
        return chosen

    def while_run(self) -> None:
        """Until all have ended well."""
        if self.crew.succeeded and all(peer.phase == "done" for peer in self._known()):
            self._tell("finish", code=0, why="")
            self.display.say("all ranks have ended well")
            self.code = 0

    def on_failure(self, failure: Failure) -> None:
        self._note(failure)

    def on_interrupt(self) -> None:
        number = (self.interrupted or 128) - 128
        failure = Failure(self.crew.host, 0, None, f"was asked to end (signal {number})", restart=False)
        failure.code = 128 + number
        if self.state == "gather":
            self._tell("finish", code=failure.code, why=failure.title)
            self.code = failure.code
        else:
            self._note(failure)
            self.until = 0.0

    def _note(self, failure: Failure) -> None:
        if self.state not in ("run", "settle"):
            return
        self.failures.append((failure.drawn, time.monotonic() - failure.ago, failure))
        if self.state == "run":
            self.state, self.until = "settle", time.monotonic() + _SETTLE

    def first_failure(self) -> Failure:
        """The one that came first, of those that no other one brought about."""
        wanted = [entry for entry in self.failures if not entry[2].restart] or self.failures
        return min(wanted, key=lambda entry: entry[:2])[2]

    def while_settle(self) -> None:
        """Until other failures that came before the one told first would be here."""
        known = any(not drawn for drawn, _, _ in self.failures)
        if time.monotonic() >= self.until + (0 if known else _CAUSE):
            first = self.first_failure()
            self.display.show_output()
            self.display.say(first.render())
            self._tell("stop", failure=first.to_message())
            self.begin_stop()

    def while_stop(self) -> None:
        """Until no rank is left on any machine."""
        late = time.monotonic() >= self.until + self.options.heartbeat
        if not self.stopped() or (not late and any(peer.phase != "stopped" for peer in self._known())):
            return
        first = self.first_failure()
        if not first.restart or self.interrupted is not None or self.attempt >= self.options.max_restarts:
            self.code = self.interrupted or first.code
            if self.options.max_restarts and first.restart and self.interrupted is None:
                self.display.say(f"gives up after {self.attempt} restarts")
            self._tell("finish", code=self.code, why="")
            return
        self.attempt += 1
        self.display.say(f"starts all ranks again ({self.attempt} of at most {self.options.max_restarts} times)")
        self.state, self._deadline = "gather", self._window()
        for peer in self._known():
            peer.phase = "here"

    def leave(self) -> None:
        for peer in list(self.peers):
            peer.wire.finish()
            self._drop(peer)
        for held in (self._listener, self._reserved):
            if held is not None:
                held.close()


def is_free(port: int) -> bool:
    """Whether nothing listens on a port of this machine."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("", port))
        except OSError:
            return False
    return True


def reserve(port: int) -> socket.socket | None:
    """Keep other launchers of this machine from choosing a port; None if one of them has it.

    Rank 0 binds the port seconds later, and the engine lets several processes bind the same.
    """
    s = socket.socket(socket.AF_UNIX)
    if sys.platform != "linux":
        return s
    try:
        s.bind(f"\0mycelia-run-{port}")
    except OSError:
        s.close()
        return None
    return s


def listen(address: str, port: int) -> socket.socket:
    """Listen on the port of an address of this machine, or of all of its addresses if it is none (behind a router).

    Raises:
        OSError: the port is taken.
    """
    family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
    s = socket.socket(family, socket.SOCK_STREAM)
    try:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((address if is_own(address) else "", port))
        s.listen(128)
        s.setblocking(False)
    except OSError:
        s.close()
        raise
    return s


def is_own(address: str) -> bool:
    """Whether an address, or a name, is this machine's."""
    try:
        family, _, _, _, where = socket.getaddrinfo(address, 0, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.bind(where)
    except OSError:
        return False
    return True
