"""Encrypted ``.ckpt`` files, in the layout of MindSpore 2.10.

The plain file is cut into blocks of 64 MiB, each encrypted by itself with an initialization vector of
its own, and the blocks stand one after another. All numbers are little-endian int32, ``n`` is the length
of the cipher text::

    AES-GCM    magic 0x7F3A5ED8, tag (16 bytes), 24 + n, 16, vector (16 bytes), n, cipher text
    AES-CBC    magic 0x7F3A5ED9,                 24 + n, 16, vector (16 bytes), n, cipher text
    SM4-CBC    magic 0x7F3A5EDA,                 24 + n, 16, vector (16 bytes), n, cipher text

GCM uses the first 12 bytes of the vector (NIST SP 800-38D); CBC pads as PKCS #7 (NIST SP 800-38A). Only
GCM notices that a file was changed; and as MindSpore's, the blocks are not bound to each other.
The ciphers are those of the ``cryptography`` package.
"""

from __future__ import annotations

import contextlib
import io
import os
import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, FileFormatError, UnsupportedError

_MAGICS: Final = {"AES-GCM": 0x7F3A5ED8, "AES-CBC": 0x7F3A5ED9, "SM4-CBC": 0x7F3A5EDA}
_MODE_OF_MAGIC: Final = {magic: mode for mode, magic in _MAGICS.items()}
_KEY_BYTES: Final = {"AES-GCM": (16, 24, 32), "AES-CBC": (16, 24, 32), "SM4-CBC": (16,)}
_VECTOR_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_BLOCK_BYTES: Final = 64 * 1024 * 1024
_OVERHEAD: Final = 4 + _VECTOR_BYTES + 4


class _Sink(Protocol):
    def write(self, data: Any, /) -> Any: ...


def mode_of(head: bytes) -> str | None:
    """The mode of a file that starts with these bytes; None if it is not encrypted."""
    return _MODE_OF_MAGIC.get(int.from_bytes(head[:4], "little")) if len(head) >= 4 else None


class BlockCipher:
    """One key in one mode.

    Args:
        key: 16, 24 or 32 bytes (AES), 16 bytes (SM4).
        mode: ``"AES-GCM"``, ``"AES-CBC"`` or ``"SM4-CBC"``.
        where: the function to name in errors.
        key_argument: what that function calls the key, ``"enc_key"`` or ``"dec_key"``.

    Raises:
        ArgumentTypeError, ArgumentValueError: a key or a mode that cannot be.
        UnsupportedError: the ``cryptography`` package is not installed.
    """

    def __init__(self, key: bytes, mode: str, where: str, key_argument: str) -> None:
        mode_argument = key_argument.replace("key", "mode")
        if not isinstance(mode, str):
            raise ArgumentTypeError(where, mode_argument, got=type(mode).__name__, takes="a string")
        if mode not in _MAGICS:
            raise ArgumentValueError(where, mode_argument, got=repr(mode), takes=f"one of {', '.join(_MAGICS)}")
        if not isinstance(key, bytes):
            raise ArgumentTypeError(where, key_argument, got=type(key).__name__, takes="bytes")
        if len(key) not in _KEY_BYTES[mode]:
            lengths = " or ".join(map(str, _KEY_BYTES[mode]))
            raise ArgumentValueError(where, key_argument, got=f"{len(key)} bytes", takes=f"{lengths} bytes for {mode}")
        try:
            import cryptography  # noqa: F401
        except ImportError:
            raise UnsupportedError(
                where, message="encryption needs the cryptography package, which is not installed",
                hint='pip install "mycelia[encryption]"',
            ) from None  # fmt: skip
        self.mode, self._key, self._where, self._key_argument = mode, key, where, key_argument

    def encrypt(self, plain: bytes) -> bytes:
        """One block of the file."""
        vector = os.urandom(_VECTOR_BYTES)
        encryptor = self._cipher(vector).encryptor()
        if self.mode == "AES-GCM":
            text: bytes = encryptor.update(plain) + encryptor.finalize()
            tag: bytes = encryptor.tag
        else:
            from cryptography.hazmat.primitives import padding

            padder = padding.PKCS7(8 * _VECTOR_BYTES).padder()
            text = encryptor.update(padder.update(plain) + padder.finalize()) + encryptor.finalize()
            tag = b""
        head = struct.pack("<I", _MAGICS[self.mode]) + tag + struct.pack("<ii", _OVERHEAD + len(text), _VECTOR_BYTES)
        return head + vector + struct.pack("<i", len(text)) + text

    def decrypt(self, vector: bytes, tag: bytes, text: bytes) -> bytes | None:
        """The plain block, or None if the key is wrong or the block was changed."""
        if self.mode == "AES-GCM":
            from cryptography.exceptions import InvalidTag

            decryptor = self._cipher(vector, tag).decryptor()
            try:
                plain: bytes = decryptor.update(text) + decryptor.finalize()
                return plain
            except InvalidTag:
                return None
        from cryptography.hazmat.primitives import padding

        if not text or len(text) % _VECTOR_BYTES:
            return None
        decryptor = self._cipher(vector).decryptor()
        unpadder = padding.PKCS7(8 * _VECTOR_BYTES).unpadder()
        padded = decryptor.update(text) + decryptor.finalize()
        try:
            return unpadder.update(padded) + unpadder.finalize()
        except ValueError:
            return None

    def _cipher(self, vector: bytes, tag: bytes | None = None) -> Any:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        if self.mode == "AES-GCM":
            return Cipher(algorithms.AES(self._key), modes.GCM(vector[:_NONCE_BYTES], tag))
        if self.mode == "AES-CBC":
            return Cipher(algorithms.AES(self._key), modes.CBC(vector))
        return Cipher(algorithms.SM4(self._key), modes.CBC(vector))

    def sink(self, file: _Sink, block_bytes: int = _BLOCK_BYTES) -> contextlib.AbstractContextManager[EncryptingSink]:
        """A sink that encrypts into ``file``; the last block is written when the context ends well."""
        return _finished(EncryptingSink(self, file, block_bytes))

    def open(self, path: str) -> io.BufferedIOBase:
        """The plain bytes of an encrypted file, as a seekable stream.

        Raises:
            FileFormatError: the file is not encrypted in this mode, is damaged, or the key is another.
        """
        return io.BufferedReader(_PlainView(self, path, self._where, self._key_argument))


class EncryptingSink:
    """Collects bytes and writes them on as encrypted blocks."""

    def __init__(self, cipher: BlockCipher, file: _Sink, block_bytes: int) -> None:
        self._cipher, self._file, self._block_bytes = cipher, file, block_bytes
        self._waiting = bytearray()

    def write(self, data: bytes | memoryview, /) -> None:
        """Take bytes; whole blocks are written on."""
        view = memoryview(data)
        while view:
            room = self._block_bytes - len(self._waiting)
            self._waiting += view[:room]
            view = view[room:]
            if len(self._waiting) == self._block_bytes:
                self.flush()

    def flush(self) -> None:
        """Write what waits as a block of its own."""
        if self._waiting:
            self._file.write(self._cipher.encrypt(bytes(self._waiting)))
            self._waiting.clear()


@contextlib.contextmanager
def _finished(sink: EncryptingSink) -> Iterator[EncryptingSink]:
    yield sink
    sink.flush()


class _Block(NamedTuple):
    offset: int
    length: int
    vector: bytes
    tag: bytes
    plain_start: int
    plain_length: int


class _PlainView(io.RawIOBase):
    """Random access to the plain bytes, decrypting one block at a time and keeping the last one.

    Every block is decrypted once when the file is opened, so that a wrong key or a changed block is found
    before anything is used.
    """

    def __init__(self, cipher: BlockCipher, path: str, where: str, key_argument: str) -> None:
        super().__init__()
        self._cipher, self._path, self._where, self._key_argument = cipher, path, where, key_argument
        self._blocks: list[_Block] = []
        self._kept: tuple[int, bytes] = (-1, b"")
        self._position = 0
        self._file = open(path, "rb")  # noqa: SIM115
        try:
            self._index()
        except BaseException:
            self._file.close()
            raise

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, target: Any, /) -> int:
        view = memoryview(target).cast("B")
        number = self._number_at(self._position)
        if number is None:
            return 0
        plain = self._plain(number)
        start = self._position - self._blocks[number].plain_start
        got = min(len(view), len(plain) - start)
        view[:got] = plain[start : start + got]
        self._position += got
        return got

    def _number_at(self, position: int) -> int | None:
        import bisect

        number = bisect.bisect_right(self._blocks, position, key=lambda block: block.plain_start) - 1
        return number if number >= 0 and position < self._size else None

    def _plain(self, number: int) -> bytes:
        if self._kept[0] != number:
            block = self._blocks[number]
            self._kept = (-1, b"")
            self._kept = (number, self._decrypted(block.offset, block.length, block.vector, block.tag))
        return self._kept[1]

    def _decrypted(self, offset: int, length: int, vector: bytes, tag: bytes) -> bytes:
        self._file.seek(offset)
        plain = self._cipher.decrypt(vector, tag, self._file.read(length))
        if plain is None:
            raise self._damage(offset, f"{self._key_argument} is not the key of this file, or the file was changed")
        return plain

    def _index(self) -> None:
        size = os.fstat(self._file.fileno()).st_size
        offset = plain_start = 0
        mode = self._cipher.mode
        tag_bytes = _TAG_BYTES if mode == "AES-GCM" else 0
        head_bytes = 4 + tag_bytes + 8 + _VECTOR_BYTES + 4
        while offset < size:
            self._file.seek(offset)
            head = self._file.read(head_bytes)
            found = mode_of(head)
            if found is None:
                raise self._damage(offset, "no encrypted block starts here" if offset else "the file is not encrypted")
            if found != mode:
                raise self._damage(offset, f"the file is encrypted with {found}, not {mode}")
            if len(head) < head_bytes:
                raise self._damage(offset, "the file ends within the head of a block")
            tag = head[4 : 4 + tag_bytes]
            whole, vector_bytes = struct.unpack_from("<ii", head, 4 + tag_bytes)
            vector = head[-4 - _VECTOR_BYTES : -4]
            (length,) = struct.unpack("<i", head[-4:])
            start = offset + head_bytes
            if vector_bytes != _VECTOR_BYTES or whole != length + _OVERHEAD or not 0 <= length <= size - start:
                raise self._damage(offset, "the sizes of a block do not fit each other or the file")
            plain = self._decrypted(start, length, vector, tag)
            if plain:
                self._blocks.append(_Block(start, length, vector, tag, plain_start, len(plain)))
                self._kept = (len(self._blocks) - 1, plain)
            plain_start += len(plain)
            offset = start + length
        self._size = plain_start

    def _damage(self, offset: int, problem: str) -> FileFormatError:
        return FileFormatError(self._where, message=f"{self._path}, byte {offset} (encrypted): {problem}")


def refuse_encrypted(path: str, where: str, key_argument: str) -> None:
    """Say so if a file that is about to be read without a key is encrypted.

    Raises:
        FileFormatError: it is.
    """
    with open(path, "rb") as file:
        mode = mode_of(file.read(4))
    if mode is not None:
        raise FileFormatError(
            where, message=f"{path}: the file is encrypted with {mode}",
            hint=f"give its key as {key_argument}, and the mode",
        )  # fmt: skip
