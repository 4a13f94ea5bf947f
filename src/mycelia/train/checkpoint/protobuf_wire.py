"""The protocol buffers wire format, as far as a checkpoint file needs it, with byte offsets.

Format: the "Encoding" chapter of the Protocol Buffers documentation. A message is a run of fields; a
field is a tag varint ``number << 3 | wire type`` and a payload. Of the wire types only two occur here:
0, a base-128 varint, and 2, a length and that many bytes.

Why not the ``protobuf`` library: it parses one message that must stand in memory as a whole and refuses
messages of 2 GiB, it copies every tensor twice, and its errors do not say where in the file they are.
Here a payload is only located, so that a file of any size is indexed with a few small reads.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import NamedTuple

VARINT = 0
BYTES = 2

_MAX_VARINT = 10


class WireError(Exception):
    """Bytes that are no message; ``offset`` is where in the stream."""

    def __init__(self, offset: int, problem: str) -> None:
        super().__init__(problem)
        self.offset = offset
        self.problem = problem


class Field(NamedTuple):
    """One field: ``start`` is the offset of its tag; ``value`` a varint, or the length of the payload at ``offset``."""

    number: int
    wire_type: int
    start: int
    offset: int
    value: int


def encode_varint(value: int) -> bytes:
    """A non-negative integer as a base-128 varint.

    >>> encode_varint(300).hex()
    'ac02'
    """
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_varint_field(number: int, value: int) -> bytes:
    """A varint field."""
    return encode_varint(number << 3 | VARINT) + encode_varint(value)


def encode_head(number: int, length: int) -> bytes:
    """The head of a length-delimited field; ``length`` bytes of payload follow it."""
    return encode_varint(number << 3 | BYTES) + encode_varint(length)


def encode_bytes_field(number: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    return encode_head(number, len(payload)) + payload


def read_varint(stream: io.BufferedIOBase, offset: int, end: int) -> tuple[int, int]:
    """The unsigned varint at ``offset``, where the stream stands, and the offset behind it.

    Raises:
        WireError: it runs past ``end``, or is longer than 64 bits.
    """
    value = 0
    for index in range(_MAX_VARINT):
        if offset + index >= end:
            raise WireError(offset, "a number is cut off")
        byte = stream.read(1)
        if not byte:
            raise WireError(offset + index, "the file ends within a number")
        value |= (byte[0] & 0x7F) << (7 * index)
        if byte[0] < 0x80:
            if value >= 1 << 64:
                break
            return value, offset + index + 1
    raise WireError(offset, "a number is longer than 64 bits")


def signed(value: int) -> int:
    """An unsigned varint as the int64 it encodes (two's complement)."""
    return value - (1 << 64) if value >= 1 << 63 else value


def read_field(stream: io.BufferedIOBase, offset: int, end: int) -> Field:
    """The field at ``offset``; of a length-delimited one only the head is read.

    Raises:
        WireError: the field is cut off, reaches past ``end``, or has a wire type that is not expected.
    """
    stream.seek(offset)
    tag, position = read_varint(stream, offset, end)
    number, wire_type = tag >> 3, tag & 7
    if wire_type not in (VARINT, BYTES) or number == 0:
        raise WireError(offset, f"byte 0x{tag & 0xFF:02x} starts no field of this format")
    value, position = read_varint(stream, position, end)
    if wire_type == BYTES and value > end - position:
        raise WireError(offset, f"a length of {value} bytes reaches past the end, {end - position} bytes away")
    return Field(number, wire_type, offset, position, value)


def fields(stream: io.BufferedIOBase, offset: int, end: int) -> Iterator[Field]:
    """The fields of the message that stands between two offsets."""
    while offset < end:
        field = read_field(stream, offset, end)
        yield field
        offset = field.offset + (field.value if field.wire_type == BYTES else 0)


def packed_varints(stream: io.BufferedIOBase, offset: int, end: int) -> Iterator[int]:
    """The varints of a packed repeated field."""
    stream.seek(offset)
    while offset < end:
        value, offset = read_varint(stream, offset, end)
        yield value


def read_exactly(stream: io.BufferedIOBase, offset: int, length: int) -> bytes:
    """``length`` bytes at ``offset``.

    Raises:
        WireError: the stream ends before.
    """
    stream.seek(offset)
    data = stream.read(length)
    if len(data) != length:
        raise WireError(offset + len(data), "the file ends within a field")
    return data


def read_into(stream: io.BufferedIOBase, offset: int, target: memoryview) -> None:
    """Fill a writable view of bytes from ``offset`` on.

    Raises:
        WireError: the stream ends before.
    """
    stream.seek(offset)
    done = 0
    while done < len(target):
        got = stream.readinto(target[done:])
        if got == 0:
            raise WireError(offset + done, "the file ends within a field")
        done += got
