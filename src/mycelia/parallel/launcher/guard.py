"""Ends the ranks if the launcher dies: a small process that reads which process groups there are, until the end.

Runs by itself, without the package: each line is ``+GROUP`` or ``-GROUP``. When the launcher is gone, however it went,
the pipe ends, and the groups that are left are killed.
"""

import contextlib
import os
import signal
import sys


def _main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    while line := sys.stdin.buffer.readline():
        group = int(line[1:])
        if line[:1] == b"+":
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    _main()
