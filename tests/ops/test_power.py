"""Powers: forms of a call, integers, special bases, and gradients at 0."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, ops


@pytest.mark.parametrize("exponent", [-3, -1, 0, 1, 2, 3, 8, 9, 0.5, 2.0, -0.5, 1.7])
def test_a_number_as_exponent(exponent):
    x = np.array([0.25, 1.0, 3.5], np.float32)
    np.testing.assert_allclose((Tensor(x) ** exponent).asnumpy(), x ** np.float32(exponent), rtol=2e-6)
    np.testing.assert_allclose(
        ops.pow(Tensor(x), Tensor(exponent, ms.float32)).asnumpy(), x ** np.float32(exponent), rtol=2e-6
    )


def test_a_number_as_base():
    assert (2 ** Tensor([3, 0])).tolist() == [8, 1]
    assert (2.0 ** Tensor([3, -1])).tolist() == [8.0, 0.5]
    assert ops.pow(2, 3).item() == 8


def test_dtypes():
    assert (Tensor([2]) ** 2).dtype is ms.int64
    assert (Tensor([2]) ** 2.0).dtype is ms.float32
    assert (Tensor([2.0], ms.float16) ** 3).dtype is ms.float16
    assert (Tensor([True, False]) ** 2).tolist() == [1, 0]
    assert ops.float_power(Tensor([2.0]), 3).dtype is ms.float64
    assert ops.float_power(Tensor([2]), 1j).dtype is ms.complex128


def test_integers():
    assert (Tensor([2, -3, 0, 1, -1]) ** Tensor([10, 3, 0, -5, -3])).tolist() == [1024, -27, 1, 1, -1]
    assert (Tensor([2, 0, 1, -1]) ** -1).tolist() == [0, 0, 1, -1]
    assert ops.inv(Tensor([2, 1, 0])).tolist() == [0, 1, 0]


def test_special_bases():
    x = Tensor([0.0, -2.0, -8.0, np.inf])
    np.testing.assert_array_equal(
        (x ** Tensor([0.0, 3.0, 0.5, -1.0])).asnumpy(), np.array([1.0, -8.0, np.nan, 0.0], np.float32)
    )
    assert (x**0).tolist() == [1.0] * 4


def test_gradients_at_zero_are_numbers():
    def f(a, b):
        return (a**b).sum()

    a, b = Tensor([0.0, 0.0, 0.0, -2.0]), Tensor([0.0, 1.0, 2.0, 3.0])
    by_base, by_exponent = ms.grad(f, (0, 1))(a, b)
    assert by_base.tolist() == [0.0, 1.0, 0.0, 12.0]
    assert by_exponent.asnumpy()[:3].tolist() == [0.0, 0.0, 0.0]
    for n, want in ((0, 0.0), (1, 1.0), (2, 0.0), (3, 0.0)):
        assert ms.grad(lambda x, n=n: x**n)(Tensor(0.0)).item() == want


def test_second_gradient_of_a_square_at_zero():
    assert ms.grad(ms.grad(lambda x: x**2))(Tensor(0.0)).item() == 2.0
    assert ms.grad(ms.grad(lambda x: x ** Tensor(2.0)))(Tensor(0.0)).item() == 2.0


@pytest.mark.torch
def test_gradients_against_torch():
    torch = pytest.importorskip("torch")
    a, b = np.array([0.5, 2.0, 0.0]), np.array([1.5, -0.5, 2.0])
    ta, tb = torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
    torch.pow(ta, tb).sum().backward()
    ga, gb = ms.grad(lambda x, y: ops.pow(x, y).sum(), (0, 1))(Tensor(a), Tensor(b))
    np.testing.assert_allclose(ga.asnumpy(), ta.grad.numpy(), rtol=1e-12)
    np.testing.assert_allclose(gb.asnumpy(), tb.grad.numpy(), rtol=1e-12)


def test_square_reciprocal_hypot_ldexp():
    assert ops.square(Tensor([True, False])).dtype is ms.int64
    assert ops.reciprocal(Tensor([4, 1])).tolist() == [0.25, 1.0]
    assert ops.hypot(Tensor([3]), Tensor([4])).tolist() == [5.0]
    assert ops.hypot(Tensor([3e30]), Tensor([4e30])).asnumpy()[0] == np.float32(5e30)
    assert Tensor([3]).ldexp(Tensor([4])).tolist() == [48.0]
    assert ops.ldexp(Tensor([1.5]), -1).dtype is ms.float32
