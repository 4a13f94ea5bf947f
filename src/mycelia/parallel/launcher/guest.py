"""The launcher of any machine but node 0's: it starts and ends its ranks as it is told, and tells what fails."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Any

from mycelia.parallel.launcher.display import Display
from mycelia.parallel.launcher.environment import Assignment
from mycelia.parallel.launcher.failure import Failure
from mycelia.parallel.launcher.options import Options
from mycelia.parallel.launcher.supervisor import Supervisor, lost
from mycelia.parallel.launcher.wire import VERSION, Wire


class Guest(Supervisor):
    """See the module."""

    def __init__(self, options: Options, display: Display) -> None:
        super().__init__(options, display)
        self.wire: Wire | None = None
        self._deadline = self._window()
        self._next = 0.0
        self._told: list[tuple[float, Failure]] = []
        self._done = False
        self._lost = False

    def _window(self) -> float:
        limit = self.options.cluster_time_out
        return float("inf") if limit < 0 else time.monotonic() + limit

    def _where(self) -> str:
        return f"{self.options.master_addr}:{self.options.master_port}"

    # node 0

    def while_gather(self) -> None:
        """Until node 0 is found."""
        now = time.monotonic()
        if self.wire is not None:
            return
        if now >= self._deadline:
            self.display.say(
                f"found no launcher of node 0 at {self._where()} within {self.options.cluster_time_out:g} s; "
                "does it run there, with that --master_port, and can this machine reach it?"
            )
            self.code = 1
        elif now >= self._next:
            self._next = now + 1
            with contextlib.suppress(OSError):
                address = (self.options.master_addr, self.options.master_port)
                self.wire = Wire(socket.create_connection(address, timeout=1))
                self.watch(self.wire.socket, self._hear)
                self.wire.send("hello", version=VERSION, node=self.options.node_rank, host=self.crew.host,
                               workers=self.options.local_worker_num, worker_num=self.options.worker_num)  # fmt: skip

    def _hear(self) -> None:
        wire = self.wire
        for message in wire.receive() if wire is not None else ():
            if self.wire is wire:
                self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        kind = message["kind"]
        if kind == "start":
            self.state, self._done, self._told = "run", False, []
            named = {name: int(message[name]) for name in ("first", "local", "world", "node", "port", "attempt")}
            self.start_ranks(Assignment(address=self.options.master_addr, **named))
        elif kind == "stop":
            self.display.show_output()
            self.display.say(Failure.of_message(message["failure"]).render())
            self.begin_stop()
        elif kind == "finish":
            if message["why"]:
                self.display.say(str(message["why"]))
            self.code = int(message["code"])
        elif kind == "refuse":
            self.display.say(f"node 0 at {self._where()} refuses this machine: {message['why']}")
            self.code = 1
        elif kind == "busy":  # it has not noticed yet that this machine was lost
            self._hang_up()

    def _hang_up(self) -> None:
        if self.wire is not None:
            self.unwatch(self.wire.socket)
            self.wire.release()
            self.wire = None

    def talk(self) -> None:
        if self.wire is None:
            return
        self.wire.beat()
        silent = time.monotonic() - self.wire.heard
        if not self.wire.closed and silent <= self.options.heartbeat:
            return
        ended = self.wire.closed and silent <= self.options.heartbeat
        self._hang_up()
        if self.part is None:  # nothing was started: it is looked for again
            self.state = "gather"
            return
        self.display.say(f"node 0 ({self._where()}) {lost(ended, self.options)}")
        self._lost = True
        self.begin_stop()

    # the ranks

    def on_failure(self, failure: Failure) -> None:
        self._told.append((time.monotonic() - failure.ago, failure))
        if self.wire is not None:
            self.wire.send("failure", failure=failure.to_message())

    def on_interrupt(self) -> None:
        number = (self.interrupted or 128) - 128
        node = self.part.node if self.part else self.options.node_rank
        failure = Failure(self.crew.host, node, None, f"was asked to end (signal {number})", 128 + number)
        failure.restart = False
        if self.state in ("gather", "wait") or self.wire is None:
            self.code = 128 + number
        else:
            self.on_failure(failure)
            self.begin_stop()

    def while_run(self) -> None:
        """Until node 0 tells what to do."""
        if self.crew.succeeded and not self._done and self.wire is not None:
            self._done = True
            self.wire.send("done")

    def while_stop(self) -> None:
        """Until no rank is left here."""
        if not self.stopped():
            return
        if not self._lost:
            self.state = "wait"
            if self.wire is not None:
                self.wire.send("stopped")
            return
        if self.interrupted is not None or self.part is None or self.part.attempt >= self.options.max_restarts:
            self.code = self.interrupted or 1
            return
        self.display.say(f"looks for node 0 at {self._where()} again")
        self.state, self._deadline, self._lost, self._next = "gather", self._window(), False, 0.0

    def while_wait(self) -> None:
        """Until node 0 tells what to do."""

    def leave(self) -> None:
        if self.wire is not None:
            self.wire.finish()
            self._hang_up()
