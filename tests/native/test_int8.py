"""Products of 8-bit matrices by oneDNN: exact, whatever the values."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from tests.native.kernels import refuses

import mycelia as ms
from mycelia import native, ops
from mycelia.compiler import executable
from mycelia.native import int8, libraries
from mycelia.ops.linear import matmul_p

pytestmark = pytest.mark.skipif(
    not native.onednn_available or not libraries.EXACT_INT8,
    reason="the kernels made of oneDNN are not built here, or not exact on this processor",
)

TYPES = [(np.int8, np.int8), (np.uint8, np.int8), (np.int8, np.uint8), (np.uint8, np.uint8)]
#: Shapes of a and b, and whether they are transposed: odd, thin, batches, one matrix for all of a batch, one for each.
SHAPES = {
    "odd": ((67, 131), (131, 71), (False, False)), "tall": ((1025, 33), (33, 9), (False, False)),
    "deep": ((3, 70001), (70001, 2), (False, False)), "transposed": ((129, 65), (77, 129), (True, True)),
    "batches": ((5, 33, 65), (5, 65, 40), (False, False)), "one matrix": ((2, 3, 50, 64), (64, 31), (False, False)),
    "one left": ((64, 50), (7, 31, 50), (False, True)),
}  # fmt: skip


def drawn(shape, dtype, seed):
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(dtype)


def product(a, b, turned, dtype):
    a, b = (np.swapaxes(x, -1, -2) if t else x for x, t in zip((a, b), turned, strict=True))
    return np.matmul(a.astype(np.int64), b.astype(np.int64)).astype(dtype)


@pytest.mark.parametrize("types", TYPES, ids=lambda t: f"{t[0].__name__}-{t[1].__name__}")
@pytest.mark.parametrize("case", SHAPES)
def test_sums_in_32_bits(case, types):
    *shapes, turned = SHAPES[case]
    a, b = (drawn(s, t, i) for i, (s, t) in enumerate(zip(shapes, types, strict=True)))
    attrs = {"transpose_a": turned[0], "transpose_b": turned[1]}
    got = jax.jit(lambda a, b: int8.widened_matmul_p.kernel(a, b, **attrs))(a, b)
    np.testing.assert_array_equal(np.asarray(got), product(a, b, turned, np.int32), strict=True)


@pytest.mark.parametrize("values", [(-128, -128), (-128, 127), (127, 127), (255, -128), (255, 255), (-128, 255)])
def test_extremes(values):
    types = [np.int8 if v < 128 else np.uint8 for v in values]
    a, b = (np.full(s, v, t) for s, v, t in zip([(65, 520), (520, 66)], values, types, strict=True))
    got = int8.widened_matmul_p.kernel(jax.numpy.asarray(a), jax.numpy.asarray(b), transpose_a=False, transpose_b=False)
    assert (np.asarray(got) == values[0] * values[1] * 520).all()


def test_sums_wrap_as_int32_does():
    a, b = np.full((2, 140_000), -128, np.int8), np.full((140_000, 2), -128, np.int8)
    got = int8.widened_matmul_p.kernel(jax.numpy.asarray(a), jax.numpy.asarray(b), transpose_a=False, transpose_b=False)
    exact = 128 * 128 * 140_000
    assert exact > 2**31
    np.testing.assert_array_equal(np.asarray(got), np.full((2, 2), exact - 2**32, np.int32))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_the_operator_keeps_its_dtype_and_wraps(dtype):
    a, b = drawn((65, 130), dtype, 0), drawn((130, 70), dtype, 1)
    assert not refuses(matmul_p, (a, b), transpose_a=False, transpose_b=False)
    np.testing.assert_array_equal(ops.matmul(ms.Tensor(a), ms.Tensor(b)).asnumpy(), a @ b, strict=True)


def test_a_graph_multiplies_what_was_widened():
    a, b = drawn((65, 130), np.int8, 0), drawn((130, 70), np.uint8, 1)

    @ms.jit
    def widened(a, b):
        return ops.matmul(a.astype(ms.int32), b.astype(ms.int32)) + 1

    before = set(executable._by_structure.values())
    got = widened(ms.Tensor(a), ms.Tensor(b)).asnumpy()
    (made,) = set(executable._by_structure.values()) - before
    assert "matmul_int8" in [n.op.name for n in made.graph.nodes]
    np.testing.assert_array_equal(got, product(a, b, (False, False), np.int32) + 1, strict=True)


def test_what_is_small_or_of_mixed_types_is_left_to_xla():
    flags = {"transpose_a": False, "transpose_b": False}
    assert refuses(matmul_p, (drawn((8, 8), np.int8, 0), drawn((8, 8), np.int8, 1)), **flags)
    assert refuses(matmul_p, (drawn((128, 128), np.int16, 0), drawn((128, 128), np.int16, 1)), **flags)
    assert not refuses(matmul_p, (np.ones((128, 128), np.float32), np.ones((128, 128), np.float32)), **flags)
