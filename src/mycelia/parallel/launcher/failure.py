"""What went wrong first: said in one shape on every machine."""

from __future__ import annotations

import signal
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_TRACEBACK = "Traceback (most recent call last):"
#: How many lines of a log are shown: of an error of Python's, and of anything else.
_ERROR_LINES, _LINES = 40, 12


@dataclass
class Failure:
    """A rank, or a whole machine, that is lost.

    Attributes:
        host: its machine.
        node: the number of that machine; -1 if it has none yet.
        rank: the rank; None if the machine is lost.
        reason: how, as in "ended by SIGKILL".
        code: what the launcher ends with.
        ago: how many seconds before it was told.
        drawn: whether the error says that another rank had failed before.
        log: the file of its output.
        tail: the last lines there, or the error.
        restart: whether the group may be started again.
    """

    host: str
    node: int
    rank: int | None
    reason: str
    code: int = 1
    ago: float = 0.0
    drawn: bool = False
    log: str = ""
    tail: list[str] = field(default_factory=list)
    restart: bool = True

    def to_message(self) -> dict[str, Any]:
        """The fields, for another launcher."""
        return asdict(self)

    @classmethod
    def of_message(cls, message: dict[str, Any]) -> Failure:
        """The failure that another launcher told."""
        return cls(**message)

    @property
    def title(self) -> str:
        """One line that names what failed, where and how."""
        where = f"on {self.host}" + (f" (node {self.node})" if self.node >= 0 else "")
        return f"rank {self.rank} {where} {self.reason}" if self.rank is not None else f"{where[3:]} {self.reason}"

    def render(self) -> str:
        """The title and what the log says."""
        lines = [f"  | {line}" for line in self.tail]
        return "\n".join([self.title, *([f"the end of {self.log}:", *lines] if self.tail else [])])


def describe(code: int) -> tuple[str, int]:
    """How a process ended, in words, and the code that a shell would give it.

    >>> describe(-9)
    ('was ended by SIGKILL', 137)
    """
    if code >= 0:
        return f"ended with exit code {code}", code
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}", 128 - code


def last_lines(log: Path, begin: int = 0) -> list[str]:
    """The error at the end of a log: the last traceback, or else the last lines; of what follows byte ``begin``."""
    try:
        with log.open("rb") as f:
            f.seek(max(begin, f.seek(0, 2) - 65536))
            lines = f.read().decode(errors="replace").rstrip().splitlines()
    except OSError:
        return []
    lines = [line[:400] for line in lines]
    starts = [i for i, line in enumerate(lines) if line.strip() == _TRACEBACK]
    if not starts or len(lines) - starts[-1] > 2 * _ERROR_LINES:
        return lines[-_LINES:]
    error = lines[starts[-1] :]
    return error if len(error) <= _ERROR_LINES else [*error[:4], "...", *error[5 - _ERROR_LINES :]]
