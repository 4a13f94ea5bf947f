"""The program of a worker process, and the frames that pass between it and its parent.

A worker is a new interpreter that runs this file, so nothing of the parent's threads or of XLA is
inherited and the user's main script is not run again. Frames go over the standard input and output:
a head (number of buffers, length of the pickle, lengths of the buffers), the pickle (protocol 5), and the
arrays' buffers out of band (PEP 574). The worker ends when its input ends, that is, also when its parent
dies. The user's functions come by value (cloudpickle) or by the name of their module.

The package itself is entered in ``sys.modules`` unexecuted: its submodules can be imported one by one, and
its own ``__init__``, which brings in the engine, runs only if user code asks for one of its names.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import pickle
import signal
import struct
import sys
import time
import traceback
import types
from typing import IO, Any

import numpy as np

_IN_BAND = 4096
LAZY_PACKAGES = ("mycelia", "mycelia.core")


def write_frame(stream: IO[bytes], message: Any) -> None:
    """Write one message; arrays of a few KiB and more are sent without a copy into the pickle."""
    buffers: list[memoryview] = []

    def keep(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _IN_BAND:
            return True
        buffers.append(raw)
        return False

    body = pickle.dumps(message, protocol=5, buffer_callback=keep)
    head = struct.pack(f"<IQ{len(buffers)}Q", len(buffers), len(body), *(b.nbytes for b in buffers))
    stream.write(head)
    stream.write(body)
    for buffer in buffers:
        stream.write(buffer)
    stream.flush()


def read_frame(stream: IO[bytes]) -> Any:
    """Read one message; EOFError at the end of the stream."""
    count, length = struct.unpack("<IQ", _exactly(stream, 12))
    lengths = struct.unpack(f"<{count}Q", _exactly(stream, 8 * count))
    body = _exactly(stream, length)
    return pickle.loads(body, buffers=[_filled(stream, np.empty(n, np.uint8).data) for n in lengths])


def _exactly(stream: IO[bytes], size: int) -> bytearray:
    data = bytearray(size)
    _filled(stream, memoryview(data))
    return data


def _filled(stream: IO[bytes], view: memoryview) -> memoryview:
    done, size = 0, len(view)
    while done < size:
        got = stream.readinto(view[done:])  # type: ignore[attr-defined]
        if not got:
            raise EOFError
        done += got
    return view


class _Unexecuted(types.ModuleType):
    """A package whose ``__init__`` runs when a name is asked for that is not one of its submodules."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        if importlib.util.find_spec(full) is not None:
            return importlib.import_module(full)
        self.__class__ = types.ModuleType  # type: ignore[assignment]
        spec = self.__spec__
        assert spec is not None
        assert spec.loader is not None
        spec.loader.exec_module(self)
        return getattr(self, name)


def enter_unexecuted(name: str) -> None:
    """Put the package ``name`` into ``sys.modules`` without running its ``__init__``."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    module = _Unexecuted(name)
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    module.__path__ = list(spec.submodule_search_locations or [])
    module.__package__ = name
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until they end."""
    start = read_frame(requests)
    sys.path[:] = start["path"]
    for name in LAZY_PACKAGES:
        enter_unexecuted(name)
    importlib.import_module("mycelia.core.heap").keep_large_blocks()
    try:
        task = pickle.loads(start["task"])
    except BaseException as error:
        text = traceback.format_exc()
        write_frame(answers, ("unusable", f"{type(error).__name__}: {error}", text))
        return
    write_frame(answers, ("ready",))
    while True:
        try:
            ticket, key, samples, values = read_frame(requests)
        except EOFError:
            return
        began, results = time.perf_counter(), []
        for sample, value in zip(samples, values, strict=True):
            try:
                results.append(task.run(key, sample, value, True))
            except Exception as error:
                results.append(task.report(error, sample))
        write_frame(answers, ("done", ticket, results, time.perf_counter() - began))


def main() -> None:
    """Take the standard streams for frames; what user code prints goes to the standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Unbuffered reads: a frame is read to its end and no further.
    requests = io.BufferedReader(io.FileIO(os.dup(0)))
    answers = io.BufferedWriter(io.FileIO(os.dup(1), "w"))
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    # One thread per worker: the workers are the parallelism.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    try:
        serve(requests, answers)
    except (BrokenPipeError, EOFError):
        pass  # the parent is gone
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
