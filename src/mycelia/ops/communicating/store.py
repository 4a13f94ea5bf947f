"""A store of keys and values that processes share: one of them serves it over TCP, the others are its clients.

A request is a byte that says what is asked, then the key, then a value, each behind its length (four bytes, eight for a
value; big-endian). The answer is a byte (0: fine, 1: no such key in time, 2: refused) and a value. Each client has one
connection and the server one thread for each; a thread that waits for a key sleeps on a condition.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import sys
import threading
import time
from datetime import timedelta
from typing import Any, Final

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError

_SET, _GET, _ADD, _DELETE, _WORKERS = b"S", b"G", b"A", b"D", b"W"
_FINE, _LATE, _REFUSED = b"\0", b"\1", b"\2"
#: Bytes that a key and a value have at most.
LONGEST_KEY: Final = 4096
LONGEST_VALUE: Final = 1 << 30


def _receive(connection: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = connection.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise ConnectionError("the other side has closed the connection")
        parts += part
    return bytes(parts)


def _send(connection: socket.socket, what: bytes, value: bytes) -> None:
    connection.sendall(what + struct.pack(">Q", len(value)) + value)


class _Shared(socketserver.ThreadingTCPServer):
    """The server: what is stored, and how many have come."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int]) -> None:
        self.values: dict[str, bytes] = {}
        self.workers = 0
        self.changed = threading.Condition()
        super().__init__(address, _Answer)


class _Answer(socketserver.BaseRequestHandler):
    """One client's connection."""

    server: _Shared
    request: socket.socket

    def handle(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):  # the client has gone
            while True:
                what = _receive(self.request, 1)
                length, bytes_ = struct.unpack(">IQ", _receive(self.request, 12))
                if length > LONGEST_KEY or bytes_ > LONGEST_VALUE:
                    return
                key = _receive(self.request, length).decode()
                _send(self.request, *self._answer(what, key, _receive(self.request, bytes_)))

    def _answer(self, what: bytes, key: str, value: bytes) -> tuple[bytes, bytes]:
        shared = self.server
        with shared.changed:
            if what == _SET:
                shared.values[key] = value
            elif what == _ADD:
                try:
                    value = str(int(shared.values.get(key, b"0")) + int(value)).encode()
                except ValueError:
                    return _REFUSED, shared.values[key][:40]
                shared.values[key] = value
            elif what == _DELETE:
                value = b"1" if shared.values.pop(key, None) is not None else b"0"
            elif what == _WORKERS:
                shared.workers += int(value)
                value = str(shared.workers).encode()
            elif not shared.changed.wait_for(lambda: key in shared.values, float(value)):
                return _LATE, b""
            else:
                return _FINE, shared.values[key]
            shared.changed.notify_all()
            return _FINE, value


def _check(where: str, argument: str, value: Any, kind: type | tuple[type, ...], takes: str) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes=takes)


class TCPStore:
    """A store of keys and values that processes share.

    Args:
        host_name: name or address of the machine that serves it.
        port: its port there; 0 (for the one that serves) is any free one, which :attr:`port` then tells.
        world_size: how many clients there will be, the server's own among them; None: any number.
        is_master: whether this process serves the store.
        timeout: how long to wait for the server, for the clients, and in :meth:`get`.
        wait_for_workers: whether the server waits until all clients have come.
        multi_tenant, master_listen_fd, use_libuv: accepted; there is nothing to set.

    Raises:
        StateError: the port is in use, the server did not answer, or the clients did not come in time.

    >>> from mycelia.ops.communication import TCPStore
    >>> store = TCPStore("127.0.0.1", 0, 1, True)
    >>> store.set("name", "mycelia")
    >>> store.get("name"), store.add("count", 2), store.add("count", 3), store.delete_key("name")
    (b'mycelia', 2, 5, True)
    >>> store.close()
    """

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300), wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ) -> None:  # fmt: skip
        self._server: _Shared | None = None
        self._connection: socket.socket | None = None
        _check("TCPStore", "host_name", host_name, str, "a str")
        _check("TCPStore", "port", port, int, "an int")
        _check("TCPStore", "is_master", is_master, bool, "True or False")
        _check("TCPStore", "timeout", timeout, timedelta, "a datetime.timedelta")
        _check("TCPStore", "wait_for_workers", wait_for_workers, bool, "True or False")
        if world_size is not None:
            _check("TCPStore", "world_size", world_size, int, "an int or None")
            if world_size < 1:
                raise ArgumentValueError("TCPStore", "world_size", got=str(world_size), takes="1 or more")
        if not 0 <= port < 65536 or (port == 0 and not is_master):
            raise ArgumentValueError("TCPStore", "port", got=str(port), takes="a port from 1 to 65535")
        self._seconds = timeout.total_seconds()
        self._lock = threading.Lock()
        if is_master:
            try:
                self._server = _Shared(("" if port else host_name, port))
            except OSError as error:
                told = error.strerror or error
                raise StateError("TCPStore", message=f"cannot listen on port {port}: {told}") from None
            threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True, name="store").start()
            port = int(self._server.server_address[1])
        self.host, self.port = host_name, port
        try:
            self._connection = self._reach()
            self._ask(_WORKERS, "", b"1")
            if is_master and wait_for_workers and world_size is not None:
                self._await(world_size)
        except BaseException:
            self.close()
            raise

    def _reach(self) -> socket.socket:
        end = time.monotonic() + self._seconds
        while True:
            try:
                found = socket.create_connection((self.host, self.port), max(0.1, end - time.monotonic()))
            except OSError as error:
                if time.monotonic() >= end:
                    raise StateError(
                        "TCPStore", message=f"nothing answers at {self.host}:{self.port}: {error.strerror or error}",
                        hint="is the process with is_master=True running there?",
                    ) from None  # fmt: skip
                threading.Event().wait(0.05)
                continue
            found.settimeout(None)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return found

    def _await(self, size: int) -> None:
        assert self._server is not None
        server = self._server
        with server.changed:
            if not server.changed.wait_for(lambda: server.workers >= size, self._seconds):
                raise StateError(
                    "TCPStore", message=f"{server.workers} of {size} processes came within {self._seconds:g} s"
                )

    def _ask(self, what: bytes, key: str, value: bytes) -> bytes:
        name = key.encode()
        if len(name) >= LONGEST_KEY:
            raise ArgumentValueError("TCPStore", "key", got=f"{len(name)} bytes", takes=f"less than {LONGEST_KEY}")
        if len(value) >= LONGEST_VALUE:
            raise ArgumentValueError("TCPStore", "value", got=f"{len(value)} bytes", takes=f"less than {LONGEST_VALUE}")
        with self._lock:
            if self._connection is None:
                raise StateError("TCPStore", message="the store was closed")
            try:
                self._connection.sendall(what + struct.pack(">IQ", len(name), len(value)) + name + value)
                answer, count = struct.unpack(">cQ", _receive(self._connection, 9))
                found = _receive(self._connection, count)
            except OSError as error:
                server = f"{self.host}:{self.port}"
                raise StateError("TCPStore", message=f"the server at {server} is gone: {error}") from None
        if answer == _LATE:
            raise StateError("TCPStore", message=f"nobody has set '{key}' within {value.decode()} s")
        if answer == _REFUSED:
            raise StateError("TCPStore", message=f"'{key}' holds {found!r}, which is no whole number")
        return found

    def set(self, key: str, value: str | bytes) -> None:
        """Put a value in the place of what ``key`` held, if anything."""
        _check("TCPStore.set", "key", key, str, "a str")
        _check("TCPStore.set", "value", value, (str, bytes), "a str or bytes")
        self._ask(_SET, key, value.encode() if isinstance(value, str) else value)

    def get(self, key: str) -> bytes:
        """The value of ``key``, once there is one.

        Raises:
            StateError: there was none in time.
        """
        _check("TCPStore.get", "key", key, str, "a str")
        return self.wait_for(key, self._seconds)

    def wait_for(self, key: str, seconds: float) -> bytes:
        """:meth:`get` with a time of its own."""
        return self._ask(_GET, key, f"{seconds:g}".encode())

    def add(self, key: str, amount: int) -> int:
        """Add to the number that ``key`` holds, 0 if it holds none, and return the sum.

        Raises:
            StateError: it holds something else.
        """
        _check("TCPStore.add", "key", key, str, "a str")
        _check("TCPStore.add", "amount", amount, int, "an int")
        return int(self._ask(_ADD, key, str(amount).encode()))

    def delete_key(self, key: str) -> bool:
        """Forget a key; whether there was one."""
        _check("TCPStore.delete_key", "key", key, str, "a str")
        return self._ask(_DELETE, key, b"") == b"1"

    def close(self) -> None:
        """Leave the store; where it is served, it ends."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def __del__(self) -> None:
        if not sys.is_finalizing():  # then the threads stand still that closing would wait for, and sockets go anyway
            self.close()
