"""Elementary functions: dtypes, exact values, complex numbers, methods, in place."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops

NAMES = (
    "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "cbrt", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_integers_become_float32(name):
    made = getattr(ops, name)(Tensor([1, 1]))
    assert made.dtype is ms.float32
    assert getattr(ops, name)(1).shape == ()


@pytest.mark.parametrize(
    "name", ["exp", "log", "sqrt", "sin", "tanh", "asin", "arcsin", "arctan", "acosh", "log2", "rsqrt", "atanh"]
)
def test_methods_are_the_functions(name):
    x = Tensor([0.5, 0.25])
    np.testing.assert_array_equal(getattr(x, name)().asnumpy(), getattr(ops, name)(x).asnumpy())


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float32, ms.float64, ms.complex64, ms.complex128])
def test_dtypes_are_kept(dtype):
    assert ops.exp(Tensor([1.0], dtype)).dtype is dtype
    assert ops.log2(Tensor([8.0], dtype)).dtype is dtype


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float32, ms.float64])
def test_log2_and_exp2_are_exact_for_powers_of_two(dtype):
    exponents = np.arange(-14, 16)
    powers = Tensor(2.0**exponents, dtype)
    assert ops.log2(powers).asnumpy().astype(np.float64).tolist() == exponents.tolist()
    assert ops.exp2(Tensor(exponents, dtype)).asnumpy().astype(np.float64).tolist() == (2.0**exponents).tolist()


def test_log2_near_one_is_precise():
    x = 1 + np.array([1e-7, -1e-7, 3e-12])
    np.testing.assert_allclose(ops.log2(Tensor(x)).asnumpy(), np.log2(x), rtol=1e-9)


def test_edges():
    with np.errstate(all="ignore"):
        x = np.array([0.0, -1.0, np.inf, np.nan], np.float32)
        for name in ("log", "sqrt", "log2", "log10", "rsqrt"):
            want = 1 / np.sqrt(x) if name == "rsqrt" else getattr(np, name)(x)
            np.testing.assert_array_equal(getattr(ops, name)(Tensor(x)).asnumpy(), want)


def test_atan2():
    y, x = np.array([1.0, -1.0, 0.0], np.float32), np.array([-1.0, 0.0, -0.0], np.float32)
    np.testing.assert_allclose(ops.atan2(Tensor(y), Tensor(x)).asnumpy(), np.arctan2(y, x), rtol=1e-6)
    assert Tensor([1]).arctan2(Tensor([2])).dtype is ms.float32
    assert ops.arctan2 is ops.atan2


def test_degrees():
    assert ops.deg2rad(Tensor([180])).item() == pytest.approx(math.pi, rel=1e-6)
    assert Tensor([math.pi]).rad2deg().item() == pytest.approx(180, rel=1e-6)


def test_in_place():
    x = Tensor([0.5, 1.0])
    assert x.exp_() is x
    np.testing.assert_allclose(x.log_().asnumpy(), [0.5, 1.0], rtol=1e-6)
    np.testing.assert_allclose(x.tanh_().asnumpy(), np.tanh([0.5, 1.0]), rtol=1e-6)


@pytest.mark.parametrize(
    "name", ["exp", "log", "sqrt", "sin", "cosh", "tanh", "asin", "atanh", "log1p", "square", "reciprocal", "abs"]
)
@pytest.mark.torch
def test_complex_gradients_follow_torch(name):
    torch = pytest.importorskip("torch")
    z = np.array([0.5 + 0.25j, -0.75 - 1.5j])
    weights = np.array([1.0 - 2.0j, 0.5 + 1.0j])
    t = torch.tensor(z, requires_grad=True)
    (getattr(torch, name)(t) * torch.tensor(weights)).real.sum().backward()
    ours = ms.grad(lambda x: ops.real(getattr(ops, name)(x) * Tensor(weights)).sum())(Tensor(z))
    np.testing.assert_allclose(ours.asnumpy(), t.grad.numpy(), rtol=1e-10)
