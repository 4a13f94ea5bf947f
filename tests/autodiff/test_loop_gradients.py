"""Gradients of users' loops that end by data: eager, where Python loops, against the staged loops of Graph mode."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops

X = np.array([0.3, 0.9, -0.5])


def newton(x):
    """The square root by iteration; the number of rounds depends on x, the gradient does not."""
    y = x * 0.5 + 0.5
    while ops.abs(y * y - x) > 1e-12:
        y = 0.5 * (y + x / y)
    return y


def collatz(x, n):
    while n > 1:
        if n % 2 == 0:
            n, x = n // 2, ops.sin(x)
        else:
            n, x = 3 * n + 1, x * 1.1
    return x.sum()


def with_break(x, n):
    i = n * 0
    while i < 50:
        if x.sum() > n:
            break
        i += 1
        if i % 3 == 0:
            continue
        x = x * 1.2 + 0.1 * i
    else:
        x = x * 2.0
    return (x * x).sum()


def early_return(x, n):
    for i in range(n):
        x = ops.tanh(x) * 1.5
        if x.max() > 1.2:
            return (x * i).sum()
    return x.sum() * 10.0


def nested(x, n):
    total = x * 0.0
    i = n * 0
    while i < n:
        y = x
        j = i * 0
        while j < i:
            y = ops.sin(y) * x
            j += 1
        total = total + y
        i += 1
    return total.sum()


def tuples(x, n):
    state = (x, {"scale": x.sum(), "count": n * 0})
    while state[1]["count"] < n:
        v, rest = state
        state = (v * ops.cos(v) + rest["scale"] * 0.1, {"scale": rest["scale"] * 0.9, "count": rest["count"] + 1})
    return (state[0] * state[1]["scale"]).sum()


def writing(x, n):
    y = x * 1.0
    i = n * 0
    while i < n:
        y[i % 3] = y[(i + 1) % 3] * x[i % 3] + y[i % 3] * 0.5
        i += 1
    return (y * y).sum()


def rows(x, n):
    """A loop of known length around one of unknown length."""
    total = x.sum() * 0.0
    for k in range(3):
        y = x[k]
        while y < n:
            y = y * y + 1.1
        total = total + y * x[k]
    return total


CASES = {
    "collatz": (collatz, (1, 6, 7)), "with_break": (with_break, (0, 5, 2000)), "nested": (nested, (0, 1, 4)),
    "early_return": (early_return, (0, 2, 30)), "tuples": (tuples, (0, 3)), "writing": (writing, (0, 1, 5)),
    "rows": (rows, (-5, 3, 40)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_staged_loops_have_the_gradient_of_python_loops(name):
    fn, ns = CASES[name]
    staged = ms.jit(ms.value_and_grad(fn))
    for n in ns:
        args = ms.Tensor(X), ms.Tensor(n)
        value, want = ms.value_and_grad(fn)(*args)
        got_value, got = staged(*args)
        np.testing.assert_allclose(got_value.asnumpy(), value.asnumpy(), rtol=1e-12)
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-10, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_second_order_of_staged_loops(name):
    fn, ns = CASES[name]
    v = ms.Tensor(np.array([1.0, -0.5, 2.0]))

    def second(x, n):
        return ms.grad(lambda x: (ms.grad(fn)(x, n) * v).sum())(x)

    staged, taped = ms.jit(second), ms.jit(fn)
    for n in ns:
        args = ms.Tensor(X), ms.Tensor(n)
        want = second(*args)
        np.testing.assert_allclose(staged(*args).asnumpy(), want.asnumpy(), rtol=1e-9, atol=1e-12)
        under_tape = ms.grad(lambda x: (ms.grad(taped)(x, args[1]) * v).sum())(args[0])  # noqa: B023
        np.testing.assert_allclose(under_tape.asnumpy(), want.asnumpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def test_a_number_of_rounds_that_depends_on_the_argument(mode):
    ms.set_context(mode=mode)
    for x in (0.01, 2.0, 9.0):
        value, gradient = ms.value_and_grad(newton)(ms.Tensor(np.float64(x)))
        np.testing.assert_allclose(float(value), np.sqrt(x), rtol=1e-9)
        np.testing.assert_allclose(float(gradient), 0.5 / np.sqrt(x), rtol=1e-6)


class Settling(nn.Cell):
    """Runs a layer until its output settles, for all inputs together."""

    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(ms.Tensor(np.array([[0.3, -0.2], [0.1, 0.4]])), name="w")
        self.b = ms.Parameter(ms.Tensor(np.array([0.5, -0.3])), name="b")
        self.rounds = ms.Parameter(ms.Tensor(0), name="rounds", requires_grad=False)

    def construct(self, x):
        h, change = x * 0.0, x.abs().sum() + 1.0
        while change > 1e-3:
            new = ops.tanh(ops.matmul(h, self.w) + x + self.b)
            change = (new - h).abs().sum()
            h = new
            self.rounds = self.rounds + 1
        return (h * h).sum()


def test_parameters_of_a_cell_with_a_loop():
    x = np.array([[0.2, -0.7], [1.0, 0.3], [-0.4, 0.9]])
    found = {}
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net = Settling()
        step = ms.value_and_grad(net, 0, net.trainable_params())
        found[mode] = [step(ms.Tensor(x)), step(ms.Tensor(2 * x)), int(net.rounds)]
    eager, graph = found[ms.PYNATIVE_MODE], found[ms.GRAPH_MODE]
    assert graph[2] == eager[2] > 4
    for (value, (of_x, of_weights)), (value2, (of_x2, of_weights2)) in zip(graph[:2], eager[:2], strict=True):
        np.testing.assert_allclose(value.asnumpy(), value2.asnumpy(), rtol=1e-12)
        for a, b in zip((of_x, *of_weights), (of_x2, *of_weights2), strict=True):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-10)


def test_differences_to_second_order():
    def f(x):
        n = x * 0.0
        while n < 3.0:
            x, n = ops.sin(x) * x + 0.5, n + x * x + 0.1
        return x

    fn, first, second = ms.jit(f), ms.jit(ms.grad(f)), ms.jit(ms.grad(ms.grad(f)))
    step = 1e-5
    for x in (0.4, 0.8):
        at = [float(fn(ms.Tensor(np.float64(x + k * step)))) for k in (-1, 0, 1)]
        slopes = [float(first(ms.Tensor(np.float64(x + k * step)))) for k in (-1, 1)]
        np.testing.assert_allclose(float(first(ms.Tensor(np.float64(x)))), (at[2] - at[0]) / (2 * step), rtol=1e-7)
        np.testing.assert_allclose(
            float(second(ms.Tensor(np.float64(x)))), (slopes[1] - slopes[0]) / (2 * step), rtol=1e-7
        )


def test_a_loop_prints_and_raises_as_often_as_it_runs(capfd):
    def f(x, n):
        i = n * 0
        while i < n:
            print("round", i)
            x = ops.sin(x) * x
            i += 1
        return x.sum()

    staged = ms.jit(ms.grad(f))
    staged(ms.Tensor(X), ms.Tensor(3))
    assert capfd.readouterr().out.split() == ["round", "0", "round", "1", "round", "2"]


def test_a_recomputed_cell_prints_once(capfd):
    class Loud(nn.Cell):
        def construct(self, x):
            print("here", x.sum())
            return ops.sin(x) * x

    net = Loud()
    net.recompute()
    staged = ms.jit(ms.grad(lambda x: net(x).sum()))
    got = staged(ms.Tensor(np.array([1.0, 2.0])))
    assert capfd.readouterr().out.split() == ["here", "3.0"]
    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(got.asnumpy(), np.cos(x) * x + np.sin(x), rtol=1e-12)


def test_random_numbers_in_a_loop_are_drawn_again_alike():
    def f(x, n):
        i = n * 0
        while i < n:
            x = ops.dropout(x, p=0.5) * 1.5
            i += 1
        return x.sum()

    args = ms.Tensor(np.ones(40)), ms.Tensor(3)
    ms.set_seed(7)
    value, got = ms.jit(ms.value_and_grad(f))(*args)
    np.testing.assert_allclose(float(value), float((got * args[0]).sum()), rtol=1e-12)
    assert 0 < np.count_nonzero(got.asnumpy()) < 40


@pytest.mark.torch
def test_an_rnn_that_stops_early_equals_torch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    w, u, xs = rng.standard_normal((8, 8)) / 3, rng.standard_normal((5, 8)), rng.standard_normal((12, 5))

    def ours(w, u, xs, bound):
        h, t = ops.zeros(8, ms.float64), ops.zeros((), ms.int64)
        while t < 12 and (h * h).sum() < bound:
            h = ops.tanh(ops.matmul(h, w) + ops.matmul(xs[t], u))
            t += 1
        return (h * ops.cumsum(h, 0)).sum()

    staged = ms.jit(ms.grad(ours, (0, 1, 2)))
    for bound in (-1.0, 3.0, 5.0, 100.0):
        leaves = [torch.tensor(a, requires_grad=True) for a in (w, u, xs)]
        h, t = torch.zeros(8, dtype=torch.float64), 0
        while t < 12 and (h * h).sum() < bound:
            h = torch.tanh(h @ leaves[0] + leaves[2][t] @ leaves[1])
            t += 1
        loss = (h * torch.cumsum(h, 0)).sum()
        want = torch.autograd.grad(loss, leaves, allow_unused=True) if t else [None] * 3
        got = staged(ms.Tensor(w), ms.Tensor(u), ms.Tensor(xs), ms.Tensor(np.float64(bound)))
        for g, e in zip(got, want, strict=True):
            np.testing.assert_allclose(g.asnumpy(), 0.0 if e is None else e.numpy(), rtol=1e-9, atol=1e-12)
