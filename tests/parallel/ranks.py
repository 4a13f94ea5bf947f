"""Scripts run as several ranks, each a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

#: Seconds until ranks that have not ended are ended.
LIMIT = 180

_BEFORE = """
import os
DEVICES = int(os.environ["TEST_DEVICES"])
import jax
import numpy as np
if DEVICES > 1:
    jax.config.update("jax_num_cpu_devices", DEVICES)
import mycelia as ms
from mycelia import communication as comm, nn, ops
RANK, SIZE = int(os.environ["RANK_ID"]), int(os.environ["RANK_SIZE"])
"""


def free_port() -> int:
    """A port of the loopback interface that nothing listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def environment(rank: int, size: int, port: int) -> dict[str, str]:
    """The variables by which a rank knows its place."""
    return {
        **os.environ, "MS_WORKER_NUM": str(size), "RANK_SIZE": str(size), "RANK_ID": str(rank), "MS_NODE_ID": str(rank),
        "MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": str(port), "MS_ROLE": "MS_WORKER", "OMP_NUM_THREADS": "1",
    }  # fmt: skip


def run_ranks(size: int, body: str, folder: Path, before: str = _BEFORE, devices: int = 1) -> list[str]:
    """What each of ``size`` ranks that run ``body`` prints; all of them have to succeed.

    ``body`` finds ``ms``, ``nn``, ``ops``, ``comm``, ``np``, ``RANK`` and ``SIZE``; a process has ``devices`` devices.
    """
    script = folder / "script.py"
    script.write_text(before + textwrap.dedent(body))
    port = free_port()
    logs = [folder / f"rank_{rank}.log" for rank in range(size)]
    processes = []
    try:
        for rank, log in enumerate(logs):
            with log.open("wb") as out:
                processes.append(
                    subprocess.Popen(
                        [sys.executable, str(script)],
                        env={**environment(rank, size, port), "TEST_DEVICES": str(devices)},
                        stdout=out,
                        stderr=subprocess.STDOUT,
                        cwd=folder,
                    )
                )
        end = time.monotonic() + LIMIT
        codes: list[int | None] = [None] * size
        while None in codes and not any(codes) and time.monotonic() < end:
            for rank, process in enumerate(processes):
                if codes[rank] is None:
                    try:
                        codes[rank] = process.wait(0.05)
                    except subprocess.TimeoutExpired:
                        continue
    finally:
        for process in processes:
            process.kill()
            process.wait()
    texts = [log.read_text(errors="replace") for log in logs]
    for rank, (code, text) in enumerate(zip(codes, texts, strict=True)):
        assert code == 0 or any(c for c in codes if c), f"rank {rank} did not end:\n{text}"
    failed = [f"rank {rank} ended with {code}:\n{texts[rank]}" for rank, code in enumerate(codes) if code]
    assert not failed, "\n".join(failed)
    return texts
