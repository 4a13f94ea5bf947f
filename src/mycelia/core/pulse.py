"""What a rank tells the launcher that started it: that it lives, and that it failed.

The launcher hands each rank the writing end of a pipe, its number in the variable :data:`VARIABLE`. A thread writes a
byte to it every second, so a rank that is stopped falls silent; a rank that an error ends says so at once, with another
byte, before anything else happens.

A rank that fails must not wait for the others when it ends: JAX's own farewell is a barrier that ranks inside a
collective never reach, and they in turn wait for the rank that failed. So it ends right after its error is printed.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import signal
import stat
import sys
import threading
import time
from types import TracebackType
from typing import Any, Final, NoReturn

#: Names the pipe to the launcher.
VARIABLE: Final = "MYCELIA_PULSE_FD"
#: Seconds between two signs of life.
PERIOD: Final = 1.0
#: What is written: alive; ended by an error; ended by an error that another rank's end brings about. The exit code
#: follows the last two, as two hexadecimal digits.
ALIVE, FAILED, DRAWN = b".", b"E", b"C"

#: What the errors say that other ranks' end brings about.
LOST_PARTNER: Final = re.compile(
    r"Gloo [\w-]+ failed|[Cc]oordination ?[Ss]ervice|JAX distributed service|Connection (closed|reset) by peer"
)


class _Pulse:
    """The pipe of this process, and the code it ends with if it failed."""

    def __init__(self) -> None:
        self.pipe: int | None = None
        self.installed = False
        self.code: int | None = None


_pulse = _Pulse()


def start() -> None:
    """Begin to tell the launcher that this process lives; nothing happens without one."""
    text = os.environ.pop(VARIABLE, "")  # processes that this one starts are not ranks
    if not text.isdecimal():
        return
    pipe = int(text)
    try:
        if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
            return
        os.set_inheritable(pipe, False)
    except OSError:  # the variable came from a process that is no launcher of this one
        return
    _pulse.pipe = pipe
    threading.Thread(target=_beat, args=(pipe,), name="pulse", daemon=True).start()


def _beat(pipe: int) -> None:
    while True:
        try:
            os.write(pipe, ALIVE)
        except BlockingIOError:
            pass  # the launcher reads late; the bytes in the pipe say the same
        except OSError:  # it is gone, and nobody else would end this process
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(PERIOD)


def leave_when_failing() -> None:
    """From now on an error that ends the program, or ``sys.exit`` with a code, ends it without waiting for others."""
    if _pulse.installed:
        return
    _pulse.installed = True
    shown = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        shown(kind, error, traceback)
        _fail(130 if issubclass(kind, KeyboardInterrupt) else 1, DRAWN if LOST_PARTNER.search(str(error)) else FAILED)

    sys.excepthook = hook
    sys.exit = _exit
    atexit.register(_leave)  # registered after the engine's own farewell, so it runs before that


class _Exit(SystemExit):
    """What ``sys.exit`` raises. The interpreter asks for its code only when it really ends, from no frame at all."""

    @property
    def code(self) -> Any:  # type: ignore[override]
        value = self.args[0] if self.args else None
        if value not in (None, 0) and sys._getframe().f_back is None:
            _fail(value & 0xFF if isinstance(value, int) else 1, FAILED)
        return value


def _exit(status: Any = None, /) -> NoReturn:
    raise _Exit(status)


def _fail(code: int, sign: bytes) -> None:
    if _pulse.code is None:
        _pulse.code = code
        if _pulse.pipe is not None:
            with contextlib.suppress(OSError):
                os.write(_pulse.pipe, sign + b"%02x" % code)


def _leave() -> None:
    if _pulse.code is None:
        return
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(_pulse.code)
