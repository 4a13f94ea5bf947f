from __future__ import annotations

import os
import tracemalloc

import ml_dtypes
import numpy as np
import pytest

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, FileFormatError
from mycelia.train.checkpoint.ckpt_format import ELEMENT_TYPES, CkptReader, read_ckpt, write_ckpt
from mycelia.train.checkpoint.protobuf_wire import encode_bytes_field, encode_varint, encode_varint_field


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("title", ELEMENT_TYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (0,), (0, 4), (2, 0, 3), (2, 3, 4)])
def test_every_dtype_and_shape_comes_back(title, shape, tmp_path):
    rng = np.random.default_rng(0)
    array = rng.integers(0, 2, shape).astype(ELEMENT_TYPES[title])
    write_ckpt(tmp_path / "a.ckpt", {"x": array, "after": np.arange(2)}, crc_check=True)
    back = read_ckpt(tmp_path / "a.ckpt", crc_check=True)
    assert same(back["x"], np.asarray(array))
    assert back["x"].flags.writeable
    assert back["after"].tolist() == [0, 1]


def test_special_values_keep_their_bits(tmp_path):
    bits = np.array([0x7FC0, 0xFFC1, 0x7F80, 0x8000, 0x0001], np.uint16).view(ml_dtypes.bfloat16)
    doubles = np.array([np.nan, -np.inf, -0.0, 5e-324])
    write_ckpt(tmp_path / "a.ckpt", {"b": bits, "d": doubles})
    back = read_ckpt(tmp_path / "a.ckpt")
    assert same(back["b"], bits)
    assert same(back["d"], doubles)


def test_arrays_that_are_not_contiguous_or_not_little_endian(tmp_path):
    base = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    arrays = {
        "transposed": base.T, "strided": base[::2, ::-1, 1::2], "fortran": np.asfortranarray(base),
        "broadcast": np.broadcast_to(np.float32(7), (2, 3)), "readonly": np.frombuffer(b"\1\2\3\4", np.uint8),
    }  # fmt: skip
    write_ckpt(tmp_path / "a.ckpt", {**arrays, "big": base.astype(">f4"), "big0": np.array(3, ">i8")})
    back = read_ckpt(tmp_path / "a.ckpt")
    for name, array in arrays.items():
        assert same(back[name], np.ascontiguousarray(array)), name
    assert same(back["big"], base)
    assert same(back["big0"], np.array(3, np.int64))


@pytest.mark.parametrize("text", ["", "a", "héλ😀", "line\nline", "\0inner\0zero", "\ud800"])
def test_strings(text, tmp_path):
    write_ckpt(tmp_path / "a.ckpt", {"s": text})
    assert read_ckpt(tmp_path / "a.ckpt") == {"s": text}


@pytest.mark.parametrize("slice_bytes", [1, 7, 40, 239, 240, 241])
def test_slices_are_joined(slice_bytes, tmp_path):
    array = np.arange(60, dtype=np.float32).reshape(3, 20)
    write_ckpt(tmp_path / "a.ckpt", [("x", array), ("y", array[:1])], slice_bytes=slice_bytes, crc_check=True)
    back = read_ckpt(tmp_path / "a.ckpt", crc_check=True)
    assert same(back["x"], array)
    assert same(back["y"], array[:1])


def test_map_parameters(tmp_path):
    table = [np.array([4, 9]), np.array([[1.5], [2.5]], np.float16), np.array([0, 1], np.int32)]
    write_ckpt(tmp_path / "a.ckpt", {"t": table})
    back = read_ckpt(tmp_path / "a.ckpt")["t"]
    assert all(same(a, b) for a, b in zip(back, table, strict=True))
    with CkptReader(tmp_path / "a.ckpt") as reader:
        assert (reader.entries["t"].kind, reader.entries["t"].shape) == ("map", (2, 1))


def test_the_index_reads_no_content(tmp_path):
    write_ckpt(tmp_path / "a.ckpt", {"big": np.zeros(40_000_000, np.uint8), "b": np.ones((2, 3), np.float32)})
    tracemalloc.start()
    try:
        with CkptReader(tmp_path / "a.ckpt") as reader:
            assert reader.names == ["big", "b"]
            assert reader.entries["b"].shape == (2, 3)
            assert reader.entries["b"].tensor_type == "Float32"
            assert reader.read("b").sum() == 6
            assert not reader.check_crc()
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_writing_and_reading_take_no_second_copy_of_the_arrays(tmp_path):
    size = 30_000_000

    def made():
        for number in range(4):
            yield f"x{number}", np.full(size, number, np.uint8)

    tracemalloc.start()
    try:
        write_ckpt(tmp_path / "a.ckpt", made(), crc_check=True)
        assert tracemalloc.get_traced_memory()[1] < 2.2 * size
        tracemalloc.reset_peak()
        with CkptReader(tmp_path / "a.ckpt") as reader:
            assert reader.check_crc()
            assert all(reader.read(name)[-1] == number for number, name in enumerate(reader.names))
        assert tracemalloc.get_traced_memory()[1] < 2.2 * size
    finally:
        tracemalloc.stop()


def test_an_interrupted_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "a.ckpt"
    write_ckpt(path, {"old": np.ones(3)})
    before = path.read_bytes()

    def failing():
        yield "new", np.zeros(100_000)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_ckpt(path, failing())
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.ckpt"]


def test_an_existing_file_is_replaced_and_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "a.ckpt", tmp_path / "latest.ckpt"
    write_ckpt(target, {"x": np.ones(1)})
    link.symlink_to(target)
    write_ckpt(link, {"y": np.zeros(2)})
    assert link.is_symlink()
    assert list(read_ckpt(target)) == ["y"]


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_the_file_is_its_owners_alone(tmp_path):
    write_ckpt(tmp_path / "a.ckpt", {"x": np.ones(1)})
    assert (tmp_path / "a.ckpt").stat().st_mode & 0o777 == 0o400


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (np.array(["a"]), DTypeError, "'x' has dtype <U1"),
        (np.array([None]), DTypeError, "'x' has dtype object"),
        (np.zeros(2, "datetime64[s]"), DTypeError, "'x' has dtype datetime64"),
        (3, ArgumentTypeError, "'x' is a int"),
        ("a\0", ArgumentValueError, "'x' ends with a zero"),
        ([np.zeros(2), np.zeros(3), np.zeros(2)], ArgumentValueError, "keys, values and status"),
        ([np.zeros(2)], ArgumentValueError, "keys, values and status"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(value, error, words, tmp_path):
    with pytest.raises(error, match=words):
        write_ckpt(tmp_path / "a.ckpt", {"x": value})
    assert os.listdir(tmp_path) == []


def test_names_are_refused_that_are_twice_there_or_no_text(tmp_path):
    with pytest.raises(ArgumentValueError, match="'x' occurs twice"):
        write_ckpt(tmp_path / "a.ckpt", [("x", np.ones(1)), ("x", np.ones(1))])
    with pytest.raises(ArgumentValueError, match="no Unicode text"):
        write_ckpt(tmp_path / "a.ckpt", {"\ud800": np.ones(1)})


# ---- hostile files, made by hand from the wire format


def tensor(dims=(2,), tensor_type="Float32", content=bytes(8), packed=False):
    if packed:
        head = encode_bytes_field(1, b"".join(encode_varint(d % 2**64) for d in dims))
    else:
        head = b"".join(encode_varint_field(1, d % 2**64) for d in dims)
    kind = b"" if tensor_type is None else encode_bytes_field(2, tensor_type.encode())
    return head + kind + (b"" if content is None else encode_bytes_field(3, content))


def entry(body, name="w", number=2):
    tag = b"" if name is None else encode_bytes_field(1, name.encode())
    return encode_bytes_field(1, tag + encode_bytes_field(number, body))


def table(*parts):
    return entry(b"".join(encode_bytes_field(1, part) for part in parts), number=3)


GOOD = entry(tensor())
KEYS, VALUES = tensor((2,), "int32"), tensor((2, 1), "float32")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "byte 0: the file is empty"),
        (b"PK\x03\x04 no checkpoint at all", "byte 0: field 10 stands where an entry should start"),
        (GOOD[:-1], "byte 0: a length of 26 bytes reaches past the end, 25 bytes away"),
        (GOOD + b"\0", "byte 28: byte 0x00 starts no field"),
        (GOOD + b"crc_num\0\0", "byte 28: byte 0x63 starts no field"),
        (GOOD + b"\x0a", "byte 29: a number is cut off"),
        (b"\x0a" + b"\xff" * 10, "byte 1: a number is longer than 64 bits"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "a length of 9223372036854775807 bytes reaches past the end"),
        (entry(tensor((2**62,))), r"'w', byte 5: dims \[4611686018427387904\] are too large for any array"),
        (entry(tensor((0, 2**62, 2**62), content=b"")), r"'w', byte 5: dims \[0, .*\] are too large for any array"),
        (entry(tensor((-1,))), r"'w', byte 5: dims \[-1\] has a negative dimension"),
        (entry(tensor((-2,), packed=True)), r"dims \[-2\] has a negative dimension"),
        (entry(tensor((3,))), r"'w', byte 0: Float32 of dims \[3\] takes 12 bytes, the content has 8"),
        (entry(tensor((1,))), r"'w', byte 0: Float32 of dims \[1\] takes 4 bytes, the content has 8"),
        (entry(tensor(())), r"Float32 of dims \[\] takes 4 bytes, the content has 8"),
        (entry(tensor((0,))), r"Float32 of dims \[0\] takes 0 bytes, the content has 8"),
        (entry(tensor((1,) * 65, content=bytes(4))), "'w', byte .*: the tensor has more than 64 dimensions"),
        (entry(tensor((1,) * 65, packed=True)), "the tensor has more than 64 dimensions"),
        (entry(tensor(tensor_type="Float33")), "'w', byte 0: the tensor_type 'Float33' is unknown"),
        (entry(tensor(tensor_type="T" * 65)), "the tensor_type is 65 bytes long"),
        (entry(tensor(tensor_type=None)), "'w', byte 5: the tensor has no tensor_type"),
        (entry(tensor(content=None)), "'w', byte 5: the tensor has no tensor_content"),
        (entry(tensor() + encode_bytes_field(3, b"")), "'w', byte 28: field 3 is unknown or stands twice in a tensor"),
        (entry(tensor() + encode_varint_field(9, 1)), "field 9 is unknown or stands twice in a tensor"),
        (entry(tensor(), name=None), "byte 0: an entry has no name"),
        (encode_bytes_field(1, encode_bytes_field(1, b"w")), "'w', byte 0: the entry has no tensor"),
        (encode_bytes_field(1, encode_bytes_field(1, b"\xff") + encode_bytes_field(2, tensor())), "is no UTF-8 text"),
        (encode_bytes_field(1, encode_bytes_field(1, b"w") * 2), "'w', byte 5: field 1 is unknown or stands twice"),
        (GOOD + GOOD, "'w', byte 28: a second entry of this name"),
        (GOOD + entry(tensor(), "v") + GOOD, "'w', byte 56: a second entry of this name"),
        (entry(tensor((4,))) + entry(tensor((4,), "Int32")), "'w', byte 28: a further piece has another type"),
        (entry(tensor((4,))) + entry(tensor((4,), content=bytes(12))), "byte 28: Float32 of dims .* has 20"),
        (entry(tensor((4,))) + entry(tensor(), "v"), "byte 0: Float32 of dims .4. takes 16 bytes, the content has 8"),
        (entry(tensor((2,), "str")), r"a str of dims \[2\] holds 8 bytes"),
        (entry(tensor((0,), "str", b"abc")), r"a str of dims \[0\] holds 3 bytes"),
        (entry(tensor((0,), "str", b"\xff\xff\xff\xff")), "'w', byte .*: the content is no UTF-32 text"),
        (entry(tensor((0,), "str", b"a\0\0\0")) * 2, "a second entry of this name"),
        (entry(tensor((2,), "Bool", b"\1\2")), "'w', byte .*: a Bool is neither 0 nor 1"),
        (entry(tensor((8,), "Int4")), "elements of type Int4 cannot be read"),
        (table(KEYS), "takes keys, values and status of one length"),
        (table(KEYS, VALUES, tensor((1,), "int64")), "takes keys, values and status of one length"),
        (table(KEYS, VALUES, KEYS, KEYS), "has 3 tensors and nothing else"),
        (table(KEYS, VALUES, tensor((2,), "Int32")), "the tensor_type 'Int32' of a map parameter is unknown"),
        (table(KEYS, VALUES, tensor((3,), "int32")), "takes 12 bytes, the content has 8"),
        (table(KEYS, VALUES, tensor((), "int64")), "'w', byte .*: a tensor of a map parameter has no dims"),
        (table(KEYS, VALUES, KEYS) + table(VALUES, KEYS, KEYS), "a further piece has another type"),
        (table(KEYS, VALUES, KEYS) + GOOD, "a second entry of this name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_damaged_and_hostile_files(data, words, tmp_path):
    path = tmp_path / "bad.ckpt"
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=words) as caught:
            read_ckpt(path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)


def test_unusual_files_that_are_valid(tmp_path):
    """Packed dims, another order of fields, a scalar in the old form, pieces of a map parameter."""
    swapped = encode_bytes_field(2, b"Float32") + encode_bytes_field(3, bytes(8)) + encode_varint_field(1, 2)
    body = encode_bytes_field(2, swapped) + encode_bytes_field(1, b"swapped")
    data = entry(tensor((1, 2), packed=True), "packed") + encode_bytes_field(1, body)
    data += entry(tensor((0,), content=b"\0\0\x60\x40"), "old scalar") + table(KEYS, VALUES, KEYS) * 2
    (tmp_path / "a.ckpt").write_bytes(data)
    back = read_ckpt(tmp_path / "a.ckpt")
    assert back["packed"].shape == (1, 2)
    assert back["swapped"].shape == (2,)
    assert back["old scalar"] == 3.5
    assert back["old scalar"].shape == ()
    assert [part.shape for part in back["w"]] == [(4,), (4, 1), (4,)]


def test_the_checksum_finds_a_change_of_the_content(tmp_path):
    path = tmp_path / "a.ckpt"
    write_ckpt(path, {"x": np.arange(6)}, crc_check=True)
    data = bytearray(path.read_bytes())
    data[30] ^= 1
    bad = tmp_path / "bad.ckpt"
    bad.write_bytes(data)
    assert len(read_ckpt(bad)["x"]) == 6
    with pytest.raises(
        FileFormatError, match=r"bad.ckpt, byte \d+: the CRC-32 of the content is \d+, the trailer says"
    ):
        read_ckpt(bad, crc_check=True)
