"""MindSpore's ``.ckpt`` files as NumPy arrays: a streaming reader and writer.

Format (MindSpore's ``checkpoint.proto``, proto2), checked against files of MindSpore 2.10::

    message Checkpoint     { repeated Value value = 1; }
    message Value          { required string tag = 1;
                             oneof value { TensorProto tensor = 2; MapTensorProto maptensor = 3; } }
    message TensorProto    { repeated int64 dims = 1;  required string tensor_type = 2;
                             required bytes tensor_content = 3; }
    message MapTensorProto { repeated TensorProto tensor = 1; }

A file is a run of ``Checkpoint`` messages of one ``Value`` each, which is again one ``Checkpoint``.
Numbers are little-endian, ``tensor_type`` is MindSpore's name of the dtype (``"Float32"``). A zero-
dimensional tensor has no ``dims`` (old files: the one dimension 0). Content beyond 512 MiB goes on in
further values of the same tag, all with the dims of the whole. A string has ``tensor_type`` ``"str"``,
dims ``[0]`` and UTF-32 content. A map parameter (a hash table) has three tensors, keys, values and
status, whose types are NumPy's names. The optional trailer is ``crc_num`` and the CRC-32 of everything
before it as ten big-endian bytes.

Reading is two passes. The first walks over the heads only (see ``protobuf_wire`` for why not the
``protobuf`` library) and checks the structure of the whole file: nothing is allocated for a size that
the file does not hold, and nothing is loaded from a file that is damaged anywhere the format can tell.
The second reads the arrays asked for straight into their memory, one at a time.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Protocol

import ml_dtypes
import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, FileFormatError
from mycelia.train.checkpoint import protobuf_wire as wire
from mycelia.train.checkpoint.durable_file import replacing

ELEMENT_TYPES: Final[dict[str, np.dtype[Any]]] = {
    "Bool": np.dtype(np.bool_), "Int8": np.dtype(np.int8), "Int16": np.dtype(np.int16),
    "Int32": np.dtype(np.int32), "Int64": np.dtype(np.int64), "UInt8": np.dtype(np.uint8),
    "UInt16": np.dtype(np.uint16), "UInt32": np.dtype(np.uint32), "UInt64": np.dtype(np.uint64),
    "Float16": np.dtype(np.float16), "Float32": np.dtype(np.float32), "Float64": np.dtype(np.float64),
    "BFloat16": np.dtype(ml_dtypes.bfloat16), "Float8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "Float8E5M2": np.dtype(ml_dtypes.float8_e5m2), "Complex64": np.dtype(np.complex64),
    "Complex128": np.dtype(np.complex128),
}  # fmt: skip
"""The NumPy dtype of each ``tensor_type``."""

_TITLES: Final = {dtype: title for title, dtype in ELEMENT_TYPES.items()}
_MAP_TYPES: Final = {dtype.name: dtype for dtype in ELEMENT_TYPES.values()}
_BYTE_CODES: Final = ("Int4", "HiFloat8")
"""Types that MindSpore writes, one byte an element, and NumPy has nothing for."""

_TAG, _TENSOR, _MAPTENSOR = 1, 2, 3
_DIMS, _TYPE, _CONTENT = 1, 2, 3
_VALUE = _MAP_ITEM = 1
_TRAILER: Final = b"crc_num"
_TRAILER_SIZE: Final = len(_TRAILER) + 10
_SLICE_BYTES: Final = 512 * 1024 * 1024
_BLOCK_BYTES: Final = 16 * 1024 * 1024
_MAX_NAME_BYTES: Final = 1 << 20
_MAX_RANK: Final = 64
_MAX_BYTES: Final = (1 << 63) - 1
_MAP_PARTS: Final = 3

CkptValue = np.ndarray[Any, Any] | str | list[np.ndarray[Any, Any]]
"""What an entry holds: an array, a string, or the keys, values and status of a map parameter."""


class ByteSink(Protocol):
    """Where encoded bytes go."""

    def write(self, data: Any, /) -> Any:
        """Take the bytes of a buffer."""
        ...


@dataclass(slots=True)
class _Part:
    """One tensor as it stands in one value: its type, its dims and where its content is."""

    tensor_type: str
    dims: tuple[int, ...]
    offset: int
    spans: list[tuple[int, int]]

    @property
    def nbytes(self) -> int:
        return sum(length for _, length in self.spans)


@dataclass(slots=True)
class Entry:
    """What the index knows of one name: kind (``tensor``, ``str`` or ``map``), shape, and the place in the file.

    ``shape`` is that of the whole array (of the values, for a map parameter), ``tensor_type`` MindSpore's
    name of the dtype, ``offset`` the byte at which the first value of this name starts.
    """

    name: str
    kind: str
    tensor_type: str
    shape: tuple[int, ...]
    offset: int
    _parts: list[list[_Part]] = field(default_factory=list, repr=False)


class CkptReader:
    """An open ``.ckpt`` file: its index, and its arrays on request.

    Args:
        path: the file.
        where: the function to name in errors.
        opener: gives the plain bytes of the file as a seekable buffered stream; decryption goes here.

    Raises:
        FileFormatError: the file is not a ``.ckpt`` file, or is damaged; the message names the file, the
            entry, the byte offset and what is wrong.
        OSError: the file cannot be read.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.ckpt")
    >>> write_ckpt(path, {"w": np.ones((2, 3), np.float32), "epoch": "7"})
    >>> with CkptReader(path) as reader:
    ...     reader.names, reader.entries["w"].shape, reader.read("epoch")
    (['w', 'epoch'], (2, 3), '7')
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        where: str = "load_checkpoint",
        opener: Callable[[str], io.BufferedIOBase] | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self._where = where
        self._stream: io.BufferedIOBase = opener(self.path) if opener is not None else open(self.path, "rb")  # noqa: SIM115
        self.entries: dict[str, Entry] = {}
        self.crc: int | None = None
        try:
            self._end = self._stream.seek(0, os.SEEK_END)
            self._index()
        except BaseException:
            self._stream.close()
            raise

    @property
    def names(self) -> list[str]:
        """The names in the order of the file."""
        return list(self.entries)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def __enter__(self) -> CkptReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def check_crc(self) -> bool:
        """Compare the CRC-32 trailer with the content; False if the file has no trailer.

        Raises:
            FileFormatError: they differ.
        """
        if self.crc is None:
            return False
        found, left = 0, self._end
        self._stream.seek(0)
        while left:
            block = self._stream.read(min(_BLOCK_BYTES, left))
            if not block:
                raise self._damage(self._end - left, "the file became shorter while it was read")
            found = zlib.crc32(block, found)
            left -= len(block)
        if found != self.crc:
            raise self._damage(self._end, f"the CRC-32 of the content is {found}, the trailer says {self.crc}")
        return True

    def read(self, name: str) -> CkptValue:
        """The value of one entry, in memory of its own.

        Raises:
            FileFormatError: the content is not valid for its type.
        """
        entry = self.entries[name]
        try:
            if entry.kind == "str":
                return self._read_text(entry)
            if entry.kind == "map":
                return [
                    np.concatenate([self._read_array(entry, part, _MAP_TYPES) for part in column])
                    for column in zip(*entry._parts, strict=True)
                ]
            return self._read_array(entry, entry._parts[0][0], ELEMENT_TYPES)
        except wire.WireError as error:
            raise self._damage(error.offset, error.problem, entry.name) from None

    def _read_text(self, entry: Entry) -> str:
        part = entry._parts[0][0]
        ((offset, length),) = part.spans
        try:
            text = wire.read_exactly(self._stream, offset, length).decode("utf-32-le", "surrogatepass")
        except UnicodeDecodeError:
            raise self._damage(offset, "the content is no UTF-32 text", entry.name) from None
        return text.rstrip("\0")

    def _read_array(self, entry: Entry, part: _Part, types: Mapping[str, np.dtype[Any]]) -> np.ndarray[Any, Any]:
        if part.tensor_type not in types:
            raise self._damage(
                part.offset, f"elements of type {part.tensor_type} cannot be read", entry.name,
                hint="leave this entry out with choice_func",
            )  # fmt: skip
        array = np.empty(part.dims, types[part.tensor_type])
        if array.nbytes == 0:
            return array
        raw = array.reshape(-1).view(np.uint8)
        view, done = raw.data, 0
        for offset, length in part.spans:
            wire.read_into(self._stream, offset, view[done : done + length])
            done += length
        if array.dtype == np.bool_ and raw.max() > 1:
            raise self._damage(part.spans[0][0], "a Bool is neither 0 nor 1", entry.name)
        return array

    # ---- the index

    def _index(self) -> None:
        if self._end == 0:
            raise self._damage(0, "the file is empty")
        offset, open_entry = 0, None
        while offset < self._end:
            if self._read_trailer(offset):
                break
            try:
                value = wire.read_field(self._stream, offset, self._end)
                if (value.number, value.wire_type) != (_VALUE, wire.BYTES):
                    raise wire.WireError(offset, f"field {value.number} stands where an entry should start")
            except wire.WireError as error:
                raise self._damage(error.offset, error.problem) from None
            entry = self._entry(value)
            if open_entry is not None and entry.name != open_entry.name:
                self._close(open_entry)
            if open_entry is not None and entry.name == open_entry.name:
                self._continue(open_entry, entry)
            elif entry.name in self.entries:
                raise self._damage(offset, "a second entry of this name", entry.name)
            else:
                self.entries[entry.name] = open_entry = entry
            offset = value.offset + value.value
        if open_entry is not None:
            self._close(open_entry)

    def _read_trailer(self, offset: int) -> bool:
        if self._end - offset != _TRAILER_SIZE:
            return False
        self._stream.seek(offset)
        trailer = self._stream.read(_TRAILER_SIZE)
        if not trailer.startswith(_TRAILER):
            return False
        self.crc = int.from_bytes(trailer[len(_TRAILER) :], "big")
        self._end = offset
        return True

    def _entry(self, value: wire.Field) -> Entry:
        name: str | None = None
        body: wire.Field | None = None
        try:
            for part in wire.fields(self._stream, value.offset, value.offset + value.value):
                key = (part.number, part.wire_type)
                if key == (_TAG, wire.BYTES) and name is None:
                    name = self._text(part, _MAX_NAME_BYTES, "the name")
                elif key in ((_TENSOR, wire.BYTES), (_MAPTENSOR, wire.BYTES)) and body is None:
                    body = part
                else:
                    raise wire.WireError(part.start, f"field {part.number} is unknown or stands twice in an entry")
            if name is None:
                raise wire.WireError(value.start, "an entry has no name")
            if body is None:
                raise wire.WireError(value.start, "the entry has no tensor")
            if body.number == _TENSOR:
                return self._tensor_entry(name, value.start, self._part(body))
            return self._map_entry(name, value.start, body)
        except wire.WireError as error:
            raise self._damage(error.offset, error.problem, name) from None

    def _text(self, part: wire.Field, limit: int, what: str) -> str:
        if part.value > limit:
            raise wire.WireError(part.start, f"{what} is {part.value} bytes long")
        try:
            return wire.read_exactly(self._stream, part.offset, part.value).decode("utf-8")
        except UnicodeDecodeError:
            raise wire.WireError(part.offset, f"{what} is no UTF-8 text") from None

    def _part(self, body: wire.Field) -> _Part:
        dims: list[int] = []
        tensor_type: str | None = None
        content: tuple[int, int] | None = None
        for part in wire.fields(self._stream, body.offset, body.offset + body.value):
            key = (part.number, part.wire_type)
            if key == (_DIMS, wire.VARINT):
                dims.append(wire.signed(part.value))
            elif key == (_DIMS, wire.BYTES):
                for dim in wire.packed_varints(self._stream, part.offset, part.offset + part.value):
                    dims.append(wire.signed(dim))
                    if len(dims) > _MAX_RANK:
                        break
            elif key == (_TYPE, wire.BYTES) and tensor_type is None:
                tensor_type = self._text(part, 64, "the tensor_type")
            elif key == (_CONTENT, wire.BYTES) and content is None:
                content = (part.offset, part.value)
            else:
                raise wire.WireError(part.start, f"field {part.number} is unknown or stands twice in a tensor")
            if len(dims) > _MAX_RANK:
                raise wire.WireError(part.start, f"the tensor has more than {_MAX_RANK} dimensions")
        if tensor_type is None:
            raise wire.WireError(body.start, "the tensor has no tensor_type")
        if content is None:
            raise wire.WireError(body.start, "the tensor has no tensor_content")
        if any(dim < 0 for dim in dims):
            raise wire.WireError(body.start, f"dims {dims} has a negative dimension")
        return _Part(tensor_type, tuple(dims), body.start, [content])

    def _tensor_entry(self, name: str, offset: int, part: _Part) -> Entry:
        if part.tensor_type == "str":
            if part.dims not in ((), (0,)) or part.nbytes % 4:
                raise wire.WireError(offset, f"a str of dims {list(part.dims)} holds {part.nbytes} bytes")
            return Entry(name, "str", "str", (), offset, [[part]])
        if part.tensor_type not in ELEMENT_TYPES and part.tensor_type not in _BYTE_CODES:
            raise wire.WireError(offset, f"the tensor_type {part.tensor_type!r} is unknown")
        itemsize = _itemsize(part.tensor_type)
        if part.dims == (0,) and part.nbytes == itemsize:
            part.dims = ()
        if part.nbytes > _nbytes(part, itemsize):
            raise wire.WireError(offset, _size_problem(part, itemsize))
        return Entry(name, "tensor", part.tensor_type, part.dims, offset, [[part]])

    def _map_entry(self, name: str, offset: int, body: wire.Field) -> Entry:
        parts: list[_Part] = []
        for item in wire.fields(self._stream, body.offset, body.offset + body.value):
            if (item.number, item.wire_type) != (_MAP_ITEM, wire.BYTES) or len(parts) == _MAP_PARTS:
                raise wire.WireError(item.start, f"a map parameter has {_MAP_PARTS} tensors and nothing else")
            part = self._part(item)
            dtype = _MAP_TYPES.get(part.tensor_type)
            if dtype is None:
                raise wire.WireError(item.start, f"the tensor_type {part.tensor_type!r} of a map parameter is unknown")
            if not part.dims:
                raise wire.WireError(item.start, "a tensor of a map parameter has no dims")
            if part.nbytes != _nbytes(part, dtype.itemsize):
                raise wire.WireError(item.start, _size_problem(part, dtype.itemsize))
            parts.append(part)
        if len(parts) != _MAP_PARTS or len({part.dims[0] for part in parts}) != 1:
            raise wire.WireError(offset, "a map parameter takes keys, values and status of one length")
        return Entry(name, "map", parts[1].tensor_type, parts[1].dims, offset, [parts])

    def _continue(self, entry: Entry, more: Entry) -> None:
        """Append a further value of the same name to the one before it."""
        first, second = entry._parts[0], more._parts[0]
        if entry.kind == more.kind == "map":
            if [(p.tensor_type, p.dims[1:]) for p in first] != [(p.tensor_type, p.dims[1:]) for p in second]:
                raise self._damage(more.offset, "a further piece has another type or other dims", entry.name)
            entry._parts.append(second)
            entry.shape = (entry.shape[0] + more.shape[0], *entry.shape[1:])
            return
        whole, piece = first[0], second[0]
        if entry.kind != "tensor" or more.kind != "tensor" or self._is_whole(whole):
            raise self._damage(more.offset, "a second entry of this name", entry.name)
        if (whole.tensor_type, whole.dims) != (piece.tensor_type, piece.dims):
            raise self._damage(more.offset, "a further piece has another type or other dims", entry.name)
        whole.spans.extend(piece.spans)
        itemsize = _itemsize(whole.tensor_type)
        if whole.nbytes > _nbytes(whole, itemsize):
            raise self._damage(more.offset, _size_problem(whole, itemsize), entry.name)

    def _is_whole(self, part: _Part) -> bool:
        return part.nbytes == _nbytes(part, _itemsize(part.tensor_type))

    def _close(self, entry: Entry) -> None:
        """Refuse a tensor whose pieces do not add up; called when no further piece can follow."""
        part = entry._parts[0][0]
        if entry.kind == "tensor" and not self._is_whole(part):
            raise self._damage(entry.offset, _size_problem(part, _itemsize(part.tensor_type)), entry.name)

    def _damage(self, offset: int, problem: str, name: str | None = None, hint: str | None = None) -> FileFormatError:
        entry = "" if name is None else f", entry {name!r}"
        return FileFormatError(self._where, message=f"{self.path}{entry}, byte {offset}: {problem}", hint=hint)


def _itemsize(tensor_type: str) -> int:
    return 1 if tensor_type in _BYTE_CODES else ELEMENT_TYPES[tensor_type].itemsize


def _nbytes(part: _Part, itemsize: int) -> int:
    """The bytes that the dims take; an error where no array of the shape can exist, even an empty one."""
    if math.prod(dim or 1 for dim in part.dims) * itemsize > _MAX_BYTES:
        raise wire.WireError(part.offset, f"dims {list(part.dims)} are too large for any array")
    return math.prod(part.dims) * itemsize


def _size_problem(part: _Part, itemsize: int) -> str:
    takes = math.prod(part.dims) * itemsize
    return f"{part.tensor_type} of dims {list(part.dims)} takes {takes} bytes, the content has {part.nbytes}"


def read_ckpt(path: str | os.PathLike[str], *, crc_check: bool = False) -> dict[str, CkptValue]:
    """All entries of a ``.ckpt`` file.

    Args:
        path: the file.
        crc_check: compare the CRC-32 trailer, where the file has one, before reading.

    Raises:
        FileFormatError: see :class:`CkptReader`.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.ckpt")
    >>> write_ckpt(path, {"b": np.zeros(3, np.float16)}, crc_check=True)
    >>> read_ckpt(path, crc_check=True)
    {'b': array([0., 0., 0.], dtype=float16)}
    """
    with CkptReader(path, where="read_ckpt") as reader:
        if crc_check:
            reader.check_crc()
        return {name: reader.read(name) for name in reader.names}


class _ChecksumSink:
    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self.crc = 0

    def write(self, data: Any, /) -> None:
        self.crc = zlib.crc32(data, self.crc)
        self._sink.write(data)


def write_ckpt(
    path: str | os.PathLike[str],
    values: Mapping[str, CkptValue] | Iterable[tuple[str, CkptValue]],
    *,
    crc_check: bool = False,
    slice_bytes: int = _SLICE_BYTES,
    wrap: Callable[[ByteSink], contextlib.AbstractContextManager[ByteSink]] | None = None,
    where: str = "save_checkpoint",
) -> None:
    """Write a ``.ckpt`` file, atomically.

    Args:
        path: the file; it appears, or changes, only when all is written.
        values: names and values. An iterator is taken one value at a time, so that arrays can be made as
            they are written.
        crc_check: append the CRC-32 trailer.
        slice_bytes: content beyond this goes into further entries of the name; MindSpore's is 512 MiB.
        wrap: turns the file into the sink that is written to; encryption goes here.
        where: the function to name in errors.

    Raises:
        ArgumentValueError: a name occurs twice.
        DTypeError: an array has elements that the format has no name for.
        OSError: the directory is missing, the disk is full.

    >>> import tempfile
    >>> write_ckpt(os.path.join(tempfile.mkdtemp(), "a.ckpt"), {"w": np.arange(4)})
    """
    pairs = values.items() if isinstance(values, Mapping) else values
    with replacing(path) as temporary, open(temporary, "wb") as file:
        sink = _ChecksumSink(file) if crc_check else None
        with wrap(sink or file) if wrap is not None else contextlib.nullcontext(sink or file) as target:
            seen: set[str] = set()
            for name, value in pairs:
                if name in seen:
                    raise ArgumentValueError(where, message=f"the name {name!r} occurs twice")
                seen.add(name)
                for piece in _encoded(name, value, slice_bytes, where):
                    target.write(piece)
        if sink is not None:
            file.write(_TRAILER + sink.crc.to_bytes(10, "big"))


def _encoded(name: str, value: CkptValue, slice_bytes: int, where: str) -> Iterator[bytes | memoryview]:
    """The bytes of one name, in pieces that need no copy of the array."""
    check_value(name, value, where)
    if isinstance(value, str):
        text = (value or "\0").encode("utf-32-le", "surrogatepass")
        yield from _encoded_value(name, _tensor_head((0,), "str"), memoryview(text))
    elif isinstance(value, list):
        yield from _encoded_map(name, value)
    else:
        array = native(value)
        head = _tensor_head(array.shape, _TITLES[array.dtype])
        content = content_of(array)
        for start in range(0, max(len(content), 1), slice_bytes):
            yield from _encoded_value(name, head, content[start : start + slice_bytes])


def _encoded_value(name: str, head: bytes, content: memoryview) -> Iterator[bytes | memoryview]:
    head += wire.encode_head(_CONTENT, len(content))
    front = wire.encode_bytes_field(_TAG, name.encode()) + wire.encode_head(_TENSOR, len(head) + len(content))
    yield wire.encode_head(_VALUE, len(front) + len(head) + len(content)) + front + head
    for start in range(0, len(content), _BLOCK_BYTES):
        yield content[start : start + _BLOCK_BYTES]


def _encoded_map(name: str, parts: list[np.ndarray[Any, Any]]) -> Iterator[bytes | memoryview]:
    pieces: list[bytes | memoryview] = []
    for part in parts:
        array = native(part)
        content = content_of(array)
        head = _tensor_head(array.shape, array.dtype.name) + wire.encode_head(_CONTENT, len(content))
        pieces += [wire.encode_head(_MAP_ITEM, len(head) + len(content)) + head, content]
    size = sum(len(piece) for piece in pieces)
    front = wire.encode_bytes_field(_TAG, name.encode()) + wire.encode_head(_MAPTENSOR, size)
    yield wire.encode_head(_VALUE, len(front) + size) + front
    yield from pieces


def _tensor_head(dims: tuple[int, ...], tensor_type: str) -> bytes:
    lines = [wire.encode_varint_field(_DIMS, dim) for dim in dims]
    return b"".join(lines) + wire.encode_bytes_field(_TYPE, tensor_type.encode())


def check_value(name: str, value: Any, where: str) -> None:
    """Refuse what the format cannot hold.

    Raises:
        ArgumentTypeError, ArgumentValueError, DTypeError: the message names the value.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ArgumentValueError(where, message=f"the name {name!r} is no Unicode text") from None
    if isinstance(value, str):
        if value.endswith("\0"):
            raise ArgumentValueError(
                where, message=f"the string {name!r} ends with a zero character, which a file does not keep"
            )
    elif isinstance(value, np.ndarray):
        _check_dtype(name, value, where)
    elif isinstance(value, list):
        if (
            len(value) != _MAP_PARTS
            or not all(isinstance(part, np.ndarray) and part.ndim > 0 for part in value)
            or len({len(part) for part in value}) != 1
        ):
            raise ArgumentValueError(
                where, message=f"the list {name!r} is no map parameter: keys, values and status, arrays of one length"
            )
        for part in value:
            _check_dtype(name, part, where)
    else:
        raise ArgumentTypeError(
            where, message=f"the value of {name!r} is a {type(value).__name__}; it takes an array or a string"
        )


def _check_dtype(name: str, array: np.ndarray[Any, Any], where: str) -> None:
    if native(array[:0] if array.ndim else array).dtype not in _TITLES:
        raise DTypeError(
            where, message=f"the array {name!r} has dtype {array.dtype}; it takes one of {', '.join(ELEMENT_TYPES)}"
        )


def native(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in the byte order of the machine."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def content_of(array: np.ndarray[Any, Any]) -> memoryview:
    """The elements in row-major order, as bytes; a copy is made only of an array that is not contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
