"""Keep large blocks of memory in the process between uses.

XLA's CPU client allocates the temporaries of a program anew at each run. glibc maps blocks of more than some hundred
kilobytes one by one and unmaps them when they are freed, so each run would touch fresh pages, and the page faults cost
up to a fifth of a training step. Here glibc is told to serve all sizes from its heap, to keep what is freed there, and
to use one heap for all threads (mallopt(3)); and the range the heap will grow into is marked for huge pages
(madvise(2)), where the system leaves that to the program. Nothing is touched, so the memory in use does not grow.

A block that was freed is not always found again. XLA aligns its blocks, and glibc looks for a gap with room for the
alignment as well; what is left over behind the block may be given away meanwhile. Then the next run is served from
pages that were never touched while the gap stays resident, and a program holds its temporaries twice. ``make_room``
asks for such a block before the run: where it would be made of fresh pages, free ones are given back first
(malloc_trim(3)).

``MYCELIA_KEEP_MEMORY=0`` leaves all that as it is.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from pathlib import Path

# From malloc.h and sys/mman.h of Linux.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -2, -4, -8
_MADV_DONTNEED, _MADV_HUGEPAGE = 4, 14

_HUGE_PAGE = 2 << 20
_PAGE = mmap.PAGESIZE
#: What posix_memalign(3) of glibc asks for beyond the size: XLA's alignment and the least size of a block.
_ALIGNING = 64 + 32
#: A gap has to be larger than a block by this much (bytes): small blocks are put there in the meantime.
_SLACK = 256 << 10
#: More than the small blocks of one size that glibc stores for each thread.
_STORED = 12
#: So many gaps are kept from use at most.
_MOST_SPOILERS = 16
#: Blocks from this size on (bytes) are worth a look at where they would lie.
LARGE = 32 << 20
#: The heap grows by this much at a time (bytes).
_STEP = 64 << 20
#: At most this much is marked for huge pages in advance (bytes).
_MOST_MARKED = 32 << 30

_THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")


_libc: ctypes.CDLL | None = None
_spoilers: list[int] = []


def _system(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def keep_large_blocks() -> bool:
    """Set the allocator up; whether that was done. Only Linux's glibc knows these settings."""
    global _libc
    if os.environ.get("MYCELIA_KEEP_MEMORY", "1") == "0" or not sys.platform.startswith("linux"):
        return False
    try:
        libc = ctypes.CDLL("libc.so.6")
        mallopt, malloc, free, madvise = libc.mallopt, libc.malloc, libc.free, libc.madvise
        realloc, trim, mincore = libc.realloc, libc.malloc_trim, libc.mincore
    except (OSError, AttributeError):  # another C library
        return False
    malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    realloc.restype, realloc.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]
    free.argtypes = [ctypes.c_void_p]
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    trim.argtypes = [ctypes.c_size_t]
    mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
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
    _libc = libc
    return True


def _resident(block: int, size: int) -> bool:
    """Whether the middle of a block is in memory."""
    assert _libc is not None
    address = block + size // 2
    told = ctypes.c_ubyte()
    return _libc.mincore(address // _PAGE * _PAGE, 1, ctypes.byref(told)) == 0 and bool(told.value & 1)


def make_room(size: int) -> bool:
    """Call this when a block of ``size`` bytes (``LARGE`` or more) is about to be allocated.

    Gives free pages back to the system if the block would not be made of pages that are resident already; returns
    whether it did. Without ``keep_large_blocks`` nothing is done.
    """
    if _libc is None:
        return False
    block = _libc.malloc(size + _SLACK)
    if not block:
        return False  # whoever needs it tells
    found = _resident(block, size)
    held = [block]
    if not found:
        while (other := _gap(size + _SLACK)) is not None:  # glibc takes the smallest gap, resident or not
            _discard(other, size)
            held.append(other)
        while len(_spoilers) < _MOST_SPOILERS and (other := _gap(size + _ALIGNING)) is not None:
            _spoilers.append(_libc.realloc(other, _SLACK))  # what is left of the gap is too small now
        _libc.malloc_trim(2 * _MOST_MARKED)  # the end of the heap stays as it is, marked for huge pages
        # What is left over behind a block joins what follows unless this thread's store of small ones has room for it.
        held += [_libc.malloc(n) for n in range(24, 120, 16) for _ in range(_STORED)]
    for other in held:
        _libc.free(other)
    return not found


def _gap(size: int) -> int | None:
    """A new block of pages that are in memory; None if there would be none."""
    assert _libc is not None
    block: int | None = _libc.malloc(size)
    if block and not _resident(block, size):
        _libc.free(block)
        return None
    return block


def _discard(block: int, size: int) -> None:
    """Give the pages of a block back to the system."""
    assert _libc is not None
    first = -(-block // _HUGE_PAGE) * _HUGE_PAGE
    _libc.madvise(first, (block + size - first) // _HUGE_PAGE * _HUGE_PAGE, _MADV_DONTNEED)
