"""Messages between launchers: a JSON object on each line of a TCP connection."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from typing import Any

#: The version of the messages; launchers of different ones do not work together.
VERSION = 1
#: Seconds between two signs of life.
PERIOD = 1.0
#: The longest message taken, in bytes.
_LIMIT = 1 << 20


class Wire:
    """One connection. Reading and writing never wait.

    Attributes:
        closed: whether it has ended, from whichever side.
        heard: when something came last, on the monotonic clock.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.closed = False
        self.heard = time.monotonic()
        self._said = 0.0
        self._in = b""
        self._out = b""

    def send(self, kind: str, **fields: Any) -> None:
        """Send a message."""
        self._said = time.monotonic()
        self._out += json.dumps({"kind": kind, **fields}).encode() + b"\n"
        self.flush()

    def beat(self) -> None:
        """Send a sign of life if nothing else was sent for a while."""
        if time.monotonic() - self._said >= PERIOD:
            self.send("beat")
        else:
            self.flush()

    def flush(self) -> None:
        """Send what could not be sent before."""
        try:
            while self._out and not self.closed:
                sent = self.socket.send(self._out)
                self._out = self._out[sent:]
        except BlockingIOError:
            pass
        except OSError:
            self.close()

    def finish(self, seconds: float = 2) -> None:
        """Send what is left, waiting for it a while, and close."""
        end = time.monotonic() + seconds
        self.flush()
        while self._out and not self.closed and time.monotonic() < end:
            time.sleep(0.01)
            self.flush()
        self.close()

    def receive(self) -> list[dict[str, Any]]:
        """The messages that have come; a peer that sends anything else is cut off."""
        try:
            while not self.closed:
                data = self.socket.recv(65536)
                if not data:
                    self.close()
                    break
                self.heard = time.monotonic()
                self._in += data
                if len(self._in) > _LIMIT:
                    self.close()
        except BlockingIOError:
            pass
        except OSError:
            self.close()
        *lines, self._in = self._in.split(b"\n")
        out = []
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                self.close()
                break
            if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
                self.close()
                break
            out.append(message)
        return out

    def close(self) -> None:
        """End the connection; the socket stays open, so that its number is not given away while it is watched."""
        self.closed = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Close the socket, too."""
        self.close()
        self.socket.close()
