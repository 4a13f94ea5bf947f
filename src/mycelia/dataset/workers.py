"""Threads and processes that run a task on the samples of a sequence, and give the results in order.

A *task* has ``run(key, sample, value, isolated)``, which gives a result or raises, and
``report(error, sample)``, which makes a :class:`SampleFailure` of what it raised. Samples go out in
chunks; a chunk grows until running it takes a few milliseconds, so that cheap samples do not drown in
messages and expensive ones are spread evenly. A bounded number of chunks is under way, and results come
back in the order of the samples whatever the chunks and workers were.

Processes are our own rather than ``grain``'s: those run the main script again, which asks every script for
a guard, and stride over indices by worker, which generators and filters do not allow.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import itertools
import logging
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from mycelia.core.errors import ArgumentTypeError, StateError
from mycelia.dataset import config, worker_main
from mycelia.dataset.failures import SampleFailure

_log = logging.getLogger("mycelia.dataset")
_CHUNK_SECONDS = 0.004
_CHUNK_LIMIT = 64
_GRACE_SECONDS = 5.0
_JOIN_SECONDS = 0.5


class Task(Protocol):
    """What workers run; it travels to processes by pickle."""

    def run(self, key: int, sample: int, value: Any, isolated: bool) -> Any:
        """The result for one sample."""

    def report(self, error: BaseException, sample: int) -> SampleFailure:
        """What to say of an exception that ``run`` raised."""


def attempt(task: Task, key: int, sample: int, value: Any) -> Any:
    """The result for one sample, or a :class:`SampleFailure`."""
    try:
        return task.run(key, sample, value, False)
    except Exception as error:
        return task.report(error, sample)


class Pool(Protocol):
    """Workers that take chunks of samples."""

    size: int

    def submit(self, key: int, samples: list[int], values: list[Any]) -> Any:
        """Hand out a chunk; gives its ticket."""

    def collect(self, ticket: Any) -> tuple[list[Any], float]:
        """Wait for a chunk: its results, and the seconds it took."""

    def discard(self, ticket: Any) -> None:
        """Say that the results of a chunk are not wanted any more."""

    def close(self) -> None:
        """End the workers now."""


def _join(threads: list[threading.Thread]) -> None:
    """Wait a moment for threads to end; not for the caller's own."""
    until = time.monotonic() + _JOIN_SECONDS
    for thread in list(threads):
        if thread is not threading.current_thread():
            thread.join(max(until - time.monotonic(), 0.0))


class ThreadPool:
    """Threads of this process."""

    def __init__(self, task: Task, size: int) -> None:
        self.size, self._task = size, task
        self._threads: list[threading.Thread] = []
        self._executor = concurrent.futures.ThreadPoolExecutor(
            size, "mycelia-dataset", lambda: self._threads.append(threading.current_thread())
        )
        self._closed = False

    def _work(self, key: int, samples: list[int], values: list[Any]) -> tuple[list[Any], float]:
        began = time.perf_counter()
        results = [attempt(self._task, key, s, v) for s, v in zip(samples, values, strict=True) if not self._closed]
        return results, time.perf_counter() - began

    def submit(self, key: int, samples: list[int], values: list[Any]) -> Any:
        return self._executor.submit(self._work, key, samples, values)

    def collect(self, ticket: Any) -> tuple[list[Any], float]:
        results: tuple[list[Any], float] = ticket.result()
        return results

    def discard(self, ticket: Any) -> None:
        ticket.cancel()

    def close(self) -> None:
        self._closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)
        _join(self._threads)  # what they do to the current sample may take longer


class ProcessPool:
    """Worker processes; see :mod:`mycelia.dataset.worker_main`.

    Args:
        task: what they run.
        size: how many.
        where: the method the user called, for messages.

    Raises:
        ArgumentTypeError: the task cannot be pickled.
    """

    def __init__(self, task: Task, size: int, where: str) -> None:
        import cloudpickle  # type: ignore[import-untyped]

        self.size, self._where = size, where
        try:
            data = cloudpickle.dumps(task, protocol=5)
        except Exception as error:  # whatever an object's own pickling raises
            raise ArgumentTypeError(
                where,
                message=f"what worker processes would run cannot be sent to them: {type(error).__name__}: {error}",
                hint="open files, locks and connections inside the function, or pass python_multiprocessing=False",
            ) from error
        self._inbox: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._done: dict[int, tuple[list[Any], float]] = {}
        self._unwanted: set[int] = set()
        self._tickets = itertools.count()
        self._lock = threading.RLock()
        self._closed = False
        self._owner: dict[int, int] = {}
        self._load = [0] * size
        self._processes: list[subprocess.Popen[bytes]] = []
        self._readers: list[threading.Thread] = []
        command = [sys.executable, worker_main.__file__]
        try:
            for _ in range(size):
                self._processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            for number, process in enumerate(self._processes):
                name = f"mycelia-dataset-reader-{number}"
                reader = threading.Thread(target=_read, args=(process, number, self._inbox), name=name, daemon=True)
                reader.start()
                self._readers.append(reader)
                self._write(number, {"path": list(sys.path), "task": data})
        except BaseException:
            self.close()
            raise

    def _write(self, number: int, message: Any) -> None:
        stream = self._processes[number].stdin
        assert stream is not None
        try:
            worker_main.write_frame(stream, message)
        except (OSError, ValueError):  # its end of the pipe is closed, or ours is
            raise self._death(number) from None

    def submit(self, key: int, samples: list[int], values: list[Any]) -> int:
        ticket = next(self._tickets)
        number = min(range(self.size), key=self._load.__getitem__)
        self._owner[ticket] = number
        self._load[number] += 1
        self._write(number, (ticket, key, samples, values))
        return ticket

    def collect(self, ticket: int) -> tuple[list[Any], float]:
        waited = 0.0
        while ticket not in self._done:
            began = time.monotonic()
            try:
                message = self._inbox.get(timeout=config.get_multiprocessing_timeout_interval())
            except queue.Empty:
                waited += time.monotonic() - began
                if config.get_enable_watchdog():
                    _log.warning("%s: worker processes have given nothing for %.0f s", self._where, waited)
                continue
            self._receive(message)
        return self._done.pop(ticket)

    def discard(self, ticket: int) -> None:
        if self._done.pop(ticket, None) is None:
            self._unwanted.add(ticket)

    def _receive(self, message: tuple[Any, ...]) -> None:
        if message[0] == "done":
            _, ticket, results, seconds = message
            self._load[self._owner.pop(ticket)] -= 1
            if ticket in self._unwanted:
                self._unwanted.discard(ticket)
            else:
                self._done[ticket] = results, seconds
        elif message[0] == "unusable":
            raise StateError(
                self._where,
                message=f"a worker process cannot load what it should run: {message[1]}\n{message[2].rstrip()}",
                hint="keep the function in a module that a new interpreter can import, or in the main script",
            )
        elif message[0] == "ended":
            raise self._death(message[1])
        elif message[0] == "closed":
            raise StateError(self._where, message="the pipeline was closed while it waited for worker processes")

    def _death(self, number: int) -> StateError:
        if self._closed:
            return StateError(self._where, message="the pipeline has been closed")
        process = self._processes[number]
        try:
            code = process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        how = f"killed by signal {-code} ({_signal_name(-code)})" if code < 0 else f"exit code {code}"
        return StateError(
            self._where,
            message=f"worker process {number} (pid {process.pid}) ended while it had samples to do: {how}",
            hint="signal 9 is often the system's answer to a lack of memory: try fewer workers",
        )

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._inbox.put(("closed",))
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            assert process.stdin is not None
            with contextlib.suppress(OSError):  # a frame was half written to the worker that has just ended
                process.stdin.close()
        _join(self._readers)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _read(process: subprocess.Popen[bytes], number: int, inbox: queue.SimpleQueue[tuple[Any, ...]]) -> None:
    """Bring what one worker writes to the inbox, until it ends."""
    stream = process.stdout
    assert stream is not None
    with stream:
        while True:
            try:
                inbox.put(worker_main.read_frame(stream))
            except (EOFError, OSError, ValueError):
                break
    inbox.put(("ended", number))


def in_order(pool: Pool, key: int, values: Iterable[Any], first: int = 0) -> Iterator[Any]:
    """Run the pool's task on ``values``, numbered from ``first``; results and failures in order."""
    source = iter(values)
    pending: collections.deque[Any] = collections.deque()
    window = 2 * pool.size + 2
    chunk, sample, more = 1, first, True
    trouble: Exception | None = None
    try:
        while pending or more:
            while more and len(pending) < window:
                part: list[Any] = []
                try:
                    while len(part) < chunk:
                        part.append(next(source))
                except StopIteration:
                    more = False
                except Exception as error:  # what comes before it is given first
                    more, trouble = False, error
                if part:
                    pending.append(pool.submit(key, list(range(sample, sample + len(part))), part))
                    sample += len(part)
            if pending:
                results, seconds = pool.collect(pending.popleft())
                if results:
                    wanted = int(_CHUNK_SECONDS * len(results) / max(seconds, 1e-6))
                    chunk = max(1, min(wanted, _CHUNK_LIMIT, 2 * chunk))
                yield from results
        if trouble is not None:
            raise trouble
    finally:
        for ticket in pending:
            pool.discard(ticket)
