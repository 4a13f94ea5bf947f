"""Errors and lines that a compiled graph raises and prints: the user's, with values, and nothing changed by them."""

from __future__ import annotations

import sys
import traceback

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.core.errors import GraphError


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = ms.Parameter(Tensor([1.0, 2.0]), name="weight")
        self.calls = ms.Parameter(Tensor(0), name="calls", requires_grad=False)

    def construct(self, x):
        ops.assign(self.calls, self.calls + 1)
        y = (self.weight * x).sum()
        assert y > 0, f"the sum {y} of {x} is negative"
        return y


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def test_a_failed_assertion_says_values(mode):
    ms.set_context(mode=mode)
    net = Net()
    with pytest.raises(AssertionError, match=r"^the sum -3.0 of \[-1. -1.\] is negative"):
        net(Tensor([-1.0, -1.0]))
    if mode == ms.GRAPH_MODE:
        assert int(net.calls) == 0
    before = int(net.calls)
    assert float(net(Tensor([1.0, 1.0]))) == 3.0
    assert int(net.calls) == before + 1


def test_a_failed_training_step_changes_nothing():
    net = Net()
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    forward = ms.value_and_grad(net, None, net.trainable_params())

    @ms.jit
    def step(x):
        loss, grads = forward(x)
        optimizer(grads)
        return loss

    with pytest.raises(AssertionError, match="negative") as caught:
        step(Tensor([-1.0, -1.0]))
    assert 'assert y > 0, f"the sum' in "".join(caught.value.__notes__)
    np.testing.assert_array_equal(net.weight.asnumpy(), [1.0, 2.0])
    step(Tensor([1.0, 1.0]))
    np.testing.assert_allclose(net.weight.asnumpy(), [0.9, 1.9], rtol=1e-6)


def test_each_call_raises_an_error_of_its_own():
    class Refused(Exception):
        def __init__(self, code, value):
            super().__init__(f"{code}: {value}")
            self.code = code

    @ms.jit
    def f(x):
        if x.sum() > 0:
            raise Refused(7, x)
        return -x

    caught = []
    for value in (1.0, 2.0):
        with pytest.raises(Refused) as info:
            f(Tensor([value]))
        caught.append(info.value)
    assert [str(e) for e in caught] == ["7: [1.]", "7: [2.]"]
    assert [e.code for e in caught] == [7, 7]
    assert [len(e.__notes__) for e in caught] == [1, 1]
    np.testing.assert_array_equal(f(Tensor([-1.0])).asnumpy(), [1.0])


def test_an_error_under_a_gradient():
    @ms.jit
    def f(x):
        if x.max() > 5:
            raise ValueError("too large", x.max())
        return x * x

    gradient = ms.grad(lambda x: f(x).sum())
    np.testing.assert_array_equal(gradient(Tensor([1.0, 2.0])).asnumpy(), [2.0, 4.0])
    with pytest.raises(ValueError, match="too large") as caught:
        gradient(Tensor([1.0, 9.0]))
    assert caught.value.args == ("too large", 9.0)


def test_texts_are_printed_with_the_values_of_each_call(capsys):
    @ms.jit
    def f(x):
        print(f"x is {x}", x.sum(), sep="; ")
        print([x.sum()], str(x.max()), repr(x.min()))
        for i in range(2):
            if x.sum() > 5 * i:
                print(f"{i}: {x[i]}")
        return x

    def eager(x):
        return f.fn(x)

    for values in ([1.0, 2.0], [3.0, 4.0]):
        f(Tensor(values))
        compiled = capsys.readouterr().out
        eager(Tensor(values))
        assert compiled == capsys.readouterr().out
        assert f"x is [{values[0]:.0f}. {values[1]:.0f}.]" in compiled


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: f"{x}",
        lambda x: [repr(x)],
        lambda x: {"a": {str(x): x}},
        lambda x: {x},
        lambda x: (v for v in x),
        lambda x: lambda: x,
    ],
    ids=["text", "repr", "key", "set", "generator", "closure"],
)
def test_results_that_would_hold_tensors_of_the_graph(fn):
    with pytest.raises(GraphError, match="graph"):
        ms.jit(fn)(Tensor([1.0]))


def test_the_traceback_of_an_error_of_the_package_itself_is_whole(monkeypatch):
    monkeypatch.setattr(sys.modules["mycelia.frontend.jit"], "convert", int)  # refuses the function, in our own frame
    with pytest.raises(TypeError, match="int") as caught:
        ms.jit(lambda x: x)(Tensor([1.0]))
    assert any("jit.py" in frame.filename for frame in traceback.extract_tb(caught.value.__traceback__))


def test_an_error_of_pythons_own_says_line_names_and_hint():
    @ms.jit
    def f(batch):
        return batch["image"].sum() + batch["labels"].sum()

    with pytest.raises(KeyError) as caught:
        f({"image": Tensor([1.0]), "label": Tensor([1.0])})
    note = "\n".join(caught.value.__notes__)
    assert 'return batch["image"].sum() + batch["labels"].sum()' in note
    assert "batch is a dict with the keys 'image', 'label'" in note
    assert "did you mean 'label'?" in note


def test_errors_that_the_program_catches_while_it_is_staged():
    @ms.jit
    def f(x):
        try:
            y = x.reshape(2, 2)
        except ValueError:
            y = x * 2
        try:
            return y.nothing()
        except AttributeError:
            return y + 1

    np.testing.assert_array_equal(f(Tensor([1.0, 2.0])).asnumpy(), [3.0, 5.0])
