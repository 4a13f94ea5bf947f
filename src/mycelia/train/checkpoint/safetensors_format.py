"""Single-file weights in the safetensors format, as NumPy arrays.

Format: eight little-endian bytes with the length of a JSON header, the header (name -> dtype, shape,
offsets; text metadata under ``__metadata__``), the contents. The ``safetensors`` library writes the
file, and on reading checks the header against the file before anything is believed; the contents are
then read at those offsets, so that bfloat16 and the 8-bit floats, which NumPy itself does not know,
take the same path as all others. MindSpore marks its files with the metadata ``format: ms`` and, with a
checksum, ``crc_num``: the CRC-32 over name and content of each tensor in the order of the names. A
safetensors file holds no strings, and MindSpore fails to save one; here they are metadata named
``str:NAME``, which MindSpore ignores.
"""

from __future__ import annotations

import io
import json
import math
import os
import zlib
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Final

import ml_dtypes
import numpy as np
import safetensors
from safetensors.numpy import save_file

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, FileFormatError
from mycelia.train.checkpoint.ckpt_format import content_of, native
from mycelia.train.checkpoint.durable_file import replacing

ELEMENT_TYPES: Final[dict[str, np.dtype[Any]]] = {
    "BOOL": np.dtype(np.bool_), "I8": np.dtype(np.int8), "I16": np.dtype(np.int16), "I32": np.dtype(np.int32),
    "I64": np.dtype(np.int64), "U8": np.dtype(np.uint8), "U16": np.dtype(np.uint16), "U32": np.dtype(np.uint32),
    "U64": np.dtype(np.uint64), "F16": np.dtype(np.float16), "F32": np.dtype(np.float32),
    "F64": np.dtype(np.float64), "BF16": np.dtype(ml_dtypes.bfloat16), "C64": np.dtype(np.complex64),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn), "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
}  # fmt: skip
"""The NumPy dtype of each dtype name of the header."""

_WRITABLE: Final = frozenset(ELEMENT_TYPES.values())
_METADATA: Final = "__metadata__"
_TEXT_PREFIX: Final = "str:"
_CRC: Final = "crc_num"
_BYTE_CODES: Final = ("Int4",)
_BLOCK_BYTES: Final = 16 * 1024 * 1024
_MAX_RANK: Final = 64
_MAX_BYTES: Final = (1 << 63) - 1


class SafetensorsReader:
    """An open safetensors file: names, metadata, and arrays on request.

    Args:
        source: a path, or an ``io.BytesIO`` that holds the file.
        where: the function to name in errors.

    Raises:
        FileFormatError: the file is damaged or of another format; nothing of it is loaded.
        OSError: the file cannot be read.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "net.safetensors")
    >>> write_safetensors(path, {"w": np.ones((2, 2), np.float32), "note": "best"})
    >>> with SafetensorsReader(path) as reader:
    ...     reader.names, reader.metadata["format"], reader.read("note")
    (['w', 'note'], 'ms', 'best')
    """

    def __init__(self, source: str | os.PathLike[str] | io.BytesIO, *, where: str = "load_checkpoint") -> None:
        self._where = where
        self._stream: io.BufferedIOBase
        if isinstance(source, io.BytesIO):
            self.path, self._stream = "BytesIO", io.BytesIO(source.getvalue())
        else:
            self.path = os.fspath(source)
            self._stream = open(self.path, "rb")  # noqa: SIM115
        try:
            self._header, self._start = self._checked_header()
        except BaseException:
            self._stream.close()
            raise
        metadata = self._header.pop(_METADATA, None) or {}
        self.metadata: dict[str, str] = {k: v for k, v in metadata.items() if not k.startswith(_TEXT_PREFIX)}
        self._texts = {k.removeprefix(_TEXT_PREFIX): v for k, v in metadata.items() if k.startswith(_TEXT_PREFIX)}

    @property
    def names(self) -> list[str]:
        """The names, sorted; those of strings last."""
        return [*sorted(self._header), *(name for name in sorted(self._texts) if name not in self._header)]

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def __enter__(self) -> SafetensorsReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def check_crc(self) -> bool:
        """Compare the recorded CRC-32 with the contents; False if none is recorded.

        Raises:
            FileFormatError: they differ.
        """
        recorded = self.metadata.get(_CRC)
        if recorded is None:
            return False
        found = theirs = 0
        for name in sorted(self._header):
            found, theirs = zlib.crc32(name.encode(), found), zlib.crc32(name.encode(), theirs)
            for block in self._blocks(name):
                found = zlib.crc32(block, found)
                theirs = zlib.crc32(self._as_mindspore_sees(name, block), theirs)
        if recorded not in (str(found), str(theirs)):
            raise self._damage(f"the CRC-32 of the contents is {found}, the file says {recorded}")
        return True

    def read(self, name: str) -> np.ndarray[Any, Any] | str:
        """One array, in memory of its own, or one string.

        Raises:
            FileFormatError: its elements are of a type that NumPy has nothing for, or are not valid.
        """
        if name not in self._header:
            text: str = self._texts[name]
            return text
        entry, shape = self._header[name], self._header[name]["shape"]
        noted = self.metadata.get(name, "")
        kind: str = noted if noted in _BYTE_CODES else entry["dtype"]
        dtype = ELEMENT_TYPES.get(kind)
        if dtype is None:
            raise self._damage(
                f"elements of type {kind} cannot be read", name, hint="leave this entry out with choice_func"
            )
        if len(shape) > _MAX_RANK or math.prod(dim or 1 for dim in shape) * dtype.itemsize > _MAX_BYTES:
            raise self._damage(f"shape {shape} is too large for any array", name)
        array = np.empty(shape, dtype)
        raw, done = array.reshape(-1).view(np.uint8), 0
        for block in self._blocks(name):
            raw[done : done + len(block)] = np.frombuffer(block, np.uint8)
            done += len(block)
        if dtype == np.bool_ and raw.size and raw.max() > 1:
            raise self._damage("a BOOL is neither 0 nor 1", name)
        return array

    def _checked_header(self) -> tuple[dict[str, Any], int]:
        try:
            if isinstance(self._stream, io.BytesIO):
                safetensors.deserialize(self._stream.getvalue())
            else:
                with safetensors.safe_open(self.path, framework="np"):
                    pass
        except safetensors.SafetensorError as error:
            raise self._damage(str(error)) from None
        length = int.from_bytes(self._stream.read(8), "little")
        return json.loads(self._stream.read(length), object_pairs_hook=self._unique), 8 + length

    def _unique(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            raise self._damage("a second entry of this name", next(n for n in names if names.count(n) > 1))
        return found

    def _as_mindspore_sees(self, name: str, block: bytes) -> bytes:
        """What MindSpore's checksum covers of a content: of a zero-dimensional integer n, n zero bytes."""
        entry = self._header[name]
        if entry["shape"] or entry["dtype"][0] not in "IU":
            return block
        value = int.from_bytes(block, "little", signed=entry["dtype"][0] == "I")
        return bytes(value) if 0 <= value <= _BLOCK_BYTES else block

    def _blocks(self, name: str) -> Iterator[bytes]:
        begin, end = self._header[name]["data_offsets"]
        self._stream.seek(self._start + begin)
        while begin < end:
            block = self._stream.read(min(_BLOCK_BYTES, end - begin))
            if not block:
                raise self._damage("the file became shorter while it was read", name)
            yield block
            begin += len(block)

    def _damage(self, problem: str, name: str | None = None, hint: str | None = None) -> FileFormatError:
        entry = "" if name is None else f", entry {name!r}"
        return FileFormatError(self._where, message=f"{self.path}{entry}: {problem}", hint=hint)


def write_safetensors(
    path: str | os.PathLike[str],
    values: Mapping[str, np.ndarray[Any, Any] | str],
    *,
    crc_check: bool = False,
    metadata: Mapping[str, str] | None = None,
    where: str = "save_checkpoint",
) -> None:
    """Write a safetensors file with the metadata ``format: ms``, atomically.

    Args:
        path: the file; it appears, or changes, only when all is written.
        values: arrays and strings by name.
        crc_check: record the CRC-32 of the contents.
        metadata: further metadata.
        where: the function to name in errors.

    Raises:
        DTypeError: an array has elements that the format has no name for (complex128).
        ArgumentTypeError: a value is neither an array nor a string.
        OSError: the directory is missing, the disk is full.

    >>> import tempfile
    >>> write_safetensors(os.path.join(tempfile.mkdtemp(), "a.safetensors"), {"w": np.arange(4)})
    """
    texts: dict[str, str] = {}
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name, value in values.items():
        check_value(name, value, where)
        if isinstance(value, str):
            texts[_TEXT_PREFIX + name] = value
        else:
            arrays[name] = np.ascontiguousarray(native(value)).reshape(value.shape)
    head = {"format": "ms", **(metadata or {}), **texts}
    if crc_check:
        head[_CRC] = str(_crc_of(arrays))
    with replacing(path) as temporary:
        try:
            save_file(arrays, temporary, metadata=head)
        except safetensors.SafetensorError as error:
            raise OSError(f"{os.fspath(path)} cannot be written: {error}") from error


def check_value(name: str, value: Any, where: str) -> None:
    """Refuse what the format cannot hold.

    Raises:
        ArgumentTypeError, ArgumentValueError, DTypeError: the message names the value.
    """
    if name == _METADATA:
        raise ArgumentValueError(where, message=f"the format does not allow the name {name!r}")
    try:
        (name + value if isinstance(value, str) else name).encode()
    except UnicodeEncodeError:
        raise ArgumentValueError(where, message=f"the entry {name!r} is no Unicode text") from None
    if isinstance(value, np.ndarray):
        if native(value[:0] if value.ndim else value).dtype not in _WRITABLE:
            kinds = ", ".join(sorted(dtype.name for dtype in _WRITABLE))
            raise DTypeError(where, message=f"the array {name!r} has dtype {value.dtype}; it takes one of {kinds}")
    elif not isinstance(value, str):
        raise ArgumentTypeError(
            where, message=f"the value of {name!r} is a {type(value).__name__}; it takes an array or a string"
        )


def _crc_of(arrays: Mapping[str, np.ndarray[Any, Any]]) -> int:
    crc = 0
    for name in sorted(arrays):
        crc = zlib.crc32(content_of(arrays[name]), zlib.crc32(name.encode(), crc))
    return crc
