"""Layers of long short-term memories by oneDNN's products beside XLA's loop."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from tests.native.kernels import assert_agrees, refuses

import mycelia as ms
from mycelia import native, nn, ops
from mycelia.compiler import executable
from mycelia.ops.recurrence import lstm_layer_grad_p, lstm_layer_p

pytestmark = pytest.mark.skipif(not native.onednn_available, reason="the kernels made of oneDNN are not built here")

#: Length, batch, features, size; batch first, reverse; which cotangents there are; a bias; the gradient of the input.
#: Odd sizes; one of each; few sequences; sequences for all threads; few sequences with many units.
CASES = {
    "odd": ((7, 33, 12, 17), (True, True), (True, True, True), True, True),
    "ones": ((1, 1, 1, 1), (False, False), (True, False, True), True, True),
    "small": ((3, 2, 5, 8), (True, False), (False, True, False), False, True),
    "rows": ((4, 40, 24, 64), (False, False), (True, False, False), True, False),
    "units": ((3, 4, 70, 300), (False, True), (True, True, True), True, True),
}


def drawn(shape, dtype, seed):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def inputs(sizes, batch_first=False):
    length, batch, features, size = sizes
    shapes = [
        (batch, length, features) if batch_first else (length, batch, features), (batch, size), (batch, size),
        (4 * size, features), (4 * size, size), (4 * size,),
    ]  # fmt: skip
    scales = (1, 1, 1, features**-0.5, size**-0.5, 1)
    return tuple(drawn(s, jnp.float32, i) * k for i, (s, k) in enumerate(zip(shapes, scales, strict=True)))


def typed(arrays, dtype):
    return tuple(a.astype(dtype) for a in arrays)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_agrees(case, dtype):
    sizes, (batch_first, reverse), there, has_bias, wants_x = CASES[case]
    attrs = {"batch_first": batch_first, "reverse": reverse}
    given = typed(inputs(sizes, batch_first), dtype)[: 6 if has_bias else 5]
    assert_agrees(lstm_layer_p, given, keep=True, **attrs)
    outs = lstm_layer_p.kernel(*given, keep=True, **attrs)
    shorter = lstm_layer_p.kernel(*given, keep=False, **attrs)
    for a, b in zip(outs, shorter, strict=False):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    y, _, _, gates, cells = outs
    cts = [drawn(o.shape, dtype, 10 + i) for i, o in enumerate(outs[:3]) if there[i]]
    assert_agrees(
        lstm_layer_grad_p, (*given[:5], y, gates, cells, *cts), given=(*there, False, False), has_bias=has_bias,
        wants_x=wants_x, **attrs,
    )  # fmt: skip


def test_layouts_of_packed_weights_do_not_mix():
    """Parts of 16 sequences have their own products, be the other part of 16 or of 17."""
    for batch in (33, 32):
        given = inputs((2, batch, 8, 48))
        assert_agrees(lstm_layer_p, given, batch_first=False, reverse=False, keep=True)


def test_saturated_gates_and_what_is_not_finite():
    given = list(inputs((3, 9, 4, 16)))
    attrs = {"batch_first": False, "reverse": False, "keep": True}
    given[0] = given[0] * 1e4
    assert_agrees(lstm_layer_p, given, **attrs)
    given[0] = given[0].at[1, 2, 0].set(jnp.nan)
    given[2] = given[2].at[5, 3].set(jnp.inf).at[6, 1].set(-jnp.inf)
    assert_agrees(lstm_layer_p, given, **attrs)


def test_small_arguments_keep_their_digits():
    """Activations near 0 are right to their last digits, not to those of 1."""
    x, h, c, w, u, b = inputs((1, 8, 4, 32))
    tiny = (x * 1e-6, h * 0, c * 0, w, u, b * 0)
    y, *_ = lstm_layer_p.kernel(*tiny, batch_first=False, reverse=False, keep=False)
    exact, *_ = lstm_layer_p.lower(*typed(tiny, jnp.float64), batch_first=False, reverse=False, keep=False)
    np.testing.assert_allclose(np.asarray(y), np.asarray(exact), rtol=1e-5)


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float16])
def test_other_types_are_left_to_xla(dtype):
    attrs = {"batch_first": False, "reverse": False, "keep": True}
    assert refuses(lstm_layer_p, typed(inputs((2, 3, 4, 5)), dtype), **attrs)


def test_empty_sequences_and_cotangents_of_what_is_kept_are_left_to_xla():
    attrs = {"batch_first": False, "reverse": False}
    assert refuses(lstm_layer_p, inputs((0, 3, 4, 5)), keep=True, **attrs)
    given = inputs((2, 3, 4, 5))
    y, _, _, gates, cells = lstm_layer_p.lower(*given, keep=True, **attrs)
    there = (False, False, False, True, False)
    assert refuses(
        lstm_layer_grad_p, (*given[:5], y, gates, cells, gates), given=there, has_bias=True, wants_x=True, **attrs
    )


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_network_and_its_gradients(mode, monkeypatch):
    """Two layers and directions, both layouts: the gradients of a run without kernels."""
    ms.set_context(mode=mode)
    ms.set_seed(0)
    net = nn.LSTM(6, 16, 2, batch_first=True, bidirectional=True)
    weights = tuple(net.trainable_params())
    x, h, c = (ms.Tensor(drawn(s, jnp.float32, i)) for i, s in enumerate([(9, 5, 6), (4, 9, 16), (4, 9, 16)]))

    def loss(x, h, c):
        y, (last, cell) = net(x, (h, c))
        return (y**2).sum() + (last * cell).sum()

    def found():
        value, (inner, outer) = ms.value_and_grad(loss, (0, 1, 2), weights)(x, h, c)
        return [value.asnumpy(), *[g.asnumpy() for g in (*inner, *outer)]]

    got = found()
    executable._by_structure.clear()
    monkeypatch.setattr(lstm_layer_p, "kernel", None)
    monkeypatch.setattr(lstm_layer_grad_p, "kernel", None)
    wanted = found()
    for g, w in zip(got, wanted, strict=True):
        np.testing.assert_allclose(g, w, atol=2e-5 * max(1, np.abs(w).max()))


def test_inference_does_not_write_activations():
    net, x = nn.LSTM(3, 4, batch_first=True), ms.Tensor(drawn((2, 5, 3), jnp.float32, 0))
    net.set_train(False)
    before = set(executable._by_structure.values())
    y, _ = ms.jit(lambda x: net(x))(x)
    (made,) = set(executable._by_structure.values()) - before
    layers = [n for n in made.graph.nodes if n.op is lstm_layer_p]
    assert [n.attrs["keep"] for n in layers] == [False]
    np.testing.assert_allclose(y.asnumpy(), net(x)[0].asnumpy(), atol=1e-6)


def test_mapped_over_rows():
    """vmap knows nothing of kernels: the lowering is mapped."""
    net, x = nn.LSTM(3, 4), ms.Tensor(drawn((2, 5, 2, 3), jnp.float32, 0))
    mapped = ms.vmap(lambda row: net(row)[0])(x)
    for i in range(2):
        np.testing.assert_allclose(mapped[i].asnumpy(), net(x[i])[0].asnumpy(), atol=1e-6)


def test_derivatives_of_second_order():
    """The kernel's gradients have gradients."""
    net, x = nn.LSTM(2, 3), ms.Tensor(drawn((3, 2, 2), jnp.float32, 0))

    def penalty(x):
        return (ms.grad(lambda x: (net(x)[0] ** 3).sum())(x) ** 2).sum()

    found = float((ms.jit(ms.grad(penalty))(x) * ops.ones_like(x)).sum().asnumpy())
    step = 1e-2
    slope = (float(penalty(x + step)) - float(penalty(x - step))) / (2 * step)
    assert abs(found - slope) < 2e-2 * abs(slope)
