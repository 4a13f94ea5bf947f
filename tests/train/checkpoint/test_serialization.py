from __future__ import annotations

import io
import os

import numpy as np
import pytest

from mycelia.core.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    FileFormatError,
)
from mycelia.tensor import Parameter, Tensor
from mycelia.train.checkpoint import ParameterMismatchError, load_checkpoint, load_checkpoint_async, save_checkpoint
from mycelia.train.checkpoint.ckpt_format import read_ckpt

FORMATS = ["ckpt", "safetensors"]


def plain(loaded):
    return {k: v.asnumpy().tolist() if isinstance(v, Parameter) else v for k, v in loaded.items()}


def parameter(values, name):
    return Parameter(np.array(values, np.float32), name=name)


@pytest.mark.parametrize("format", FORMATS)
def test_a_net_goes_out_and_comes_back(format, make_net, tmp_path):
    net = make_net(**{"fc.weight": np.float32([[1, 2]]), "fc.bias": np.float32([3]), "n": np.array(4)})
    save_checkpoint(net, str(tmp_path / "net"), format=format, crc_check=True)
    other = make_net(**{"fc.weight": np.float32([[0, 0]]), "fc.bias": np.float32([0]), "n": np.array(0)})
    loaded = load_checkpoint(str(tmp_path / f"net.{format}"), other, crc_check=True, format=format)
    assert other.values() == net.values()
    assert set(loaded) == {"fc.weight", "fc.bias", "n"}
    assert all(isinstance(v, Parameter) and v.name == k and v.requires_grad for k, v in loaded.items())


@pytest.mark.parametrize("format", FORMATS)
def test_lists_dicts_and_what_comes_with_them(format, tmp_path):
    class Generator:
        def get_state(self):
            return Tensor(np.array([1, 2], np.uint8))

        def set_state(self, state):
            raise AssertionError

    extra = {"epoch": 3, "rate": 0.5, "done": True, "note": "héλ", "t": Tensor([1, 2]), "g": Generator(), "a": 7}
    path = str(tmp_path / f"x.{format}")
    save_checkpoint([parameter([1], "a"), parameter([2], "b")], path, append_dict=extra, format=format)
    loaded = load_checkpoint(path, format=format)
    expected = {"a": 7, "b": [2], "epoch": 3, "rate": 0.5, "done": True, "note": "héλ", "t": [1, 2], "g": [1, 2]}
    assert plain(loaded) == expected
    assert [str(loaded[n].dtype) for n in ("epoch", "rate", "done", "g")] == ["Int64", "Float32", "Bool", "UInt8"]
    save_checkpoint(loaded, path, format=format)
    assert plain(load_checkpoint(path, format=format)) == expected
    save_checkpoint(
        [{"name": "x", "data": Tensor([1.0])}, {"name": "y", "data": parameter([2], "z")}], path, format=format
    )
    assert plain(load_checkpoint(path, format=format)) == {"x": [1], "y": [2]}
    save_checkpoint({"n": np.arange(2), "s": "text", "t": Tensor(3)}, path, format=format)
    assert plain(load_checkpoint(path, format=format)) == {"n": [0, 1], "s": "text", "t": 3}


def test_map_parameters_come_back_as_arrays(tmp_path):
    path = str(tmp_path / "m.ckpt")
    save_checkpoint({"m": [np.array([4]), np.array([[1.5]]), np.array([0])]}, path)
    assert [part.tolist() for part in load_checkpoint(path)["m"]] == [[4], [[1.5]], [0]]


def test_the_same_parameter_twice_is_saved_once_and_two_of_one_name_are_refused(tmp_path):
    shared = parameter([1], "w")
    save_checkpoint([shared, shared], str(tmp_path / "a.ckpt"))
    assert plain(load_checkpoint(str(tmp_path / "a.ckpt"))) == {"w": [1]}
    with pytest.raises(ArgumentValueError, match="two different values of the name 'w'"):
        save_checkpoint([shared, parameter([2], "w")], str(tmp_path / "b.ckpt"))
    assert not (tmp_path / "b.ckpt").exists()


def test_file_names(tmp_path):
    value = [parameter([1], "w")]
    for name, written in [("a", "a.ckpt"), ("b.ckpt", "b.ckpt"), ("c.bin", "c.bin.ckpt"), ("dckpt", "dckpt")]:
        save_checkpoint(value, str(tmp_path / name))
        assert (tmp_path / written).exists()
        assert plain(load_checkpoint(tmp_path / written)) == {"w": [1]}


def test_only_chosen_names_are_saved_and_loaded(tmp_path):
    path = str(tmp_path / "a.ckpt")
    names = ["conv1.weight", "conv2.weight", "fc.weight", "fc.bias"]
    save_checkpoint([parameter([i], n) for i, n in enumerate(names)], path, choice_func=lambda n: n != "fc.bias")
    assert list(load_checkpoint(path)) == names[:3]
    assert list(load_checkpoint(path, choice_func=lambda n: n.startswith("conv2"))) == ["conv2.weight"]
    assert list(load_checkpoint(path, specify_prefix="conv")) == names[:2]
    assert list(load_checkpoint(path, specify_prefix=("conv1", "fc"))) == ["conv1.weight", "fc.weight"]
    assert list(load_checkpoint(path, filter_prefix=["conv1", "fc"])) == ["conv2.weight"]
    assert list(load_checkpoint(path, specify_prefix="conv", filter_prefix="conv1")) == ["conv2.weight"]
    assert list(load_checkpoint(path, filter_prefix="fc", choice_func=lambda n: False)) == names[:2]
    with pytest.raises(ArgumentValueError, match=r"nothing is left to load from .*a.ckpt, which has 3 entries"):
        load_checkpoint(path, filter_prefix=["conv", "fc"])


def test_entries_that_cannot_be_read_can_be_left_out(tmp_path):
    from mycelia.train.checkpoint.protobuf_wire import encode_bytes_field, encode_varint_field

    body = encode_varint_field(1, 2) + encode_bytes_field(2, b"Int4") + encode_bytes_field(3, b"\1\2")
    path = tmp_path / "a.ckpt"
    save_checkpoint([parameter([1], "w")], str(path))
    quantized = encode_bytes_field(1, encode_bytes_field(1, b"q") + encode_bytes_field(2, body))
    other = tmp_path / "b.ckpt"
    other.write_bytes(path.read_bytes() + quantized)
    with pytest.raises(FileFormatError, match=r"'q', byte .*Int4"):
        load_checkpoint(str(other))
    assert plain(load_checkpoint(str(other), choice_func=lambda name: name != "q")) == {"w": [1]}


def test_safetensors_in_memory(tmp_path):
    path = tmp_path / "a.safetensors"
    save_checkpoint([parameter([1, 2], "w")], str(path), format="safetensors")
    assert plain(load_checkpoint(io.BytesIO(path.read_bytes()), format="safetensors")) == {"w": [1, 2]}
    with pytest.raises(ArgumentTypeError, match="'ckpt_file_name' got BytesIO; it takes a string"):
        load_checkpoint(io.BytesIO(b""))


def test_a_file_without_a_checksum_is_loaded_with_a_warning(tmp_path, caplog):
    for format in FORMATS:
        path = str(tmp_path / f"a.{format}")
        save_checkpoint([parameter([1], "w")], path, format=format)
        load_checkpoint(path, format=format)
        assert caplog.text == ""
        load_checkpoint(path, crc_check=True, format=format)
        assert f"a.{format} has no CRC-32 to compare with" in caplog.text
        caplog.clear()


def test_a_net_is_unchanged_by_a_damaged_file_or_one_that_does_not_fit(make_net, tmp_path):
    path = tmp_path / "a.ckpt"
    save_checkpoint([parameter([1, 2], "w"), parameter([3], "v")], str(path))
    net = make_net(w=np.zeros(2, np.float32), v=np.zeros(4, np.float32))
    with pytest.raises(ParameterMismatchError, match=r"'v': shape \(4,\) in the net, \(1,\)"):
        load_checkpoint(str(path), net)
    cut = tmp_path / "cut.ckpt"
    cut.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileFormatError, match=r"cut.ckpt, byte \d+: a length of"):
        load_checkpoint(str(cut), net)
    assert net.values() == [[0, 0], [0, 0, 0, 0]]


def test_load_checkpoint_async_gives_a_future(make_net, tmp_path):
    for format in FORMATS:
        path = str(tmp_path / f"a.{format}")
        save_checkpoint([parameter([1, 2], "w"), parameter([1], "v")], path, format=format)
        net = make_net(w=np.zeros(2, np.float32))
        loaded = load_checkpoint_async(path, net, filter_prefix="v").result()
        assert plain(loaded) == {"w": [1, 2]}
        assert net.values() == [[1, 2]]
    with pytest.raises(ArgumentValueError, match="a file that exists") as caught:
        load_checkpoint_async(str(tmp_path / "missing.ckpt")).result()
    assert "test_serialization.py" in str(caught.value)
    assert "threading.py" not in str(caught.value)
    with pytest.raises(ArgumentTypeError, match="'ckpt_file_name' got int"):
        load_checkpoint_async(3)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"save_obj": 3}, ArgumentTypeError, "'save_obj' got a value of type int; it takes a Cell, a list or a dict"),
        ({"save_obj": [3]}, ArgumentTypeError, "'save_obj' got element 0 of type int; it takes Parameters, or dicts"),
        ({"save_obj": [{"name": "a"}]}, ArgumentTypeError, r"'save_obj' got element 0 with keys \['name'\]"),
        ({"save_obj": [{"name": 1, "data": Tensor(1)}]}, ArgumentTypeError, "element 0 with a name of type int"),
        ({"save_obj": [{"name": "a", "data": 1}]}, ArgumentTypeError, "'a' with data of type int; it takes a Tensor"),
        ({"save_obj": {"a": 1}}, ArgumentTypeError, "a value of type int under 'a'"),
        ({"save_obj": {1: Tensor(1)}}, ArgumentTypeError, "'save_obj' got the key 1; it takes strings as keys"),
        ({"save_obj": {"a": np.array(["x"])}}, DTypeError, "'a' has dtype <U1"),
        ({"ckpt_file_name": 3}, ArgumentTypeError, "'ckpt_file_name' got int; it takes a string"),
        ({"integrated_save": 1}, ArgumentTypeError, "'integrated_save' got 1"),
        ({"async_save": 1}, ArgumentTypeError, "'async_save' got 1; it takes True, False"),
        ({"async_save": "fork"}, ArgumentValueError, "'async_save' got 'fork'; it takes True, False"),
        ({"append_dict": [1]}, ArgumentTypeError, "'append_dict' got list; it takes a dict or None"),
        ({"append_dict": {"a": [1]}}, ArgumentTypeError, "'append_dict' got 'a': list"),
        ({"append_dict": {1: 1}}, ArgumentTypeError, "'append_dict' got 1: int"),
        ({"append_dict": {"a": 2**70}}, ArgumentValueError, "Int64"),
        ({"choice_func": 1}, ArgumentTypeError, "'choice_func' got 1"),
        ({"crc_check": "yes"}, ArgumentTypeError, "'crc_check' got 'yes'"),
        ({"format": "pt"}, ArgumentValueError, "'format' got 'pt'; it takes \"ckpt\" or \"safetensors\""),
        ({"enc_mode": 3}, ArgumentTypeError, "'enc_mode' got 3"),
        ({"enc_key": b"0" * 16, "format": "safetensors"}, ArgumentValueError, "'enc_key' got a key; it takes None"),
        ({"crc_chek": True}, ArgumentTypeError, "there is no argument 'crc_chek'"),
        ({"remove_redundancy": 1}, ArgumentTypeError, "'remove_redundancy' got 1"),
    ],
)
def test_wrong_arguments_of_save_checkpoint(arguments, error, words, tmp_path):
    good = {"save_obj": [parameter([1], "w")], "ckpt_file_name": str(tmp_path / "a")}
    with pytest.raises(error, match=words) as caught:
        save_checkpoint(**{**good, **arguments})
    assert "test_serialization.py" in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_directories(tmp_path):
    with pytest.raises(IsADirectoryError, match="it takes a file"):
        save_checkpoint([parameter([1], "w")], str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"the directory .*missing does not exist"):
        save_checkpoint([parameter([1], "w")], str(tmp_path / "missing" / "a.ckpt"))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"ckpt_file_name": 3}, ArgumentTypeError, "'ckpt_file_name' got int"),
        ({"ckpt_file_name": "none.ckpt"}, ArgumentValueError, "none.ckpt'; it takes a file that exists"),
        ({"ckpt_file_name": "a.safetensors"}, ArgumentValueError, 'takes a name that ends with the format, "ckpt"'),
        ({"ckpt_file_name": "a.safetensors"}, ArgumentValueError, 'hint: give format="safetensors"'),
        ({"net": 3}, ArgumentTypeError, "'net' got a value of type int; it takes a Cell"),
        ({"strict_load": 1}, ArgumentTypeError, "'strict_load' got 1"),
        ({"filter_prefix": 3}, ArgumentTypeError, "'filter_prefix' got int; it takes a string"),
        ({"filter_prefix": [3]}, ArgumentTypeError, "'filter_prefix' got an element of type int"),
        ({"filter_prefix": []}, ArgumentValueError, r"'filter_prefix' got \[\]; it takes at least one prefix"),
        ({"specify_prefix": ""}, ArgumentValueError, "'specify_prefix' got ''; it takes at least one prefix"),
        ({"choice_func": "a"}, ArgumentTypeError, "'choice_func' got 'a'"),
        ({"crc_check": 1}, ArgumentTypeError, "'crc_check' got 1"),
        ({"remove_redundancy": 1}, ArgumentTypeError, "'remove_redundancy' got 1"),
        ({"format": "pt"}, ArgumentValueError, "'format' got 'pt'"),
        ({"dec_mode": None}, ArgumentTypeError, "'dec_mode' got None"),
    ],
)
def test_wrong_arguments_of_load_checkpoint(arguments, error, words, tmp_path):
    save_checkpoint([parameter([1], "w")], str(tmp_path / "a.ckpt"))
    with pytest.raises(error, match=words):
        load_checkpoint(**{"ckpt_file_name": str(tmp_path / "a.ckpt"), **arguments})


def test_nothing_to_save_makes_a_file_with_nothing_to_load(tmp_path):
    save_checkpoint([], str(tmp_path / "a.ckpt"))
    with pytest.raises(FileFormatError, match=r"a\.ckpt, byte 0: the file is empty"):
        load_checkpoint(str(tmp_path / "a.ckpt"))


def test_redundancy_is_noted_in_safetensors(make_net, tmp_path):
    path = str(tmp_path / "a.safetensors")
    save_checkpoint([parameter([1], "w")], path, format="safetensors", remove_redundancy=True)
    assert plain(load_checkpoint(path, format="safetensors")) == {"w": [1]}
    with pytest.raises(ArgumentTypeError, match="'remove_redundancy' got True in a single process"):
        load_checkpoint(path, make_net(w=np.zeros(1, np.float32)), format="safetensors")


def test_saving_again_replaces_the_file(tmp_path):
    path = tmp_path / "a.ckpt"
    for number in range(2):
        save_checkpoint([parameter([number], "w")], str(path))
    assert read_ckpt(path)["w"].tolist() == [1]
    assert os.listdir(tmp_path) == ["a.ckpt"]
