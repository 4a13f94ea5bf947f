"""SequentialCell, CellList, CellDict: order, names, changes, both modes, errors."""

from __future__ import annotations

import copy
from collections import OrderedDict
from itertools import pairwise

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops


def names(cell):
    return [p.name for p in cell.get_parameters()]


def row(*widths):
    return [nn.Dense(a, b, has_bias=False) for a, b in pairwise(widths)]


X = Tensor(np.linspace(-1, 1, 6).reshape(3, 2).astype(np.float32))


def test_sequential_calls_in_a_row():
    a, b = row(2, 3, 4)
    net = nn.SequentialCell(a, nn.ReLU(), b)
    expected = np.maximum(X.asnumpy() @ a.weight.asnumpy().T, 0) @ b.weight.asnumpy().T
    np.testing.assert_allclose(net(X).asnumpy(), expected, rtol=1e-6)
    assert nn.SequentialCell()(X) is X
    assert len(net) == 3
    assert net
    assert not nn.SequentialCell()


@pytest.mark.parametrize("form", ["varargs", "list", "tuple", "dict"])
def test_sequential_forms(form):
    cells = row(2, 3, 4)
    net = {
        "varargs": lambda: nn.SequentialCell(*cells), "list": lambda: nn.SequentialCell(cells),
        "tuple": lambda: nn.SequentialCell(tuple(cells)),
        "dict": lambda: nn.SequentialCell(OrderedDict(one=cells[0], two=cells[1])),
    }[form]()  # fmt: skip
    assert names(net) == (["one.weight", "two.weight"] if form == "dict" else ["0.weight", "1.weight"])
    assert net.cell_list == cells
    assert list(net) == cells


def test_sequential_changes_rename_parameters():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.body = nn.SequentialCell(row(2, 2, 2, 2))

    net = Net()
    body = net.body
    first, second, third = body
    assert names(net) == ["body.0.weight", "body.1.weight", "body.2.weight"]
    del body[0]
    assert list(body) == [second, third]
    assert names(net) == ["body.0.weight", "body.1.weight"]
    body.insert(1, first)
    assert list(body) == [second, first, third]
    assert [c.weight.name for c in body] == ["body.0.weight", "body.1.weight", "body.2.weight"]
    extra = nn.Dense(2, 2)
    body[-1] = extra
    assert extra.weight.name == "body.2.weight"
    assert body.append(nn.ReLU()) is body
    del body[1:3]
    assert body[0] is second
    assert [n for n, _ in net.parameters_and_names()] == ["body.0.weight"]


def test_a_container_filled_after_it_was_assigned():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layers, self.tail = nn.CellList(), nn.SequentialCell(nn.ReLU())
            for _ in range(2):
                self.layers.append(nn.Dense(2, 2, has_bias=False))
            self.tail.append(nn.Dense(2, 2, has_bias=False))

    assert names(Net()) == ["layers.0.weight", "layers.1.weight", "tail.1.weight"]


def test_named_children_keep_their_names():
    net = nn.SequentialCell(OrderedDict(fc=nn.Dense(2, 2, has_bias=False)))
    net.append(nn.Dense(2, 2, has_bias=False))
    assert names(net) == ["fc.weight", "1.weight"]
    net.insert(0, nn.ReLU())
    assert list(net.name_cells()) == ["0", "fc", "2"]


def test_slices_share_and_do_not_rename():
    net = nn.SequentialCell(row(2, 3, 4, 5))
    part = net[1:]
    assert isinstance(part, nn.SequentialCell)
    assert part[0] is net[1]
    assert names(net) == ["0.weight", "1.weight", "2.weight"]
    assert net[0:2](X).shape == (3, 4)
    cells = nn.CellList(row(2, 3, 4))
    assert cells[1:][0] is cells[1]
    assert names(cells) == ["0.weight", "1.weight"]


def test_a_graph_follows_changes():
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.SequentialCell(nn.ReLU())
    assert net(X).asnumpy().min() == 0
    net.append(nn.Sigmoid())
    assert net(X).asnumpy().min() == 0.5
    del net[1]
    assert net(X).asnumpy().min() == 0
    net[0] = nn.Tanh()
    np.testing.assert_allclose(net(X).asnumpy(), np.tanh(X.asnumpy()), rtol=1e-6)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_cell_list_in_construct(mode):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layers = nn.CellList(row(2, 2, 2))
            self.by_name = nn.CellDict({"act": nn.ReLU()})

        def construct(self, x):
            for layer in self.layers:
                x = layer(x)
            for i in range(len(self.layers)):
                x = x + self.layers[i](x)
            return self.by_name["act"](x)

    ms.set_context(mode=mode)
    net = Net()
    a, b = (c.weight.asnumpy().T for c in net.layers)
    x = X.asnumpy() @ a @ b
    x = x + x @ a
    np.testing.assert_allclose(net(X).asnumpy(), np.maximum(x + x @ b, 0), rtol=1e-5, atol=1e-6)


def test_cell_list():
    cells = nn.CellList(row(2, 2, 2))
    cells += [nn.ReLU()]
    cells.extend(nn.CellList([nn.Tanh()]))
    cells.insert(-1, nn.Sigmoid())
    assert [type(c).__name__ for c in cells] == ["Dense", "Dense", "ReLU", "Sigmoid", "Tanh"]
    assert len(nn.CellList()) == 0
    assert nn.CellList(row(2, 2), auto_prefix=False)[0].weight.name == "weight"


def test_cell_dict():
    cells = nn.CellDict([("a", nn.Dense(2, 2)), ["b", nn.ReLU()]])
    cells["c"] = nn.Tanh()
    cells.update(OrderedDict(b=nn.Sigmoid()))
    assert list(cells) == list(cells.keys()) == ["a", "b", "c"]
    assert [type(c).__name__ for c in cells.values()] == ["Dense", "Sigmoid", "Tanh"]
    assert dict(cells.items())["a"].weight.name == "a.weight"
    assert "a" in cells
    assert isinstance(cells.pop("b"), nn.Sigmoid)
    del cells["c"]
    assert list(cells) == ["a"]
    cells.clear()
    assert len(cells) == 0
    assert names(cells) == []


def test_children_take_flags_and_are_copied():
    net = nn.SequentialCell(nn.Dropout(p=0.5), nn.CellList([nn.Dense(2, 2)]))
    net.set_train()
    assert net[0].training
    net.set_grad()
    assert net[1][0].requires_grad
    twin = copy.deepcopy(net)
    assert twin[1][0] is not net[1][0]
    twin[1][0].weight.set_data(ops.zeros((2, 2)))
    assert net[1][0].weight.asnumpy().any()
    twin.append(nn.ReLU())
    assert len(net) == 2


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: nn.SequentialCell(3), TypeError, ["SequentialCell", "'cell'", "3", "a Cell"]),
        (lambda: nn.SequentialCell([nn.ReLU]), TypeError, ["make one: ReLU"]),
        (lambda: nn.CellList(nn.ReLU(), nn.ReLU()), TypeError, ["one list of Cells"]),
        (lambda: nn.CellList(5), TypeError, ["'cells'", "int"]),
        (lambda: nn.CellList([nn.CellDict()]), TypeError, ["CellDict"]),
        (lambda: nn.CellList([nn.ReLU()])[1], IndexError, ["'index'", "got 1", "-1 to 0"]),
        (lambda: nn.CellList([nn.ReLU()])["0"], TypeError, ["'index'", "'0'", "an int"]),
        (lambda: nn.CellList().append(None), TypeError, ["'cell'", "None"]),
        (lambda: nn.CellList([nn.ReLU()]).insert(3, nn.ReLU()), IndexError, ["'index'", "3"]),
        (lambda: nn.CellList([nn.ReLU()])(X), RuntimeError, ["call its elements"]),
        (lambda: nn.CellDict({"a.b": nn.ReLU()}), KeyError, ["'a.b'", "without dots"]),
        (lambda: nn.CellDict({"": nn.ReLU()}), KeyError, ["''"]),
        (lambda: nn.CellDict({"set_train": nn.ReLU()}), KeyError, ["'set_train'", "attribute"]),
        (lambda: nn.CellDict({3: nn.ReLU()}), TypeError, ["'key'", "a string"]),
        (lambda: nn.CellDict({"a": nn.CellList()}), TypeError, ["'cell'", "CellList"]),
        (lambda: nn.CellDict({"a": 1}), TypeError, ["'cell'", "1"]),
        (lambda: nn.CellDict([("a",)]), ValueError, ["cells[0]", "1 elements"]),
        (lambda: nn.CellDict([3]), TypeError, ["cells[0]", "int"]),
        (lambda: nn.CellDict(3), TypeError, ["'cells'", "a mapping"]),
        (lambda: nn.CellDict({"a": nn.ReLU()})["b"], KeyError, ["'b'", "'a'"]),
        (lambda: nn.CellDict().pop("x"), KeyError, ["'x'", "nothing yet"]),
        (lambda: nn.CellDict({"a": nn.ReLU()})(X), RuntimeError, ["call its values"]),
    ],
)
def test_errors(make, kind, words):
    with pytest.raises(kind) as caught:
        make()
    for word in [*words, "test_containers.py"]:
        assert word in str(caught.value)


def test_a_refused_update_changes_nothing():
    cells = nn.CellDict({"a": nn.ReLU()})
    with pytest.raises(TypeError):
        cells.update({"b": nn.ReLU(), "c": 3})
    assert list(cells) == ["a"]
