"""Assignment, gradient stops and printing, in both modes."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, ops
from mycelia.core.errors import ArgumentTypeError, DTypeError, ShapeError


def test_assignment():
    w = Parameter(Tensor([1.0, 2.0]), name="w")
    assert ops.assign(w, Tensor([3, 4])) is w
    assert w.asnumpy().tolist() == [3.0, 4.0]
    assert w.dtype is ms.float32
    assert ops.assign_add(w, 1).asnumpy().tolist() == [4.0, 5.0]
    assert ops.assign_sub(w, Tensor([1.0, 2.0])).asnumpy().tolist() == [3.0, 3.0]
    x = Tensor([1, 2])
    ops.assign(x, np.array([5, 6]))
    assert x.tolist() == [5, 6]
    x.assign_value(Tensor([7, 8]))
    assert x.tolist() == [7, 8]
    assert x.copy_(9).tolist() == [9, 9]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda w: ops.assign(w, Tensor([1.0])), ShapeError, "that of 'variable'"),
        (lambda w: ops.assign(Tensor([1]), 2.5), ShapeError, "shape"),
        (lambda w: ops.assign(Tensor([1]), Tensor([2.5])), DTypeError, "Float32"),
        (lambda w: ops.assign_add(w, Tensor([[1.0], [2.0]])), ShapeError, "broadcasts to"),
        (lambda w: ops.assign(3, w), ArgumentTypeError, "'variable' got int"),
    ],
)
def test_nothing_is_written_if_it_does_not_fit(call, error, words):
    w = Parameter(Tensor([1.0, 2.0]), name="w")
    with pytest.raises(error, match=words) as caught:
        call(w)
    assert "test_state.py" in str(caught.value)
    assert w.asnumpy().tolist() == [1.0, 2.0]


def test_assignment_in_a_graph():
    w = Parameter(Tensor([1.0]), name="w")

    @ms.jit
    def step(x):
        ops.assign_add(w, x)
        return w * 2

    assert step(Tensor([2.0])).tolist() == [6.0]
    assert step(Tensor([2.0])).tolist() == [10.0]
    assert w.asnumpy().tolist() == [5.0]


def test_gradients_stop():
    x = Tensor([3.0])
    assert ms.grad(lambda x: (x * ops.stop_gradient(x)).sum())(x).tolist() == [3.0]
    assert ms.grad(lambda x: (x * x.detach()).sum())(x).tolist() == [3.0]
    assert ms.grad(lambda x: (ops.identity(x) * x.clone()).sum())(x).tolist() == [6.0]
    assert ops.stop_gradient("text") == "text"


def test_copies_are_apart():
    x = Tensor([1, 2])
    copies = [ops.deepcopy(x), x.copy(), x.clone(), x.detach()]
    ops.assign(x, Tensor([3, 4]))
    assert [c.tolist() for c in copies] == [[1, 2]] * 4
    assert ops.depend(x, copies) is x


LINES = """\
x is
Tensor(shape=[2], dtype=Int64, value= [1, 2])
Tensor(shape=[2, 2], dtype=Float32, value=
[[ 1.50000000e+00,  2.00000000e+00],
 [ 3.00000000e+00,  4.00000000e+00]])
3
"""


def test_printing(capsys):
    ops.print_("x is", Tensor([1, 2]), Tensor([[1.5, 2], [3, 4]]), 3)
    assert capsys.readouterr().out == LINES


def test_printing_in_a_graph(capsys):
    @ms.jit
    def f(x, y):
        ops.print_("x is", x, y, 3)
        return x + 1

    for _ in range(2):
        f(Tensor([1, 2]), Tensor([[1.5, 2], [3, 4]])).asnumpy()
    import jax

    jax.effects_barrier()
    assert capsys.readouterr().out == LINES * 2
