"""Files that are either the old one or the whole new one.

The new content goes to a temporary file in the same directory, is forced to the disk (``fsync``), takes
the final name in one atomic ``rename``, and the directory entry is forced to the disk too. Whatever
interrupts the writing, the file under the final name is untouched. As MindSpore's, a finished file is
readable by its owner and by nobody else (mode ``0400`` on POSIX systems).
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_FINISHED_MODE = 0o400


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of an empty temporary file; it takes the place of ``path`` when the block ends well.

    A symbolic link is followed, so that it still points to the file afterwards.

    Raises:
        OSError: the directory is missing or read-only, the disk is full.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "a.bin") as temporary:
    ...     _ = temporary.write_bytes(b"whole")
    >>> (folder / "a.bin").read_bytes()
    b'whole'
    """
    final = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(prefix=f".{final.name[:64]}.", suffix=".tmp", dir=final.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        if os.name == "posix":
            os.chmod(temporary, _FINISHED_MODE)
        os.replace(temporary, final)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(final.parent)


def _sync_directory(directory: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
