"""Convolutions by 3 x 3 kernels that are computed as products of transformed tiles, beside XLA's and exact sums."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.native.kernels import assert_agrees

import mycelia as ms
from mycelia import native, nn
from mycelia.compiler.prepared import PATIENCE
from mycelia.native.convolution import conv_act_p
from mycelia.ops.convolution import conv_input_grad_p, conv_p, conv_shape, conv_weight_grad_p

pytestmark = pytest.mark.skipif(not native.onednn_available, reason="the kernels made of oneDNN are not built here")

PLAIN = {"strides": (1, 1), "dilation": (1, 1), "groups": 1, "channels_last": True}
#: image, channels of the result, padding
CASES = {
    "even": ((2, 8, 8, 32), 64, ((1, 1), (1, 1))),
    "odd": ((3, 7, 9, 48), 64, ((1, 1), (1, 1))),
    "no padding": ((2, 9, 8, 64), 32, ((0, 0), (0, 0))),
    "unequal padding": ((2, 8, 6, 32), 96, ((0, 2), (2, 1))),
    "one row": ((9, 1, 12, 64), 64, ((1, 1), (1, 1))),
    "many": ((5, 30, 31, 32), 32, ((1, 1), (1, 1))),
    "wide": ((1, 14, 14, 256), 128, ((1, 1), (1, 1))),
    "deep": ((32, 4, 4, 512), 512, ((1, 1), (1, 1))),
}


def drawn(shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), jnp.float32)


@pytest.mark.parametrize("case", CASES)
def test_agrees(case):
    image, out, padding = CASES[case]
    attrs = {**PLAIN, "padding": padding}
    kernel = (out, image[3], 3, 3)
    x, w = drawn(image), drawn(kernel, 1)
    ct = drawn(conv_shape(image, kernel, **attrs), 2)
    assert_agrees(conv_p, (x, w), **attrs)
    assert_agrees(conv_p, (x, w, drawn((out,), 3)), **attrs)
    assert_agrees(conv_input_grad_p, (ct, w), input_shape=image, **attrs)
    assert_agrees(conv_weight_grad_p, (ct, x), weight_shape=kernel, **attrs)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("residual", [False, True])
def test_what_stands_behind(bias, norm, residual):
    image, out, padding = CASES["odd"]
    attrs = {**PLAIN, "padding": padding}
    rest = [drawn((out,), 3)] * bias
    if norm:
        rest += [drawn((out,), 4), drawn((out,), 5), drawn((out,), 6), jnp.abs(drawn((out,), 7)) + 0.5]
    if residual:
        rest.append(drawn(conv_shape(image, (out, image[3], 3, 3), **attrs), 8))
    after = {"bias": bias, "epsilon": 1e-5 if norm else None, "residual": residual, "relu": True}
    assert_agrees(conv_act_p, (drawn(image), drawn((out, image[3], 3, 3), 1), *rest), **attrs, **after)


@pytest.mark.parametrize("channels", [64, 256])
def test_as_exact_as_sums_of_products(channels):
    """Beside float64, the error is not above that of XLA's convolution in float32."""
    x, w = drawn((4, 12, 12, channels)), drawn((64, channels, 3, 3), 1)
    attrs = {**PLAIN, "padding": ((1, 1), (1, 1))}
    exact = np.asarray(conv_p.lower(x.astype(jnp.float64), w.astype(jnp.float64), **attrs))
    error, other = (
        np.sqrt(np.square(np.asarray(jax.jit(lambda x, w, f=f: f(x, w, **attrs))(x, w)) - exact).mean())
        for f in (conv_p.kernel, conv_p.lower)
    )
    assert 0 < error < 1.5 * other


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_where_it_is(value):
    image, out, padding = CASES["even"]
    attrs = {**PLAIN, "padding": padding}
    kernel = (out, image[3], 3, 3)
    x, w, ct = drawn(image).at[1, 3, 4, 5].set(value), drawn(kernel, 1), drawn((2, 8, 8, out), 2)
    assert_agrees(conv_p, (x, w), **attrs)
    assert_agrees(conv_weight_grad_p, (ct, x), weight_shape=kernel, **attrs)
    assert_agrees(conv_input_grad_p, (ct.at[0, 0, 7, 1].set(value), w), input_shape=image, **attrs)
    assert_agrees(conv_p, (drawn(image), w.at[3, 2, 1, 1].set(value)), **attrs)


@pytest.mark.parametrize("value", [0.0, np.inf])
def test_a_kernel_that_stays_the_same(value):
    net = nn.Conv2d(32, 64, 3, pad_mode="pad", padding=1, has_bias=True).set_train(False)
    net.weight.set_data(ms.Tensor(np.random.default_rng(1).standard_normal((64, 32, 3, 3)), ms.float32))
    run = ms.jit(lambda x: net(x))
    pixels = np.random.default_rng(0).standard_normal((2, 32, 8, 8)).astype(np.float32)
    pixels[0, 0, 0, 0] = value
    x = ms.Tensor(pixels)
    attrs = {**PLAIN, "channels_last": False, "padding": ((1, 1), (1, 1))}
    wanted = np.asarray(conv_p.lower(x._value, net.weight._value, net.bias._value, **attrs))
    for _ in range(PATIENCE + 2):
        np.testing.assert_allclose(run(x).asnumpy(), wanted, rtol=1e-4, atol=1e-4)
