"""Checkpoints of real Cells, one of them a network that MindSpore itself saved."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia.core.context import GRAPH_MODE, PYNATIVE_MODE, set_context
from mycelia.nn.cell import Cell
from mycelia.tensor import Parameter, Tensor
from mycelia.train.checkpoint import ParameterMismatchError, load_checkpoint, load_param_into_net, save_checkpoint


class Layer(Cell):
    def __init__(self, size, value=0.0):
        super().__init__()
        self.weight = Parameter(np.full(size, value, np.float32))
        self.bias = Parameter(np.full(1, value, np.float32))

    def construct(self, x):
        return x * self.weight + self.bias


class Net(Cell):
    def __init__(self, value=0.0, size=2):
        super().__init__()
        self.first = Layer(size, value)
        self.second = Layer(3, value)

    def construct(self, x):
        return self.first(x)


def values(net):
    return {p.name: p.asnumpy().tolist() for _, p in net.parameters_and_names()}


@pytest.mark.parametrize("format", ["ckpt", "safetensors"])
def test_nested_cells(format, tmp_path):
    path = str(tmp_path / f"net.{format}")
    net, other = Net(1.5), Net()
    save_checkpoint(net, path, format=format)
    assert sorted(load_checkpoint(path, format=format)) == sorted(values(net))
    assert "first.weight" in values(net)
    load_checkpoint(path, other, format=format)
    assert values(other) == values(net)
    save_checkpoint(net.trainable_params(), path, format=format)
    assert sorted(load_checkpoint(path, format=format)) == sorted(values(net))


@pytest.mark.parametrize("mode", [GRAPH_MODE, PYNATIVE_MODE])
def test_a_net_computes_with_what_was_loaded(mode, tmp_path):
    set_context(mode=mode)
    path = str(tmp_path / "net.ckpt")
    save_checkpoint(Net(2.0), path)
    net = Net()
    x = Tensor(np.float32([1, 1]))
    assert net(x).asnumpy().tolist() == [0, 0]
    assert load_param_into_net(net, load_checkpoint(path)) == ([], [])
    assert net(x).asnumpy().tolist() == [4, 4]


def test_a_part_of_a_net_is_loaded_behind_its_prefix(tmp_path):
    path = str(tmp_path / "net.ckpt")
    save_checkpoint(Net(2.0), path)
    layer = Layer(2)
    loaded = load_checkpoint(path, specify_prefix="first.")
    assert load_param_into_net(layer, loaded) == ([], [])
    assert set(map(str, values(layer).values())) == {"[2.0, 2.0]", "[2.0]"}


def test_a_net_of_another_size_is_left_alone(tmp_path):
    path = str(tmp_path / "net.ckpt")
    save_checkpoint(Net(2.0), path)
    net = Net(size=5)
    before = values(net)
    with pytest.raises(
        ParameterMismatchError, match=r"'first.weight': shape \(5,\) in the net, \(2,\) in parameter_dict"
    ):
        load_checkpoint(path, net)
    assert values(net) == before


def test_a_network_that_mindspore_saved(files, recorded):
    from mycelia.nn.layers.batch_norm import BatchNorm2d
    from mycelia.nn.layers.container import SequentialCell
    from mycelia.nn.layers.conv import Conv2d
    from mycelia.nn.layers.dense import Dense

    net = SequentialCell(Conv2d(1, 2, 3), BatchNorm2d(2), Cell(), Dense(8, 3))
    loaded = load_checkpoint(str(files / "theirs_net.ckpt"))
    assert load_param_into_net(net, loaded, strict_load=True) == ([], [])
    found = {p.name: p.asnumpy().tobytes().hex() for _, p in net.parameters_and_names()}
    assert found == {name: entry[2] for name, entry in recorded("theirs.json")["theirs_net.ckpt"].items()}
