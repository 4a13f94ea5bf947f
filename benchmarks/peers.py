"""Who is measured, and the processes they run in.

Each contender gets a fresh process with the same processors and an empty folder in the place of every cache of compiled
code, so that a first step is a first step. Requests and answers are lines of JSON (:mod:`benchmarks.worker`).
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

MODES = {
    "mycelia": ("graph", "pynative"), "torch": ("eager", "compile"), "jax": ("jit",),
    "mindspore": ("graph", "pynative"), "onnxruntime": ("session",),
}  # fmt: skip
PEERS = tuple(framework for framework in MODES if framework != "mycelia")

#: What ``bf16`` means for each framework.
BF16 = {
    "mycelia": "amp at level auto: products and convolutions in bfloat16; weights and updates in float32",
    "torch": "autocast: products and convolutions in bfloat16; weights and updates in float32",
    "jax": "operands of products and convolutions cast to bfloat16; weights and updates in float32",
}
_NOT_DONE = {
    ("mindspore", "bf16"): "MindSpore's CPU operators take no bfloat16",
    ("onnxruntime", "bf16"): "ONNX Runtime's CPU operators take no bfloat16",
    ("onnxruntime", "train"): "ONNX Runtime is measured in inference only",
}


def not_done(framework: str, job: str, precision: str) -> str | None:
    """Why a framework has no program for a job at a precision; None if it has one."""
    return _NOT_DONE.get((framework, job)) or _NOT_DONE.get((framework, precision))


@dataclass(frozen=True)
class Contender:
    """A framework in one of its modes, and the Python that has it."""

    framework: str
    mode: str
    python: str = sys.executable

    @property
    def label(self) -> str:
        """What tables call it."""
        return f"{self.framework} {self.mode}"


BASE = "mycelia graph"


def contenders(names: list[str], pythons: dict[str, str]) -> list[Contender]:
    """The contenders called ``framework`` (all its modes) or ``framework:mode``.

    Raises:
        ValueError: an unknown framework or mode.
    """
    found = []
    for name in names:
        framework, _, mode = name.partition(":")
        known = MODES.get(framework, ())
        if not known or (mode and mode not in known):
            choices = ", ".join(f"{f}:{m}" for f, modes in MODES.items() for m in modes)
            raise ValueError(f"unknown contender {name!r}; known are {choices}")
        for m in (mode,) if mode else known:
            found.append(Contender(framework, m, pythons.get(framework) or sys.executable))
    return found


class PeerError(Exception):
    """A contender is not there, could not do what it was asked, died or took too long."""


class PeerSlowError(PeerError):
    """A contender took too long."""


class Peer:
    """A worker process of one contender."""

    def __init__(self, framework: str, python: str, threads: int, limit: float) -> None:
        self.limit, self.closed = limit, False
        self.caches = tempfile.mkdtemp(prefix="benchmark-")
        self.said = open(os.path.join(self.caches, "stderr"), "w+b")  # noqa: SIM115 closed by close()
        count = str(threads)
        inherited = [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), *inherited]),
            "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count,
            "JAX_PLATFORMS": "cpu", "GLOG_v": "3",
            "MYCELIA_CACHE_DIR": f"{self.caches}/mycelia", "TORCHINDUCTOR_CACHE_DIR": f"{self.caches}/inductor",
            "TRITON_CACHE_DIR": f"{self.caches}/triton", "XDG_CACHE_HOME": f"{self.caches}/xdg",
        }  # fmt: skip
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        try:
            self.process = subprocess.Popen(
                [python, "-m", "benchmarks.worker", framework, count],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, cwd=self.caches, env=environment,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self._clean()
            raise PeerError(f"cannot start {python}: {error.strerror}") from None
        try:
            self._answer(limit)
        except BaseException:
            self.close()
            raise

    def ask(self, do: str, limit: float | None = None, **request: Any) -> dict[str, Any]:
        """The answer to a request; between requests the process is stopped, so that its threads do not even spin.

        Args:
            do: the request.
            limit: the seconds it may take; without it, those given for every request.
            request: what belongs to the request.

        Raises:
            PeerSlowError: the worker did not answer within the limit.
            PeerError: it answered with an error or died.
        """
        stdin = self.process.stdin
        assert stdin is not None
        try:
            os.killpg(self.process.pid, signal.SIGCONT)
            stdin.write(json.dumps({"do": do, **request}).encode() + b"\n")
            stdin.flush()
        except (BrokenPipeError, ProcessLookupError):
            raise PeerError(self._death()) from None
        try:
            return self._answer(self.limit if limit is None else limit)
        finally:
            if self.process.returncode is None:
                os.killpg(self.process.pid, signal.SIGSTOP)

    def _answer(self, limit: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        source, line = self.process.stdout.fileno(), b""
        until = time.monotonic() + limit
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([source], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise PeerSlowError(f"no answer within {limit:.3g} s")
            part = os.read(source, 65536)
            if not part:
                raise PeerError(self._death())
            line += part
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise PeerError(found["error"])
        return found

    def _death(self) -> str:
        """What is known of the end of the worker."""
        try:
            code: int | str = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            code = "no exit, its output closed"
        self.said.seek(0)
        last = self.said.read().decode(errors="replace").strip().rpartition("\n")[2]
        return f"ended with {code}: {last}"[:300]

    def close(self) -> None:
        """End the worker and whatever it started, and remove its folder; a second call does nothing."""
        if self.closed:
            return
        self.closed = True
        with suppress(ProcessLookupError):  # it had ended by itself
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):  # what was still to be written has no reader any more
                    stream.close()
        self._clean()

    def _clean(self) -> None:
        self.said.close()
        shutil.rmtree(self.caches, ignore_errors=True)
