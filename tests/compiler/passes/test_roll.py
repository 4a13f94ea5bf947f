"""Runs of equal blocks become a scan that computes the same."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops
from mycelia.compiler.passes import dead_code, opaque, roll
from mycelia.core import dtypes as dt
from mycelia.ir.evaluate import evaluate
from mycelia.ir.graph import Graph, Value
from mycelia.ir.primitive import primitive_named
from mycelia.ir.rewriter import all_graphs, count_nodes
from mycelia.ir.types import TensorType
from mycelia.ir.verifier import verify

_ROW = TensorType(dt.float64, (3,))


class Writer:
    """A graph written by calls: ``w.mul(x, y)``."""

    def __init__(self, *types: TensorType) -> None:
        self.graph = Graph("main")
        self.params = [self.graph.add_param(t) for t in types]

    def __getattr__(self, name: str):
        return lambda *inputs, **attrs: self.graph.add_node(primitive_named(name), inputs, attrs).outputs[0]

    def end(self, *outputs: Value) -> Graph:
        self.graph.outputs = list(outputs)
        verify(self.graph)
        return self.graph


def ops_of(graph: Graph) -> list[str]:
    return [n.op.name for n in graph.nodes]


def scans(graph: Graph) -> int:
    return sum(ops_of(g).count("scan") for g in all_graphs(graph))


def same(graph: Graph, expect: int = 1) -> Graph:
    """Roll, check that the values stay and how many scans there are."""
    before = count_nodes(graph)
    new, made = roll.run(graph)
    verify(new)
    assert count_nodes(graph) == before, "the graph given is untouched"
    assert (new is graph) == (made == 0)
    assert scans(new) == expect
    generator = np.random.default_rng(3)
    args = [generator.uniform(0.5, 1.5, t.shape).astype(t.dtype.np) for t in graph.input_types]
    for a, b in zip(evaluate(graph, args), evaluate(new, args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    taken, numbers = opaque.run(new)
    verify(taken)
    for a, b in zip(evaluate(graph, args), evaluate(taken, [*args, *numbers]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    return new


def chain(rounds: int, length: int = 8) -> Graph:
    w = Writer(_ROW, _ROW)
    x, y = w.params
    for _ in range(rounds):
        for _ in range(length - 1):
            x = w.sin(x)
        x = w.add(x, y)
    return w.end(x)


def test_a_loop_over_one_value():
    new = same(chain(40))
    assert ops_of(new) == ["scan"]
    assert new.nodes[0].attrs["length"] == 40
    assert len(new.nodes[0].attrs["body_graph"].nodes) == 8


@pytest.mark.parametrize("rounds", [2, roll.LEAST_ROUNDS - 1])
def test_short_runs_stay(rounds):
    same(chain(rounds, 40), 0)


def test_small_savings_stay():
    w = Writer(_ROW, _ROW)
    x, y = w.params
    for _ in range(40):
        x = w.add(w.mul(x, y), y)
    same(w.end(x), 0)


def test_rows_are_stacked():
    w = Writer(_ROW, *[_ROW] * 20)
    x, *rows = w.params
    for row in rows:
        y = w.mul(x, row)
        for _ in range(6):
            y = w.sin(y)
        x = w.add(x, y)
    new = same(w.end(x))
    assert ops_of(new) == ["stack", "scan"]


def test_rows_too_big_to_copy_stay(monkeypatch):
    monkeypatch.setattr(roll, "MOST_BYTES", roll.LEAST_ROUNDS * 24 - 1)
    w = Writer(_ROW, *[_ROW] * 20)
    x, *rows = w.params
    for row in rows:
        for _ in range(8):
            x = w.sin(x)
        x = w.mul(x, row)
    same(w.end(x), 0)


def test_many_bytes_are_stacked_only_for_long_runs():
    for rounds, expect in ((roll.LEAST_STACKED - 1, 0), (roll.LEAST_STACKED, 1)):
        w = Writer(TensorType(dt.float64, (100, 100)), *[TensorType(dt.float64, (100, 100))] * rounds)
        x, *rows = w.params
        for row in rows:
            for _ in range(6):
                x = w.sin(x)
            x = w.mul(x, row)
        same(w.end(x), expect)


@pytest.mark.parametrize(("axis", "step", "first"), [(0, 1, 0), (0, 2, 3), (1, 1, 2)])
def test_even_slices_become_one(axis, step, first):
    shape = (50, 3) if axis == 0 else (3, 50)
    w = Writer(TensorType(dt.float64, shape), _ROW)
    seq, h = w.params
    for t in range(20):
        starts, stops = [0, 0], list(shape)
        starts[axis] = first + t * step
        stops[axis] = starts[axis] + 1
        part = w.slice(seq, starts=tuple(starts), stops=tuple(stops), steps=(1, 1))
        h = w.add(h, w.reshape(part, shape=(3,)))
        for _ in range(5):
            h = w.sin(h)
    new = dead_code.run(same(w.end(h)))[0]
    assert "stack" not in ops_of(new)
    assert ops_of(new).count("slice") == 1


def test_uneven_slices_are_stacked():
    w = Writer(TensorType(dt.float64, (50, 3)), _ROW)
    seq, h = w.params
    for t in range(20):
        part = w.slice(seq, starts=(t * t % 47, 0), stops=(t * t % 47 + 1, 3), steps=(1, 1))
        h = w.add(h, w.reshape(part, shape=(3,)))
        for _ in range(5):
            h = w.sin(h)
    assert ops_of(same(w.end(h))).count("slice") == 20


def test_what_sees_constants_only_leaves_the_loop():
    w = Writer(_ROW, _ROW)
    x, y = w.params
    for _ in range(20):
        factor = w.exp(w.neg(y))
        for _ in range(5):
            x = w.sin(x)
        x = w.mul(x, factor)
    new = same(w.end(x))
    assert ops_of(new) == ["neg", "exp", "scan"]


def test_values_used_after_the_run():
    w = Writer(_ROW, _ROW)
    x, y = w.params
    seen, inner = [], []
    for _ in range(24):
        z = w.cos(x)
        for _ in range(6):
            x = w.sin(x)
        x = w.add(x, y)
        seen.append(x)
        inner.append(z)
    same(w.end(x, seen[3], seen[-1], inner[-1], w.stack(*seen, axis=0), seen[0]))


def test_effects_stay_in_their_place(noted):
    w = Writer(_ROW, _ROW)
    x, y = w.params
    for _ in range(20):
        for _ in range(6):
            x = w.sin(x)
        w.graph.add_node(primitive_named("noted"), (x,), {})
        x = w.add(x, y)
    graph = w.end(x)
    assert roll.run(graph) == (graph, 0)


def test_two_rounds_back():
    w = Writer(_ROW, _ROW)
    x, y = w.params
    for _ in range(60):
        z = w.add(x, y)
        for _ in range(3):
            z = w.sin(z)
        x, y = y, z
    new = same(w.end(x, y))
    assert next(n for n in new.nodes if n.op.name == "scan").attrs["length"] >= 16


def test_loops_in_loops():
    w = Writer(_ROW, _ROW)
    x, y = w.params
    for _ in range(20):
        for _ in range(20):
            for _ in range(7):
                x = w.sin(x)
            x = w.add(x, y)
        x = w.mul(w.cos(x), y)
    new = same(w.end(x), 2)
    assert count_nodes(new) < 30


def test_an_update_of_many_values_stays():
    w = Writer(*[_ROW] * 80)
    same(w.end(*[w.sub(p, w.sqrt(w.mul(g, w.exp(g)))) for p, g in zip(w.params[:40], w.params[40:], strict=True)]), 0)


@pytest.mark.parametrize("seed", range(20))
def test_random_blocks(seed):
    """A random block of operators on inner, carried, constant and per-round values, between other nodes."""
    draw = random.Random(seed)
    rounds, length, n_carry = draw.randint(17, 30), draw.randint(8, 14), draw.randint(1, 3)
    w = Writer(*[_ROW] * (n_carry + 2 + rounds))
    carried, consts, rows = w.params[:n_carry], w.params[n_carry : n_carry + 2], w.params[n_carry + 2 :]
    plan = []
    for i in range(length):
        name = draw.choice(["sin", "cos", "tanh", "add", "mul", "sub", "maximum"])
        kinds = [draw.choice(["inner", "inner", "carry", "const", "row"]) for _ in range(2)]
        plan.append((name, [(k, draw.randrange(10**6)) for k in kinds], i))
    back = [draw.randrange(length) for _ in range(n_carry)]
    extra = []
    carried = [w.sin(c) for c in carried]
    for j in range(rounds):
        made: list[Value] = []
        for name, slots, _ in plan:
            values = []
            for kind, k in slots:
                pool = {"inner": made or carried, "carry": carried, "const": consts, "row": [rows[j]]}[kind]
                values.append(pool[k % len(pool)])
            made.append(getattr(w, name)(*(values[:1] if name in ("sin", "cos", "tanh") else values)))
        carried = [made[b] for b in back]
        if draw.random() < 0.1:
            extra.append(draw.choice(made))
    graph = w.end(*carried, *extra, w.exp(carried[0]))
    new, made_scans = roll.run(graph)
    verify(new)
    generator = np.random.default_rng(seed)
    args = [generator.uniform(-1, 1, 3) for _ in graph.params]
    for a, b in zip(evaluate(graph, args), evaluate(new, args), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    assert made_scans <= 3


class Deep(nn.Cell):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.layers = nn.CellList([nn.Dense(6, 6) for _ in range(depth)])

    def construct(self, x: Tensor) -> Tensor:
        seen = []
        for layer in self.layers:
            x = ops.tanh(layer(x)) + x[:, 2:3].exp() * 0.1
            seen.append(x.mean())
        return ops.stack(seen).sum() + x.sum()


def test_gradients_and_an_update_of_a_rolled_network_are_eager():
    """Twenty layers of their own weights, a training step of them compiled and not."""

    def run(compiled: bool) -> list[np.ndarray]:
        ms.set_seed(5)
        net = Deep(20)
        optimizer = nn.Adam(net.trainable_params(), 0.01)
        gradient = ms.value_and_grad(net, None, optimizer.parameters)

        def step(x: Tensor) -> Tensor:
            loss, grads = gradient(x)
            optimizer(grads)
            return loss

        run_step = ms.jit(step) if compiled else step
        x = Tensor(np.linspace(-1, 1, 24).reshape(4, 6).astype(np.float32))
        losses = [run_step(x).asnumpy() for _ in range(3)]
        if compiled:
            (entries,) = run_step.entries.values()
            assert scans(entries[0].executable.graph) == 2
        return [*losses, *(p.asnumpy() for p in net.get_parameters())]

    for a, b in zip(run(False), run(True), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
