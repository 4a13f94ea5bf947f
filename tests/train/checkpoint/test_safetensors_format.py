from __future__ import annotations

import io
import json
import os

import ml_dtypes
import numpy as np
import pytest

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, FileFormatError
from mycelia.train.checkpoint.safetensors_format import ELEMENT_TYPES, SafetensorsReader, write_safetensors


def read_all(source):
    with SafetensorsReader(source, where="test") as reader:
        return {name: reader.read(name) for name in reader.names}


def raw_file(header, content=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content


@pytest.mark.parametrize("kind", ELEMENT_TYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0, 4), (2, 3, 4)])
def test_every_dtype_and_shape_comes_back(kind, shape, tmp_path):
    array = np.asarray(np.random.default_rng(0).integers(0, 2, shape).astype(ELEMENT_TYPES[kind]))
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"x": array, "y": np.arange(2)}, crc_check=True)
    back = read_all(path)
    assert (back["x"].dtype, back["x"].shape, back["x"].tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert back["x"].flags.writeable
    assert back["y"].tolist() == [0, 1]
    with SafetensorsReader(path) as reader:
        assert reader.check_crc()


def test_the_safetensors_library_reads_the_same(tmp_path):
    from safetensors.numpy import load_file

    base = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    arrays = {"t": base.T, "s": base[:, ::2, ::-1], "big": base.astype(">f4"), "half": base.astype(np.float16)}
    write_safetensors(tmp_path / "a.safetensors", {**arrays, "note": "ünï"})
    back = load_file(tmp_path / "a.safetensors")
    assert set(back) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)


@pytest.mark.torch
def test_torch_reads_bfloat16(tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    write_safetensors(tmp_path / "a.safetensors", {"x": np.array([1.5, -2, 3e38], ml_dtypes.bfloat16)})
    back = load_file(str(tmp_path / "a.safetensors"))["x"]
    assert back.dtype == torch.bfloat16
    assert back.float().tolist() == np.array([1.5, -2, 3e38], ml_dtypes.bfloat16).astype(np.float32).tolist()


def test_strings_metadata_and_bytes_in_memory(tmp_path):
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"w": np.ones(2), "s": "héλ", "none": ""}, metadata={"remove_redundancy": "False"})
    source = io.BytesIO(path.read_bytes())
    with SafetensorsReader(source) as reader:
        assert reader.names == ["w", "none", "s"]
        assert reader.metadata == {"format": "ms", "remove_redundancy": "False"}
        assert (reader.read("s"), reader.read("none")) == ("héλ", "")
        assert reader.read("w").tolist() == [1, 1]
        assert not reader.check_crc()
    assert not source.closed


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"x": np.ones(3)})
    before = path.read_bytes()
    for bad, error in [
        (np.ones(2, np.complex128), DTypeError), (np.array(["a"]), DTypeError), (3, ArgumentTypeError),
        ("\ud800", ArgumentValueError),
    ]:  # fmt: skip
        with pytest.raises(error, match="'y'"):
            write_safetensors(path, {"x": np.zeros(3), "y": bad})
    with pytest.raises(ArgumentValueError, match="__metadata__"):
        write_safetensors(path, {"__metadata__": np.zeros(3)})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.safetensors"]


W = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "header"),
        (b"\0" * 7, "header"),
        (b"\xff" * 8, "header"),
        (raw_file({"w": W}), "incomplete|buffer|offset"),
        (raw_file({"w": W}, bytes(9)), "incomplete|buffer|offset"),
        (raw_file({"w": {**W, "shape": [3]}}, bytes(8)), "info|shape|offset"),
        (raw_file({"w": {**W, "shape": [-2]}}, bytes(8)), "header"),
        (raw_file({"w": {**W, "dtype": "F99"}}, bytes(8)), "header"),
        (raw_file({"w": {**W, "data_offsets": [8, 0]}}, bytes(8)), "offset"),
        (raw_file({"w": {**W, "shape": [2**62, 2**62]}}, bytes(8)), "overflow|info|shape"),
        (raw_file({"w": {"dtype": "F32", "shape": [0, 2**62], "data_offsets": [0, 0]}}), "too large for any array"),
        (raw_file({"w": {"dtype": "F32", "shape": [0] * 65, "data_offsets": [0, 0]}}), "too large for any array"),
        (raw_file({"w": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}}, b"\2"), "'w': a BOOL is neither"),
        (raw_file({"w": {"dtype": "F8_E8M0", "shape": [1], "data_offsets": [0, 1]}}, b"\2"), "type F8_E8M0 cannot"),
        (raw_file({"__metadata__": {"w": "Int4"}, "w": {**W, "dtype": "I8", "shape": [8]}}, bytes(8)), "Int4 cannot"),
        (raw_file(b'{"w":' + json.dumps(W).encode() + b',"w":' + json.dumps(W).encode() + b"}", bytes(8)), "w"),
        (raw_file(b"[" * 200_000), "header"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("in_memory", [False, True], ids=["file", "memory"])
def test_damaged_and_hostile_files(data, words, in_memory, tmp_path):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=words) as caught:
        read_all(io.BytesIO(data) if in_memory else path)
    assert ("BytesIO" if in_memory else str(path)) in str(caught.value)


def test_the_checksum_finds_a_change_of_the_content(tmp_path):
    path, bad = tmp_path / "a.safetensors", tmp_path / "bad.safetensors"
    write_safetensors(path, {"x": np.arange(6), "n": np.array(3)}, crc_check=True)
    for position in (-1, -30, -56):
        data = bytearray(path.read_bytes())
        data[position] ^= 1
        bad.write_bytes(data)
        with SafetensorsReader(bad) as reader, pytest.raises(FileFormatError, match="the CRC-32 of the contents is"):
            reader.check_crc()
        bad.unlink()
