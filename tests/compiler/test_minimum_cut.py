"""Minimum cuts, against SciPy's maximum flow and against every cut there is."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from mycelia.compiler.minimum_cut import NEVER, SINK, SOURCE, Network


def random_edges(r, size, most):
    pairs = [(a, b) for a in range(size) for b in range(size) if a != b and b != SOURCE and a != SINK]
    return {pair: r.randint(0, most) for pair in r.sample(pairs, min(len(pairs), 3 * size))}


def side_of(size, edges):
    network = Network()
    assert [network.vertex() for _ in range(size - 2)] == list(range(2, size))
    for (a, b), capacity in edges.items():
        network.edge(a, b, capacity)
    return network.source_side()


def cost(side, edges):
    return sum(capacity for (a, b), capacity in edges.items() if a in side and b not in side)


@pytest.mark.parametrize("seed", range(30))
def test_against_every_cut(seed):
    r = random.Random(seed)
    edges = random_edges(r, 8, 5)
    side = side_of(8, edges)
    assert SOURCE in side
    assert SINK not in side
    for n in range(7):
        for others in itertools.combinations(range(2, 8), n):
            other = {SOURCE, *others}
            assert cost(other, edges) >= cost(side, edges)
            assert cost(other, edges) > cost(side, edges) or side <= other, "the smallest of the cheapest"


@pytest.mark.parametrize("size", [20, 200])
def test_against_scipy(size):
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    for seed in range(5):
        edges = random_edges(random.Random(seed), size, 1000)
        starts, ends = zip(*edges, strict=True)
        matrix = csr_array((np.array(list(edges.values()), np.int32), (starts, ends)), shape=(size, size))
        assert cost(side_of(size, edges), edges) == maximum_flow(matrix, SOURCE, SINK).flow_value


def test_an_edge_that_is_never_cut():
    a, b = 2, 3
    assert side_of(4, {(SOURCE, a): 5, (a, b): NEVER, (b, SINK): 7}) == {SOURCE}
    assert side_of(4, {(SOURCE, a): 7, (a, b): NEVER, (b, SINK): 5}) == {SOURCE, a, b}
    assert side_of(2, {}) == {SOURCE}
