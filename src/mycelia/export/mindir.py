r"""The ``.mindir`` file of this package: one program and its arrays.

The format is ours; MindSpore's protobuf files of the same suffix are not read. All numbers are little-endian::

    offset  bytes  content
    0       8      magic: 89 4D 59 43 49 52 0D 0A ("\x89MYCIR\r\n": a text-mode copy or a 7-bit line breaks it)
    8       4      version of the format, 1
    12      4      0
    16      8      length of the description
    24      8      length of what follows the description
    32      32     SHA-256 of the description
    64      32     SHA-256 of what follows it
    96      32     SHA-256 of bytes 0 to 95
    128            the description: JSON in UTF-8 (see program_json), with the table of arrays
                   zeros up to a multiple of 64
                   the arrays, row-major, each from a multiple of 64 bytes on, zeros between them

Every byte is covered by a hash, so a file that was cut, extended or changed anywhere is refused. A
higher version is refused with its number. Arrays are written straight from their memory and read straight
into it, at an alignment that lets the engine use them without a copy.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn, Protocol

import numpy as np

from mycelia.core import dtypes
from mycelia.core.errors import FileFormatError, MyceliaError
from mycelia.export.program_json import Array, ProgramReader, ProgramWriter
from mycelia.frontend.program import Program
from mycelia.ir.printer import little_endian
from mycelia.ir.types import TensorType

MAGIC: Final = b"\x89MYCIR\r\n"
VERSION: Final = 1
SUFFIX: Final = ".mindir"
_HEAD: Final = struct.Struct("<8sIIQQ32s32s")
_HASH_BYTES: Final = 32
_START: Final = _HEAD.size + _HASH_BYTES
_ALIGNMENT: Final = 64
_BLOCK_BYTES: Final = 16 * 1024 * 1024
_MAX_DESCRIPTION: Final = 1 << 31


class ByteSink(Protocol):
    """Where the bytes of a file go."""

    def write(self, data: Any, /) -> Any:
        """Take the bytes of a buffer."""
        ...


def write_program(program: Program, sink: ByteSink, where: str = "export") -> None:
    """Write a program.

    Args:
        program: what was staged or loaded.
        sink: an open file or encrypting sink; it is written from start to end.
        where: the function to name in errors.

    Raises:
        UnsupportedError: the program holds Python code or objects that a file cannot hold; nothing is written.
    """
    writer = ProgramWriter(where)
    data = writer.program(program)
    offset, table = 0, []
    for array in writer.arrays:
        type_ = TensorType(dtypes.from_numpy(array.dtype), array.shape)
        table.append([type_.dtype.name, list(type_.shape), offset])
        offset += _padded(type_.nbytes)
    data["arrays"] = table
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    gap = bytes(-(_START + len(text)) % _ALIGNMENT)
    digest, length = hashlib.sha256(gap), len(gap)
    for part in _parts(writer.arrays):
        digest.update(part)
        length += len(part)
    head = _HEAD.pack(MAGIC, VERSION, 0, len(text), length, hashlib.sha256(text).digest(), digest.digest())
    sink.write(head + hashlib.sha256(head).digest() + text + gap)
    for part in _parts(writer.arrays):
        sink.write(part)


def _parts(arrays: list[Array]) -> Iterator[memoryview]:
    """The bytes of the arrays in blocks, each array filled up with zeros."""
    for array in arrays:
        plain = little_endian(np.ascontiguousarray(array)).reshape(-1).view(np.uint8)
        for start in range(0, plain.size, _BLOCK_BYTES):
            yield plain[start : start + _BLOCK_BYTES].data
        if plain.size != _padded(plain.size):
            yield memoryview(bytes(_padded(plain.size) - plain.size))


def _padded(nbytes: int) -> int:
    return nbytes + -nbytes % _ALIGNMENT


def read_program(stream: io.BufferedIOBase, name: str, where: str = "load") -> Program:
    """Read a program.

    Args:
        stream: the plain bytes of the file, seekable.
        name: of the file, for errors.
        where: the function to name in errors.

    Raises:
        FileFormatError: the file is empty, cut, changed, of a later version, or no such file; the message says
            which.
    """
    return _Reader(stream, name, where).program()


class _Reader:
    def __init__(self, stream: io.BufferedIOBase, name: str, where: str) -> None:
        self._stream, self._name, self._where = stream, name, where

    def refuse(self, problem: str, hint: str | None = None) -> NoReturn:
        raise FileFormatError(self._where, message=f"{self._name}: {problem}", hint=hint)

    def program(self) -> Program:
        size = self._stream.seek(0, os.SEEK_END)
        text_length, rest_length, text_hash, rest_hash = self._head(size)
        text = self._bytes(_START, text_length)
        if hashlib.sha256(text).digest() != text_hash:
            self.refuse("the description of the graph was changed: its SHA-256 differs")
        start = _START + text_length
        self._check(start, rest_length, rest_hash)
        data = self._description(text)
        gap = -start % _ALIGNMENT
        table = self._table(data, rest_length - gap)
        read = self._array_reader(table, start + gap)
        try:
            return ProgramReader(data, [t for t, _ in table], read, self.refuse).program()
        except MyceliaError as error:
            if isinstance(error, FileFormatError):
                raise
            self.refuse(f"the description of the graph cannot be read: {str(error).partition(chr(10))[0]}")
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            self.refuse(f"the description of the graph cannot be read: {type(error).__name__}: {error}")

    def _head(self, size: int) -> tuple[int, int, bytes, bytes]:
        if size == 0:
            self.refuse("the file is empty")
        head = self._bytes(0, min(size, _START))
        if head[: len(MAGIC)] != MAGIC[: len(head)]:
            self.refuse(
                "it is no file that mycelia.export wrote",
                hint="MindSpore's own MindIR files (protobuf) are not read; export the network with mycelia",
            )
        if size < _START:
            self.refuse(f"the file was cut: it has {size} bytes, fewer than its head")
        _, version, zero, text_length, rest_length, text_hash, rest_hash = _HEAD.unpack_from(head)
        if hashlib.sha256(head[: _HEAD.size]).digest() != head[_HEAD.size :]:
            self.refuse("the head of the file was changed: its SHA-256 differs")
        if version > VERSION:
            self.refuse(
                f"it is of version {version} of the format, and this package reads up to {VERSION}",
                hint="load it with a later version of mycelia",
            )
        if version != VERSION or zero or text_length > _MAX_DESCRIPTION:
            self.refuse("the head of the file holds numbers that no version writes")
        wanted = _START + text_length + rest_length
        if size != wanted:
            self.refuse(f"the file was {'cut' if size < wanted else 'extended'}: {size} bytes instead of {wanted}")
        return text_length, rest_length, text_hash, rest_hash

    def _bytes(self, offset: int, length: int) -> bytes:
        self._stream.seek(offset)
        data = self._stream.read(length)
        if len(data) != length:
            self.refuse("the file became shorter while it was read")
        return data

    def _check(self, offset: int, length: int, wanted: bytes) -> None:
        digest = hashlib.sha256()
        self._stream.seek(offset)
        block = memoryview(bytearray(min(_BLOCK_BYTES, length)))
        while length:
            got = self._stream.readinto(block[: min(length, len(block))])
            if not got:
                self.refuse("the file became shorter while it was read")
            digest.update(block[:got])
            length -= got
        if digest.digest() != wanted:
            self.refuse("the parameters or constants were changed: their SHA-256 differs")

    def _description(self, text: bytes) -> dict[str, Any]:
        try:
            data = json.loads(text.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError) as error:
            self.refuse(f"the description of the graph is no JSON: {error}")
        if not isinstance(data, dict):
            self.refuse("the description of the graph is not an object")
        return data

    def _table(self, data: dict[str, Any], length: int) -> list[tuple[TensorType, int]]:
        rows, table = data.get("arrays"), []
        if not isinstance(rows, list):
            self.refuse("the table of arrays is missing")
        for row in rows:
            if not isinstance(row, list) or [type(part) for part in row] != [str, list, int]:
                self.refuse("a row of the table of arrays is not a dtype, a shape and an offset")
            if row[0] not in dtypes._BY_NAME:
                self.refuse(f"'{row[0]:.40}' is no dtype")
            if any(type(n) is not int or n < 0 for n in (*row[1], row[2])) or len(row[1]) > _ALIGNMENT:
                self.refuse("a row of the table of arrays holds no lengths")
            type_ = TensorType(dtypes._BY_NAME[row[0]], tuple(row[1]))
            if type_.dtype.kind == "O" or row[2] % _ALIGNMENT or row[2] + type_.nbytes > length:
                self.refuse("an array does not lie within the file")
            table.append((type_, row[2]))
        return table

    def _array_reader(self, table: list[tuple[TensorType, int]], start: int) -> Callable[[int], Array]:
        def read(number: int) -> Array:
            type_, offset = table[number]
            array = _aligned(type_)
            plain = array.reshape(-1).view(np.uint8)
            self._stream.seek(start + offset)
            done = 0
            while done < plain.size:
                got = self._stream.readinto(plain[done : done + _BLOCK_BYTES].data)
                if not got:
                    self.refuse("the file became shorter while it was read")
                done += got
            if type_.dtype.kind == "b" and plain.size and plain.max() > 1:
                self.refuse("an element of a bool array is neither 0 nor 1")
            return little_endian(array)

        return read


def _aligned(type_: TensorType) -> Array:
    """An array whose memory starts at a multiple of the alignment that the engine takes without copying."""
    raw = np.empty(type_.nbytes + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + type_.nbytes].view(type_.dtype.np).reshape(type_.shape)
