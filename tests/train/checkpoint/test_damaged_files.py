"""Valid files cut off and changed at random: a located error, or what the changed bytes say; nothing else."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest

from mycelia.core.errors import FileFormatError
from mycelia.train.checkpoint import load_checkpoint, save_checkpoint
from mycelia.train.checkpoint.ckpt_format import CkptReader, read_ckpt, write_ckpt
from mycelia.train.checkpoint.safetensors_format import SafetensorsReader, write_safetensors

CONTENT = {
    "f": np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 3, 4), "b": np.array([True, False]), "n": np.array(7),
    "s": "héλ", "e": np.zeros((0, 3), np.float16), "c": np.array([1 + 2j], np.complex64),
}  # fmt: skip
TABLE = [np.array([4, 9]), np.array([[1.5], [2.5]], np.float32), np.array([0, 1], np.int32)]
LIMIT = 1_000_000


def same(a, b):
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    if isinstance(a, list) or isinstance(b, list):
        return isinstance(a, list) and isinstance(b, list) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def equal(a, b):
    return list(a) == list(b) and all(same(a[name], b[name]) for name in a)


def damaged(data, rng, count):
    """Truncations, single bits, single bytes, runs of bytes removed, doubled or replaced."""
    size = len(data)
    for number in range(count):
        at, length = int(rng.integers(size)), int(rng.integers(1, 40))
        kind = number % 6
        if kind == 0:
            yield data[:at]
            continue
        changed = bytearray(data)
        if kind == 1:
            changed[at] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            changed[at] = int(rng.integers(256))
        elif kind == 3:
            del changed[at : at + length]
        elif kind == 4:
            changed[at:at] = changed[at : at + length]
        else:
            changed[at : at + length] = rng.bytes(length)
        yield bytes(changed)


def outcomes(cases, load):
    """What loads, and how many were refused; memory is bounded throughout."""
    loaded, refused = [], 0
    tracemalloc.start()
    try:
        for data in cases:
            try:
                loaded.append((data, load(data)))
            except FileFormatError as error:
                refused += 1
                assert "bad" in str(error)  # noqa: PT017
        assert tracemalloc.get_traced_memory()[1] < 100 * LIMIT
    finally:
        tracemalloc.stop()
    return loaded, refused


@pytest.fixture
def path(tmp_path):
    return tmp_path / "good.ckpt"


def test_with_a_checksum_a_damaged_file_is_refused_or_harmless(path, tmp_path):
    """Cut off at the end of an entry, a file has no checksum any more, and what is there is unchanged."""
    write_ckpt(path, {**CONTENT, "t": TABLE}, crc_check=True, slice_bytes=50)
    data = path.read_bytes()
    whole = read_ckpt(path)
    bad = tmp_path / "bad.ckpt"

    def load(content):
        bad.write_bytes(content)
        with CkptReader(bad, where="bad") as reader:
            checked = reader.check_crc()
            return checked, {name: reader.read(name) for name in reader.names}

    loaded, refused = outcomes(damaged(data, np.random.default_rng(1), 2400), load)
    assert refused > 2000
    for content, (checked, values) in loaded:
        if checked:
            assert equal(values, whole)
        else:
            assert len(content) < len(data)
            assert list(values) == list(whole)[: len(values)] or content != data[: len(content)]


@pytest.mark.parametrize("position", range(0, 400, 7))
def test_every_bit_of_a_file_with_a_checksum_matters(position, path, tmp_path):
    write_ckpt(path, CONTENT, crc_check=True)
    data = path.read_bytes()
    bad = tmp_path / "bad.ckpt"
    for bit in range(8):
        changed = bytearray(data)
        changed[position % len(data)] ^= 1 << bit
        bad.write_bytes(changed)
        with pytest.raises(FileFormatError, match=r"bad\.ckpt"):
            read_ckpt(bad, crc_check=True)


def test_without_a_checksum_nothing_but_format_errors(path, tmp_path):
    write_ckpt(path, {**CONTENT, "t": TABLE}, slice_bytes=50)
    bad = tmp_path / "bad.ckpt"

    def load(content):
        bad.write_bytes(content)
        return read_ckpt(bad)

    loaded, refused = outcomes(damaged(path.read_bytes(), np.random.default_rng(2), 2400), load)
    assert refused > 600
    assert len(loaded) > 200


def test_truncations_never_give_a_part_of_an_entry(path, tmp_path):
    write_ckpt(path, CONTENT, slice_bytes=50)
    data, bad = path.read_bytes(), tmp_path / "bad.ckpt"
    whole = read_ckpt(path)
    complete = 0
    for length in range(len(data)):
        bad.write_bytes(data[:length])
        try:
            found = read_ckpt(bad)
        except FileFormatError:
            continue
        complete += 1
        assert equal(found, dict(list(whole.items())[: len(found)]))
    assert complete == len(CONTENT) - 1


def in_fixed_order(data):
    """The same file with a sorted header; the library writes the metadata in an order that changes."""
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8:start]), sort_keys=True).encode()
    return len(header).to_bytes(8, "little") + header + data[start:]


def test_safetensors(tmp_path):
    path, bad = tmp_path / "good.safetensors", tmp_path / "bad.safetensors"
    write_safetensors(path, CONTENT, crc_check=True)
    with SafetensorsReader(path) as reader:
        whole = {name: reader.read(name) for name in reader.names}

    def load(content):
        bad.write_bytes(content)
        with SafetensorsReader(bad, where="bad") as reader:
            checked = reader.check_crc()
            return checked, {name: reader.read(name) for name in reader.names}

    loaded, refused = outcomes(damaged(in_fixed_order(path.read_bytes()), np.random.default_rng(3), 2400), load)
    assert refused > 1600
    for _, (checked, values) in loaded:
        content = {name: v.tobytes() for name, v in values.items() if not isinstance(v, str)}
        assert not checked or content == {n: v.tobytes() for n, v in whole.items() if not isinstance(v, str)}


@pytest.mark.parametrize("mode", ["AES-GCM", "AES-CBC"])
def test_encrypted_files(mode, tmp_path):
    pytest.importorskip("cryptography")
    path, bad, key = tmp_path / "good.ckpt", tmp_path / "bad.ckpt", bytes(range(16))
    save_checkpoint(CONTENT, str(path), enc_key=key, enc_mode=mode)
    whole = load_checkpoint(str(path), dec_key=key, dec_mode=mode)

    def load(content):
        bad.write_bytes(content)
        return load_checkpoint(str(bad), dec_key=key, dec_mode=mode)

    loaded, refused = outcomes(damaged(path.read_bytes(), np.random.default_rng(4), 1200), load)
    assert refused > 600
    if mode == "AES-GCM":
        for _, values in loaded:
            assert list(values) == list(whole)
            assert all(v == whole[n] if isinstance(v, str) else np.array_equal(v, whole[n]) for n, v in values.items())
