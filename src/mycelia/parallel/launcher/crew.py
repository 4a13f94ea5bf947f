"""The ranks of this machine: started, watched, ended, with all that they started.

Each rank leads a session, and so a process group, of its own. What is left of the group is killed before the rank is
reaped, while its number cannot have been given to anything else.

A rank counts as lost if it has been silent (``mycelia.core.pulse``) for some seconds and used no time of a core either:
code that keeps Python's lock for long is not lost. A rank that has not begun to tell that it lives is watched for being
stopped by a signal only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mycelia.core import pulse
from mycelia.parallel.launcher.environment import Assignment, command, cores_of, usable_cores, variables
from mycelia.parallel.launcher.failure import Failure, describe, last_lines
from mycelia.parallel.launcher.options import Options

#: The least part of a core that a rank at work uses.
_AT_WORK: Final = 0.05


@dataclass
class Rank:
    """A process. Times are of the monotonic clock.

    Attributes:
        begin: where its output begins in the log, which earlier starts have written to.
        heard: when it was last heard, or found at work; None before the first time.
        told: what it said about its failure: a sign and its exit code.
        stopped: since when a signal keeps it from running.
        used: seconds of a core that it had used when it was found at work last.
        code: how it ended.
        reported: whether its failure was told.
    """

    number: int
    process: subprocess.Popen[bytes]
    log: Path
    begin: int
    pipe: int
    heard: float | None = None
    told: bytes = b""
    told_at: float = 0.0
    stopped: float | None = None
    used: float = 0.0
    code: int | None = None
    reported: bool = False


class Crew:
    """The ranks of this machine.

    Args:
        options: what was asked for.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._guard: subprocess.Popen[bytes] | None = None
        self._looked = time.monotonic()
        self.ranks: list[Rank] = []
        self.node = -1
        self.host = socket.gethostname()

    def start(self, part: Assignment) -> None:
        """Start the ranks of an assignment.

        Raises:
            OSError: a log or a process cannot be made; no rank is left then.
        """
        folder = Path(self._options.log_dir or ".")
        folder.mkdir(parents=True, exist_ok=True)
        self.node = part.node
        self.ranks = []
        if self._guard is None:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py"))], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        try:
            for local in range(part.local):
                self._start(part, local, folder / self._options.log_name(part.first + local))
        except OSError:
            self.kill()
            raise

    def _start(self, part: Assignment, local: int, log: Path) -> None:
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        own = usable_cores()
        cores = cores_of(self._options, local, part.local)
        try:
            with log.open("ab" if part.attempt else "wb") as out:
                if part.attempt:
                    out.write(f"\n--- start {part.attempt + 1} ---\n".encode())
                    out.flush()
                begin = out.tell()
                env = variables(self._options, part, local, write)
                if cores and hasattr(os, "sched_setaffinity"):
                    os.sched_setaffinity(0, cores)  # what is started inherits it
                process = subprocess.Popen(
                    command(self._options), env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                    start_new_session=True, pass_fds=[write],
                )  # fmt: skip
        except OSError:
            os.close(read)
            raise
        finally:
            os.close(write)
            if cores and hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, own)
        self._tell_guard(f"+{process.pid}")
        self.ranks.append(Rank(part.first + local, process, log, begin, read))

    def _tell_guard(self, line: str) -> None:
        if self._guard is not None and self._guard.stdin is not None:
            with contextlib.suppress(OSError):
                self._guard.stdin.write(line.encode() + b"\n")
                self._guard.stdin.flush()

    def poll(self) -> list[Failure]:
        """What has failed since the last call, the first one first."""
        now = time.monotonic()
        if now - self._looked > 2:  # this process did not run itself: silence says nothing
            for rank in self.ranks:
                rank.heard = now if rank.heard is not None else None
                rank.stopped = None
        self._looked = now
        found: list[tuple[bool, float, Failure]] = []
        for rank in self.ranks:
            if rank.code is None and (why := self._look(rank, now)) is not None and not rank.reported:
                rank.reported = True
                reason, code = why
                tail = last_lines(rank.log, rank.begin)
                since = rank.told_at if rank.told else now
                drawn = rank.told[:1] == pulse.DRAWN if rank.told else bool(pulse.LOST_PARTNER.search("\n".join(tail)))
                log = str(rank.log.absolute())
                failure = Failure(self.host, self.node, rank.number, reason, code or 1, now - since, drawn, log, tail)
                # several at once: a rank that a signal ended is the likely cause of the errors of others
                found.append((drawn or code < 128, since, failure))
        return [failure for _, _, failure in sorted(found, key=lambda entry: entry[:2])]

    def _look(self, rank: Rank, now: float) -> tuple[str, int] | None:
        """How a rank has failed and its code; None if it lives or has ended well."""
        self._listen(rank, now)
        if self._has_ended(rank):
            self._listen(rank, now)
            self._reap(rank)
            assert rank.code is not None
            return describe(rank.code) if rank.code else None
        if rank.told:
            return describe(int(rank.told[1:3] or b"1", 16))
        state, used = _state(rank.process.pid)
        if rank.heard is not None and used - rank.used > _AT_WORK * self._options.heartbeat:
            rank.used, rank.heard = used, now  # at work, which is a sign of life, too
        if state != "T":
            rank.stopped = None
        elif rank.stopped is None:
            rank.stopped = now
        if rank.stopped is not None and now - max(rank.stopped, rank.heard or 0) > self._options.heartbeat - 1:
            return f"stands still: a signal stopped it more than {now - rank.stopped:.0f} s ago", 1
        silent = rank.heard is not None and now - rank.heard > self._options.heartbeat
        if silent and state not in "tT":  # "t": a debugger holds it
            return f"stands still: not heard for {self._options.heartbeat:g} s, and uses no core", 1
        return None

    @staticmethod
    def _listen(rank: Rank, now: float) -> None:
        if rank.pipe < 0:
            return
        with contextlib.suppress(BlockingIOError):
            while data := os.read(rank.pipe, 4096):
                rank.heard = now
                signs = data.replace(pulse.ALIVE, b"")
                if signs and not rank.told:
                    rank.told, rank.told_at = signs[:3], now

    @staticmethod
    def _has_ended(rank: Rank) -> bool:
        try:
            return os.waitid(os.P_PID, rank.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _reap(self, rank: Rank) -> None:
        """Take the code of a rank that has ended; kill what it leaves behind."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(rank.process.pid, signal.SIGKILL)
        self._tell_guard(f"-{rank.process.pid}")
        rank.code = rank.process.wait()
        os.close(rank.pipe)
        rank.pipe = -1

    @property
    def ended(self) -> bool:
        """Whether no rank runs."""
        return all(rank.code is not None for rank in self.ranks)

    @property
    def succeeded(self) -> bool:
        """Whether all ranks have ended well."""
        return bool(self.ranks) and all(rank.code == 0 for rank in self.ranks)

    def clean(self) -> bool:
        """Reap what has ended; whether no rank runs."""
        for rank in self.ranks:
            if rank.code is None and self._has_ended(rank):
                self._reap(rank)
        return self.ended

    def end(self, how: signal.Signals) -> None:
        """Send a signal to ranks and what they started; stopped ones go on, to get it.

        Only SIGKILL goes to ranks that are ending after an error.
        """
        for rank in self.ranks:
            if rank.code is None and not self._has_ended(rank) and (not rank.told or how == signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(rank.process.pid, how)
                    os.killpg(rank.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End all ranks now, and wait for it."""
        self.end(signal.SIGKILL)
        for rank in self.ranks:
            if rank.code is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    rank.process.wait(10)
                    rank.code = rank.process.returncode
                    self._tell_guard(f"-{rank.process.pid}")
                    os.close(rank.pipe)
                    rank.pipe = -1

    def close(self) -> None:
        """End all ranks and the guard."""
        self.kill()
        if self._guard is not None:
            assert self._guard.stdin is not None
            with contextlib.suppress(OSError):
                self._guard.stdin.close()
            self._guard.wait()
            self._guard = None


def _state(process: int) -> tuple[str, float]:
    """The state that the system says a process is in, and the seconds of a core it used; ``("?", 0)`` if unknown."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return "?", 0.0
    fields = text[text.rindex(")") + 2 :].split()
    return fields[0], (float(fields[11]) + float(fields[12])) / os.sysconf("SC_CLK_TCK")
