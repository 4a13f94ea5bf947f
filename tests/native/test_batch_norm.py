"""Batch normalization with what stands around it: kernels beside the lowerings, and the fusions in graphs."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from tests.native.kernels import assert_agrees, refuses

import mycelia as ms
from mycelia import native, nn, ops
from mycelia.compiler import executable
from mycelia.native.batch_norm import batch_norm_act_grad_p, batch_norm_act_p
from mycelia.ops.batch_normalization import batch_norm_grad_p, batch_norm_p

pytestmark = pytest.mark.skipif(not native.onednn_available, reason="the kernels made of oneDNN are not built here")

SHAPES = [(2, 1), (5, 3), (4, 6, 7, 5), (8, 16, 16, 64), (3, 1, 1, 1), (67, 33)]
TYPES = pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["float32", "bfloat16"])


def drawn(shape, dtype=jnp.float32, seed=0, mean=0.0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape) + mean, dtype)


def parameters(channels):
    return 1 + 0.1 * drawn((channels,), seed=3), drawn((channels,), seed=4)


@TYPES
@pytest.mark.parametrize("shape", SHAPES)
def test_forward(shape, dtype):
    x, other, axis = drawn(shape, dtype), drawn(shape, dtype, 1), len(shape) - 1
    params = parameters(shape[-1])
    assert_agrees(batch_norm_p, (x, *params), axis=axis, epsilon=1e-5)
    for residual in ((), (other,)):
        for relu in (False, True):
            assert_agrees(batch_norm_act_p, (x, *params, *residual), epsilon=1e-3, relu=relu)


@TYPES
@pytest.mark.parametrize("shape", SHAPES)
def test_backward(shape, dtype):
    x, y, axis = drawn(shape, dtype), drawn(shape, dtype, 5), len(shape) - 1
    cts = drawn(shape, dtype, 1), drawn(shape, dtype, 2)
    scale, _ = parameters(shape[-1])
    rows = np.asarray(x, np.float32).reshape(-1, shape[-1])
    rest = (x, jnp.asarray(rows.mean(0)), jnp.asarray(rows.var(0)), scale)
    assert_agrees(batch_norm_grad_p, (cts[0], *rest), axis=axis, epsilon=1e-3)
    for arrays, second, mask, keep in (
        ((cts[0], y), False, True, False), ((cts[0], y), False, True, True), ((*cts, y), True, True, True),
        (cts, True, False, True),
    ):  # fmt: skip
        attrs = {"second": second, "mask": mask, "keep": keep, "epsilon": 1e-3}
        assert_agrees(batch_norm_act_grad_p, (*arrays, *rest), **attrs)


def test_a_mean_far_from_zero_costs_no_digits():
    x = drawn((64, 8, 8, 4), mean=3000.0)
    params = parameters(4)
    y, mean, variance = (np.asarray(a) for a in batch_norm_p.kernel(x, *params, axis=3, epsilon=1e-5))
    wide = np.asarray(x, np.float64).reshape(-1, 4)
    np.testing.assert_allclose(mean, wide.mean(0), rtol=1e-7)
    np.testing.assert_allclose(variance, wide.var(0), rtol=1e-6)
    wanted = (wide - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-5) * np.asarray(params[0]) + np.asarray(params[1])
    np.testing.assert_allclose(y.reshape(-1, 4), wanted, atol=2e-3)  # the mean itself is rounded to 2.4e-4


def test_a_nan_stays_in_its_channel():
    x = drawn((2, 3, 3, 4)).at[0, 1, 1, 2].set(jnp.nan)
    y, *_ = batch_norm_act_p.kernel(x, *parameters(4), epsilon=1e-5, relu=True)
    bad = np.isnan(np.asarray(y))
    assert bad[..., 2].all()
    assert not bad[..., [0, 1, 3]].any()


@TYPES
@pytest.mark.parametrize(
    "shape", [(2, 3, 5), (4, 6, 7, 5), (8, 64, 16, 16), (3, 2, 4, 5, 6), (2, 1, 1, 1), (1, 2, 3000)]
)
def test_channels_first(shape, dtype):
    x, ct, params = drawn(shape, dtype), drawn(shape, dtype, 1), parameters(shape[1])
    assert_agrees(batch_norm_p, (x, *params), axis=1, epsilon=1e-5)
    rows = np.moveaxis(np.asarray(x, np.float32), 1, -1).reshape(-1, shape[1])
    rest = (x, jnp.asarray(rows.mean(0)), jnp.asarray(rows.var(0)), params[0])
    assert_agrees(batch_norm_grad_p, (ct, *rest), axis=1, epsilon=1e-3)


def test_other_axes_and_types_are_left_to_xla():
    params = parameters(4)
    assert refuses(batch_norm_p, (drawn((2, 3, 4, 3)), *params), axis=2, epsilon=1e-5)
    assert refuses(batch_norm_p, (drawn((2, 3, 3, 4), jnp.float64), *params), axis=3, epsilon=1e-5)
    assert refuses(batch_norm_p, (drawn((0, 3, 3, 4)), *params), axis=3, epsilon=1e-5)


class Residual(nn.Cell):
    """A block whose sum is of a shortcut that comes after the main branch, or before it."""

    def __init__(self, shortcut, act=True, reuse=False):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)
        self.conv3, self.bn3 = nn.Conv2d(4, 8, 1), nn.BatchNorm2d(8)
        self.shortcut, self.act, self.reuse = shortcut, act, reuse

    def construct(self, x):
        first = ops.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(first))
        total = (y + self.bn3(self.conv3(x))) if self.shortcut else first + y
        out = ops.relu(total) if self.act else total
        return out + y if self.reuse else out


def trained(cell, mode):
    ms.set_context(mode=mode)
    cell.set_train()
    x = ms.Tensor(drawn((4, 4, 8, 8), seed=7))
    weights = ms.Tensor(drawn((4, 8, 8, 8), seed=8))

    def forward(x):
        return (cell(x) * weights).sum()

    value, (dx, grads) = ms.value_and_grad(forward, 0, cell.trainable_params())(x)
    state = [p.asnumpy() for p in cell.get_parameters() if not p.requires_grad]
    return [value.asnumpy(), dx.asnumpy(), *(g.asnumpy() for g in grads), *state]


@pytest.mark.parametrize("shortcut", [True, False])
@pytest.mark.parametrize("act", [True, False])
@pytest.mark.parametrize("reuse", [True, False])
def test_blocks(shortcut, act, reuse):
    """A compiled block equals the same run operator by operator, with all gradients and running statistics."""
    before = set(executable._by_structure.values())
    found = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_seed(1)
        found.append(trained(Residual(shortcut, act, reuse), mode))
    for wanted, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-5 * max(1.0, np.abs(wanted).max()))
    made = [e.graph for e in set(executable._by_structure.values()) - before]
    names = [node.op.name for graph in made for node in graph.nodes]
    assert "batch_norm_act" in names
    assert "batch_norm_act_grad" in names
