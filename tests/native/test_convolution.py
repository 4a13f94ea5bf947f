"""Convolutions by oneDNN beside XLA's."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from tests.native.kernels import assert_agrees, needs_bfloat16, refuses

import mycelia as ms
from mycelia import native, nn, ops
from mycelia.compiler import executable
from mycelia.ir.evaluate import without_kernels
from mycelia.native.convolution import conv_act_p, wide_weight_grad_p
from mycelia.ops.convolution import conv_input_grad_p, conv_p, conv_shape, conv_weight_grad_p

pytestmark = pytest.mark.skipif(not native.onednn_available, reason="the kernels made of oneDNN are not built here")


def attributes(n, strides=1, padding=(0, 0), dilation=1, groups=1, last=True):
    return {
        "strides": (strides,) * n, "padding": (padding,) * n, "dilation": (dilation,) * n, "groups": groups,
        "channels_last": last,
    }  # fmt: skip


CASES = {
    "3x3": ((2, 9, 8, 16), (32, 16, 3, 3), attributes(2, padding=(1, 1))),
    "channels first": ((2, 16, 9, 8), (32, 16, 3, 3), attributes(2, padding=(1, 1), last=False)),
    "1x1": ((3, 5, 7, 24), (8, 24, 1, 1), attributes(2)),
    "stride": ((2, 9, 11, 3), (5, 3, 3, 3), attributes(2, strides=2, padding=(1, 0))),
    "dilation": ((1, 12, 12, 4), (6, 4, 3, 3), attributes(2, dilation=3, padding=(2, 3))),
    "groups": ((2, 8, 8, 12), (18, 4, 3, 3), attributes(2, groups=3, padding=(1, 1))),
    "groups, first": ((2, 12, 8, 8), (18, 4, 3, 3), attributes(2, groups=3, padding=(1, 1), last=False)),
    "depthwise": ((2, 8, 8, 32), (32, 1, 3, 3), attributes(2, groups=32, padding=(1, 1))),
    "line": ((2, 30, 6), (4, 6, 5), attributes(1, strides=2, padding=(2, 2))),
    "volume": ((1, 6, 5, 4, 3), (4, 3, 2, 2, 2), attributes(3, padding=(1, 0))),
    "few channels": ((5, 13, 12, 1), (6, 1, 5, 5), attributes(2, padding=(2, 2))),
    "few channels, strided": ((3, 11, 14, 3), (16, 3, 4, 3), attributes(2, strides=2, padding=(1, 3))),
    "one place": ((1, 1, 1, 1), (1, 1, 1, 1), attributes(2)),
    "stem": ((4, 32, 32, 3), (64, 3, 7, 7), attributes(2, strides=2, padding=(3, 3))),
}


def drawn(shape, dtype, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_agrees(case, dtype):
    image, kernel, attrs = CASES[case]
    x, w = drawn(image, dtype), drawn(kernel, dtype, 1)
    ct = drawn(conv_shape(image, kernel, **attrs), dtype, 2)
    assert_agrees(conv_p, (x, w), **attrs)
    assert_agrees(conv_p, (x, w, drawn(kernel[:1], dtype, 3)), **attrs)
    assert_agrees(conv_input_grad_p, (ct, w), input_shape=image, **attrs)
    assert_agrees(conv_weight_grad_p, (ct, x), weight_shape=kernel, **attrs)


def test_nan_and_infinity_spread_as_far():
    image, kernel, attrs = CASES["3x3"]
    x = drawn(image, jnp.float32).at[0, 4, 4, 2].set(jnp.nan).at[1, 1, 1, 0].set(jnp.inf)
    assert_agrees(conv_p, (x, drawn(kernel, jnp.float32, 1)), **attrs)


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float16])
def test_other_types_are_left_to_xla(dtype):
    image, kernel, attrs = CASES["3x3"]
    assert refuses(conv_p, (drawn(image, dtype), drawn(kernel, dtype)), **attrs)


def test_nothing_to_convolve_is_left_to_xla():
    image, kernel, attrs = CASES["3x3"]
    assert refuses(conv_p, (jnp.zeros((0, *image[1:])), jnp.zeros(kernel)), **attrs)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_mapped_over_rows(mode):
    """vmap knows nothing of kernels: the lowering is mapped."""
    ms.set_context(mode=mode)
    x, w = ms.Tensor(drawn((3, 2, 4, 6, 6), jnp.float32)), ms.Tensor(drawn((5, 4, 3, 3), jnp.float32))
    mapped = ms.vmap(lambda row: ops.conv2d(row, w))(x)
    for i in range(3):
        np.testing.assert_allclose(mapped[i].asnumpy(), ops.conv2d(x[i], w).asnumpy(), atol=1e-4)


def test_derivatives_of_second_order():
    """The kernel's gradients have gradients."""
    x, w = ms.Tensor(drawn((1, 2, 5, 5), jnp.float32)), ms.Tensor(drawn((3, 2, 3, 3), jnp.float32))

    def penalty(w):
        return (ms.grad(lambda x: (ops.conv2d(x, w) ** 3).sum())(x) ** 2).sum()

    found = ms.jit(ms.grad(penalty))(w).asnumpy()
    step, k = 1e-3, (1, 0, 2, 1)
    moved = [float(penalty(w + ms.Tensor(s * step * (np.arange(54).reshape(3, 2, 3, 3) == np.ravel_multi_index(
        k, (3, 2, 3, 3))), ms.float32))) for s in (1, -1)]  # fmt: skip
    assert abs(found[k] - (moved[0] - moved[1]) / (2 * step)) < 2e-2 * abs(found[k])


def test_a_layer_without_kernels():
    """What ``without_kernels`` turns off is what makes the difference."""
    layer, x = nn.Conv2d(3, 8, 3), drawn((2, 3, 9, 9), jnp.float32)
    attrs = attributes(2, padding=(1, 1), last=False)
    w = layer.weight._value
    with without_kernels():
        wanted = conv_p.lower(x, w, **attrs)
    np.testing.assert_allclose(layer(ms.Tensor(x)).asnumpy(), np.asarray(wanted), atol=1e-5)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("epsilon", [None, 1e-3])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("relu", [True, False])
def test_what_follows_a_convolution(dtype, bias, epsilon, residual, relu):
    image, kernel, attrs = CASES["3x3"]
    shape = conv_shape(image, kernel, **attrs)
    rest = [drawn(kernel[:1], dtype, 2)] * bias
    if epsilon is not None:
        rest += [drawn(kernel[:1], jnp.float32, s) ** p for s, p in ((3, 1), (4, 1), (5, 1), (6, 2))]
    rest += [drawn(shape, dtype, 7)] * residual
    assert_agrees(
        conv_act_p, (drawn(image, dtype), drawn(kernel, dtype, 1), *rest), scale=2, bias=bias, epsilon=epsilon,
        residual=residual, relu=relu, **attrs,
    )  # fmt: skip


@needs_bfloat16
def test_a_kernels_gradient_in_float32_is_not_rounded():
    image, kernel, attrs = CASES["3x3"]
    x, ct = drawn(image, jnp.bfloat16), drawn(conv_shape(image, kernel, **attrs), jnp.bfloat16, 2)
    got = wide_weight_grad_p.kernel(ct, x, weight_shape=kernel, **attrs)
    wanted = conv_weight_grad_p.lower(ct.astype(jnp.float64), x.astype(jnp.float64), weight_shape=kernel, **attrs)
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), atol=1e-4)


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(4, 8, 3, has_bias=True), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)
        self.conv3 = nn.Conv2d(4, 8, 1)

    def construct(self, x):
        y = self.bn2(self.conv2(ops.relu(self.bn1(self.conv1(x)))))
        return ops.relu(y + self.conv3(x))


def test_a_block_in_inference_is_its_convolutions():
    ms.set_seed(3)
    block, x = Block(), ms.Tensor(drawn((2, 4, 8, 8), jnp.float32))
    block.set_train()
    for _ in range(3):  # running statistics that are not trivial
        block(x)
    block.set_train(False)
    wanted = block(x).asnumpy()
    before = set(executable._by_structure.values())
    got = ms.jit(lambda x: block(x))(x).asnumpy()
    np.testing.assert_allclose(got, wanted, atol=1e-5)
    (made,) = set(executable._by_structure.values()) - before
    names = [n.op.name for n in made.graph.nodes]
    assert names.count("conv_act") == 3
    assert not {"conv", "batch_norm_inference", "add"} & set(names)
