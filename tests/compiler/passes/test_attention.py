"""Attention that is written out: what is recognised, what is not, and that it computes the same."""

from __future__ import annotations

import collections

import jax.numpy as jnp
import numpy as np
import pytest
from benchmarks.networks import BERT, GPT

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.autodiff import transform
from mycelia.compiler.passes import attention, dead_code
from mycelia.compiler.pipeline import optimize
from mycelia.core import dtypes as dt
from mycelia.ir.builder import Builder
from mycelia.ir.evaluate import evaluate, without_kernels
from mycelia.ir.rewriter import all_graphs
from mycelia.ir.types import TensorType
from mycelia.ir.verifier import verify
from mycelia.tensor.dispatch import value_in_graph
from mycelia.tensor.mode import staging
from mycelia.tensor.tensor import wrap

B, H, T, D = 2, 3, 20, 8
INFINITE = float("-inf")


@pytest.fixture(autouse=True)
def _enabled(monkeypatch):
    monkeypatch.setattr(attention, "_enabled", lambda: True)


def staged(program, *types):
    builder = Builder("main")
    inputs = [wrap(builder.param(t)) for t in types]
    with staging(builder):
        return builder.finish([value_in_graph(program(*inputs))])


def heads(dtype=dt.float32, shape=(B, H, T, D)):
    return [TensorType(dtype, shape)] * 3


def turned(x):
    return x.swapaxes(-1, -2)


def names(graph):
    return collections.Counter(n.op.name for g in all_graphs(graph) for n in g.nodes)


def becomes(program, types, tolerance=1e-5, **attrs):
    """The program becomes one attention of these attributes that computes the same; the graph made."""
    graph = staged(program, *types)
    made, changes = attention.run(graph)
    made = dead_code.run(made)[0]
    verify(made)
    assert changes == 1
    assert names(made)["softmax"] == 0
    (node,) = [n for n in made.nodes if n.op.name == "attention"]
    for name, value in attrs.items():
        assert node.attrs[name] == pytest.approx(value), name
    rng = np.random.default_rng(0)
    args = [(rng.random(t.shape) > 0.4) if t.dtype is dt.bool_ else rng.standard_normal(t.shape) for t in types]
    args = [jnp.asarray(a).astype(t.dtype.np) for a, t in zip(args, types, strict=True)]
    with without_kernels():
        wanted, got = (np.asarray(evaluate(g, args)[0], np.float32) for g in (graph, made))
    np.testing.assert_allclose(got, wanted, atol=tolerance)
    return made


def stays(program, *types):
    graph = staged(program, *types)
    assert attention.run(graph) == (graph, 0)


@pytest.mark.parametrize(
    ("scores", "scale"),
    [(lambda q, k: ops.matmul(q, turned(k)) * 0.3, 0.3), (lambda q, k: ops.matmul(q, turned(k)) / 4.0, 0.25),
     (lambda q, k: 0.3 * ops.matmul(q, k.transpose(0, 1, 3, 2)), 0.3), (lambda q, k: ops.matmul(q, turned(k)), 1.0),
     (lambda q, k: ops.matmul(q * 0.3, turned(k)), 0.3), (lambda q, k: ops.matmul(q / 2.0, turned(k * 0.5)), 0.25),
     (lambda q, k: ops.matmul(q, turned(k) / 2.0), 0.5), (lambda q, k: ops.BatchMatMul(transpose_b=True)(q, k), 1.0),
     (lambda q, k: ops.matmul(q, turned(k)) * Tensor(np.full((1, 1), 0.3, np.float32)) / 2.0, 0.15)],
)  # fmt: skip
def test_factors(scores, scale):
    becomes(lambda q, k, v: ops.matmul(ops.softmax(scores(q, k), -1), v), heads(), scale=scale, layout="heads")


MASKS = [
    (lambda s, m: s + m, dt.float32, {}),
    (lambda s, m: m + s, dt.float32, {}),
    (lambda s, m: s + (1.0 - m) * -1e4, dt.float32, {}),
    (lambda s, m: ops.where(m, s, INFINITE), dt.bool_, {"fill": INFINITE}),
    (lambda s, m: ops.where(m, -1e9, s), dt.bool_, {"fill": -1e9}),
    (lambda s, m: ops.masked_fill(s, m, -1e9), dt.bool_, {"fill": -1e9}),
    (lambda s, m: s.masked_fill(m, INFINITE), dt.bool_, {"fill": INFINITE}),
]


@pytest.mark.parametrize("number", range(len(MASKS)))
def test_masks(number):
    mask, dtype, attrs = MASKS[number]
    shape = [(T, T), (B, 1, 1, T), (B, H, T, T)][number % 3]

    def program(q, k, v, m):
        return ops.matmul(ops.softmax(mask(ops.matmul(q, turned(k)) * 0.3, m), -1), v)

    becomes(program, [*heads(), TensorType(dtype, shape)], scale=0.3, closed="nan", **attrs)


def test_three_axes():
    def program(q, k, v, m):
        return ops.bmm(ops.softmax(ops.bmm(q, turned(k)) + m, -1), v)

    for shape in ((T, T), (B, T, T), (1, T)):
        becomes(program, [*heads(shape=(B, T, D)), TensorType(dt.float32, shape)])


def test_conversions():
    def program(q, k, v):
        scores = ops.matmul(q, turned(k)).astype(ms.float32) * 0.3
        return ops.matmul(ops.softmax(scores, -1).astype(q.dtype), v)

    becomes(program, heads(dt.bfloat16), 3e-2, scale=0.3)


def layouts():
    """Programs of one array, and the layout in which the operator takes it."""

    def attended(q, k, v):
        y = ops.matmul(ops.softmax(ops.matmul(q, turned(k)) * 0.3, -1), v)
        return y.swapaxes(1, 2).reshape(B, T, H * D)

    def thirds_first(x):
        x = x.reshape(B, T, 3, H, D).transpose(2, 0, 3, 1, 4)
        return attended(x[0], x[1], x[2])

    def thirds_last(x):
        x = x.reshape(B, T, 3, H, D)
        return attended(*[x[:, :, i].swapaxes(1, 2) for i in range(3)])

    def in_another_order(x):
        x = x.reshape(B, T, 3, H, D).transpose(2, 0, 3, 1, 4)
        return attended(x[1], x[0], x[2])

    def other_thirds(x):
        x = x.reshape(B, T, 3, H, D)
        return attended(*[x[:, :, i].swapaxes(1, 2) for i in (2, 1, 0)])

    return [(thirds_first, "packed"), (thirds_last, "packed"), (in_another_order, "heads"), (other_thirds, "tokens")]


@pytest.mark.parametrize(("program", "layout"), layouts())
def test_layouts(program, layout):
    made = becomes(program, [TensorType(dt.float32, (B, T, 3 * H * D))], layout=layout)
    if layout == "packed":
        left = names(optimize(made))
        assert left["transpose"] == left["slice"] == 0


def test_several_and_nested():
    def one(q, k, v):
        return ops.matmul(ops.softmax(ops.matmul(q, turned(k)), -1), v)

    graph = staged(lambda q, k, v: one(one(q, k, v), k, one(k, v, q)), *heads())
    made, changes = attention.run(graph)
    assert changes == 3
    assert names(made)["attention"] == 3


REFUSED = {
    "weights are used": lambda q, k, v: ops.matmul(p := ops.softmax(ops.matmul(q, turned(k)), -1), v) + p.sum(),
    "scores are used": lambda q, k, v: ops.matmul(ops.softmax(s := ops.matmul(q, turned(k)), -1), v) + s.sum(),
    "another axis": lambda q, k, v: ops.matmul(ops.softmax(ops.matmul(q, turned(k)), -2), v),
    "a factor that is data": lambda q, k, v: ops.matmul(ops.softmax(ops.matmul(q, turned(k)) * v.sum(), -1), v),
    "a factor of each column": lambda q, k, v: ops.matmul(
        ops.softmax(ops.matmul(q, turned(k)) * Tensor(np.arange(T, dtype=np.float32)), -1), v
    ),
    "an infinite factor": lambda q, k, v: ops.matmul(ops.softmax(ops.matmul(q, turned(k)) / 0.0, -1), v),
    "no product": lambda q, k, v: ops.matmul(ops.softmax(q[..., :1] + turned(k)[..., :1, :], -1), v),
    "the key as it is": lambda q, k, v: ops.matmul(ops.softmax(ops.matmul(q, k[:, :, :D]), -1), v[:, :, :D]),
    "something between": lambda q, k, v: ops.matmul(ops.relu(ops.softmax(ops.matmul(q, turned(k)), -1)), v),
    "heads that are spread": lambda q, k, v: ops.matmul(ops.softmax(ops.matmul(q, turned(k[:, :1])), -1), v),
    "weights on the right": lambda q, k, v: ops.matmul(turned(v), ops.softmax(ops.matmul(q, turned(k)), -1)),
}


@pytest.mark.parametrize("program", REFUSED.values(), ids=REFUSED)
def test_what_is_something_else(program):
    stays(program, *heads())


def test_what_is_not_worth_it():
    def program(q, k, v):
        return ops.matmul(ops.softmax(ops.matmul(q, turned(k)), -1), v)

    stays(program, *heads(dt.float64))
    stays(program, *heads(dt.float16))
    stays(program, *heads(shape=(B, H, 3, D)))


def test_nothing_happens_unless_enabled(monkeypatch):
    monkeypatch.setattr(attention, "_enabled", lambda: False)
    stays(lambda q, k, v: ops.matmul(ops.softmax(ops.matmul(q, turned(k)), -1), v), *heads())


def test_before_differentiation():
    graph = staged(lambda q, k, v: ops.matmul(ops.softmax(ops.matmul(q, turned(k)), -1), v), *heads())
    parts = transform.split(transform.condensed(graph), (True, True, True))
    assert names(parts.forward) == {"attention": 1}
    assert names(parts.backward)["attention_grad"] == 1
    assert names(parts.backward)["softmax_grad"] == 0


@pytest.mark.parametrize("make", [GPT, pytest.param(BERT, marks=pytest.mark.slow)])
def test_networks(make, monkeypatch):
    """Values and gradients of the measured networks, with and without the pass."""
    sizes = {"vocabulary": 50, "width": 32, "layers": 1, "heads": 2, "context": 24}
    network = make(**sizes, inner=48) if make is BERT else make(**sizes)
    ids = Tensor(np.random.default_rng(2).integers(0, 50, (2, 24)), ms.int32)
    weights = tuple(network.trainable_params())
    found = []
    for enabled in (True, False):
        monkeypatch.setattr(attention, "_enabled", lambda enabled=enabled: enabled)
        step = ms.jit(ms.value_and_grad(lambda x: ops.sin(network(x)).sum(), None, weights))
        found.append(step(ids))
    (value, grads), (wanted, expected) = found
    np.testing.assert_allclose(value.asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-4)
    for g, e in zip(grads, expected, strict=True):
        np.testing.assert_allclose(g.asnumpy(), e.asnumpy(), atol=1e-4 * max(np.abs(e.asnumpy()).max(), 1.0))
