"""Keep large blocks of memory in the process between uses.

XLA's CPU client allocates the temporaries of a program anew at each run. glibc maps blocks of more than some hundred
kilobytes one by one and unmaps them when they are freed, so each run would touch fresh pages, and the page faults cost
up to a fifth of a training step. Here glibc is told to serve all sizes from its heap, to keep what is freed there, and
to use one heap for all threads (mallopt(3)); and the range the heap will grow into is marked for huge pages
(madvise(2)), where the system leaves that to the program. Nothing is touched, so the memory in use does not grow.

``MYCELIA_KEEP_MEMORY=0`` leaves all that as it is.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

# From malloc.h and sys/mman.h of Linux.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -2, -4, -8
_MADV_HUGEPAGE = 14

_HUGE_PAGE = 2 << 20
#: The heap grows by this much at a time (bytes).
_STEP = 64 << 20
#: At most this much is marked for huge pages in advance (bytes).
_MOST_MARKED = 32 << 30

_THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")


def _system(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def keep_large_blocks() -> bool:
    """Set the allocator up; whether that was done. Only Linux's glibc knows these settings."""
    if os.environ.get("MYCELIA_KEEP_MEMORY", "1") == "0" or not sys.platform.startswith("linux"):
        return False
    try:
        libc = ctypes.CDLL("libc.so.6")
        mallopt, malloc, free, madvise = libc.mallopt, libc.malloc, libc.free, libc.madvise
    except (OSError, AttributeError):  # another C library
        return False
    malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    free.argtypes = [ctypes.c_void_p]
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    settings = (_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, -1), (_M_TOP_PAD, _STEP), (_M_ARENA_MAX, 1)
    if not all([mallopt(name, value) for name, value in settings]):
        return False
    # With strict accounting of memory a range that is not used would be missing elsewhere.
    if "[madvise]" in _system(_THP) and _system(_OVERCOMMIT) != "2":
        size = min(_MOST_MARKED, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
        start = malloc(size)
        if start:
            first = -(-start // _HUGE_PAGE) * _HUGE_PAGE
            madvise(first, (start + size - first) // _HUGE_PAGE * _HUGE_PAGE, _MADV_HUGEPAGE)
            free(start)
    return True
