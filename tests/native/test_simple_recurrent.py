"""Layers of GRUs and Elman networks by oneDNN's products beside XLA's loop."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from tests.native.kernels import assert_agrees, refuses

import mycelia as ms
from mycelia import native, nn
from mycelia.compiler import executable
from mycelia.ops.simple_recurrence import recurrent_layer_grad_p, recurrent_layer_p

pytestmark = pytest.mark.skipif(not native.onednn_available, reason="the kernels made of oneDNN are not built here")

#: Length, batch, features, size; batch first, reverse; which cotangents there are; biases; the gradient of the input.
CASES = {
    "odd": ((7, 33, 12, 17), (True, True), (True, True), True, True),
    "ones": ((1, 1, 1, 1), (False, False), (True, False), True, True),
    "small": ((3, 2, 5, 8), (True, False), (False, True), False, True),
    "rows": ((4, 40, 24, 64), (False, False), (True, False), True, False),
    "units": ((3, 4, 70, 300), (False, True), (True, True), True, True),
}
KINDS = ("gru", "tanh", "relu")


def drawn(shape, dtype, seed):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def inputs(kind, sizes, batch_first=False, biased=True):
    length, batch, features, size = sizes
    rows = (3 if kind == "gru" else 1) * size
    biases = [(rows,)] * (2 if kind == "gru" else 1) * biased
    shapes = [
        (batch, length, features) if batch_first else (length, batch, features), (batch, size), (rows, features),
        (rows, size), *biases,
    ]  # fmt: skip
    scales = (1, 1, features**-0.5, size**-0.5, 1, 1)
    return tuple(drawn(s, jnp.float32, i) * k for i, (s, k) in enumerate(zip(shapes, scales, strict=False)))


def typed(arrays, dtype):
    return tuple(a.astype(dtype) for a in arrays)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_agrees(case, kind, dtype):
    sizes, (batch_first, reverse), there, has_bias, wants_x = CASES[case]
    attrs = {"kind": kind, "batch_first": batch_first, "reverse": reverse}
    keep = kind == "gru"
    given = typed(inputs(kind, sizes, batch_first, has_bias), dtype)
    assert_agrees(recurrent_layer_p, given, keep=keep, **attrs)
    outs = recurrent_layer_p.kernel(*given, keep=keep, **attrs)
    shorter = recurrent_layer_p.kernel(*given, keep=False, **attrs)
    for a, b in zip(outs, shorter, strict=False):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    cts = [drawn(o.shape, dtype, 10 + i) for i, o in enumerate(outs[:2]) if there[i]]
    assert_agrees(
        recurrent_layer_grad_p, (*given[:4], outs[0], *outs[2:], *cts),
        given=(*there, *[False] * (len(outs) - 2)), has_bias=has_bias, wants_x=wants_x, **attrs,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_saturated_gates_and_what_is_not_finite(kind):
    given = list(inputs(kind, (3, 9, 4, 16)))
    attrs = {"kind": kind, "batch_first": False, "reverse": False, "keep": kind == "gru"}
    given[0] = given[0] * 1e4
    assert_agrees(recurrent_layer_p, given, **attrs)
    given[0] = given[0].at[1, 2, 0].set(jnp.nan)
    given[1] = given[1].at[5, 3].set(jnp.nan)
    assert_agrees(recurrent_layer_p, given, **attrs)


def test_what_the_kernel_leaves_to_xla():
    attrs = {"kind": "gru", "batch_first": False, "reverse": False}
    for dtype in (jnp.float64, jnp.float16):
        assert refuses(recurrent_layer_p, typed(inputs("gru", (2, 3, 4, 5)), dtype), keep=True, **attrs)
    assert refuses(recurrent_layer_p, inputs("gru", (0, 3, 4, 5)), keep=True, **attrs)
    given = inputs("gru", (2, 3, 4, 5))
    y, _, gates, parts = recurrent_layer_p.lower(*given, keep=True, **attrs)
    there = (False, False, True, False)
    assert refuses(
        recurrent_layer_grad_p, (*given[:4], y, gates, parts, gates), given=there, has_bias=True, wants_x=True, **attrs
    )


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("name", ["GRU", "RNN"])
def test_a_network_and_its_gradients(name, mode, monkeypatch):
    """Two layers and directions, batches first: the gradients of a run without kernels."""
    ms.set_context(mode=mode)
    ms.set_seed(0)
    net = getattr(nn, name)(6, 16, 2, batch_first=True, bidirectional=True)
    weights = tuple(net.trainable_params())
    x, h = (ms.Tensor(drawn(s, jnp.float32, i)) for i, s in enumerate([(9, 5, 6), (4, 9, 16)]))

    def loss(x, h):
        y, last = net(x, h)
        return (y**2).sum() + (last**3).sum()

    def found():
        value, (inner, outer) = ms.value_and_grad(loss, (0, 1), weights)(x, h)
        return [value.asnumpy(), *[g.asnumpy() for g in (*inner, *outer)]]

    got = found()
    executable._by_structure.clear()
    monkeypatch.setattr(recurrent_layer_p, "kernel", None)
    monkeypatch.setattr(recurrent_layer_grad_p, "kernel", None)
    for g, w in zip(got, found(), strict=True):
        np.testing.assert_allclose(g, w, atol=2e-5 * max(1, np.abs(w).max()))


@pytest.mark.parametrize("name", ["GRU", "RNN"])
def test_full_lengths_give_what_no_lengths_give(name):
    """Sequences of given lengths go step by step through another program."""
    net, x = getattr(nn, name)(3, 4, batch_first=True), ms.Tensor(drawn((2, 5, 3), jnp.float32, 0))
    y, last = net(x)
    stepped, end = net(x, None, ms.Tensor([5, 5]))
    np.testing.assert_allclose(y.asnumpy(), stepped.asnumpy(), atol=1e-6)
    np.testing.assert_allclose(last.asnumpy(), end.asnumpy(), atol=1e-6)


def test_inference_does_not_write_activations():
    net, x = nn.GRU(3, 4, batch_first=True), ms.Tensor(drawn((2, 5, 3), jnp.float32, 0))
    net.set_train(False)
    before = set(executable._by_structure.values())
    y, _ = ms.jit(lambda x: net(x))(x)
    (made,) = set(executable._by_structure.values()) - before
    layers = [n for n in made.graph.nodes if n.op is recurrent_layer_p]
    assert [n.attrs["keep"] for n in layers] == [False]
    np.testing.assert_allclose(y.asnumpy(), net(x)[0].asnumpy(), atol=1e-6)
