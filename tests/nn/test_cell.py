"""Cell: naming, children, flags, modes, hooks, own gradients, precision, state, copies, errors."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops

BOTH = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["eager", "graph"])


class Block(nn.Cell):
    def __init__(self, width=2):
        super().__init__()
        self.dense = nn.Dense(width, width)
        self.scale = Parameter(Tensor(2.0))

    def construct(self, x):
        return self.dense(x) * self.scale


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.second = Block()
        self.shift = Parameter(Tensor([1.0, 2.0]), name="s")

    def construct(self, x):
        return self.second(self.first(x)) + self.shift


X = Tensor(np.array([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5]], np.float32))


def numbers(net, x=X):
    """What Net computes, by NumPy."""
    y = x.asnumpy()
    for block in (net.first, net.second):
        y = (y @ block.dense.weight.asnumpy().T + block.dense.bias.asnumpy()) * block.scale.asnumpy()
    return y + net.shift.asnumpy()


# names -------------------------------------------------------------------------------------------------


def test_parameters_are_named_by_their_path():
    net = Net()
    expected = [
        "s", "first.scale", "first.dense.weight", "first.dense.bias", "second.scale", "second.dense.weight",
        "second.dense.bias",
    ]  # fmt: skip
    assert [p.name for p in net.get_parameters()] == expected
    assert [n for n, _ in net.parameters_and_names()] == ["shift", *expected[1:]]
    assert list(net.parameters_dict()) == expected
    assert [n for n, _ in net.parameters_and_names("top")][1] == "top.first.scale"
    assert [n for n, _ in net.parameters_and_names(expand=False)] == ["shift"]


def test_shared_parameters_come_once():
    net = Net()
    net.second.scale = net.first.scale
    assert len(list(net.get_parameters())) == 6
    assert len(net.trainable_params()) == 6


def test_trainable_and_not():
    net = Net()
    net.first.scale.requires_grad = False
    assert [p.name for p in net.untrainable_params()] == ["first.scale"]
    assert len(net.trainable_params()) == 6
    assert net.trainable_params(recurse=False) == [net.shift]


def test_names_of_two_parameters_may_not_be_equal():
    net = Net()
    net.check_names()
    net.second.scale.name = "first.scale"
    with pytest.raises(ValueError, match=r"first\.scale"):
        net.check_names()


def test_cells_and_names():
    net = Net()
    assert [n for n, _ in net.cells_and_names()] == ["", "first", "first.dense", "second", "second.dense"]
    assert list(net.name_cells()) == ["first", "second"]
    assert net.get_sub_cell("first.dense") is net.first.dense
    seen = []
    assert net.apply(lambda cell: seen.append(type(cell).__name__)) is net
    assert seen == ["Dense", "Block", "Dense", "Block", "Net"]
    with pytest.raises(AttributeError, match="third"):
        net.get_sub_cell("third")


def test_parameter_tuples():
    class Many(nn.Cell):
        def __init__(self):
            super().__init__()
            unnamed = [Parameter(Tensor(1.0)), Parameter(Tensor(2.0), name="b"), Parameter(Tensor(4.0))]
            self.weights = ms.ParameterTuple(unnamed)

        def construct(self):
            return self.weights[0] + self.weights[1] + self.weights[2]

    net = Many()
    assert [p.name for p in net.get_parameters()] == ["Parameter$1", "b", "Parameter$2"]
    assert net() == 7


def test_insert_child_and_parameter():
    net = nn.Cell()
    net.insert_child_to_cell("block", Block())
    net.insert_param_to_cell("w", Parameter(Tensor(1.0)))
    assert net.w.name == "w"
    assert isinstance(net.block, Block)
    net.block = None
    assert list(net.name_cells()) == []
    del net.w
    assert list(net.get_parameters()) == []


# what is assigned ----------------------------------------------------------------------------------------


@BOTH
def test_a_tensor_assigned_to_a_parameter_becomes_its_value(mode):
    ms.set_context(mode=mode)
    net = Net()
    np.testing.assert_allclose(net(X).asnumpy(), numbers(net), rtol=1e-5)
    shift = net.shift
    net.shift = Tensor([5.0, 6.0])
    assert net.shift is shift
    np.testing.assert_allclose(net(X).asnumpy(), numbers(net), rtol=1e-5)


@BOTH
def test_attributes_changed_between_calls_are_seen(mode):
    class Scaled(nn.Cell):
        def __init__(self):
            super().__init__()
            self.k, self.options = 2, {"add": 1}

        def construct(self, x):
            return x * self.k + self.options["add"]

    ms.set_context(mode=mode)
    net = Scaled()
    np.testing.assert_array_equal(net(X).asnumpy(), X.asnumpy() * 2 + 1)
    net.k = 3
    np.testing.assert_array_equal(net(X).asnumpy(), X.asnumpy() * 3 + 1)
    net.options = {"add": 5}
    np.testing.assert_array_equal(net(X).asnumpy(), X.asnumpy() * 3 + 5)


@BOTH
def test_a_replaced_child_is_seen(mode):
    ms.set_context(mode=mode)
    net = Net()
    net(X)
    net.first = Block()
    np.testing.assert_allclose(net(X).asnumpy(), numbers(net), rtol=1e-5)


# training ------------------------------------------------------------------------------------------------


@BOTH
def test_train_and_inference(mode):
    ms.set_context(mode=mode)
    net = nn.SequentialCell(nn.Dropout(p=0.5), nn.CellList([nn.ReLU()])[0])
    assert not net.training
    ones = ops.ones((64,))
    assert (net(ones).asnumpy() == 1).all()
    assert net.set_train() is net
    assert set(net(ones).asnumpy().tolist()) == {0.0, 2.0}
    net.set_train(False)
    assert (net(ones).asnumpy() == 1).all()
    with pytest.raises(TypeError, match="'mode'"):
        net.set_train(1)


def test_flags():
    net = Net().set_grad().add_flags(fast=True)
    assert net.requires_grad
    assert net.fast
    net.add_flags_recursive(deep=3)
    assert net.first.dense.deep == 3
    assert net.get_flags()["deep"] == 3


# gradients of one's own, hooks -----------------------------------------------------------------------------


class Doubled(nn.Cell):
    """Passes on its input; its gradient is doubled."""

    def construct(self, x, y):
        return x * y

    def bprop(self, x, y, out, dout):
        return dout * y * 2, dout * x * 3


@BOTH
def test_bprop(mode):
    ms.set_context(mode=mode)
    x, y = Tensor(3.0), Tensor(5.0)
    dx, dy = ms.grad(Doubled(), (0, 1))(x, y)
    assert (dx.item(), dy.item()) == (10.0, 9.0)

    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Doubled()

        def construct(self, x, y):
            return self.inner(x, y) * x

    assert ms.grad(Outer())(x, y).item() == 15 + 3 * 10


@BOTH
def test_forward_hooks(mode):
    ms.set_context(mode=mode)
    net = Net()
    plain = numbers(net)
    before = net.first.register_forward_pre_hook(lambda cell, inputs: (inputs[0] * 2,))
    after = net.second.register_forward_hook(lambda cell, inputs, output: output + 1)
    np.testing.assert_allclose(net(X).asnumpy(), numbers(net, X * 2) + 1, rtol=1e-5)
    before.remove()
    np.testing.assert_allclose(net(X).asnumpy(), plain + 1, rtol=1e-5)
    after.remove()
    np.testing.assert_allclose(net(X).asnumpy(), plain, rtol=1e-5)


@BOTH
def test_backward_hooks(mode):
    ms.set_context(mode=mode)
    net = Net()
    gradient = ms.grad(net)(X).asnumpy()
    handle = net.first.register_backward_hook(lambda cell, grad_in, grad_out: (grad_in[0] * 10,))
    np.testing.assert_allclose(ms.grad(net)(X).asnumpy(), gradient * 10, rtol=1e-5)
    handle.remove()
    handle = net.first.register_backward_pre_hook(lambda cell, grad_out: grad_out[0] * 3)
    np.testing.assert_allclose(ms.grad(net)(X).asnumpy(), gradient * 3, rtol=1e-5)
    handle.remove()
    np.testing.assert_allclose(ms.grad(net)(X).asnumpy(), gradient, rtol=1e-5)


# precision, recomputation --------------------------------------------------------------------------------


@BOTH
def test_to_float(mode):
    ms.set_context(mode=mode)
    net = Net().to_float(ms.float16)
    assert net(X).dtype is ms.float16
    assert net.first.dense.weight.dtype is ms.float32
    np.testing.assert_allclose(net(X).asnumpy(), numbers(net), rtol=2e-2, atol=2e-2)
    _, grads = ms.value_and_grad(lambda x: net(x).sum(), None, tuple(net.trainable_params()))(X)
    assert [g.dtype for g in grads] == [p.dtype for p in net.trainable_params()]


@BOTH
def test_recompute_changes_no_number(mode):
    ms.set_context(mode=mode)
    net = Net()
    weights = tuple(net.trainable_params())
    value, grads = ms.value_and_grad(lambda x: net(x).sum(), None, weights)(X)
    net.first.recompute()
    again, same = ms.value_and_grad(lambda x: net(x).sum(), None, weights)(X)
    np.testing.assert_allclose(value.asnumpy(), again.asnumpy(), rtol=1e-6)
    for a, b in zip(grads, same, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5)


@BOTH
def test_counters_advance_once_a_call(mode):
    class Counting(nn.Cell):
        def __init__(self):
            super().__init__()
            self.count = Parameter(Tensor(0, ms.int32), requires_grad=False)

        def construct(self, x):
            self.count += 1
            return x * self.count

    ms.set_context(mode=mode)
    net = Counting()
    assert net(Tensor(2.0)).item() == 2
    assert net(Tensor(2.0)).item() == 4
    assert net.count.item() == 2


# state ---------------------------------------------------------------------------------------------------


def test_state():
    net, other = Net(), Net()
    missing, unexpected = other.load_state_dict(net.state_dict())
    assert (missing, unexpected) == ([], [])
    np.testing.assert_array_equal(net(X).asnumpy(), other(X).asnumpy())
    before = other.shift.asnumpy()
    with pytest.raises(ValueError, match="missing"):
        other.load_state_dict({"shift": Tensor([9.0, 9.0])})
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        other.load_state_dict({**net.state_dict(), "shift": Tensor([1.0, 2.0, 3.0])})
    np.testing.assert_array_equal(other.shift.asnumpy(), before)
    assert other.load_state_dict({"shift": Tensor([9.0, 9.0]), "more": 1}, strict=False)[1] == ["more"]
    assert other.shift.asnumpy().tolist() == [9, 9]


@BOTH
def test_copies_are_independent(mode):
    ms.set_context(mode=mode)
    net = Net()
    net(X)
    twin = copy.deepcopy(net)
    np.testing.assert_array_equal(twin(X).asnumpy(), net(X).asnumpy())
    assert [p.name for p in twin.get_parameters()] == [p.name for p in net.get_parameters()]
    twin.shift.set_data(Tensor([0.0, 0.0]))
    assert net.shift.asnumpy().tolist() == [1, 2]
    np.testing.assert_allclose(twin(X).asnumpy(), numbers(twin), rtol=1e-5)


def test_text():
    assert repr(nn.SequentialCell(nn.ReLU())) == "SequentialCell(\n  (0): ReLU()\n)"
    assert repr(nn.Cell()) == "Cell()"
    assert "(dense): Dense(input_channels=2, output_channels=2, has_bias=True)" in repr(Block())


# errors --------------------------------------------------------------------------------------------------


class Unready(nn.Cell):
    def __init__(self, early):
        if early:
            self.dense = nn.Dense(2, 2)
        super().__init__()
        self.training_steps = 3

    def construct(self, x):
        return self.denes(x)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: Unready(True), AttributeError, ["Unready", "'dense'", "super().__init__()"]),
        (lambda: nn.Cell()(X), RuntimeError, ["Cell", "'construct'"]),
        (lambda: Net().frist, AttributeError, ["'frist'", "did you mean 'first'"]),
        (lambda: setattr(Net(), "first", 3), TypeError, ["'first'", "int", "a Cell or None"]),
        (lambda: setattr(Net(), "shift", "a"), TypeError, ["'shift'", "str", "a Parameter"]),
        (lambda: Net().insert_child_to_cell("first", Block()), KeyError, ["'first'", "not in use"]),
        (lambda: Net().insert_child_to_cell("x", 3), TypeError, ["'child_cell'", "int", "a Cell"]),
        (lambda: Net().insert_child_to_cell("", Block()), TypeError, ["'child_name'"]),
        (lambda: Net().insert_param_to_cell("a.b", Parameter(Tensor(1.0))), KeyError, ["'a.b'", "without dots"]),
        (lambda: Net().insert_param_to_cell("a", 3), TypeError, ["'param'", "int"]),
        (lambda: ms.ParameterTuple([3]), TypeError, ["'iterable'", "int", "Parameters"]),
        (lambda: Net().to_float(ms.int32), ValueError, ["'dst_type'", "Int32", "floating"]),
        (lambda: Net().register_forward_hook(3), TypeError, ["'hook_fn'", "int", "a function"]),
        (lambda: pickle.dumps(Net()), TypeError, ["pickle", "save_checkpoint"]),
    ],
)
def test_errors(make, kind, words):
    with pytest.raises(kind) as caught:
        make()
    for word in words:
        assert word in str(caught.value)


@BOTH
def test_a_wrong_number_of_gradients(mode):
    class Wrong(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, y, out, dout):
            return (dout,)

    ms.set_context(mode=mode)
    with pytest.raises(ValueError, match=r"Wrong\.bprop.*1 gradients.*2 inputs"):
        ms.grad(Wrong())(Tensor(1.0), Tensor(2.0))
