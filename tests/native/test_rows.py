"""Row kernels beside XLA's: softmax, norms, cross entropy, and their gradients."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr
from tests.native.kernels import assert_agrees, both, refuses

import mycelia as ms
from mycelia import Tensor, native, ops
from mycelia.compiler.pipeline import optimize
from mycelia.core import dtypes as dt
from mycelia.ir.builder import Builder
from mycelia.ir.evaluate import without_kernels
from mycelia.ir.types import TensorType
from mycelia.native.rows import gelu_grad_p
from mycelia.ops.activation import gelu_p
from mycelia.ops.cross_entropy import cross_entropy_grad_p, cross_entropy_p
from mycelia.ops.normalization import layer_norm_grad_p, layer_norm_p, rms_norm_grad_p, rms_norm_p
from mycelia.ops.softmax import log_softmax_grad_p, log_softmax_p, softmax_grad_p, softmax_p
from mycelia.tensor.dispatch import value_in_graph
from mycelia.tensor.mode import staging
from mycelia.tensor.tensor import wrap

pytestmark = pytest.mark.skipif(not native.onednn_available, reason="the kernels made of oneDNN are not built here")
TYPES = pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["float32", "bfloat16"])
SHAPES = pytest.mark.parametrize("shape", [(4096, 1), (1400, 3), (1, 5000), (2, 3, 16, 77)])


def drawn(shape, dtype=jnp.float32, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


@TYPES
@SHAPES
def test_softmax(shape, dtype):
    x, ct = 4 * drawn(shape, dtype), drawn(shape, dtype, 1)
    axes = (len(shape) - 1,)
    assert_agrees(softmax_p, (x,), axes=axes)
    assert_agrees(log_softmax_p, (x,), axes=axes)
    assert_agrees(softmax_grad_p, (ct, softmax_p.lower(x, axes=axes)), axes=axes)
    assert_agrees(log_softmax_grad_p, (ct, log_softmax_p.lower(x, axes=axes)), axes=axes)


@pytest.mark.parametrize("op", [softmax_p, log_softmax_p])
def test_infinities_and_nan(op):
    x = np.zeros((8, 600), np.float32)
    x[0, 1], x[1, 2], x[2, 3], x[3], x[4] = np.nan, np.inf, -np.inf, -np.inf, np.nan
    x[5, 0], x[5, 1], x[6, 0] = 3e38, -3e38, 1e30
    assert_agrees(op, (jnp.asarray(x),), axes=(1,))


def test_powers_are_right_over_the_whole_range():
    x = np.linspace(-104, 0, 8192, dtype=np.float32)
    wanted = np.exp(x.astype(np.float64))
    got = np.asarray(softmax_p.kernel(jnp.asarray(x[None]), axes=(1,)), np.float64)[0] * wanted.sum()
    normal = wanted > 1e-35
    np.testing.assert_allclose(got[normal], wanted[normal], rtol=1e-6)
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-35)


@pytest.mark.parametrize(
    ("shape", "begin", "params", "dtype"),
    [((2048, 2), 1, 0, jnp.float32), ((1, 5000), 1, 1, jnp.bfloat16), ((50, 10, 11), 1, 2, jnp.float32),
     ((50, 10, 11), 2, 2, jnp.bfloat16), ((7, 9, 77), 2, 1, jnp.float32), ((1, 5000), 1, 2, jnp.float32)],
)  # fmt: skip
def test_layer_norm(shape, begin, params, dtype):
    x, ct = 3 * drawn(shape, dtype) + 1, drawn(shape, dtype, 1)
    given = [drawn(shape[begin:], d, s) + 1 for d, s in ((dtype, 2), (jnp.float32, 3))][:params]
    assert_agrees(layer_norm_p, (x, *given), begin=begin, epsilon=1e-3)
    _, mean, rstd = layer_norm_p.lower(x, *given, begin=begin, epsilon=1e-3)
    assert_agrees(layer_norm_grad_p, (ct, x, mean, rstd, *given[:1]), begin=begin)


@TYPES
@pytest.mark.parametrize(("shape", "rank"), [((2048, 2), 1), ((1, 5000), 1), ((50, 10, 11), 2)])
def test_rms_norm(shape, rank, dtype):
    x, ct, scale = drawn(shape, dtype), drawn(shape, dtype, 1), drawn(shape[len(shape) - rank :], jnp.float32, 2)
    assert_agrees(rms_norm_p, (x, scale), epsilon=1e-3)
    _, rstd = rms_norm_p.lower(x, scale, epsilon=1e-3)
    assert_agrees(rms_norm_grad_p, (ct, x, rstd, scale))


def test_a_sum_over_rows_is_the_same_each_time():
    x, ct = drawn((1000, 64)), drawn((1000, 64), seed=1)
    _, mean, rstd = layer_norm_p.lower(x, begin=1, epsilon=1e-5)
    first, *others = (
        np.asarray(layer_norm_grad_p.kernel(ct, x, mean, rstd, jnp.ones(64, jnp.float32), begin=1)[1]) for _ in range(5)
    )
    assert all((first == o).all() for o in others)


LABELS = np.array([0, 5, 99, 100, 98, 99, -1, 3], np.int32)


@TYPES
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("ignored", [-100, -1])
def test_cross_entropy(ignored, reduction, dtype):
    attrs = {"ignore_index": ignored, "smoothing": 0.0, "reduction": reduction, "log_probs": False}
    x = 4 * drawn((64, 101), dtype)
    labels = jnp.asarray(np.tile(LABELS, 8))
    assert_agrees(cross_entropy_p, (x, labels), **attrs)
    ct = drawn((64,) if reduction == "none" else (), dtype, 1)
    assert_agrees(cross_entropy_grad_p, (ct, x, labels), **attrs)


def test_cross_entropy_of_labels_outside():
    attrs = {"ignore_index": -100, "smoothing": 0.0, "reduction": "none", "log_probs": False}
    x = np.array(drawn((64, 101)))
    x[3, 4], x[5] = np.nan, -np.inf
    labels = jnp.asarray(np.array([101, 1000, -1, -100] * 16))
    assert_agrees(cross_entropy_p, (jnp.asarray(x), labels), **attrs)
    assert_agrees(cross_entropy_grad_p, (jnp.ones(64, jnp.float32), jnp.asarray(x), labels), **attrs)
    assert np.isnan(np.asarray(cross_entropy_p.kernel(jnp.asarray(x), labels, **attrs))[:3]).all()
    (slopes,) = cross_entropy_grad_p.kernel(jnp.ones(64, jnp.float32), jnp.asarray(x), labels, **attrs)
    assert np.isnan(np.asarray(slopes)).all(1).tolist()[8:] == [True, True, True, False] * 14


@TYPES
def test_gelu(dtype):
    x = 3 * drawn((3, 50, 40), dtype)
    special = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e30, -1e30, 3e38, -3e38, 12], np.float32)
    x = x.at[0, 0, :10].set(jnp.asarray(special, dtype))
    assert_agrees(gelu_grad_p, (drawn(x.shape, dtype, 1), x))
    got, wanted = (np.asarray(f(x, approximate="none"), np.float32) for f in (gelu_p.kernel, gelu_p.lower))
    np.testing.assert_allclose(got, wanted, rtol=2e-2 if dtype is jnp.bfloat16 else 1e-5, atol=1e-37)


def test_gelu_is_accurate_in_its_tail():
    x = np.linspace(-6, 6, 8192, dtype=np.float32)
    wanted = x * ndtr(x.astype(np.float64))
    got = np.asarray(gelu_p.kernel(jnp.asarray(x[None]), approximate="none"))[0]
    np.testing.assert_allclose(got, wanted, rtol=2e-6)


def test_the_gradient_of_gelu_is_one_operator():
    def program(x):
        return ms.grad(lambda x: ops.gelu(x).square().sum())(x)

    x = Tensor(np.asarray(drawn((64, 128))))
    got = ms.jit(program)(x).asnumpy()
    wide = x.asnumpy().astype(np.float64)
    slope = ndtr(wide) + wide * np.exp(-wide * wide / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(got, 2 * wide * ndtr(wide) * slope, rtol=1e-4, atol=1e-6)
    builder = Builder("main")
    given = wrap(builder.param(TensorType(dt.float32, (64, 128))))
    with staging(builder):
        graph = builder.finish([value_in_graph(program(given))])
    assert [n.op.name for n in optimize(graph).nodes if "gelu" in n.op.name] == ["gelu", "gelu_grad"]


def test_what_is_left_to_xla():
    assert refuses(softmax_p, (drawn((64, 100)),), axes=(0,))
    assert refuses(softmax_p, (drawn((64, 100)).astype(jnp.float64),), axes=(1,))
    assert refuses(softmax_p, (drawn((64, 100)).astype(jnp.float16),), axes=(1,))
    assert refuses(softmax_p, (drawn((0, 100)),), axes=(1,))
    assert refuses(gelu_p, (drawn((64, 100)),), approximate="tanh")
    assert refuses(layer_norm_p, (drawn((64, 100, 2)), drawn((2,))), begin=1, epsilon=1e-5)
    attrs = {"ignore_index": -100, "reduction": "none", "log_probs": False}
    x, labels = drawn((64, 100)), jnp.zeros(64, jnp.int32)
    assert refuses(cross_entropy_p, (x, labels), smoothing=0.1, **attrs)
    assert refuses(cross_entropy_p, (x, labels, jnp.ones(100)), smoothing=0.0, **attrs)


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_gradients_of_a_program(mode):
    x, w, y = (Tensor(np.asarray(drawn(s, seed=i))) for i, s in enumerate([(96, 64), (64,), (64, 80)]))
    labels = Tensor(np.arange(96) % 80)

    def loss(x, w, y):
        z = ops.softmax(ops.layer_norm(x, (64,), w), -1) * ops.rms_norm(x, w)[0]
        return ops.cross_entropy(ops.matmul(z, y), labels)

    def slopes():
        return ms.jit(ms.grad(loss, (0, 1, 2)))(x, w, y) if mode == ms.GRAPH_MODE else ms.grad(loss, (0, 1, 2))(x, w, y)

    got = slopes()
    wide = [Tensor(t.asnumpy().astype(np.float64)) for t in (x, w, y)]
    wanted = ms.grad(loss, (0, 1, 2))(*wide)  # float64 has no kernels
    for g, v in zip(got, wanted, strict=True):
        np.testing.assert_allclose(g.asnumpy(), v.asnumpy(), atol=2e-6 * np.abs(v.asnumpy()).max() + 1e-9, rtol=1e-4)


def test_both_ways_count():
    x = drawn((64, 100))
    wanted, got = both(softmax_p, (x,), axes=(1,))
    with without_kernels():
        np.testing.assert_allclose(got[0], wanted[0], rtol=1e-5)
