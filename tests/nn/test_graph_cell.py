"""GraphCell: an exported graph used as any Cell."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError, UnsupportedError

MODES = [ms.PYNATIVE_MODE, ms.GRAPH_MODE]
X = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
Y = (X.sum(1, keepdims=True) * 0.5 + 1).astype(np.float32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.second = nn.Dense(4, 1)
        self.first.bias.requires_grad = False

    def construct(self, x):
        return self.second(ops.tanh(self.norm(self.first(x))))


@pytest.fixture
def exported(tmp_path):
    """A network and the graph of its file, in training or inference mode."""

    def make(training=False, net=None, inputs=None):
        net = net if net is not None else Net().set_train(training)
        file = str(tmp_path / "net.mindir")
        ms.export(net, *(inputs or (Tensor(X),)), file_name=file, file_format="MINDIR")
        return net, ms.load(file)

    return make


def losses(net, steps=5):
    optimizer = nn.Adam(net.trainable_params(), 0.05)
    step = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, optimizer.parameters)
    found = []
    for _ in range(steps):
        loss, gradients = step(Tensor(X), Tensor(Y))
        optimizer(gradients)
        found.append(float(loss))
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("training", [True, False])
def test_trains_as_the_network_does(exported, mode, training):
    net, graph = exported(training)
    ms.set_context(mode=mode)
    cell = nn.GraphCell(graph)
    assert [(p.name, p.requires_grad) for p in cell.get_parameters()] == [
        (p.name, p.requires_grad) for p in net.get_parameters()
    ]
    found, expected = losses(cell), losses(net)
    assert np.allclose(found, expected, rtol=2e-5)
    assert found[-1] < found[0]
    for p, q in zip(cell.get_parameters(), net.get_parameters(), strict=True):
        assert np.allclose(p.asnumpy(), q.asnumpy(), rtol=1e-3, atol=1e-5), p.name
    assert cell.parameters_dict()["first.bias"].asnumpy().tolist() == net.first.bias.asnumpy().tolist()


def test_trains_with_model(exported):
    from mycelia.dataset import NumpySlicesDataset
    from mycelia.train import Model

    net, graph = exported(True)
    cells = [nn.GraphCell(graph), net]
    for cell in cells:
        data = NumpySlicesDataset((X, Y), shuffle=False).batch(8)
        Model(cell, nn.MSELoss(), nn.Momentum(cell.trainable_params(), 0.05, 0.9)).train(3, data)
    assert np.allclose(
        cells[0].parameters_dict()["second.weight"].asnumpy(), net.second.weight.asnumpy(), rtol=1e-4, atol=1e-6
    )


def test_gradients_of_inputs_and_second_derivatives(exported):
    net, graph = exported(False)
    cell = nn.GraphCell(graph)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    for f, g in ((cell, net), (ms.grad(lambda x: cell(x).sum()), ms.grad(lambda x: net(x).sum()))):
        found = ms.grad(lambda x, f=f: (f(x) ** 2).sum())(Tensor(X))
        expected = ms.grad(lambda x, g=g: (g(x) ** 2).sum())(Tensor(X))
        assert np.allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_part_of_a_bigger_cell(exported, mode):
    net, graph = exported()

    class Outer(nn.Cell):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner
            self.scale = Parameter(Tensor([2.0]))

        def construct(self, x):
            y = self.inner(x)
            if y.sum() > 100:
                y = self.inner(x * 0)
            return y * self.scale

    ms.set_context(mode=mode)
    outer = Outer(nn.GraphCell(graph))
    names = [p.name for p in outer.get_parameters()]
    assert sorted(names) == sorted(["scale", *[f"inner.{p.name}" for p in net.get_parameters()]])
    assert np.allclose(outer(Tensor(X)).asnumpy(), 2 * net(Tensor(X)).asnumpy(), rtol=1e-6)
    assert np.allclose(losses(outer), losses(Outer(net)), rtol=2e-5)


def test_is_one_call_in_a_graph(exported):
    _, graph = exported()
    cell = nn.GraphCell(graph)
    ms.set_context(mode=ms.GRAPH_MODE)
    cell(Tensor(X))
    (held,) = cell._compiled_calls.values()
    ((entry,),) = held.entries.values()
    assert [(node.op.name, node.attrs["graph"]) for node in entry.graph.nodes] == [("call", graph.graph)]


def test_checkpoints(exported, tmp_path):
    net, graph = exported()
    cell = nn.GraphCell(graph)
    losses(cell)
    ms.save_checkpoint(cell, str(tmp_path / "tuned.ckpt"))
    assert ms.load_param_into_net(net, ms.load_checkpoint(str(tmp_path / "tuned.ckpt"))) == ([], [])
    assert np.allclose(net(Tensor(X)).asnumpy(), cell(Tensor(X)).asnumpy(), rtol=1e-6)
    fresh = nn.GraphCell(graph)
    assert not np.allclose(fresh(Tensor(X)).asnumpy(), cell(Tensor(X)).asnumpy())
    ms.save_checkpoint(net, str(tmp_path / "net.ckpt"))
    ms.load_checkpoint(str(tmp_path / "net.ckpt"), fresh)
    assert fresh(Tensor(X)).asnumpy().tobytes() == cell(Tensor(X)).asnumpy().tobytes()


def test_exported_again(exported, tmp_path):
    net, graph = exported()
    cell = nn.GraphCell(graph)
    losses(cell)
    for _ in range(3):
        _, graph = exported(net=cell)
        made = nn.GraphCell(graph)
        assert made(Tensor(X)).asnumpy().tobytes() == cell(Tensor(X)).asnumpy().tobytes()
        assert [(p.name, p.requires_grad) for p in made.get_parameters()] == [
            (p.name, p.requires_grad) for p in net.get_parameters()
        ]
        assert made.exported_input_names == ["x"]
        cell = made


def test_train_mode_is_that_of_the_export(exported):
    for training in (True, False):
        net, graph = exported(training)
        cell = nn.GraphCell(graph)
        assert (cell.training, cell.exported_in_training) == (training, training)
        first = cell(Tensor(X)).asnumpy()
        assert np.allclose(cell.set_train(not training)(Tensor(X)).asnumpy(), first, rtol=1e-6)
        assert cell.exported_in_training is training
        assert np.allclose(net(Tensor(X)).asnumpy(), first, rtol=1e-6)


def test_copies_share_nothing(exported):
    _, graph = exported()
    cell = nn.GraphCell(graph)
    copied = copy.deepcopy(cell)
    before = copied(Tensor(X)).asnumpy()
    losses(cell)
    assert copied(Tensor(X)).asnumpy().tobytes() == before.tobytes()
    assert nn.GraphCell(graph)(Tensor(X)).asnumpy().tobytes() == before.tobytes()


def test_params_init(exported):
    net, graph = exported()
    weight = Tensor(np.ones((1, 4), np.float32))
    cell = nn.GraphCell(graph, params_init={"second.weight": weight, "unknown": Tensor(1.0)})
    assert cell.parameters_dict()["second.weight"].asnumpy().tolist() == [[1, 1, 1, 1]]
    net.second.weight.set_data(weight)
    assert cell(Tensor(X)).asnumpy().tobytes() == nn.GraphCell(exported(net=net)[1])(Tensor(X)).asnumpy().tobytes()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"params_init": 3}, ArgumentTypeError, "'params_init' got int; it takes a dict"),
        ({"params_init": {3: Tensor(1.0)}}, ArgumentTypeError, "3: a Tensor"),
        ({"params_init": {"second.bias": 3}}, ArgumentTypeError, "'second.bias': a int"),
        ({"params_init": {"second.bias": Tensor([1.0, 2.0])}}, ShapeError, r"second.bias.*shape \(2,\).*shape \(1,\)"),
        ({"params_init": {"second.bias": Tensor([1])}}, DTypeError, "second.bias.*Int64.*Float32"),
        ({"obf_random_seed": 3}, UnsupportedError, "obf_random_seed"),
    ],
)
def test_bad_options(exported, options, error, words):
    _, graph = exported()
    with pytest.raises(error, match=words):
        nn.GraphCell(graph, **options)


def test_takes_only_what_load_returned():
    with pytest.raises(ArgumentTypeError, match=r"'graph' got str; it takes what mycelia.load returned"):
        nn.GraphCell("net.mindir")


@pytest.mark.parametrize("mode", MODES)
def test_bad_inputs(exported, mode):
    def net(x, pair, options, k):
        return x + pair[0] + pair[1] + options["bias"] * k

    x = Tensor([1.0, 2.0])
    _, graph = exported(net=net, inputs=(x, (x, x), {"bias": x}, 3))
    cell = nn.GraphCell(graph)
    ms.set_context(mode=mode)
    good = (x, (x, x), {"bias": x})
    assert cell(*good).asnumpy().tolist() == cell(*good, 3).asnumpy().tolist() == [6, 12]
    assert cell(np.array([1, 2], np.float32), *good[1:]).asnumpy().tolist() == [6, 12]
    assert cell(x, options={"bias": x}, pair=(x, x)).asnumpy().tolist() == [6, 12]
    assert cell(*good, k=3).asnumpy().tolist() == [6, 12]
    with pytest.raises(ArgumentTypeError, match=r"argument 'y' got a value; it takes nothing: the inputs are x, pair"):
        cell(*good, y=x)
    with pytest.raises(ArgumentTypeError, match="argument 'x' got two values; it takes one"):
        cell(*good, x=x)
    wrong = [
        ((), ArgumentTypeError, r"got 0 inputs; it takes 3 \(x, pair, options\)"),
        ((x, x, x, 3, x), ArgumentTypeError, "got 5 inputs"),
        ((Tensor([1.0]), *good[1:]), ShapeError, r"argument 'x' got shape \(1,\); it takes shape \(2,\)"),
        ((Tensor([1, 2]), *good[1:]), DTypeError, "argument 'x' got dtype Int64; it takes dtype Float32"),
        (("text", *good[1:]), ArgumentTypeError, r"argument 'x' got 'text'; it takes a Tensor \(float32\[2\]\)"),
        ((x, (x, Tensor(1.0)), good[2]), ShapeError, r"argument 'pair\[1\]' got shape \(\)"),
        ((x, x, good[2]), ArgumentTypeError, "argument 'pair' got a Tensor; it takes a tuple of 2 elements"),
        ((x, (x, x), {"b": x}), ArgumentTypeError, r"argument 'options'.*keys \['b'\].*keys \['bias'\]"),
        ((*good, 4), ArgumentValueError, "argument 'k' got 4; it takes 3, which is part of the exported graph"),
        ((*good, 3.0), ArgumentValueError, "argument 'k' got 3.0"),
    ]
    for args, error, words in wrong:
        with pytest.raises(error, match=words) as caught:
            cell(*args)
        assert "test_graph_cell.py" in str(caught.value)


def test_shows_what_it_is(exported):
    _, graph = exported()
    assert "Net(x: float32[8,3]) in inference mode" in repr(nn.GraphCell(graph))
    assert repr(graph).startswith("<program Net(x: float32[8,3])")
