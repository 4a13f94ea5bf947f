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
