"""The short ways through dispatch lead where the long ones do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mycelia as ms
from mycelia import ops
from mycelia.core.errors import ShapeError, StateError
from mycelia.core.promotion import floating, promote_scalar

DTYPES = [ms.bool_, ms.uint8, ms.int32, ms.float16, ms.bfloat16, ms.float32, ms.float64, ms.complex64]


@pytest.fixture(autouse=True)
def _pynative() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize("number", [3, 2.5, True, -0.0, 1 + 2j], ids=repr)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_number_beside_a_tensor_bends_to_it(dtype: ms.dtype.DType, number: Any) -> None:
    x = ms.Tensor(np.array([1, 0, 2])).astype(dtype)
    common = promote_scalar(dtype, type(number))
    for of_tensor, of_number, result in (
        (ops.add(x, number), ops.add(number, x), common), (ops.mul(x, number), ops.mul(number, x), common),
        (ops.div(x, 4.0), ops.mul(0.25, x), floating(promote_scalar(dtype, float))),
    ):  # fmt: skip
        assert of_tensor.dtype is result
        np.testing.assert_array_equal(of_tensor.asnumpy(), of_number.asnumpy())


@pytest.mark.parametrize(
    "operator",
    [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a // b, lambda a, b: a % b],
    ids=["add", "sub", "mul", "floordiv", "mod"],
)
def test_operators_of_two_tensors_of_equal_and_of_different_dtypes(operator: Callable[[Any, Any], Any]) -> None:
    a, b = np.array([7, -7, 5], np.int32), np.array([2, 3, -4], np.int32)
    np.testing.assert_array_equal(operator(ms.Tensor(a), ms.Tensor(b)).asnumpy(), operator(a, b))
    mixed = operator(ms.Tensor(a), ms.Tensor(b.astype(np.float32)))
    assert mixed.dtype is ms.float32
    np.testing.assert_array_equal(mixed.asnumpy(), operator(a.astype(np.float32), b.astype(np.float32)))
    reverse = operator(5, ms.Tensor(b))
    np.testing.assert_array_equal(reverse.asnumpy(), operator(5, b))


def test_matmul_before_and_after_it_is_compiled() -> None:
    a, b = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.ones((3, 2), np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(ops.matmul(ms.Tensor(a), ms.Tensor(b)).asnumpy(), a @ b)
    with pytest.raises(ShapeError, match="matmul"):
        ops.matmul(ms.Tensor(a), ms.Tensor(a))
    gone = ms.Tensor(b)
    gone._value.delete()
    with pytest.raises(StateError, match="input 1 was given to a compiled function that reused its memory"):
        ops.matmul(ms.Tensor(a), gone)


def test_outputs_that_are_integers_are_not_recorded() -> None:
    seen: list[bool] = []

    def fn(x: ms.Tensor) -> ms.Tensor:
        seen.extend(t._node is not None for t in (ops.exp(x), x.astype(ms.int32), ops.argmax(x), *ops.sort(x)))
        return ops.exp(x).sum()

    ms.grad(fn)(ms.Tensor([1.0, 2.0]))
    assert seen == [True, False, False, True, False]


def test_inputs_are_kept_as_they_were_when_the_operator_ran() -> None:
    def fn(x: ms.Tensor) -> ms.Tensor:
        y = x * 1.0
        z = y * y
        y.mul_(100.0)
        return z.sum()

    np.testing.assert_array_equal(ms.grad(fn)(ms.Tensor([1.0, 2.0])).asnumpy(), [2.0, 4.0])
