"""Public functions and operators of arithmetic: promotion, forms of a call, in place, errors, gradients at ties."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from tests.autodiff.staging import run_staged

import mycelia as ms
from mycelia import Tensor, ops
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError

A = np.array([[7.0, -7.0, 2.5], [-2.5, 0.5, 9.0]], np.float32)
B = np.array([2.0, -3.0, 0.5], np.float32)


@pytest.mark.parametrize(
    ("call", "want"),
    [
        (lambda a, b: a + b, np.add), (lambda a, b: a - b, np.subtract), (lambda a, b: a * b, np.multiply),
        (lambda a, b: a / b, np.divide), (lambda a, b: a // b, np.floor_divide), (lambda a, b: a % b, np.remainder),
        (lambda a, b: divmod(a, b)[0], np.floor_divide), (lambda a, b: divmod(a, b)[1], np.remainder),
        (ops.fmod, np.fmod), (ops.remainder, np.remainder), (ops.floor_mod, np.remainder),
        (ops.floor_div, np.floor_divide),
        (lambda a, b: a.sub(b, alpha=3), lambda a, b: a - 3 * b),
        (lambda a, b: ops.add(a, b, alpha=0.5), lambda a, b: a + b / 2),
    ],
)  # fmt: skip
def test_two_tensors(call, want):
    np.testing.assert_allclose(call(Tensor(A), Tensor(B)).asnumpy(), want(A, B), rtol=1e-6)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"])
def test_numbers_and_arrays_on_either_side(name):
    import operator

    fn = getattr(operator, name)
    x = np.array([1.0, 2.0, 4.0], np.float32)
    np.testing.assert_allclose(fn(Tensor(x), 3).asnumpy(), fn(x, np.float32(3)), rtol=1e-6)
    np.testing.assert_allclose(fn(3, Tensor(x)).asnumpy(), fn(np.float32(3), x), rtol=1e-6)
    left = fn(x, Tensor(x))
    assert isinstance(left, Tensor), "a NumPy array on the left leaves the operator to the tensor"
    np.testing.assert_allclose(left.asnumpy(), fn(x, x), rtol=1e-6)


@pytest.mark.parametrize("other", [None, "a", {}])
def test_what_is_no_operand_is_refused_as_python_does(other):
    with pytest.raises(TypeError, match="unsupported operand"):
        Tensor([1.0]) + other
    with pytest.raises(TypeError, match="unsupported operand"):
        other - Tensor([1.0])


def test_an_unknown_object_is_named_in_the_error():
    with pytest.raises(ArgumentTypeError, match=r"add: argument 'other' got object"):
        ops.add(Tensor([1.0]), object())


def test_integers_divide_to_float32_and_stay_integers_when_rounded():
    x, y = Tensor([7, -7, 5]), Tensor([2, 2, 0])
    assert (x / y).dtype is ms.float32
    assert (x / y).asnumpy()[2] == np.inf
    for quotient, want in (
        (x // y, [3, -4, 0]),
        (ops.truncate_div(x, y), [3, -3, 0]),
        (ops.div(x, y, rounding_mode="trunc"), [3, -3, 0]),
    ):
        assert quotient.dtype is ms.int64
        assert quotient.tolist() == want
    assert (x % y).tolist() == [1, 1, 0]
    assert ops.fmod(x, y).tolist() == [1, -1, 0]


def test_floor_division_of_floats_is_that_of_python():
    assert (Tensor(1.0, ms.float64) // 0.1).item() == 1.0 // 0.1 == 9.0
    assert (Tensor([np.inf, -7.0], ms.float64) // Tensor([2.0, np.inf], ms.float64)).asnumpy().tolist()[1] == -1.0


def test_rounding_mode_is_checked():
    with pytest.raises(ArgumentValueError, match="argument 'rounding_mode' got 'up'; it takes None"):
        ops.div(Tensor([1.0]), 2, rounding_mode="up")


def test_augmented_assignment_makes_a_new_tensor():
    x = Tensor([1, 2])
    y = x
    x += 1
    assert x.tolist() == [2, 3]
    assert y.tolist() == [1, 2]
    x /= 2
    assert x.dtype is ms.float32


@pytest.mark.parametrize(
    ("name", "args", "want"),
    [
        ("add_", (1,), [3.0, 5.0]), ("sub_", (1,), [1.0, 3.0]), ("mul_", (3,), [6.0, 12.0]), ("div_", (4,), [0.5, 1.0]),
        ("floor_divide_", (3,), [0.0, 1.0]), ("remainder_", (3,), [2.0, 1.0]),
    ],
)  # fmt: skip
def test_in_place_methods_change_the_tensor_that_all_names_share(name, args, want):
    x = Tensor([2.0, 4.0])
    y = x
    other = copy.copy(x)
    assert getattr(x, name)(*args) is x
    assert y.tolist() == want
    assert other.tolist() == [2.0, 4.0], "a copy keeps its value"


def test_in_place_with_keywords():
    assert Tensor([1.0, 2.0]).add_(Tensor([1.0, 1.0]), alpha=2).tolist() == [3.0, 4.0]
    assert Tensor([7.0]).div_(2, rounding_mode="floor").tolist() == [3.0]


def test_in_place_keeps_shape_and_kind():
    x = Tensor([1, 2])
    with pytest.raises(
        DTypeError,
        match=r"Tensor.add_: argument 'self' got a result of dtype Float32; it takes one that fits its dtype Int64",
    ):
        x.add_(1.5)
    with pytest.raises(ShapeError, match=r"Tensor.mul_.*result of shape \(3, 2\).*own shape \(2,\)"):
        x.mul_(Tensor(np.ones((3, 2), np.int64)))
    assert x.tolist() == [1, 2], "a refused call changes nothing"
    half = Tensor([1.0], ms.float16)
    assert half.add_(Tensor([1.0])).dtype is ms.float16


def test_in_place_inside_a_gradient():
    def f(x):
        y = x * 1.0
        y.mul_(x)
        y.add_(1)
        return y.sum()

    np.testing.assert_allclose(ms.grad(f)(Tensor([2.0, 3.0])).asnumpy(), [4.0, 6.0])


def test_bools():
    t, f = Tensor([True, False]), Tensor([True, True])
    assert (t + f).tolist() == [True, True]
    assert (t * f).tolist() == [True, False]
    assert (t + 1).dtype is ms.int64
    for refused in (lambda: t - f, lambda: -t, lambda: t // f):
        with pytest.raises(DTypeError, match="Bool"):
            refused()


def test_unsigned_64_with_signed_is_refused():
    with pytest.raises(DTypeError, match="UInt64 and Int64"):
        Tensor([1], ms.uint64) + Tensor([1], ms.int64)


def test_shapes_that_do_not_fit_are_named_with_the_users_line():
    with pytest.raises(
        ShapeError, match=r"add: argument 'other' got shape \(2,\); it takes a shape that broadcasts with \(2, 3\)"
    ) as e:
        Tensor(A) + Tensor([1.0, 2.0])
    assert "Tensor(A) + Tensor([1.0, 2.0])" in str(e.value)


def test_addcmul_addcdiv_lerp():
    x, a, b = (np.array(v, np.float32) for v in ([1.0, 2.0], [3.0, -4.0], [5.0, 8.0]))
    tx, ta, tb = Tensor(x), Tensor(a), Tensor(b)
    np.testing.assert_allclose(tx.addcmul(ta, tb, 0.5).asnumpy(), x + 0.5 * a * b)
    np.testing.assert_allclose(ops.addcdiv(tx, ta, tb, Tensor(2.0)).asnumpy(), x + 2 * a / b)
    assert ops.addcdiv(Tensor([1, 2]), Tensor([7, -7]), Tensor([2, 2]), 2).tolist() == [7, -4]
    np.testing.assert_allclose(ops.lerp(tx, ta, Tensor([0.25, 1.0])).asnumpy(), [1.5, -4.0])
    assert ops.lerp(Tensor([1]), Tensor([2]), 0.5).dtype is ms.float32


def test_addn():
    parts = [Tensor([1.0, 2.0]), Tensor([3.0, 4.0]), Tensor([5.0, 6.0])]
    assert ops.addn(parts).tolist() == ops.accumulate_n(tuple(parts)).tolist() == [9.0, 12.0]
    with pytest.raises(ArgumentValueError, match="an empty list"):
        ops.addn([])
    with pytest.raises(ShapeError, match=r"'x\[1\]' got shape \(1,\); it takes the shape of x\[0\], \(2,\)"):
        ops.addn([parts[0], Tensor([1.0])])
    with pytest.raises(DTypeError, match=r"x\[1\]"):
        ops.addn([parts[0], Tensor([1, 2])])
    with pytest.raises(ArgumentTypeError, match="a list or tuple"):
        ops.addn(3.0)


def test_a_python_number_does_not_widen():
    for dtype in (ms.float16, ms.bfloat16, ms.float32, ms.int8, ms.uint8):
        assert (Tensor([1], dtype) + 2).dtype is dtype
        assert (2 * Tensor([1], dtype)).dtype is dtype
    assert (Tensor([1], ms.int8) + 0.5).dtype is ms.float32
    assert (Tensor([1.0], ms.float64) * 1j).dtype is ms.complex128


def test_staged_like_eager():
    def f(x, y):
        z = x * 2 - y
        return z // 2, z % 3, ops.lerp(x, y, 0.25), ops.addn([x, x])

    eager = [t.asnumpy() for t in f(Tensor(A), Tensor(B))]
    for g, w in zip(run_staged(f, A, B), eager, strict=True):
        np.testing.assert_array_equal(g, w)


def test_subtract_is_sub_under_another_name():
    assert ops.subtract is ops.sub
    assert ops.multiply is ops.mul
    assert ops.divide is ops.div
    assert ops.negative is ops.neg
