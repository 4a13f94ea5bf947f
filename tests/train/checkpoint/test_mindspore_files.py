"""Both directions of the exchange with MindSpore 2.10, on files recorded by tests/oracles/checkpoint_mindspore.py."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mycelia.tensor import Parameter
from mycelia.train.checkpoint import load_checkpoint, save_checkpoint
from mycelia.train.checkpoint.ckpt_format import ELEMENT_TYPES, CkptReader, read_ckpt, write_ckpt
from mycelia.train.checkpoint.encryption import BlockCipher
from mycelia.train.checkpoint.safetensors_format import SafetensorsReader

THEIRS = [
    "theirs_types.ckpt", "theirs_appended.ckpt", "theirs_crc.ckpt", "theirs_sliced.ckpt", "theirs_split_rows.ckpt",
    "theirs_empty.ckpt", "theirs_net.ckpt", "theirs_map.ckpt", "theirs_AES-GCM.ckpt", "theirs_AES-CBC.ckpt",
    "theirs_SM4-CBC.ckpt", "theirs.safetensors", "theirs_crc.safetensors",
]  # fmt: skip
OURS = [
    "ours.ckpt", "ours_crc.ckpt", "ours_map.ckpt", "ours_AES-GCM.ckpt", "ours_AES-CBC.ckpt", "ours_SM4-CBC.ckpt",
    "ours.safetensors", "ours_crc.safetensors",
]  # fmt: skip
TITLES = {dtype: title for title, dtype in ELEMENT_TYPES.items()}


def described(value):
    """In the words of the recorded JSON files."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return [[str(part.dtype), list(part.shape), part.tobytes().hex()] for part in value]
    array = value.asnumpy() if isinstance(value, Parameter) else value
    return [TITLES[array.dtype], list(array.shape), array.tobytes().hex()]


def options_of(name, oracle):
    found = {"format": "safetensors" if name.endswith("safetensors") else "ckpt", "crc_check": "crc" in name}
    for mode, key in oracle.KEYS.items():
        if mode in name:
            found.update(dec_key=key, dec_mode=mode)
    return found


def needs(name):
    if "AES" in name or "SM4" in name:
        pytest.importorskip("cryptography")


@pytest.mark.parametrize("name", THEIRS)
def test_what_mindspore_wrote_is_loaded(name, files, recorded, oracle, caplog):
    needs(name)
    loaded = load_checkpoint(str(files / name), **options_of(name, oracle))
    assert {k: described(v) for k, v in loaded.items()} == recorded("theirs.json")[name]
    assert all(v.name == k for k, v in loaded.items() if isinstance(v, Parameter))
    assert caplog.records == []


def test_every_recorded_file_is_in_these_tests(files, recorded):
    assert set(recorded("theirs.json")) == set(THEIRS)
    assert set(recorded("seen.json")) == set(OURS)
    assert {p.name for p in files.iterdir()} == {*THEIRS, *OURS, "theirs.json", "seen.json", "rules.json"}


@pytest.mark.parametrize("name", OURS)
def test_mindspore_saw_what_we_wrote(name, recorded, oracle):
    ours = oracle.ours_content()[name]
    seen = recorded("seen.json")[name]
    if name.endswith("safetensors"):
        ours = {k: v for k, v in ours.items() if not isinstance(v, str)}
    assert {k: described(v) for k, v in ours.items()} == seen


@pytest.mark.parametrize("name", OURS)
def test_we_still_write_what_mindspore_read(name, files, oracle, tmp_path):
    needs(name)
    oracle.write_ours(tmp_path, [name])
    if "AES" in name or "SM4" in name:
        options = options_of(name, oracle)
        plain = []
        for path in (tmp_path / name, files / name):
            with BlockCipher(options["dec_key"], options["dec_mode"], "test", "dec_key").open(str(path)) as stream:
                plain.append(stream.read())
        assert plain[0] == plain[1] == (files / "ours.ckpt").read_bytes()
    elif name.endswith("safetensors"):
        assert parts_of(tmp_path / name) == parts_of(files / name)
    else:
        assert (tmp_path / name).read_bytes() == (files / name).read_bytes()


def parts_of(path):
    """Header and contents; the library writes the metadata in no fixed order."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:start]), data[start:]


@pytest.mark.parametrize(
    "name", ["theirs_types.ckpt", "theirs_appended.ckpt", "theirs_crc.ckpt", "theirs_empty.ckpt", "theirs_net.ckpt"]
)
def test_a_file_of_mindspore_written_again_is_the_same_file(name, files, tmp_path):
    write_ckpt(tmp_path / "again.ckpt", read_ckpt(files / name), crc_check="crc" in name)
    assert (tmp_path / "again.ckpt").read_bytes() == (files / name).read_bytes()


def test_slices_are_cut_as_mindspore_cuts_them(files, tmp_path):
    name = "theirs_sliced.ckpt"
    write_ckpt(tmp_path / name, read_ckpt(files / name), crc_check=True, slice_bytes=1024)
    assert (tmp_path / name).read_bytes() == (files / name).read_bytes()


def test_saving_parameters_gives_the_bytes_that_mindspore_wrote(files, recorded, tmp_path):
    loaded = load_checkpoint(str(files / "theirs_appended.ckpt"))
    first = {name: value for name, value in loaded.items() if name in ("w", "v")}
    extra = {name: value for name, value in loaded.items() if name not in ("w", "v")}
    extra.update(int=3, float=2.5, bool=True)
    save_checkpoint(first, str(tmp_path / "again"), append_dict=extra)
    assert (tmp_path / "again.ckpt").read_bytes() == (files / "theirs_appended.ckpt").read_bytes()


def test_the_protobuf_library_reads_the_same(files):
    """The wire format against Google's own parser, with the message types built here."""
    message_factory = pytest.importorskip("google.protobuf.message_factory")
    from google.protobuf import descriptor_pb2, descriptor_pool

    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="ckpt.proto", syntax="proto2", package="t")
    layout = {
        "Tensor": [("dims", 1, kind.LABEL_REPEATED, kind.TYPE_INT64, ""),
                   ("tensor_type", 2, kind.LABEL_REQUIRED, kind.TYPE_STRING, ""),
                   ("tensor_content", 3, kind.LABEL_REQUIRED, kind.TYPE_BYTES, "")],
        "Map": [("tensor", 1, kind.LABEL_REPEATED, kind.TYPE_MESSAGE, ".t.Tensor")],
        "Value": [("tag", 1, kind.LABEL_REQUIRED, kind.TYPE_STRING, ""),
                  ("tensor", 2, kind.LABEL_OPTIONAL, kind.TYPE_MESSAGE, ".t.Tensor"),
                  ("maptensor", 3, kind.LABEL_OPTIONAL, kind.TYPE_MESSAGE, ".t.Map")],
        "Checkpoint": [("value", 1, kind.LABEL_REPEATED, kind.TYPE_MESSAGE, ".t.Value")],
    }  # fmt: skip
    for message, fields in layout.items():
        added = file.message_type.add(name=message)
        for name, number, label, type_, type_name in fields:
            added.field.add(name=name, number=number, label=label, type=type_, type_name=type_name or None)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    checkpoint = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Checkpoint"))()
    checkpoint.ParseFromString((files / "ours.ckpt").read_bytes())
    assert checkpoint.SerializeToString() == (files / "ours.ckpt").read_bytes()
    content: dict[str, bytes] = {}
    for value in checkpoint.value:
        content[value.tag] = content.get(value.tag, b"") + value.tensor.tensor_content
    with CkptReader(files / "ours.ckpt") as reader:
        assert list(content) == reader.names
        for name in reader.names:
            value = reader.read(name)
            if isinstance(value, np.ndarray):
                assert value.tobytes() == content[name]


def test_metadata_of_mindspores_safetensors(files):
    with SafetensorsReader(files / "theirs_crc.safetensors") as reader:
        assert reader.metadata["format"] == "ms"
        assert reader.check_crc()
        assert reader.read("epoch") == 5
