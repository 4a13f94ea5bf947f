"""A contender in a process of its own, spoken to in lines of JSON on standard input and output.

``python -m benchmarks.worker FRAMEWORK THREADS`` answers each request, an object with ``do``, by one object:

- ``setup`` (``workload``, ``small``, ``mode``, ``job``, ``precision``) makes a program: ``parameters``, ``version``
- ``step`` (``count``) runs it: ``ms``, the milliseconds of each step
- ``value``: the number that all frameworks have to agree on; ``flops``: of one step, or null
- ``memory``: in bytes, the resident memory after the import (``imported``), the most so far (``peak``), and the most
  since ``forget_peak`` (``since``; null where the system does not tell)
- ``peak`` (``precision``, ``side``, ``seconds``): ``rates`` of matrix products in GFLOP/s
- ``quit`` ends the process

The first line it writes says whether the framework could be imported. A request that fails is answered with ``error``.
What a framework prints goes to standard error.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1  # linux/prctl.h

FRAMEWORKS = {
    "mycelia": "mindspore", "mindspore": "mindspore", "torch": "torch", "jax": "jax", "onnxruntime": "onnxruntime",
}  # fmt: skip


def _status(key: str) -> int | None:
    """A size in this process's status, in bytes; None where there is no such file."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1]) * 1024
    return None


def peak_memory() -> int:
    """The most resident memory this process had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    found = _status("VmHWM")  # getrusage may count what the parent had when it forked
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit if found is None else found


def reset_peak() -> bool:
    """Let the most resident memory start anew from what is resident now; False where the system cannot."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # proc_pid_clear_refs(5)
    except OSError:
        return False
    return True


def die_with_parent() -> None:
    """On Linux, be killed when the parent ends, however it ends: a process that is stopped would stay for ever."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Worker:
    """Answers requests for one framework."""

    def __init__(self, framework: str, threads: int) -> None:
        self.framework, self.threads = framework, threads
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
        if framework == "mycelia":
            from mycelia import alias

            alias.install()
        self.programs = importlib.import_module(f"benchmarks.{FRAMEWORKS[framework]}_programs")
        if getattr(self.programs, "OURS", framework == "mycelia") != (framework == "mycelia"):
            raise ModuleNotFoundError(f"'mindspore' is not {framework} in this environment")
        self.program: Any = None
        self.imported, self.earlier, self.forgot = _status("VmRSS"), 0, False

    def setup(self, workload: str, small: bool, mode: str, job: str, precision: str) -> dict[str, Any]:
        from benchmarks.workloads import workload as named

        self.program = self.programs.program(named(workload, small), mode, job, precision, self.threads)
        return {"parameters": int(self.program.parameters), "version": str(self.program.version)}

    def step(self, count: int) -> dict[str, Any]:
        step, times = self.program.step, []
        for _ in range(count):
            start = time.perf_counter()
            step()
            times.append((time.perf_counter() - start) * 1e3)
        return {"ms": times}

    def value(self) -> dict[str, Any]:
        return {"value": self.program.value()}

    def flops(self) -> dict[str, Any]:
        return {"flops": self.program.flops()}

    def memory(self) -> dict[str, Any]:
        now = peak_memory()
        return {"imported": self.imported, "peak": max(now, self.earlier), "since": now if self.forgot else None}

    def forget_peak(self) -> dict[str, Any]:
        self.earlier = max(peak_memory(), self.earlier)
        self.forgot = reset_peak()
        return {}

    def peak(self, precision: str, side: int, seconds: float) -> dict[str, Any]:
        from benchmarks.peak import rates

        return {"rates": rates(self.framework, precision, self.threads, side, seconds)}


REQUESTS = ("setup", "step", "value", "flops", "memory", "forget_peak", "peak")


def failure(error: Exception) -> dict[str, Any]:
    """An error as an answer: its kind and its first line."""
    lines = str(error).strip().splitlines() or [""]
    return {"error": f"{type(error).__name__}: {lines[0]}"[:300]}


def main() -> None:
    die_with_parent()
    framework, threads = sys.argv[1], int(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def answer(given: dict[str, Any]) -> None:
        answers.write(json.dumps(given) + "\n")

    try:
        worker = Worker(framework, threads)
    except ImportError as error:
        answer(failure(error))
        return
    answer({"ready": framework})
    for line in sys.stdin:
        request = json.loads(line)
        what = request.pop("do")
        if what == "quit":
            answer({})
            return
        if what not in REQUESTS:
            answer({"error": f"unknown request {what!r}"})
            continue
        try:
            answer(getattr(worker, what)(**request))
        except Exception as error:  # whatever a framework raises is the answer; the parent reports it
            import traceback

            traceback.print_exc()
            answer(failure(error))


if __name__ == "__main__":
    main()
