"""The kernel against NumPy: every operation, sizes around its blocks, in place, out of a stacked value, refusals."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from mycelia import native
from mycelia.compiler.passes.updates import OPERATIONS, elementwise_many_p

pytestmark = pytest.mark.skipif(not native.available, reason="the compiled kernels are not built here")

NUMPY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum,
    "minimum": np.minimum, "sqrt": np.sqrt, "neg": np.negative, "square": np.square, "abs": np.abs,
}  # fmt: skip
SPECIAL = np.float32([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-3, 3e30])  # XLA flushes subnormal numbers


def call(scalars, groups, program, results, constants=(), registers=None, aliases=()):
    """Run a program on groups of input arrays; a list of outputs for each group."""
    n_inputs, n_outputs = len(groups[0]), len(results)
    args = [a for group in groups for a in group]
    layout, k = [], 0
    for g, group in enumerate(groups):
        layout.append(group[0].size)
        for i in range(n_inputs):
            layout += [g * n_inputs + i, 0]
        for _ in results:
            layout.append(k)
            k += 1
    shapes = tuple(group[0].shape for group in groups for _ in results)
    registers = registers or 1 + max([n_inputs - 1, *(i[1] for i in program)])
    attrs = {
        "program": tuple(x for i in program for x in i), "constants": tuple(constants), "results": tuple(results),
        "signature": (n_inputs, n_outputs, registers, len(scalars)), "layout": tuple(layout), "aliases": tuple(aliases),
        "shapes": shapes,
    }  # fmt: skip
    found = jax.jit(lambda *a: elementwise_many_p.lower(*a, **attrs))(*scalars, *args)
    found = [np.asarray(x) for x in found]
    return [found[g * n_outputs : (g + 1) * n_outputs] for g in range(len(groups))]


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_numpys(name):
    a, b = np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL))
    unary = OPERATIONS[name] >= OPERATIONS["sqrt"]
    ((got,),) = call([], [[a, b]], [(OPERATIONS[name], 2, 0, 0 if unary else 1)], [2])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, NUMPY[name](a) if unary else NUMPY[name](a, b))


@pytest.mark.parametrize("name", [n for n, k in OPERATIONS.items() if k < OPERATIONS["sqrt"]])
def test_scalars_on_either_side(name):
    a = np.linspace(-2, 2, 37).astype(np.float32)
    k = OPERATIONS[name]
    ((left, right, both),) = call(
        [np.float32(0.75)], [[a]], [(k, 1, -1, 0), (k, 2, 0, -2), (k, 3, 1, 2)], [1, 2, 3], constants=[1.25]
    )
    with np.errstate(all="ignore"):
        f = NUMPY[name]
        np.testing.assert_array_equal(left, f(np.float32(0.75), a))
        np.testing.assert_array_equal(right, f(a, np.float32(1.25)))
        np.testing.assert_array_equal(both, f(f(np.float32(0.75), a), f(a, np.float32(1.25))))


@pytest.mark.parametrize("sizes", [(1,), (511, 512, 513), (4096, 1, 4097), (200_000, 3, 70_000), tuple(range(1, 300))])
def test_sizes(sizes):
    draw = np.random.default_rng(len(sizes))
    groups = [[draw.normal(size=n).astype(np.float32) for _ in range(2)] for n in sizes]
    found = call([np.float32(0.5)], groups, [(2, 2, 0, -1), (0, 2, 2, 1)], [2])
    for (a, b), (got,) in zip(groups, found, strict=True):
        np.testing.assert_array_equal(got, a * np.float32(0.5) + b)


def test_outputs_in_the_place_of_inputs():
    a, b = np.arange(5000, dtype=np.float32), np.ones(5000, np.float32)
    program = [(0, 2, 0, 1), (2, 3, 0, 2)]  # the second instruction reads what the first output replaces
    ((first, second),) = call([], [[a, b]], program, [2, 3], aliases=((0, 0), (1, 1)))
    np.testing.assert_array_equal(first, a + 1)
    np.testing.assert_array_equal(second, a * (a + 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"program": (0, 1, 0)}, "malformed program"),
        ({"program": (99, 1, 0, 0)}, "malformed instruction"),
        ({"program": (0, 0, 0, 0)}, "malformed instruction"),
        ({"program": (0, 1, 0, 7)}, "malformed instruction"),
        ({"program": (6, 1, -1, 0)}, "malformed instruction"),
        ({"results": (5,)}, "malformed result"),
        ({"signature": (1, 1, 99, 0)}, "malformed signature"),
        ({"layout": (4, 0, 0)}, "malformed layout"),
        ({"layout": (4, 0, 2, 0)}, "too small"),
        ({"layout": (4, 3, 0, 0)}, "too small"),
        ({"layout": (3, 0, 0, 0)}, "of another size"),
    ],
)
def test_refusals(change, message):
    attrs = {
        "program": (0, 1, 0, 0), "constants": (1.0,), "results": (1,), "signature": (1, 1, 2, 0),
        "layout": (4, 0, 0, 0), "aliases": (), "shapes": ((4,),), **change,
    }  # fmt: skip
    with pytest.raises(Exception, match=message):
        jax.block_until_ready(jax.jit(lambda a: elementwise_many_p.lower(a, **attrs))(np.ones(4, np.float32)))
