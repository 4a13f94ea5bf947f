"""Gradients of what is the same for all rows: equal to those of the loop, and never made once for each row."""

from __future__ import annotations

import numpy as np
import pytest
from tests.autodiff.staging import run_staged, staged, types_of

from mycelia import nn, ops
from mycelia.autodiff import grad, vmap
from mycelia.ir.graph import Graph

RNG = np.random.default_rng(0)
ROWS = 5


def numbers(*shape):
    return RNG.uniform(-1, 1, shape)


def padded(ids, w):
    from mycelia.ops.lookup import embedding_p
    from mycelia.tensor.dispatch import apply

    return apply(embedding_p, ids, w, padding_idx=1, by_frequency=False)


CASES = {
    "vector by matrix": (lambda x, w: ops.tanh(x @ w) @ w.T, (numbers(ROWS, 4), numbers(4, 3))),
    "matrix by matrix": (lambda x, w: ops.sin(x @ w), (numbers(ROWS, 2, 4), numbers(4, 3))),
    "transposed": (lambda x, w: ops.sin(ops.matmul(w, x.T)), (numbers(ROWS, 2, 4), numbers(3, 4))),
    "matrix by vector": (lambda x, w: ops.sin(x @ w), (numbers(ROWS, 2, 4), numbers(4))),
    "batches of matrices": (lambda x, w: ops.sin(x @ w), (numbers(ROWS, 3, 2, 4), numbers(3, 4, 2))),
    "dense": (lambda x, w: ops.dense(ops.sin(ops.dense(x, w)), w.T), (numbers(ROWS, 4), numbers(3, 4))),
    "product with what is shared": (lambda x, w: (w * w * ops.exp(w)) * x.sum() + w, (numbers(ROWS, 4), numbers(4))),
    "difference": (lambda x, w: (x @ w - x) * w.sum() - (2 * x) @ w, (numbers(ROWS, 4), numbers(4, 4))),
    "not depending on the row": (lambda x, w: ops.sin(w) + 0 * x, (numbers(ROWS, 4), numbers(4))),
    "convolution": (
        lambda x, w: ops.sin(ops.conv2d(x[None], w, padding=1, pad_mode="pad")),
        (numbers(ROWS, 2, 5, 5), numbers(3, 2, 3, 3)),
    ),
    "embedding": (padded, (RNG.integers(0, 6, (ROWS, 3)), numbers(6, 2))),
    "rows picked": (lambda i, w: ops.sin(ops.gather(w, i, 0)), (RNG.integers(0, 6, (ROWS, 3)), numbers(6, 2))),
    "columns picked": (lambda i, w: ops.sin(ops.gather(w, i, 1)), (RNG.integers(0, 2, (ROWS, 3)), numbers(6, 2))),
    "branches": (lambda x, w: ops.where(x.sum() > 0, x @ w, x @ w * 2), (numbers(ROWS, 4), numbers(4, 3))),
}  # fmt: skip


def objective(fn):
    return lambda x, w: (vmap(fn, (0, None))(x, w) ** 2).sum()


QUICK = {"dense", "embedding", "product with what is shared", "vector by matrix"}


def cases(names):
    return [pytest.param(n, marks=() if n in QUICK else (pytest.mark.slow,)) for n in names]


@pytest.mark.parametrize("name", cases(sorted(CASES)))
def test_the_sum_is_that_of_the_loop(name):
    fn, (x, w) = CASES[name]

    def loop(x, w):
        return sum((fn(x[i], w) ** 2).sum() for i in range(ROWS))

    (got,) = run_staged(grad(objective(fn), 1), x, w)
    (want,) = run_staged(grad(loop, 1), x, w)
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)


def largest(graph: Graph) -> int:
    sizes = [v.type.size for n in graph.nodes for v in n.outputs]
    return max([*sizes, *[largest(g) for n in graph.nodes for _, g in n.subgraphs]], default=0)


@pytest.mark.parametrize("name", cases(["dense", "vector by matrix", "convolution", "rows picked"]))
def test_no_gradient_is_made_for_each_row(name):
    fn, _ = CASES[name]
    rows, wide = 7, 50
    x, w = {
        "dense": (numbers(rows, wide), numbers(wide, wide)),
        "vector by matrix": (numbers(rows, wide), numbers(wide, wide)),
        "convolution": (numbers(rows, 20, 4, 4), numbers(20, 20, 3, 3)),
        "rows picked": (RNG.integers(0, wide, (rows, 3)), numbers(wide, wide)),
    }[name]
    assert largest(staged(grad(objective(fn), 1), *types_of(x, w))) < rows * w.size


@pytest.mark.slow
def test_gradients_through_derivatives_of_a_network():
    net = nn.SequentialCell(nn.Dense(30, 30), nn.Tanh(), nn.Dense(30, 1))
    weights = net.trainable_params()
    x = numbers(9, 30).astype(np.float32)

    def flow(slopes):
        def f(x):
            return (slopes(x) ** 2).sum()

        return grad(f, None, weights)

    def mapped(x):
        return vmap(grad(lambda r: net(r).sum()))(x)

    def batch(x):
        return grad(lambda x: net(x).sum())(x)

    def graph_of(fn):
        from mycelia.ir.builder import Builder
        from mycelia.tensor.dispatch import value_in_graph
        from mycelia.tensor.mode import staging
        from mycelia.tensor.tensor import wrap

        builder = Builder("flow")
        given = wrap(builder.param(types_of(x)[0]))
        with staging(builder):
            return builder.finish([value_in_graph(t) for t in fn(given)]), [t for t, _ in builder.captured]

    from mycelia.ir.evaluate import evaluate

    (first, held), (second, also) = graph_of(flow(mapped)), graph_of(flow(batch))
    assert largest(first) < 9 * 900
    got = evaluate(first, [x, *[t._value for t in held]])
    want = evaluate(second, [x, *[t._value for t in also]])
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-4, atol=1e-6)


def test_no_rows_give_no_gradient():
    fn, (_, w) = CASES["vector by matrix"]
    (got,) = run_staged(grad(objective(fn), 1), np.zeros((0, 4)), w)
    np.testing.assert_array_equal(got, np.zeros_like(w))
