"""What depends on parameters alone is computed once: when, of what, and what a changed parameter does to it."""

from __future__ import annotations

import gc
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import mycelia as ms
from mycelia import amp, native, nn, ops
from mycelia.compiler import prepared
from mycelia.compiler.prepared import PATIENCE, divided
from mycelia.ir.evaluate import evaluate
from mycelia.ir.parser import parse_graph
from mycelia.native.libraries import PRODUCT_TYPES

needs_kernels = pytest.mark.skipif(
    not native.onednn_available, reason="the kernels made of oneDNN are not built here"
)  # fmt: skip


@pytest.fixture
def made(monkeypatch):
    """The divisions that were made."""
    found = []

    def told(graph, steady):
        result = divided(graph, steady)
        found.append(result)
        return result

    monkeypatch.setattr(prepared, "divided", told)
    return found


def names(graph):
    return [n.op.name for n in graph.nodes]


def parts(text, steady, *arrays):
    """The two parts of a graph, once both together have been seen to compute what the whole does."""
    graph = parse_graph(text)
    found = divided(graph, steady)
    if found is None:
        return None
    early = evaluate(found.prepare, [arrays[i] for i in found.taken])
    got = evaluate(found.main, [*[arrays[i] for i in found.given], *early])
    for g, w in zip(got, evaluate(graph, arrays), strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-6)
    return names(found.prepare), names(found.main)


BIG = jnp.ones((256, 256), jnp.float32)


def test_casts_and_what_follows_them():
    text = """graph g(%x: float32[256,256], %w: float32[256,256], %v: float32[256,256]) {
      %0 = add(%w, %v) : float32[256,256]
      %1 = sin(%0) : float32[256,256]
      %2 = mul(%x, %1) : float32[256,256]
      return %2
    }"""
    assert parts(text, [1, 2], BIG, BIG * 2, BIG * 3) == (["add", "sin"], ["mul"])


def test_what_depends_on_an_argument_stays():
    text = """graph g(%x: float32[256,256], %w: float32[256,256]) {
      %0 = add(%w, %x) : float32[256,256]
      return %0
    }"""
    assert parts(text, [1], BIG, BIG) is None


def test_an_output_may_be_prepared():
    text = """graph g(%x: float32[256,256], %w: float32[256,256]) {
      %0 = sin(%w) : float32[256,256]
      %1 = mul(%x, %x) : float32[256,256]
      return %0, %1, %w
    }"""
    assert parts(text, [1], BIG, BIG) == (["sin"], ["mul"])


def test_constants_go_where_they_are_used():
    text = """graph g(%x: float32[256,256], %w: float32[256,256]) {
      %c = constant(value=array(float32[], [2.0])) : float32[]
      %0 = mul(%w, %c) : float32[256,256]
      %1 = mul(%x, %c) : float32[256,256]
      %2 = add(%0, %1) : float32[256,256]
      return %2
    }"""
    assert parts(text, [1], BIG, BIG) == (["constant", "mul"], ["constant", "mul", "add"])


def test_nothing_is_blown_up():
    """A small parameter that is broadcast stays small."""
    text = """graph g(%x: float32[256,256], %w: float32[256]) {
      %0 = broadcast_to(%w, shape=(256, 256)) : float32[256,256]
      %1 = mul(%x, %0) : float32[256,256]
      return %1
    }"""
    assert parts(text, [1], BIG, BIG[0]) is None


def test_small_things_are_not_worth_it():
    text = """graph g(%x: float32[4], %w: float32[4]) {
      %0 = sin(%w) : float32[4]
      %1 = mul(%x, %0) : float32[4]
      return %1
    }"""
    assert parts(text, [1], BIG[0, :4], BIG[0, :4]) is None


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(8, 32, 3), nn.BatchNorm2d(32)
        self.up, self.down = nn.Dense(32, 512), nn.Dense(512, 64)

    def construct(self, x):
        y = ops.relu(self.bn(self.conv(x))).mean((2, 3))
        return self.down(ops.relu(self.up(y)))


def network(half=False):
    ms.set_seed(0)
    made = Network()
    if half:
        made = amp.auto_mixed_precision(made, "auto", ms.bfloat16)
    return made.set_train(False)


def drawn(seed=0):
    return ms.Tensor(np.random.default_rng(seed).standard_normal((64, 8, 12, 12)), ms.float32)


def training_step(cell):
    """A compiled step of gradient descent."""
    optimizer = nn.SGD(cell.trainable_params(), 0.1)
    gradient = ms.value_and_grad(lambda x: (cell(x) ** 2).mean(), None, optimizer.parameters)

    @ms.jit
    def step(x):
        loss, grads = gradient(x)
        optimizer(grads)
        return loss

    return step


@pytest.mark.parametrize("half", [False, True])
def test_a_network_in_use(made, half):
    """Values stay the same when the graph has been divided, for other inputs as well."""
    cell = network(half)
    run = ms.jit(lambda x: cell(x))
    wanted = [cell(drawn(i)).asnumpy() for i in range(3)]
    for i in [0] * (PATIENCE + 2) + [1, 2]:
        np.testing.assert_allclose(run(drawn(i)).asnumpy(), wanted[i], rtol=0, atol=2e-2 if half else 1e-5)
    if half or native.onednn_available:
        assert len(made) == 1
        assert made[0] is not None
    if half:
        assert "cast" in names(made[0].prepare)
    if native.onednn_available and (not half or jnp.bfloat16 in PRODUCT_TYPES):
        assert {"matmul_packed", "conv_packed"} <= set(names(made[0].main))


@needs_kernels
def test_a_parameter_that_changes_is_seen(made):
    cell = network()
    run = ms.jit(lambda x: cell(x))
    for _ in range(PATIENCE + 2):
        before = run(drawn()).asnumpy()
    cell.up.weight.set_data(cell.up.weight * 2)
    for _ in range(PATIENCE + 2):
        after = run(drawn()).asnumpy()
        np.testing.assert_allclose(after, cell(drawn()).asnumpy(), atol=1e-5)
    assert np.abs(after - before).max() > 1e-3
    cell.conv.weight[0, 0] = 1.0  # in place
    np.testing.assert_allclose(run(drawn()).asnumpy(), cell(drawn()).asnumpy(), atol=1e-5)
    assert len(made) == 1


@needs_kernels
def test_training_in_between(made):
    """A training step between uses changes the parameters in place, and copies none because of what is prepared."""
    cell = network()
    use = ms.jit(lambda x: cell(x))
    step = training_step(cell)
    for _ in range(3):
        for _ in range(PATIENCE + 2):
            got = use(drawn()).asnumpy()
        np.testing.assert_allclose(got, cell(drawn()).asnumpy(), atol=1e-5)
        gc.collect()
        assert sys.getrefcount(cell.up.weight._value) <= 3
        step(drawn(1))
    np.testing.assert_allclose(use(drawn()).asnumpy(), cell(drawn()).asnumpy(), atol=1e-5)
    assert made


def test_an_argument_that_stays_the_same_is_no_parameter(made):
    """Passing the same tensor again and again prepares nothing of it."""
    x = ms.Tensor(np.ones((256, 256)), ms.float32)
    run = ms.jit(lambda x: ops.sin(x) + 1)
    for _ in range(PATIENCE + 3):
        run(x)
    assert made == []


@needs_kernels
def test_a_training_step_is_left_whole(made):
    cell = network()
    step = training_step(cell)
    for _ in range(PATIENCE + 3):
        step(drawn())
    assert made == []
