from __future__ import annotations

import io
import os
import sys

import numpy as np
import pytest

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, FileFormatError, UnsupportedError
from mycelia.train.checkpoint import load_checkpoint, save_checkpoint
from mycelia.train.checkpoint.encryption import BlockCipher, mode_of

KEYS = [("AES-GCM", 16), ("AES-GCM", 24), ("AES-GCM", 32), ("AES-CBC", 16), ("AES-CBC", 32), ("SM4-CBC", 16)]


@pytest.fixture(autouse=True)
def _needs_cryptography(request):
    if "missing" not in request.node.name:
        pytest.importorskip("cryptography")


@pytest.mark.parametrize(("mode", "size"), KEYS)
@pytest.mark.parametrize("block_bytes", [16, 100, 4096])
def test_blocks_come_back_wherever_they_are_read(mode, size, block_bytes, tmp_path):
    cipher = BlockCipher(bytes(range(size)), mode, "test", "enc_key")
    plain = np.random.default_rng(0).bytes(1000)
    out = io.BytesIO()
    with cipher.sink(out, block_bytes) as sink:
        for start in range(0, 1000, 130):
            sink.write(memoryview(plain)[start : start + 130])
    path = tmp_path / "a"
    path.write_bytes(out.getvalue())
    assert mode_of(out.getvalue()) == mode
    assert plain[:64] not in out.getvalue()
    with cipher.open(str(path)) as stream:
        assert stream.read() == plain
        assert stream.seek(0, os.SEEK_END) == 1000
        for position in (999, 0, 515, 99, 100, 101, 1000):
            stream.seek(position)
            assert stream.read(200) == plain[position : position + 200]


@pytest.mark.parametrize(("mode", "size"), KEYS)
def test_checkpoints(mode, size, tmp_path):
    path, key = str(tmp_path / "a.ckpt"), os.urandom(size)
    save_checkpoint({"w": np.arange(50), "s": "secret"}, path, enc_key=key, enc_mode=mode)
    loaded = load_checkpoint(path, dec_key=key, dec_mode=mode)
    assert loaded["w"].asnumpy().tolist() == list(range(50))
    assert loaded["s"] == "secret"
    with pytest.raises(
        FileFormatError, match=f"a.ckpt: the file is encrypted with {mode}\n(.|\n)*hint: give its key as"
    ):
        load_checkpoint(path)
    other = "AES-CBC" if mode == "AES-GCM" else "AES-GCM"
    with pytest.raises(FileFormatError, match=f"byte 0 .*: the file is encrypted with {mode}, not {other}"):
        load_checkpoint(path, dec_key=bytes(16), dec_mode=other)


def test_another_key_and_every_change_are_noticed_by_gcm(tmp_path):
    path, key = tmp_path / "a.ckpt", bytes(range(16))
    save_checkpoint({"w": np.arange(4)}, str(path), enc_key=key)
    with pytest.raises(
        FileFormatError, match=r"a.ckpt, byte \d+ .*: dec_key is not the key of this file, or the file was"
    ):
        load_checkpoint(str(path), dec_key=bytes(16))
    data = path.read_bytes()
    bad = tmp_path / "bad.ckpt"
    unused = range(24 + 4 + 12, 24 + 4 + 16)  # the last bytes of the vector take no part
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 0x10
        bad.write_bytes(changed)
        if position in unused:
            assert load_checkpoint(str(bad), dec_key=key)["w"].asnumpy().tolist() == [0, 1, 2, 3]
        else:
            with pytest.raises(FileFormatError, match=r"bad\.ckpt"):
                load_checkpoint(str(bad), dec_key=key)
    for length in range(len(data)):
        bad.write_bytes(data[:length])
        with pytest.raises(FileFormatError, match=r"bad\.ckpt"):
            load_checkpoint(str(bad), dec_key=key)


def test_a_file_that_is_not_encrypted(tmp_path):
    save_checkpoint({"w": np.arange(4)}, str(tmp_path / "a.ckpt"))
    with pytest.raises(FileFormatError, match=r"byte 0 .*: the file is not encrypted"):
        load_checkpoint(str(tmp_path / "a.ckpt"), dec_key=bytes(16))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"enc_key": b"12"}, ArgumentValueError, "'enc_key' got 2 bytes; it takes 16 or 24 or 32 bytes for AES-GCM"),
        ({"enc_key": b"0" * 24, "enc_mode": "SM4-CBC"}, ArgumentValueError, "it takes 16 bytes for SM4-CBC"),
        ({"enc_key": "0" * 16}, ArgumentTypeError, "'enc_key' got str; it takes bytes"),
        (
            {"enc_key": bytes(16), "enc_mode": "ROT13"},
            ArgumentValueError,
            "'enc_mode' got 'ROT13'; it takes one of AES",
        ),
        ({"enc_key": bytes(16), "enc_mode": 1}, ArgumentTypeError, "'enc_mode' got int; it takes a string"),
        ({"enc_key": bytes(16), "crc_check": True}, ArgumentValueError, "'crc_check' got True together with enc_key"),
    ],
)
def test_wrong_arguments(arguments, error, words, tmp_path):
    with pytest.raises(error, match=words):
        save_checkpoint({"w": np.arange(4)}, str(tmp_path / "a.ckpt"), **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(UnsupportedError, match=r"needs the cryptography package(.|\n)*mycelia\[encryption\]"):
        save_checkpoint({"w": np.arange(4)}, str(tmp_path / "a.ckpt"), enc_key=bytes(16))
