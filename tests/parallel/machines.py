"""Two machines that are none: network namespaces with a cable between them, host names of their own.

Needs root and the tools ``ip``, ``unshare`` and ``mount``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType

#: The addresses of the two.
ADDRESSES = ("10.201.77.1", "10.201.77.2")
#: Their names, which each of them takes for 127.0.1.1, as many systems do.
NAMES = ("ada", "bob")


def possible() -> bool:
    """Whether namespaces can be made here."""
    if os.geteuid() != 0 or not all(shutil.which(tool) for tool in ("ip", "unshare", "mount", "sh")):
        return False
    name = f"myc-try-{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return False
    mounted = [
        "ip",
        "netns",
        "exec",
        name,
        "unshare",
        "--mount",
        "--uts",
        "mount",
        "--bind",
        "/etc/hosts",
        "/etc/hosts",
    ]
    works = subprocess.run(mounted, capture_output=True, check=False).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return works


class Machines:
    """Two machines as long as the ``with`` lasts.

    Args:
        folder: takes their ``/etc/hosts``.
    """

    def __init__(self, folder: Path) -> None:
        self.spaces = [f"myc-{os.getpid()}-{i}" for i in range(2)]
        self.cables = [f"myc{os.getpid()}{end}" for end in "ab"]
        self.hosts = []
        for name in NAMES:
            self.hosts.append(folder / f"hosts.{name}")
            self.hosts[-1].write_text(f"127.0.0.1 localhost\n127.0.1.1 {name}\n")

    def __enter__(self) -> Machines:
        try:
            for space in self.spaces:
                _ip("netns", "add", space)
            _ip("link", "add", self.cables[0], "netns", self.spaces[0], "type", "veth", "peer", "name",
                self.cables[1], "netns", self.spaces[1])  # fmt: skip
            for space, cable, address in zip(self.spaces, self.cables, ADDRESSES, strict=True):
                _ip("-n", space, "addr", "add", f"{address}/24", "dev", cable)
                _ip("-n", space, "link", "set", "lo", "up")
                _ip("-n", space, "link", "set", cable, "up")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None:
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)

    def command(self, machine: int, arguments: list[str]) -> list[str]:
        """What runs a command on one of the machines."""
        inside = 'mount --bind "$0" /etc/hosts && echo "$1" > /proc/sys/kernel/hostname && shift && exec "$@"'
        return ["ip", "netns", "exec", self.spaces[machine], "unshare", "--mount", "--uts", "sh", "-c", inside,
                str(self.hosts[machine]), NAMES[machine], *arguments]  # fmt: skip

    def cut(self, cut: bool = True) -> None:
        """Pull the cable, or plug it in again."""
        _ip("-n", self.spaces[1], "link", "set", self.cables[1], "down" if cut else "up")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
