"""The random state, the distributions, and that graphs draw what the eager run draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.ops import distributions
from mycelia.ops.random import (
    Generator,
    bernoulli_of,
    get_rng_state,
    initial_seed,
    manual_seed,
    normal_of,
    set_rng_state,
)

N = 20000


@pytest.fixture(autouse=True)
def _seeded():
    ms.set_seed(42)


def fits(sample, distribution):
    """Kolmogorov-Smirnov: the sample is not unlike the distribution."""
    assert stats.kstest(np.asarray(sample, np.float64).ravel(), distribution.cdf).pvalue > 1e-3


CONTINUOUS = [
    (lambda: ops.rand(N), stats.uniform()),
    (lambda: ops.rand(N, dtype=ms.float64), stats.uniform()),
    (lambda: ops.randn(N), stats.norm()),
    (lambda: ops.randn(N, dtype=ms.float64), stats.norm()),
    (lambda: ops.standard_normal((N,)), stats.norm()),
    (lambda: ops.uniform((N,), Tensor(-2.0), Tensor(3.0)), stats.uniform(-2, 5)),
    (lambda: ops.normal((N,), 2.0, Tensor(3.0)), stats.norm(2, 3)),
    (lambda: ops.standard_laplace((N,)), stats.laplace()),
    (lambda: ops.laplace((N,), 1.0, 2.0), stats.laplace(1, 2)),
    (lambda: ops.gamma((N,), 2.5, 4.0), stats.gamma(2.5, scale=0.25)),
    (lambda: ops.random_gamma((N,), 0.5), stats.gamma(0.5)),
    (lambda: distributions.beta(2.0, 3.0, (N,)), stats.beta(2, 3)),
    (lambda: distributions.gumbel((N,)), stats.gumbel_r()),
    (lambda: distributions.truncated_normal((N,), -1.0, 2.0), stats.truncnorm(-1, 2)),
    (lambda: ops.zeros((N,)).normal_(1.0, 2.0), stats.norm(1, 2)),
    (lambda: ops.zeros((N,)).uniform_(-1, 1), stats.uniform(-1, 2)),
    (lambda: ops.zeros((N,)).uniform(0.0, 2.0), stats.uniform(0, 2)),
    (lambda: ops.zeros((N,)).exponential_(2.0), stats.expon(scale=0.5)),
    (lambda: ops.zeros((N,)).cauchy(1.0, 2.0), stats.cauchy(1, 2)),
    (lambda: ops.zeros((N,)).log_normal(0.0, 1.0).log(), stats.norm()),
    (lambda: normal_of(1.0, 2.0, (N,)), stats.norm(1, 2)),
]


@pytest.mark.parametrize(("draw", "distribution"), CONTINUOUS)
def test_distributions(draw, distribution):
    fits(draw().asnumpy(), distribution)


@pytest.mark.parametrize(
    ("draw", "distribution"),
    [
        (lambda: ops.random_poisson((N,), 3.0), stats.poisson(3)),
        (lambda: ops.poisson((N,), Tensor(20.0)), stats.poisson(20)),
        (lambda: ops.randint(-2, 5, (N,)), stats.randint(-2, 5)),
        (lambda: ops.randint_like(ops.zeros((N,), ms.int16), 0, 9), stats.randint(0, 9)),
        (lambda: ops.uniform((N,), Tensor(1), Tensor(4), dtype=ms.int32), stats.randint(1, 4)),
        (lambda: ops.bernoulli(ops.zeros((N,)), 0.3), stats.bernoulli(0.3)),
        (lambda: bernoulli_of(ops.full((N,), 0.9)), stats.bernoulli(0.9)),
        (lambda: ops.zeros((N,)).bernoulli_(0.25), stats.bernoulli(0.25)),
        (lambda: ops.zeros((N,), ms.int64).random_(3, 6), stats.randint(3, 6)),
    ],
)
def test_counts(draw, distribution):
    values, counts = np.unique(draw().asnumpy(), return_counts=True)
    expected = distribution.pmf(values) * N
    assert expected.sum() > 0.999 * N
    common = expected > 5
    total = counts[common].sum()
    assert stats.chisquare(counts[common], expected[common] * total / expected[common].sum()).pvalue > 1e-3


def test_dtypes_and_shapes():
    assert ops.rand(2, 3).shape == ops.rand((2, 3)).shape == ops.randn([2, 3]).shape == (2, 3)
    assert ops.rand(2, dtype=ms.float16).dtype is ms.float16
    assert ops.randint(0, 5, (2,)).dtype is ms.int64
    assert ops.randint(0, 5, (2,), dtype=ms.int32).dtype is ms.int32
    assert ops.bernoulli(Tensor([1, 2])).dtype is ms.int64
    assert ops.normal((3,), ops.zeros((2, 1), ms.float16), 1).shape == (2, 3)
    assert ops.random_poisson((2,), Tensor([1.0, 2.0, 3.0])).shape == (2, 3)
    assert ops.random_gamma((2,), Tensor([1.0, 2.0, 3.0])).shape == (2, 3)
    assert ops.rand(0).shape == (0,)
    assert (ops.rand(100, dtype=ms.bfloat16) < 1).all()


def test_every_element_is_drawn_on_its_own():
    x = ops.uniform((3,), ops.zeros((2, 3)), ops.ones((2, 3))).asnumpy()
    assert len(np.unique(x)) == 6


def test_the_seed_decides():
    first = ops.rand(5)
    second = ops.rand(5)
    assert not (first == second).any()
    ms.set_seed(42)
    np.testing.assert_array_equal(ops.rand(5).asnumpy(), first.asnumpy())
    ms.set_seed(43)
    assert not (ops.rand(5) == first).any()


def test_seed_arguments_name_streams():
    a, b = ops.rand(4, seed=5), ops.rand(4, seed=5)
    other = ops.rand(4, seed=6)
    assert not (a == b).any()
    assert not (a == other).any()
    ms.set_seed(42)
    ops.rand(3)  # the default stream does not disturb the others
    np.testing.assert_array_equal(ops.rand(4, seed=5).asnumpy(), a.asnumpy())
    ms.set_seed(1)
    assert not (ops.rand(4, seed=5) == a).any()


def test_generators():
    g, same = Generator().manual_seed(7), Generator().manual_seed(7)
    a = ops.rand(4, generator=g)
    np.testing.assert_array_equal(ops.rand(4, generator=same).asnumpy(), a.asnumpy())
    saved = g.get_state()
    b = ops.randn(4, generator=g)
    g.set_state(saved)
    np.testing.assert_array_equal(ops.randn(4, generator=g).asnumpy(), b.asnumpy())
    assert g.initial_seed() == 7
    assert g.seed() != 7
    with pytest.raises(ArgumentTypeError, match="8 bytes"):
        g.set_state(Tensor([1, 2]))


def test_the_default_state():
    saved = get_rng_state()
    a = ops.rand(3)
    set_rng_state(saved)
    np.testing.assert_array_equal(ops.rand(3).asnumpy(), a.asnumpy())
    manual_seed(9)
    assert initial_seed() == 9


def test_a_graph_draws_what_the_eager_run_draws():
    def step(x):
        return ops.rand(3) + ops.dropout(x, 0.5).sum(), ops.randint(0, 100, (4,)), ops.randperm(5)

    eager = [[t.asnumpy() for t in step(ops.ones((6,)))] for _ in range(2)]
    ms.set_seed(42)
    graph = ms.jit(step)
    for want in eager:
        for got, w in zip(graph(ops.ones((6,))), want, strict=True):
            np.testing.assert_array_equal(got.asnumpy(), w)


def test_permutations():
    order = ops.randperm(100)
    assert sorted(order.tolist()) == list(range(100))
    assert order.tolist() != list(range(100))
    assert ops.randperm(3, dtype=ms.int32).dtype is ms.int32
    x = Tensor(np.arange(20.0).reshape(10, 2))
    mixed = ops.shuffle(x)
    np.testing.assert_array_equal(np.sort(mixed.asnumpy(), 0), x.asnumpy())
    np.testing.assert_array_equal(mixed.asnumpy()[:, 1], mixed.asnumpy()[:, 0] + 1)


def test_choices():
    weights = Tensor([0.0, 9.0, 4.0, 0.0])
    drawn = ops.multinomial(weights, N)
    assert drawn.dtype is ms.int32
    np.testing.assert_allclose(np.bincount(drawn.asnumpy(), minlength=4) / N, [0, 9 / 13, 4 / 13, 0], atol=0.02)
    assert sorted(ops.multinomial(weights, 2, False).tolist()) == [1, 2]
    assert ops.multinomial(Tensor([[0.0, 1.0], [1.0, 0.0]]), 3).tolist() == [[1, 1, 1], [0, 0, 0]]
    rows = ops.random_categorical(Tensor(np.log([[0.5, 0.5], [0.9, 0.1]])), N)
    np.testing.assert_allclose(rows.asnumpy().mean(1), [0.5, 0.1], atol=0.02)
    assert ops.multinomial_with_replacement(weights, 3, 0, 2, True).dtype is ms.int64
    index, mask = ops.choice_with_mask(Tensor([[True, False], [True, True]]), 4)
    assert mask.tolist() == [True, True, True, False]
    assert sorted(map(tuple, index.tolist()[:3])) == [(0, 0), (1, 0), (1, 1)]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ops.rand(2, dtype=ms.int32), DTypeError, "floating dtype"),
        (lambda: ops.rand(-1), ArgumentValueError, "'size'"),
        (lambda: ops.randint(3, 3, (2,)), ArgumentValueError, "more than low"),
        (lambda: ops.randint(0.5, 3, (2,)), DTypeError, "'low'"),
        (lambda: ops.rand(2, seed=-1), ArgumentValueError, "'seed' got -1"),
        (lambda: ops.rand(2, generator=3), ArgumentTypeError, "'generator' got int"),
        (lambda: ops.bernoulli(Tensor([1.0]), 1.5), ArgumentValueError, "0 to 1"),
        (lambda: ops.multinomial(Tensor([1.0, 1.0]), 3, False), ArgumentValueError, "at most the 2 categories"),
        (lambda: ops.random_categorical(Tensor([1.0]), 3), ShapeError, "rows, categories"),
        (lambda: ops.normal((2,), ops.zeros((3,)), 1.0), ShapeError, "'mean'"),
        (lambda: ops.choice_with_mask(Tensor([1])), ArgumentTypeError, "bool tensor"),
    ],
)
def test_messages(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "test_random.py" in str(caught.value)
