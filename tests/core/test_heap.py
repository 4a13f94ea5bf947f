"""Large blocks stay in the process: what a program touched once is not fetched from the system again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mycelia import core

PROGRAM = """
import resource, sys
import numpy as np
import mycelia as ms

def step(x):
    return ((x @ x) * 2).sum() + (x @ x.T).max()

x = ms.Tensor(np.ones((2048, 2048), np.float32))
run = ms.jit(step)
for _ in range(3):
    float(run(x))
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    float(run(x))
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(**environment):
    """Page faults of five runs of a program whose temporaries take some 30 MiB."""
    made = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | environment, capture_output=True, text=True, check=True,
        timeout=120,
    )  # fmt: skip
    return int(made.stdout)


@pytest.mark.skipif(not core.memory_is_kept, reason="only glibc's allocator can be told to keep memory")
def test_a_program_that_runs_again_fetches_no_pages():
    assert faults(MYCELIA_KEEP_MEMORY="1") < 1000
    assert faults(MYCELIA_KEEP_MEMORY="0") > 10000  # 30 MiB in pages of 4 KiB, five times


def test_it_can_be_switched_off():
    code = "import mycelia.core as core; print(core.memory_is_kept)"
    made = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"MYCELIA_KEEP_MEMORY": "0"}, capture_output=True, text=True,
        check=True, timeout=120,
    )  # fmt: skip
    assert made.stdout.strip() == "False"


ROOM = """
import ctypes
from mycelia.core import heap

libc, size = ctypes.CDLL("libc.so.6"), 64 << 20
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.posix_memalign.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]

def most():  # not what getrusage tells, which counts what the parent had
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith("VmHWM"))

def touched(size):
    place = ctypes.c_void_p()
    assert libc.posix_memalign(ctypes.byref(place), 64, size) == 0
    ctypes.memset(place, 1, size)
    return place

before, told, kept = most(), [], []
for k in range(6):
    if %r:
        told.append(heap.make_room(size))
    block = touched(size)
    kept.append(libc.malloc(2 * size))  # stays behind the block, never touched
    libc.free(block)
    size += 4096  # so that the gap is too small
print(most() - before, told.count(True))
"""


def grown(make_room: bool) -> tuple[int, int]:
    """MiB by which memory grows when a block of 64 MiB is used six times; how often free pages were given back."""
    made = subprocess.run(
        [sys.executable, "-c", ROOM % make_room], capture_output=True, text=True, check=True, timeout=120
    )
    most, times = made.stdout.split()
    return int(most), int(times)


@pytest.mark.skipif(not core.memory_is_kept, reason="only glibc's allocator can be told to keep memory")
def test_room_is_made_for_blocks_whose_gap_has_become_too_small():
    most, times = grown(make_room=True)
    assert most < 2 * 64
    assert times == 6
    assert grown(make_room=False)[0] > 5 * 64


STEPS = """
import numpy as np
import mycelia as ms
from mycelia.core import heap

asked = []
heap.make_room, real = lambda size: (asked.append(size), real(size))[1], heap.make_room

def step(x):
    y = ms.ops.sort(x)[0]
    return (y @ y.T).sum()

run, x = ms.jit(step), ms.Tensor(np.ones((SIDE, SIDE), np.float32))
for _ in range(4):
    float(run(x))
print(len(asked), asked[0] if asked else 0)
"""


def asked(side: int, **environment: str) -> tuple[int, int]:
    """How often room was made in four runs of a program on side x side numbers, and for how many bytes."""
    made = subprocess.run(
        [sys.executable, "-c", STEPS.replace("SIDE", str(side))], env=os.environ | environment, capture_output=True,
        text=True, check=True, timeout=120,
    )  # fmt: skip
    times, size = made.stdout.split()
    return int(times), int(size)


@pytest.mark.skipif(not core.memory_is_kept, reason="only glibc's allocator can be told to keep memory")
def test_programs_with_large_temporaries_make_room_from_the_second_run_on():
    times, size = asked(3000)
    assert times == 3
    assert size >= 3000 * 3000 * 4  # the sorted numbers are kept for the product
    assert asked(100) == (0, 0)
    assert asked(3000, MYCELIA_KEEP_MEMORY="0") == (0, 0)
