"""Saving in the background: one thread at a time, in the order of the calls.

A failure is never lost: it is logged at once, raised by the next call that saves or waits, and raised at
the exit of the interpreter if there was none. The interpreter waits for the thread.
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable

from mycelia.core.errors import StateError

_logger = logging.getLogger("mycelia")
_THREAD_NAME = "asyn_save_ckpt"

_lock = threading.Lock()
_thread: threading.Thread | None = None
_failures: list[tuple[str, BaseException]] = []


def start(path: str, save: Callable[[], None]) -> None:
    """Run ``save`` in the background, after the one before it.

    Raises:
        StateError: an earlier save failed; this one is not started.
    """
    global _thread
    with _lock:
        _join()
        _raise_failure()
        _thread = threading.Thread(target=_run, args=(path, save), name=_THREAD_NAME)
        _thread.start()


def wait() -> None:
    """Wait until nothing is being saved in the background.

    Raises:
        StateError: a save failed since the last call.
    """
    with _lock:
        _join()
        _raise_failure()


def is_running() -> bool:
    """Whether something is being saved in the background."""
    thread = _thread
    return thread is not None and thread.is_alive()


def _run(path: str, save: Callable[[], None]) -> None:
    try:
        save()
    except BaseException as error:
        _failures.append((path, error))
        _logger.error("the asynchronous save of %s failed: %s: %s", path, type(error).__name__, error)


def _join() -> None:
    global _thread
    if _thread is not None and _thread is not threading.current_thread():
        _thread.join()
        _thread = None


def _raise_failure() -> None:
    if not _failures:
        return
    failed = _failures[:]
    _failures.clear()
    path, error = failed[0]
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    raise StateError(
        "save_checkpoint",
        message=f"the earlier asynchronous save of {path} failed{more}: {type(error).__name__}: {error}",
        hint="the file of this call, if it is one that saves, was not written; repeat it once the cause is gone",
    ) from error


atexit.register(wait)
