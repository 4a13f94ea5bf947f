"""What the launchers of all machines have in common: the loop, signals, and how ranks are ended."""

from __future__ import annotations

import contextlib
import selectors
import signal
import socket
import time
from pathlib import Path
from types import FrameType
from typing import Any, Final

from mycelia.parallel.launcher.crew import Crew
from mycelia.parallel.launcher.display import Display
from mycelia.parallel.launcher.environment import Assignment
from mycelia.parallel.launcher.failure import Failure
from mycelia.parallel.launcher.options import Options

#: The longest time between two looks at the ranks, in seconds.
_TICK: Final = 0.1
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def lost(ended: bool, options: Options) -> str:
    """How the launcher of another machine was lost."""
    if ended:
        return "is gone: its launcher has ended"
    return f"was not heard for {options.heartbeat:g} s: the machine is down, or the way to it is cut"


class Supervisor:
    """The launcher of a machine.

    Attributes:
        state: what it does: it decides which of the methods ``while_STATE`` is called again and again.
        code: what the launcher ends with; None as long as it goes on.
    """

    def __init__(self, options: Options, display: Display) -> None:
        self.options = options
        self.display = display
        self.crew = Crew(options)
        self.code: int | None = None
        self.state = "gather"
        self.part: Assignment | None = None
        self.until = 0.0
        self.interrupted: int | None = None
        self._selector = selectors.DefaultSelector()

    def run(self) -> int:
        """Work until all is done or failed; the exit code. No rank is left then."""
        waker, wake = socket.socketpair()  # a signal writes to it, and so ends a wait
        for end in (waker, wake):
            end.setblocking(False)
        self._selector.register(waker, selectors.EVENT_READ, None)
        before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        signal.signal(signal.SIGCHLD, self._on_child)
        woken = signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        try:
            while self.code is None:
                for key, _ in self._selector.select(_TICK):
                    if key.data is None:
                        with contextlib.suppress(BlockingIOError):
                            waker.recv(4096)
                    else:
                        key.data()
                if self.code is None:
                    self.look()
            self.display.show_output(last=True)
            return self.code
        finally:
            self.crew.close()
            self.leave()
            signal.set_wakeup_fd(woken)
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._selector.close()
            waker.close()
            wake.close()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted is not None:  # the second time: at once
            self.crew.end(signal.SIGKILL)
        self.interrupted = 128 + number

    def _on_child(self, number: int, frame: FrameType | None) -> None:
        """Only there so that the end of a rank ends the wait."""

    def watch(self, connection: socket.socket, call: Any) -> None:
        """Call a function when something comes from a connection."""
        self._selector.register(connection, selectors.EVENT_READ, call)

    def unwatch(self, connection: socket.socket) -> None:
        """Stop that; nothing happens if it was not watched."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection)

    def look(self) -> None:
        """One round: take what came, then do what the state asks for."""
        if self.interrupted is not None and self.state != "stop":
            self.on_interrupt()
        if self.state in ("run", "settle"):
            for failure in self.crew.poll():
                self.on_failure(failure)
        else:
            self.crew.clean()
        self.display.show_output()
        self.talk()
        if self.code is None:
            getattr(self, f"while_{self.state}")()
            self.display.status(self.describe())

    def start_ranks(self, part: Assignment) -> None:
        """Start this machine's ranks."""
        self.part = part
        for local in range(part.local):
            log = self.options.log_name(part.first + local)
            self.display.follow(part.first + local, self._log(log), part.attempt > 0)
        try:
            self.crew.start(part)
        except OSError as error:
            self.on_failure(
                Failure(self.crew.host, part.node, None, f"cannot start its ranks: {error}", restart=False)
            )  # fmt: skip
            return
        last = part.first + part.local - 1
        ranks = f"rank {last}" if part.local == 1 else f"ranks {part.first} to {last}"
        again = f", start {part.attempt + 1} of at most {self.options.max_restarts + 1}" if part.attempt else ""
        where = self._log(self.options.log_name(part.first))
        self.display.say(
            f"node {part.node} ({self.crew.host}) has started {ranks} of {part.world}, which meet at "
            f"{part.address}:{part.port}{again}; output in {where}" + (" and so on" if part.local > 1 else "")
        )

    def _log(self, name: str) -> Path:
        return Path(self.options.log_dir or ".") / name

    def begin_stop(self) -> None:
        """Ask the ranks of this machine to end."""
        self.state = "stop"
        self.until = time.monotonic() + self.options.grace
        self.crew.end(signal.SIGTERM)

    def stopped(self) -> bool:
        """Whether all ranks of this machine have ended; those that take too long are killed."""
        if not self.crew.clean() and time.monotonic() >= self.until:
            self.crew.kill()
        return self.crew.ended

    def describe(self) -> str:
        """The status line."""
        doing = {"gather": "waits for other machines", "stop": "ends its ranks", "wait": "waits for node 0"}
        if self.part is None or self.state in doing:
            return doing.get(self.state, self.state)
        live = sum(rank.code is None for rank in self.crew.ranks)
        again = f", start {self.part.attempt + 1}" if self.part.attempt else ""
        return f"node {self.part.node}: {live} of {self.part.local} ranks run, {self.part.world} in all{again}"

    # what a launcher of one kind or the other does

    def on_interrupt(self) -> None:
        """A signal asked the launcher to end."""
        raise NotImplementedError

    def on_failure(self, failure: Failure) -> None:
        """A rank of this machine has failed."""
        raise NotImplementedError

    def talk(self) -> None:
        """Hear and tell other launchers."""
        raise NotImplementedError

    def leave(self) -> None:
        """Close connections."""
        raise NotImplementedError
