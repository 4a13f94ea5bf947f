"""What the launcher shows: messages, the ranks' output, and a status line where there is a terminal.

The launcher's own lines go to stderr, the ranks' output to stdout, so that the two can be told apart.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

#: Bytes of a log that are shown at once.
_AT_ONCE: Final = 1 << 18
#: Lines of a log that are not shown: Gloo tells of each connection.
_SILENT: Final = "[Gloo] Rank "


class Display:
    """The terminal, or what stands in its place.

    Args:
        program: the name before the launcher's messages.
        tailed: ranks whose output is shown; None: all.
    """

    def __init__(self, program: str, tailed: frozenset[int] | None) -> None:
        self._program = program
        self._tailed = tailed
        self._read: dict[Path, tuple[int, int, bytes]] = {}
        self._last = ""
        self._begin = time.monotonic()
        self._live: Live | None = None
        if sys.stderr.isatty():
            self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self._live.start()

    def say(self, text: str) -> None:
        """Show a message of the launcher's."""
        self._line("\n".join(f"{self._program}: {line}" for line in text.splitlines()), sys.stderr)

    def _line(self, text: str, stream: TextIO) -> None:
        if self._live is not None and (stream is sys.stderr or sys.stdout.isatty()):
            self._live.console.print(Text(text), soft_wrap=True)
        else:
            print(text, file=stream, flush=True)

    def status(self, text: str) -> None:
        """Change the status line; nothing without a terminal."""
        if self._live is not None:
            seconds = round(time.monotonic() - self._begin)
            clock = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
            line = f"{clock}  {text}" + (f"  |  {self._last}" if self._last else "")
            self._live.update(Text(line, no_wrap=True, overflow="ellipsis", style="dim"), refresh=True)

    def follow(self, rank: int, log: Path, restarted: bool) -> None:
        """Show what comes to a log from now on."""
        if self._tailed is None or rank in self._tailed:
            begin = log.stat().st_size if restarted and log.exists() else 0
            self._read.setdefault(log, (rank, begin, b""))

    def show_output(self, last: bool = False) -> None:
        """Show what the ranks have written since; with ``last`` also a line that has no end yet."""
        several = self._tailed is None or len(self._tailed) > 1
        for log, (rank, position, rest) in self._read.items():
            try:
                with log.open("rb") as f:
                    f.seek(position)
                    data = f.read(-1 if last else _AT_ONCE)
            except OSError:
                continue
            *lines, rest = (rest + data).split(b"\n")
            if last and rest:
                lines, rest = [*lines, rest], b""
            self._read[log] = (rank, position + len(data), rest)
            texts = [line.decode(errors="replace").rstrip("\r") for line in lines]
            texts = [text for text in texts if not text.startswith(_SILENT)]
            if texts:
                self._last = texts[-1].strip()
                self._line("\n".join(f"[{rank}] {text}" if several else text for text in texts), sys.stdout)

    def close(self) -> None:
        """Take the status line away."""
        if self._live is not None:
            self._live.stop()
            self._live = None
