"""Operations on the bits of integers and on bools: ``& | ^ << >>``, bitwise_not, population_count.

Shifting by the width of the dtype or more gives 0, or -1 for a negative number shifted right; right shifts
keep the sign of signed integers.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ops.calls import binary, operator_method, unary
from mycelia.ops.declare import Bad, Sample, elementwise
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Tensor

_A = np.array([[1, 6, 12], [7, 100, 0]])
_B = np.array([[3, 5, 10], [1, 37, 2]])
_BITS = (dt.bool_, *dt.INTEGERS)


def _samples() -> list[Any]:
    return [
        Sample((_A, _B)), Sample((_A, _B[0])), Sample((np.array(6), _B)), Sample((np.zeros((0, 3), np.int64), _B[0])),
        Sample((np.array([True, False]), np.array([True, True])), dtypes=False),
        Sample((np.array([-1, -6]), np.array([5, -4])), dtypes=False),
        Bad((_A, np.zeros(2, np.int64)), {}, ShapeError, "broadcasts"),
        Bad((np.array([1.5]), np.array([1.5])), {}, DTypeError, "Float64"),
    ]  # fmt: skip


def _shifts() -> list[Any]:
    return [
        Sample((_A, np.array([0, 1, 3]))), Sample((_A, np.array(2))), Sample((np.zeros((0, 3), np.int64), _B[0])),
        Sample((np.array([-8, -1, 5]), np.array([1, 70, 64])), dtypes=False),
        Bad((_A, np.zeros(2, np.int64)), {}, ShapeError, "broadcasts"),
        Bad((np.array([1.5]), np.array([1.5])), {}, DTypeError, "Float64"),
    ]  # fmt: skip


def _bitwise(name: str, lower: Any, onnx: str, dtypes: Any = _BITS, samples: Any = _samples) -> Primitive:
    return elementwise(name, lower, arity=2, dtypes=dtypes, differentiable=False, onnx=onnx, samples=samples)


def _shift_right(a: Any, b: Any) -> Any:
    return (lax.shift_right_logical if a.dtype.kind == "u" else lax.shift_right_arithmetic)(a, b)


bitwise_and_p = _bitwise("bitwise_and", lax.bitwise_and, "BitwiseAnd")
bitwise_or_p = _bitwise("bitwise_or", lax.bitwise_or, "BitwiseOr")
bitwise_xor_p = _bitwise("bitwise_xor", lax.bitwise_xor, "BitwiseXor")
shift_left_p = _bitwise("bitwise_left_shift", lax.shift_left, "BitShift", dt.INTEGERS, _shifts)
shift_right_p = _bitwise("bitwise_right_shift", _shift_right, "BitShift", dt.INTEGERS, _shifts)
bitwise_not_p = elementwise(
    "bitwise_not", lax.bitwise_not, dtypes=_BITS, differentiable=False, onnx="BitwiseNot",
    samples=lambda: [
        Sample((_A,)), Sample((np.array([True, False]),), dtypes=False), Sample((np.zeros((2, 0), np.int64),)),
        Bad((np.array([1.5]),), {}, DTypeError, "Float64"),
    ],
)  # fmt: skip
population_count_p = elementwise(
    "population_count", lambda x: lax.population_count(x).astype(jnp.uint8), dtypes=dt.INTEGERS, result=dt.uint8,
    differentiable=False,
    samples=lambda: [
        Sample((_A,)), Sample((np.array([-1, -8]),), dtypes=False), Sample((np.zeros((2, 0), np.int64),)),
        Bad((np.array([1.5]),), {}, DTypeError, "Float64"),
    ],
)  # fmt: skip


@operator(methods=True)
def bitwise_and(input: Any, other: Any) -> Tensor:
    """Bits set in both, with broadcasting.

    Args:
        input: a tensor of integers or bools, or a number.
        other: a tensor or number that broadcasts with it.

    Returns:
        A tensor of the promoted dtype.

    Raises:
        DTypeError: not integers or bools.

    >>> import mycelia as ms
    >>> print(ms.ops.bitwise_and(ms.Tensor([6, 5]), 4))
    [4 4]
    """
    return binary(bitwise_and_p, "bitwise_and", input, other)


@operator(methods=True)
def bitwise_or(input: Any, other: Any) -> Tensor:
    """Bits set in at least one (see :func:`bitwise_and`).

    >>> import mycelia as ms
    >>> print(ms.ops.bitwise_or(ms.Tensor([6, 1]), 4))
    [6 5]
    """
    return binary(bitwise_or_p, "bitwise_or", input, other)


@operator(methods=True)
def bitwise_xor(input: Any, other: Any) -> Tensor:
    """Bits set in exactly one (see :func:`bitwise_and`).

    >>> import mycelia as ms
    >>> print(ms.ops.bitwise_xor(ms.Tensor([6, 1]), 4))
    [2 5]
    """
    return binary(bitwise_xor_p, "bitwise_xor", input, other)


@operator(methods=("bitwise_not", "invert"), aliases=("invert",))
def bitwise_not(input: Any) -> Tensor:
    """Every bit flipped; of bools, the opposite.

    >>> import mycelia as ms
    >>> print(ms.ops.bitwise_not(ms.Tensor([0, 5])))
    [-1 -6]
    """
    return unary(bitwise_not_p, "bitwise_not", input)


@operator(methods=True)
def bitwise_left_shift(input: Any, other: Any) -> Tensor:
    """Bits moved up by ``other`` places, zeros moving in.

    >>> import mycelia as ms
    >>> print(ms.ops.bitwise_left_shift(ms.Tensor([1, 5]), ms.Tensor([3, 1])))
    [ 8 10]
    """
    return binary(shift_left_p, "bitwise_left_shift", input, other)


@operator(methods=True)
def bitwise_right_shift(input: Any, other: Any) -> Tensor:
    """Bits moved down by ``other`` places; signed integers keep their sign.

    >>> import mycelia as ms
    >>> print(ms.ops.bitwise_right_shift(ms.Tensor([-8, 5]), 1))
    [-4  2]
    """
    return binary(shift_right_p, "bitwise_right_shift", input, other)


@operator()
def population_count(input_x: Any) -> Tensor:
    """How many bits are set in each integer, as uint8.

    >>> import mycelia as ms
    >>> print(ms.ops.population_count(ms.Tensor([7, 8])))
    [3 1]
    """
    return unary(population_count_p, "population_count", input_x)


for _name, _fn in (
    ("and", bitwise_and), ("or", bitwise_or), ("xor", bitwise_xor), ("lshift", bitwise_left_shift),
    ("rshift", bitwise_right_shift),
):  # fmt: skip
    attach(f"__{_name}__", operator_method(_fn))
    attach(f"__r{_name}__", operator_method(_fn, reverse=True))
