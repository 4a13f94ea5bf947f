"""Convolutions of few channels with relu and pooling, and their gradients, beside the lowerings."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.native.kernels import CLOSE, assert_agrees

import mycelia as ms
from mycelia import native, nn, ops
from mycelia.compiler import executable
from mycelia.core import dtypes as dt
from mycelia.ir.evaluate import without_kernels
from mycelia.native import few_channels
from mycelia.native.few_channels import conv_pool_grad_p, conv_pool_p
from mycelia.ops.convolution import conv_shape

pytestmark = pytest.mark.skipif(not native.onednn_available, reason="the kernels made of oneDNN are not built here")

# image, kernel, strides, padding, window of the pooling
CASES = {
    "lenet, first": ((5, 28, 28, 1), (6, 1, 5, 5), (1, 1), ((2, 2), (2, 2)), (2, 2)),
    "lenet, second": ((3, 14, 14, 6), (16, 6, 5, 5), (1, 1), ((0, 0), (0, 0)), (2, 2)),
    "one channel to many": ((2, 9, 12, 1), (32, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (2, 2)),
    "all channels": ((2, 8, 7, 8), (32, 8, 3, 2), (1, 1), ((1, 0), (0, 1)), (3, 2)),
    "two blocks, the last not full": ((2, 7, 9, 3), (21, 3, 3, 3), (1, 1), ((1, 1), (1, 1)), (2, 2)),
    "largest window": ((2, 16, 15, 8), (9, 8, 7, 7), (2, 2), ((3, 3), (3, 2)), (2, 3)),
    "gaps": ((2, 11, 13, 2), (5, 2, 2, 1), (3, 2), ((0, 1), (1, 0)), (1, 2)),
    "left over": ((2, 11, 9, 2), (3, 2, 4, 3), (1, 1), ((0, 0), (0, 0)), (3, 4)),
    "much padding": ((1, 3, 4, 1), (2, 1, 2, 2), (1, 1), ((1, 4), (1, 5)), (2, 2)),
    "a place": ((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    "bands": ((2, 70, 75, 3), (16, 3, 3, 3), (1, 1), ((1, 1), (1, 1)), (2, 2)),
    "wide": ((1, 6, 100, 4), (7, 4, 3, 6), (1, 1), ((1, 1), (0, 0)), (2, 2)),
}
DTYPES = pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["float32", "bfloat16"])


def drawn(shape, dtype=jnp.float32, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def given(case):
    image, kernel, strides, padding, window = CASES[case]
    attrs = {"strides": strides, "padding": padding, "dilation": (1, 1), "groups": 1, "channels_last": True}
    return image, kernel, window, attrs


@pytest.fixture
def everywhere(monkeypatch):
    """The kernels also where oneDNN is faster."""
    monkeypatch.setattr(few_channels, "_pays", lambda *_: True)


@DTYPES
@pytest.mark.parametrize("case", CASES)
def test_convolution_and_pooling(everywhere, case, dtype):
    image, kernel, window, attrs = given(case)
    arrays = drawn(image, dtype), drawn(kernel, dtype, 1), drawn(kernel[:1], dtype, 2)
    if dtype == jnp.float32:
        assert_agrees(conv_pool_p, arrays, relu=True, window=window, keep=True, first=False, **attrs)
    else:
        assert_agrees(conv_pool_p, arrays[:2], relu=False, window=window, keep=False, first=True, **attrs)


def check_gradients(case, pooled, relu, dtype):
    image, kernel, window, attrs = given(case)
    made = conv_shape(image, kernel, **attrs)
    y = jnp.asarray(np.random.default_rng(3).integers(-3, 4, made), dtype)  # many ties
    y = jnp.maximum(y, 0) if relu else y
    ct = drawn((made[0], made[1] // window[0], made[2] // window[1], made[3]) if pooled else made, dtype, 4)
    arrays = [ct, *[y] * (relu or pooled), drawn(image, dtype), drawn(kernel, dtype, 1)]
    assert_agrees(
        conv_pool_grad_p, arrays, weight_shape=kernel, input_shape=image, kernel=dt.float32, bias=dt.float32,
        image=True, relu=relu, window=window if pooled else None, **attrs,
    )  # fmt: skip


@DTYPES
@pytest.mark.parametrize("case", CASES)
def test_gradients(everywhere, case, dtype):
    check_gradients(case, pooled=True, relu=True, dtype=dtype)


@DTYPES
@pytest.mark.parametrize(("pooled", "relu"), [(True, False), (False, True), (False, False)])
@pytest.mark.parametrize("case", ["lenet, first", "left over", "two blocks, the last not full"])
def test_gradients_with_less_behind_the_convolution(everywhere, case, pooled, relu, dtype):
    check_gradients(case, pooled, relu, dtype)


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("window", [(2, 2), (1, 3)])
def test_nan_and_infinity_spread_as_far(everywhere, window, relu):
    image, kernel, _, attrs = given("lenet, second")
    x = drawn(image).at[0, 4, 4, 2].set(jnp.nan).at[1, 1, 1, 0].set(jnp.inf).at[2, 9, 9, 5].set(-jnp.inf)
    w = drawn(kernel, seed=1)
    assert_agrees(conv_pool_p, (x, w), relu=relu, window=window, keep=True, first=False, **attrs)
    y = jnp.abs(drawn(conv_shape(image, kernel, **attrs), seed=3))
    y = y.at[0, 2, 2].set(jnp.nan).at[0, 3, 3].set(jnp.nan).at[1, 4, 5].set(jnp.inf).at[1, 0, :2].set(-jnp.inf)
    ct = drawn((3, 10 // window[0], 10 // window[1], 16), seed=4).at[2, 3, 2, 7].set(jnp.inf).at[2, 1, 1].set(jnp.nan)
    assert_agrees(
        conv_pool_grad_p, (ct, y, drawn(image), w), weight_shape=kernel, input_shape=image, kernel=dt.float32,
        bias=dt.float32, image=True, relu=relu, window=window, **attrs,
    )  # fmt: skip


def test_results_in_another_dtype_than_the_images():
    image, kernel, window, attrs = given("lenet, first")
    y = jnp.maximum(drawn(conv_shape(image, kernel, **attrs), jnp.bfloat16), 0)
    ct, x = drawn((5, 14, 14, 6), jnp.bfloat16, 1), drawn(image, jnp.bfloat16, 2)
    shapes = {"weight_shape": kernel, "input_shape": image, "image": False, "relu": True, "window": window}
    wide = conv_pool_grad_p.kernel(ct, y, x, kernel=dt.float32, bias=dt.bfloat16, **shapes, **attrs)
    assert [a.dtype for a in wide] == [jnp.float32, jnp.bfloat16]
    exact = conv_pool_grad_p.lower(
        *[a.astype(jnp.float64) for a in (ct, y, x)], kernel=dt.float64, bias=dt.float64, **shapes, **attrs
    )
    np.testing.assert_allclose(np.asarray(wide[0]), np.asarray(exact[0]), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    "change",
    [
        {"dilation": (2, 2)}, {"groups": 2}, {"channels_last": False}, {"padding": ((-1, 2), (2, 2))},
        {"image": (5, 28, 28, 9)}, {"kernel": (33, 1, 5, 5)}, {"kernel": (6, 1, 8, 5)}, {"dtype": jnp.float64},
        {"image": (0, 28, 28, 1)}, {"image": (5, 2000, 2000, 1)}, {"kernel": (6, 1, 1, 1)},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_left_to_others(change):
    image, kernel, _, attrs = given("lenet, first")
    asked = {"dtype": jnp.float32, "image": image, "kernel": kernel, "attrs": attrs}
    assert few_channels.serves(few_channels.POOLED, **asked)
    asked["attrs"] = {**attrs, **{k: v for k, v in change.items() if k in attrs}}
    asked |= {k: v for k, v in change.items() if k in asked}
    assert not few_channels.serves(few_channels.POOLED, **asked)


# In graphs ----------------------------------------------------------------------------------------------------


class Small(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="same", has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.pool, self.dense = nn.MaxPool2d(2, 2), nn.Dense(16 * 25, 10)

    def construct(self, x):
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.pool(ops.relu(self.conv2(x)))
        return self.dense(x.reshape(x.shape[0], -1))


def program_of(run):
    """What ``run`` gives, and the operators of the graph that it made."""
    before = set(executable._by_structure.values())
    found = run()
    (made,) = set(executable._by_structure.values()) - before
    return found, [n.op.name for n in made.graph.nodes]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_small_network(precision):
    ms.set_seed(1)
    net = Small()
    x, wanted = ms.Tensor(drawn((4, 1, 28, 28))), ms.Tensor(drawn((4, 10), seed=1))
    if precision == "bfloat16":
        net = net.to_float(ms.bfloat16)
    step = ms.value_and_grad(lambda x: ((net(x).astype(ms.float32) - wanted) ** 2).mean(), None, net.trainable_params())
    (loss, gradients), names = program_of(lambda: ms.jit(lambda x: step(x))(x))
    assert names.count("conv_pool") == names.count("conv_pool_grad") == 2
    assert not {"max_pool", "max_pool_grad", "conv_weight_grad", "conv_input_grad", "conv_act"} & set(names)
    with without_kernels():
        plain_loss, plain = step(x)
    tolerance = 20 * CLOSE[np.dtype(jnp.float32 if precision == "float32" else jnp.bfloat16)]
    np.testing.assert_allclose(float(loss), float(plain_loss), rtol=tolerance)
    for got, want in zip(gradients, plain, strict=True):
        want = want.asnumpy()
        np.testing.assert_allclose(got.asnumpy(), want, atol=tolerance * np.abs(want).max(), rtol=0)


def test_inference_leaves_no_transpose():
    ms.set_seed(1)
    net, x = Small(), ms.Tensor(drawn((4, 1, 28, 28)))
    got, names = program_of(lambda: ms.jit(lambda x: net(x))(x))
    assert names.count("conv_pool") == 2
    assert "transpose" not in names
    with without_kernels():
        np.testing.assert_allclose(got.asnumpy(), net(x).asnumpy(), atol=1e-5)


def test_what_others_need_is_kept():
    """The image before the pooling, and a cotangent that goes elsewhere too."""
    ms.set_seed(1)
    conv, x = nn.Conv2d(1, 6, 3, has_bias=True), ms.Tensor(drawn((2, 1, 8, 8)))
    pool = nn.MaxPool2d(2, 2)

    def loss(x):
        y = ops.relu(conv(x))
        return (pool(y) ** 2).sum() + (y * y * y).sum() + conv(x).sum()

    step = ms.value_and_grad(loss, 0, conv.trainable_params())
    got, gradients = ms.jit(lambda x: step(x))(x)
    with without_kernels():
        wanted, plain = step(x)
    np.testing.assert_allclose(float(got), float(wanted), rtol=1e-5)
    for a, b in zip(jax.tree.leaves(gradients), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-4)


def test_gradients_come_out_the_same_each_time():
    """Sums are formed in a fixed order."""
    image, kernel, window, attrs = given("bands")
    y, x = jnp.abs(drawn(conv_shape(image, kernel, **attrs))), drawn(image)
    ct = drawn((2, 35, 37, 16))
    asked = {"kernel": dt.float32, "bias": dt.float32, "image": False, "relu": True, "window": window}
    shapes = {"weight_shape": kernel, "input_shape": image}
    run = jax.jit(lambda *a: conv_pool_grad_p.kernel(*a, **asked, **shapes, **attrs))
    once = run(ct, y, x)
    for _ in range(5):
        for a, b in zip(run(ct, y, x), once, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
