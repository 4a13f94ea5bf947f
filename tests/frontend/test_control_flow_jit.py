"""The same through ``ms.jit``, compiled by XLA: values, gradients and the number of stagings."""

from __future__ import annotations

from typing import Any

import pytest
from tests.frontend.staging import assert_same, copied

import mycelia as ms
from mycelia import Tensor, ops


def branches(x: Tensor) -> Any:
    if x.sum() > 10:
        return x * x
    y = x + 1
    if y[0] < 0:
        y = y * 3 if y[1] > 0 else -y
    elif y.sum() > 4:
        return (y * y * x).sum() * x
    return y * x


def unrolled(x: Tensor) -> Any:
    for i in range(5):
        if x.sum() > 20:
            break
        if x[0] < 0:
            x = x * 0.5
            continue
        x = x * (i + 1) + ops.square(x) * 0.01
    else:
        x = x + 100
    return x


def stateful(x: Tensor) -> Any:
    total = x * 0
    for row in (x, x * 2, x * 3):
        if row.sum() > 3:
            total[0] = total[0] + row[1] * row[0]
        else:
            total = total + row
    return total


def halving(x: Tensor) -> Any:
    steps = 0
    while (x * x).sum() > 1 and steps < 50:
        x = x / 2
        steps += 1
    return x, steps


def searching(x: Tensor, n: Tensor) -> Any:
    for i in range(n):
        if x[i % 2] * i > 6:
            return i, x
        x = x + i
    return -1, x


_VECTORS = [[1.0, 2.0], [-1.0, 2.0], [-3.0, -2.0], [20.0, 3.0], [0.0, 0.0]]


@pytest.mark.parametrize("fn", [branches, unrolled, stateful, halving])
def test_values(fn: Any) -> None:
    compiled = ms.jit(fn)
    for v in _VECTORS:
        assert_same(compiled(Tensor(v)), fn(Tensor(v)))
    assert len(compiled.misses) == 1


def test_loops_of_any_length_are_compiled_once() -> None:
    compiled = ms.jit(searching)
    for v in _VECTORS:
        for n in (0, 1, 5, 30):
            assert_same(compiled(Tensor(v), Tensor(n)), searching(Tensor(v), n))
    assert len(compiled.misses) == 1


@pytest.mark.parametrize("fn", [branches, unrolled, stateful])
def test_gradients(fn: Any) -> None:
    def loss(x: Tensor) -> Any:
        return (fn(x * 1) * Tensor([1.0, 0.5])).sum()

    eager, compiled = ms.grad(loss), ms.grad(ms.jit(loss))
    inside = ms.jit(lambda x: ms.grad(loss)(x))
    for v in _VECTORS:
        expected = eager(Tensor(v))
        assert_same(compiled(Tensor(v)), expected)
        assert_same(inside(Tensor(v)), expected)


def test_cells_of_any_self_in_both_modes() -> None:
    class Net(ms.nn.Cell):
        def __init__(me, k: int) -> None:
            super().__init__()
            me.k = k
            me.w = ms.Parameter(Tensor([1.0, 2.0]), name="w")
            me.steps = ms.Parameter(Tensor(0), name="steps", requires_grad=False)

        def construct(this, x: Tensor) -> Tensor:
            fns = [lambda v, k=k: v * k if v.sum() > k else v for k in range(this.k)]
            y = x * this.w
            for fn in fns:
                if y.sum() > 40:
                    break
                this.steps += 1
                y = fn(y)
            table = {i: [[a * b for a in y if a is not None] for b in y] for i in range(2)}
            return y + table[1][0][1]

    expected = {}
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net = Net(4)
        for v in _VECTORS:
            got = net(Tensor(v)).tolist(), net.steps.item()
            assert got == expected.setdefault(tuple(v), got)
        net.k = 2
        got = net(Tensor([3.0, 4.0])).tolist(), net.steps.item()
        assert got == expected.setdefault("changed", got)


def test_arguments_written_in_place() -> None:
    def f(x: Tensor, y: Tensor) -> Any:
        if x.sum() > 0:
            x[0] = y[1]
            y += x
        else:
            y[1] = 5.0
        return x * y

    compiled = ms.jit(f)
    for v in _VECTORS:
        ours, eager = copied((Tensor(v), Tensor([1.0, 2.0]))), copied((Tensor(v), Tensor([1.0, 2.0])))
        assert_same((compiled(*ours), ours), (f(*eager), eager))
