"""The arguments of export and load, and the files they leave."""

from __future__ import annotations

import inspect
import os

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, FileFormatError, StateError, UnsupportedError

X = Tensor(np.ones((4, 3), np.float32))
KEY = b"0123456789ABCDEF"


@pytest.fixture
def net():
    return nn.Dense(3, 2)


def export(net, file, *inputs, **options):
    ms.export(net, *(inputs or (X,)), file_name=str(file), file_format="MINDIR", **options)


def test_signatures_are_mindspores():
    assert str(inspect.signature(ms.export)).replace("'", "").split(" ->")[0] == (
        "(net: Any, *inputs: Any, file_name: str, file_format: str, **kwargs: Any)"
    )
    assert list(inspect.signature(ms.load).parameters) == ["file_name", "kwargs"]
    assert list(inspect.signature(nn.GraphCell).parameters) == ["graph", "params_init", "obf_random_seed"]
    assert ms.train.export is ms.export
    assert ms.train.load is ms.load


@pytest.mark.parametrize(
    ("name", "file"),
    [("a", "a.mindir"), ("a.mindir", "a.mindir"), ("a.bin", "a.bin.mindir"), ("A.MINDIR", "A.MINDIR.mindir"),
     ("sub/folder/a", "sub/folder/a.mindir")],
)  # fmt: skip
def test_the_suffix_is_appended_as_mindspore_does(tmp_path, net, name, file):
    export(net, tmp_path / name)
    files = [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()]
    assert files == [file]
    assert nn.GraphCell(ms.load(str(tmp_path / file)))(X).asnumpy().tobytes() == net(X).asnumpy().tobytes()


def test_a_bare_name_goes_to_the_current_folder(tmp_path, net, monkeypatch):
    monkeypatch.chdir(tmp_path)
    export(net, "here")
    assert os.listdir() == ["here.mindir"]
    assert ms.load("here.mindir").input_names == ["x"]


def test_the_network_is_not_changed(tmp_path, net):
    net.set_train()
    before = {p.name: p.asnumpy() for p in net.get_parameters()}
    export(net, tmp_path / "a")
    assert net.training
    assert all(np.array_equal(p.asnumpy(), before[p.name]) for p in net.get_parameters())


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"file_format": "mindir"}, ArgumentValueError, "'file_format' got 'mindir'; it takes 'MINDIR', 'ONNX', 'AIR'"),
        ({"file_format": "ONNX"}, UnsupportedError, r'ONNX files are not written(.|\n)*use file_format="MINDIR"'),
        ({"file_format": "AIR"}, UnsupportedError, "Ascend"),
        ({"file_name": 3}, ArgumentTypeError, "'file_name' got int"),
        ({"file_name": ""}, ArgumentValueError, "'file_name' got ''"),
        ({"file_nam": "x"}, ArgumentTypeError, "no argument 'file_nam'"),
        ({"dataset": object()}, UnsupportedError, "'dataset' got object"),
        ({"obf_config": {}}, UnsupportedError, "obf_config"),
        ({"custom_func": 3}, ArgumentTypeError, "'custom_func' got int"),
        ({"enc_key": "0123456789ABCDEF"}, ArgumentTypeError, "'enc_key' got str"),
        ({"enc_key": b"short"}, ArgumentValueError, "'enc_key' got 5 bytes"),
        ({"enc_key": KEY, "enc_mode": "ROT13"}, ArgumentValueError, "'enc_mode' got 'ROT13'"),
    ],
)
def test_bad_options(tmp_path, net, monkeypatch, options, error, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=words) as caught:
        ms.export(net, X, **{"file_name": "a", "file_format": "MINDIR", **options})
    assert "test_export.py" in str(caught.value)
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("net", "inputs", "error", "words"),
    [
        (3, (X,), ArgumentTypeError, "'net' got 3; it takes a Cell or a function"),
        (nn.Dense, (X,), ArgumentTypeError, "'net' got a type"),
        (abs, (np.ones(3),), ArgumentTypeError, "'inputs' got a NumPy array"),
    ],
)
def test_bad_networks_and_inputs(tmp_path, net, inputs, error, words):
    with pytest.raises(error, match=words):
        export(net, tmp_path / "a", *inputs)
    assert list(tmp_path.iterdir()) == []


def test_shapes_that_vary(tmp_path, net):
    with pytest.raises(UnsupportedError, match=r"'inputs' got a Tensor whose shape varies, \(-1, 3\)"):
        export(net, tmp_path / "a", Tensor(shape=[None, 3], dtype=ms.float32))
    export(net, tmp_path / "a", Tensor(shape=[4, 3], dtype=ms.float32))  # a type is enough
    assert nn.GraphCell(ms.load(str(tmp_path / "a.mindir")))(X).shape == (4, 2)


def test_a_data_set_is_no_input(tmp_path, net):
    from mycelia.dataset import NumpySlicesDataset

    with pytest.raises(ArgumentTypeError, match="'inputs' got a data set"):
        export(net, tmp_path / "a", NumpySlicesDataset(np.ones((4, 3), np.float32)))


def test_errors_of_the_network_show_its_line(tmp_path, net):
    with pytest.raises(ArgumentValueError, match=r"test_export\.py"):
        export(net, tmp_path / "a", Tensor(np.ones((4, 5), np.float32)))
    assert list(tmp_path.iterdir()) == []


def test_not_inside_a_graph(tmp_path, net):
    @ms.jit
    def f(x):
        export(net, tmp_path / "a", x)
        return x

    with pytest.raises(StateError, match="inside a compiled function"):
        f(X)


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        (3, ArgumentTypeError, "'file_name' got int"),
        ("a", ArgumentValueError, "it takes a name that ends in '.mindir'"),
        ("nowhere.mindir", ArgumentValueError, "it takes the name of a file that is there"),
    ],
)
def test_bad_names_to_load(name, error, words):
    with pytest.raises(error, match=words):
        ms.load(name)


def test_unknown_options_of_load(tmp_path, net):
    export(net, tmp_path / "a")
    with pytest.raises(ArgumentTypeError, match="no argument 'key'"):
        ms.load(str(tmp_path / "a.mindir"), key=KEY)
    with pytest.raises(UnsupportedError, match="obf_func"):
        ms.load(str(tmp_path / "a.mindir"), obf_func=abs)


def test_an_interrupted_export_leaves_the_old_file(tmp_path, net):
    export(net, tmp_path / "a")
    before = (tmp_path / "a.mindir").read_bytes()

    def fail(content, key):
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        export(nn.Dense(3, 5), tmp_path / "a", enc_key=KEY, enc_mode=fail)
    assert [p.name for p in tmp_path.iterdir()] == ["a.mindir"]
    assert (tmp_path / "a.mindir").read_bytes() == before
    export(nn.Dense(3, 5), tmp_path / "a")
    assert nn.GraphCell(ms.load(str(tmp_path / "a.mindir")))(X).shape == (4, 5)


@pytest.mark.parametrize("mode", ["AES-GCM", "AES-CBC", "SM4-CBC"])
def test_encrypted_files(tmp_path, net, mode):
    pytest.importorskip("cryptography")
    file = str(tmp_path / "a.mindir")
    export(net, file, enc_key=KEY, enc_mode=mode)
    found = nn.GraphCell(ms.load(file, dec_key=KEY, dec_mode=mode))(X)
    assert found.asnumpy().tobytes() == net(X).asnumpy().tobytes()
    with pytest.raises(FileFormatError, match=f"encrypted with {mode}(.|\n)*dec_key"):
        ms.load(file)
    with pytest.raises(FileFormatError):
        ms.load(file, dec_key=KEY[::-1], dec_mode=mode)
    data = bytearray((tmp_path / "a.mindir").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "b.mindir").write_bytes(bytes(data))
    with pytest.raises(FileFormatError):
        ms.load(str(tmp_path / "b.mindir"), dec_key=KEY, dec_mode=mode)


def test_a_key_for_a_plain_file(tmp_path, net):
    pytest.importorskip("cryptography")
    export(net, tmp_path / "a")
    with pytest.raises(FileFormatError, match="not encrypted"):
        ms.load(str(tmp_path / "a.mindir"), dec_key=KEY)


def test_encryption_of_ones_own(tmp_path, net):
    file = str(tmp_path / "a.mindir")
    export(net, file, enc_key=KEY, enc_mode=lambda content, key: key + content[::-1])

    def decrypt(name, key):
        data = (tmp_path / "a.mindir").read_bytes()
        assert (name, data[:16]) == (file, key)
        return data[16:][::-1]

    assert nn.GraphCell(ms.load(file, dec_key=KEY, dec_mode=decrypt))(X).shape == (4, 2)
    with pytest.raises(FileFormatError, match="no file that"):
        ms.load(file)


def test_notes(tmp_path, net):
    file = str(tmp_path / "a.mindir")
    seen = []

    def note(model):
        seen.append((model.producer_name, model.producer_version))
        model.user_info["version"] = "pangu v100"

    export(net, file, custom_func=note, incremental=True)
    assert seen[0][0] == "mycelia"
    assert seen[0][1]
    assert nn.GraphCell(ms.load(file)).user_info == {"version": "pangu v100"}
    model = ms.load_mindir(file)
    assert (model.producer_name, model.producer_version) == seen[0]
    model.user_info["版本"] = "二"
    ms.save_mindir(model, str(tmp_path / "b"))
    again = nn.GraphCell(ms.load(str(tmp_path / "b.mindir")))
    assert again.user_info == {"version": "pangu v100", "版本": "二"}
    assert again(X).asnumpy().tobytes() == net(X).asnumpy().tobytes()
    model.user_info["count"] = 3
    with pytest.raises(ArgumentTypeError, match="'user_info' got 'count': 3"):
        ms.save_mindir(model, str(tmp_path / "b"))
    with pytest.raises(ArgumentTypeError, match="'model' got str"):
        ms.save_mindir("a", str(tmp_path / "b"))


def test_files_do_not_name_folders(tmp_path, net):
    export(net, tmp_path / "a")
    data = (tmp_path / "a.mindir").read_bytes()
    assert os.path.dirname(__file__).encode() not in data
    export(lambda x: x + 1, tmp_path / "b")
    data = (tmp_path / "b.mindir").read_bytes()
    assert b"<test_export.py>" in data
    assert os.path.dirname(__file__).encode() not in data
