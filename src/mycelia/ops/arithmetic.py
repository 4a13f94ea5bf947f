"""Sums, differences, products and quotients of tensors and numbers, and the operators ``+ - * / //`` and ``%``.

Integer division and remainder follow Python (floor); ``fmod`` and ``div(rounding_mode="trunc")`` follow C.
Division of integers gives float32. Integer division by zero gives 0 for every integer dtype, quotient and
remainder alike; floats follow IEEE 754.

``x += y`` makes a new tensor and binds the name to it, as every operator without a method of its own does in
Python: other names of the old tensor keep the old value. ``x.add_(y)`` changes the tensor itself.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import attach_in_place, binary, binary_float, operator_method, unary
from mycelia.ops.declare import Bad, Sample, check_dtypes, conj, elementwise
from mycelia.ops.operands import as_tensor, cast, same_dtype
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_GRID = np.array([[-2.5, -1.0, 0.5], [1.0, 2.0, 3.5]])
_ROW = np.array([0.5, -1.5, 2.0])


def _pairs() -> list[Any]:
    return [
        Sample((_GRID, _GRID[::-1] + 0.25)), Sample((_GRID, _ROW)), Sample((_ROW[:, None], _GRID[:1])),
        Sample((np.array(1.5), _ROW)), Sample((np.zeros((0, 3)), _ROW)),
        Bad((_GRID, np.zeros(2)), {}, ShapeError, "broadcasts"),
    ]  # fmt: skip


def _quotients() -> list[Any]:
    whole = np.array([7, -7, 7, -7, 0, 5]), np.array([2, 2, -2, -2, 3, 0])
    special = np.array([1.0, -1.0, 0.0, np.inf, np.nan, -3.5]), np.array([0.0, 0.0, 0.0, 2.0, 1.0, np.inf])
    return [
        Sample((_GRID * 3.1, _GRID[::-1] + 0.25)), Sample(whole, grad=False), Sample(special, grad=False, dtypes=False),
        Sample((np.array(7.3), _ROW)), Sample((np.zeros((0, 3)), _ROW)),
        Bad((_GRID, np.zeros(2)), {}, ShapeError, "broadcasts"),
        Bad((np.array([True]), np.array([True])), {}, DTypeError, "Bool"),
    ]  # fmt: skip


def _add(a: Any, b: Any) -> Any:
    return a | b if a.dtype == bool else lax.add(a, b)


def _mul(a: Any, b: Any) -> Any:
    return a & b if a.dtype == bool else lax.mul(a, b)


add_p = elementwise("add", _add, arity=2, dtypes=dt.ALL, vjp=lambda ct, a, b, out: (ct, ct), onnx="Add", samples=_pairs)
sub_p = elementwise(
    "sub", lax.sub, arity=2, dtypes=dt.NUMBERS, vjp=lambda ct, a, b, out: (ct, lambda: -ct), onnx="Sub", samples=_pairs
)
mul_p = elementwise(
    "mul", _mul, arity=2, dtypes=dt.ALL, onnx="Mul", samples=_pairs,
    vjp=lambda ct, a, b, out: (lambda: ct * conj(b), lambda: ct * conj(a)),
)  # fmt: skip
div_p = elementwise(
    "div", lax.div, arity=2, dtypes=dt.FLOATS + dt.COMPLEX, onnx="Div", samples=_pairs,
    vjp=lambda ct, a, b, out: (lambda: ct / conj(b), lambda: -(ct / conj(b)) * conj(out)),
)  # fmt: skip
neg_p = elementwise(
    "neg", lax.neg, dtypes=dt.NUMBERS, vjp=lambda ct, x, out: -ct, onnx="Neg",
    samples=lambda: [
        Sample((_GRID,)), Sample((np.zeros((2, 0)),)), Bad((np.array([True]),), {}, DTypeError, "Bool"),
    ],
)  # fmt: skip


def _by_nonzero(a: Any, b: Any, divide: Any) -> Any:
    """An integer division that gives 0 where ``b`` is 0."""
    zero = b == 0
    return jnp.where(zero, jnp.zeros_like(a), divide(a, jnp.where(zero, jnp.ones_like(b), b)))


def _floor_div(a: Any, b: Any) -> Any:
    if jnp.issubdtype(a.dtype, jnp.integer):
        return _by_nonzero(a, b, jnp.floor_divide)
    rest = lax.rem(a, b)
    exact = lax.div(a - rest, b) - jnp.where((rest != 0) & ((rest < 0) != (b < 0)), 1, 0).astype(a.dtype)
    nearest = lax.floor(exact)
    nearest = jnp.where(exact - nearest > 0.5, nearest + 1, nearest)  # a - rest was rounded
    return jnp.where(b == 0, lax.div(a, b), nearest).astype(a.dtype)


def _trunc_div(a: Any, b: Any) -> Any:
    if jnp.issubdtype(a.dtype, jnp.integer):
        return _by_nonzero(a, b, lax.div)
    return jnp.trunc(lax.div(a, b))


def _remainder(a: Any, b: Any) -> Any:
    if jnp.issubdtype(a.dtype, jnp.integer):
        return _by_nonzero(a, b, jnp.remainder)
    rest = lax.rem(a, b)
    return jnp.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


def _fmod(a: Any, b: Any) -> Any:
    return _by_nonzero(a, b, lax.rem) if jnp.issubdtype(a.dtype, jnp.integer) else lax.rem(a, b)


def _flat(ct: Tensor, a: Tensor, b: Tensor, out: Tensor) -> tuple[None, None]:
    return None, None  # constant almost everywhere


floor_div_p = elementwise("floor_div", _floor_div, arity=2, dtypes=dt.REALS, vjp=_flat, samples=_quotients)
trunc_div_p = elementwise("trunc_div", _trunc_div, arity=2, dtypes=dt.REALS, vjp=_flat, samples=_quotients)
remainder_p = elementwise(
    "remainder", _remainder, arity=2, dtypes=dt.REALS, samples=_quotients,
    vjp=lambda ct, a, b, out: (ct, lambda: -(ct * apply(floor_div_p, a, b))),
)  # fmt: skip
fmod_p = elementwise(
    "fmod", _fmod, arity=2, dtypes=dt.REALS, samples=_quotients,
    vjp=lambda ct, a, b, out: (ct, lambda: -(ct * apply(trunc_div_p, a, b))),
)  # fmt: skip


@operator(methods=True, aliases=("tensor_add",))
def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Sum ``input + alpha * other`` of two tensors, element by element with broadcasting.

    Args:
        input: a tensor or number.
        other: a tensor or number whose shape broadcasts with the other's.
        alpha: what ``other`` is multiplied with, a number.

    Returns:
        A tensor of the broadcast shape and promoted dtype. Bools add as ``or``.

    Raises:
        ShapeError: the shapes do not broadcast.
        DTypeError: there is no common dtype (uint64 with a signed integer).

    >>> import mycelia as ms
    >>> print(ms.ops.add(ms.Tensor([1, 2]), 0.5))
    [1.5 2.5]
    """
    return binary(add_p, "add", input, other if type(alpha) is int and alpha == 1 else mul(other, alpha))


@operator(aliases=("subtract", "tensor_sub"), methods=("sub", "subtract"))
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Difference ``input - alpha * other``, element by element with broadcasting (see :func:`add`).

    Raises:
        DTypeError: both are bools.

    >>> import mycelia as ms
    >>> print(ms.ops.sub(ms.Tensor([3, 2]), 1))
    [2 1]
    """
    return binary(sub_p, "sub", input, other if type(alpha) is int and alpha == 1 else mul(other, alpha))


@operator(aliases=("multiply", "tensor_mul", "tensor_muls"), methods=("mul", "multiply"))
def mul(input: Any, other: Any) -> Tensor:
    """Product of two tensors, element by element with broadcasting (see :func:`add`). Bools multiply as ``and``.

    >>> import mycelia as ms
    >>> print(ms.ops.mul(ms.Tensor([3, 2]), 2))
    [6 4]
    """
    return binary(mul_p, "mul", input, other)


@operator(aliases=("divide", "tensor_div"), methods=("div", "divide"))
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient of two tensors, element by element with broadcasting.

    Args:
        input: dividend, a tensor or number.
        other: divisor.
        rounding_mode: None for true division (integers give float32), ``"floor"`` or ``"trunc"``.

    Raises:
        ArgumentValueError: another ``rounding_mode``.

    >>> import mycelia as ms
    >>> print(ms.ops.div(ms.Tensor([7, -7]), 2, rounding_mode="floor"))
    [ 3 -4]
    """
    if rounding_mode is None:
        return binary_float(div_p, "div", input, other)
    if rounding_mode == "floor":
        return binary(floor_div_p, "div", input, other)
    if rounding_mode == "trunc":
        return binary(trunc_div_p, "div", input, other)
    raise ArgumentValueError("div", "rounding_mode", got=repr(rounding_mode), takes='None, "floor" or "trunc"')


@operator(methods=True)
def true_divide(dividend: Any, divisor: Any) -> Tensor:
    """Quotient of two tensors; integers give float32.

    >>> import mycelia as ms
    >>> print(ms.ops.true_divide(ms.Tensor([1, 2]), 4))
    [0.25 0.5 ]
    """
    return binary_float(div_p, "true_divide", dividend, divisor, ("dividend", "divisor"))


@operator(methods=True, aliases=("floordiv", "tensor_floordiv"))
def floor_divide(input: Any, other: Any) -> Tensor:
    """Quotient rounded towards minus infinity, as Python's ``//``.

    Args:
        input: dividend, a tensor or number; not bool or complex.
        other: divisor.

    Returns:
        A tensor of the promoted dtype. An integer divided by zero gives 0.

    >>> import mycelia as ms
    >>> print(ms.ops.floor_divide(ms.Tensor([7, -7]), 2))
    [ 3 -4]
    """
    return binary(floor_div_p, "floor_divide", input, other)


@operator()
def floor_div(x: Any, y: Any) -> Tensor:
    """Quotient rounded towards minus infinity (see :func:`floor_divide`).

    >>> import mycelia as ms
    >>> print(ms.ops.floor_div(ms.Tensor([7.0, -7.0]), 2))
    [ 3. -4.]
    """
    return binary(floor_div_p, "floor_div", x, y, ("x", "y"))


@operator()
def truncate_div(x: Any, y: Any) -> Tensor:
    """Quotient rounded towards zero, as in C.

    >>> import mycelia as ms
    >>> print(ms.ops.truncate_div(ms.Tensor([7, -7]), 2))
    [ 3 -3]
    """
    return binary(trunc_div_p, "truncate_div", x, y, ("x", "y"))


@operator(methods=True)
def remainder(input: Any, other: Any) -> Tensor:
    """Remainder with the sign of the divisor, as Python's ``%``.

    Args:
        input: dividend, a tensor or number; not bool or complex.
        other: divisor.

    Returns:
        A tensor of the promoted dtype. The remainder of an integer by zero is 0, of a float NaN.

    >>> import mycelia as ms
    >>> print(ms.ops.remainder(ms.Tensor([7, -7]), 4))
    [3 1]
    """
    return binary(remainder_p, "remainder", input, other)


@operator(aliases=("floormod", "tensor_mod"))
def floor_mod(x: Any, y: Any) -> Tensor:
    """Remainder with the sign of the divisor (see :func:`remainder`).

    >>> import mycelia as ms
    >>> print(ms.ops.floor_mod(ms.Tensor([7, -7]), 4))
    [3 1]
    """
    return binary(remainder_p, "floor_mod", x, y, ("x", "y"))


@operator(methods=True)
def fmod(input: Any, other: Any) -> Tensor:
    """Remainder with the sign of the dividend, as C's ``fmod``.

    >>> import mycelia as ms
    >>> print(ms.ops.fmod(ms.Tensor([7, -7]), 4))
    [ 3 -3]
    """
    return binary(fmod_p, "fmod", input, other)


@operator()
def truncate_mod(x: Any, y: Any) -> Tensor:
    """Remainder with the sign of the dividend (see :func:`fmod`).

    >>> import mycelia as ms
    >>> print(ms.ops.truncate_mod(ms.Tensor([7, -7]), 4))
    [ 3 -3]
    """
    return binary(fmod_p, "truncate_mod", x, y, ("x", "y"))


@operator(aliases=("negative",), methods=("neg", "negative", "__neg__"))
def neg(input: Any) -> Tensor:
    """The negative of each element.

    Raises:
        DTypeError: the tensor is of bools.

    >>> import mycelia as ms
    >>> print(ms.ops.neg(ms.Tensor([1, -2])))
    [-1  2]
    """
    return unary(neg_p, "neg", input)


@operator(methods=("positive", "__pos__"))
def positive(input: Any) -> Tensor:
    """The tensor itself.

    >>> import mycelia as ms
    >>> print(ms.ops.positive(ms.Tensor([1, -2])))
    [ 1 -2]
    """
    return as_tensor(input, "positive")


@operator(methods=True)
def addcmul(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``, with broadcasting.

    Args:
        input: a tensor.
        tensor1: a factor.
        tensor2: a factor.
        value: a number or tensor.

    >>> import mycelia as ms
    >>> print(ms.ops.addcmul(ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0]), 2))
    [ 7. 18.]
    """
    x, a, b = same_dtype("addcmul", input, tensor1, tensor2, names=("input", "tensor1", "tensor2"))
    return add(x, mul(mul(a, b), value))


@operator(methods=True)
def addcdiv(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``, with broadcasting; integers divide towards zero.

    Args:
        input: a tensor.
        tensor1: the dividend.
        tensor2: the divisor.
        value: a number or tensor.

    >>> import mycelia as ms
    >>> print(ms.ops.addcdiv(ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, 2.0]), ms.Tensor([4.0, 4.0]), 2))
    [1.5 3. ]
    """
    x, a, b = same_dtype("addcdiv", input, tensor1, tensor2, names=("input", "tensor1", "tensor2"))
    quotient = apply(div_p, a, b) if a.dtype.is_inexact else apply(trunc_div_p, a, b)
    return add(x, mul(quotient, value))


def _lerp(start: Any, end: Any, weight: Any) -> Any:
    gap = end - start
    near = jnp.where(jnp.abs(weight) < 0.5, start + weight * gap, end - gap * (1 - weight))
    return near.astype(start.dtype)


lerp_p = elementwise(
    "lerp", _lerp, arity=3, names=("input", "end", "weight"),
    vjp=lambda ct, start, end, weight, out: (
        lambda: ct * conj(1 - weight), lambda: ct * conj(weight), lambda: ct * conj(end - start),
    ),
    samples=lambda: [
        Sample((_GRID, _GRID[::-1] + 0.25, np.array([0.25, 0.75, 1.5]))), Sample((_GRID, _ROW, np.array(0.3))),
        Sample((np.zeros((0, 3)), _ROW, np.array(1.0))),
        Bad((_GRID, np.zeros(2), np.array(0.5)), {}, ShapeError, "broadcasts"),
    ],
)  # fmt: skip


@operator(methods=True)
def lerp(input: Any, end: Any, weight: Any) -> Tensor:
    """Linear interpolation ``input + weight * (end - input)``; exact at weights 0 and 1.

    Args:
        input: start, a tensor.
        end: a tensor that broadcasts with it.
        weight: a number or a tensor that broadcasts with both.

    >>> import mycelia as ms
    >>> print(ms.ops.lerp(ms.Tensor([1.0, 2.0]), ms.Tensor([3.0, 4.0]), 0.5))
    [2. 3.]
    """
    x, y, w = same_dtype("lerp", input, end, weight, names=("input", "end", "weight"))
    if not x.dtype.is_inexact:
        x, y, w = (cast(t, dt.float32) for t in (x, y, w))
    return apply(lerp_p, x, y, w)  # type: ignore[no-any-return]


def _infer_add_n(*types: TensorType) -> TensorType:
    check_dtypes("addn", types, dt.NUMBERS, tuple(f"x[{i}]" for i in range(len(types))))
    for i, t in enumerate(types[1:], 1):
        if t.shape != types[0].shape:
            raise ShapeError("addn", f"x[{i}]", got=f"shape {t.shape}", takes=f"the shape of x[0], {types[0].shape}")
    return types[0]


def _lower_add_n(*arrays: Any) -> Any:
    total = arrays[0]
    for a in arrays[1:]:
        total = lax.add(total, a)
    return total


add_n_p = Primitive(
    "add_n", infer=_infer_add_n, lower=_lower_add_n, shard="...", onnx="Sum",
    vjp=lambda ct, *inputs, out: [ct] * len(inputs),
    samples=lambda: [
        Sample((_GRID, _GRID * 2, -_GRID)), Sample((_GRID,)), Sample((np.zeros((0, 2)), np.zeros((0, 2)))),
        Bad((_GRID, _ROW), {}, ShapeError, "the shape of"),
    ],
)  # fmt: skip


@operator(aliases=("accumulate_n",))
def addn(x: Any) -> Tensor:
    """Sum of a list of tensors of one shape and dtype.

    Args:
        x: a list or tuple of tensors, at least one; a single tensor is its own sum.

    Raises:
        ArgumentValueError: the list is empty.
        ShapeError: two shapes differ.
        DTypeError: two dtypes differ, or they are bools.

    >>> import mycelia as ms
    >>> print(ms.ops.addn([ms.Tensor([1.0]), ms.Tensor([2.0]), ms.Tensor([4.0])]))
    [7.]
    """
    if isinstance(x, Tensor):
        return x
    if not isinstance(x, (list, tuple)):
        raise ArgumentTypeError("addn", "x", got=type(x).__name__, takes="a list or tuple of tensors")
    if not x:
        raise ArgumentValueError("addn", "x", got="an empty list", takes="at least one tensor")
    return apply(add_n_p, *[as_tensor(t, "addn", f"x[{i}]") for i, t in enumerate(x)])  # type: ignore[no-any-return]


def _divmod(input: Any, other: Any) -> tuple[Tensor, Tensor]:
    return floor_divide(input, other), remainder(input, other)


def _attach_operators() -> None:
    for name, fn, primitive in (
        ("add", add, add_p), ("sub", sub, sub_p), ("mul", mul, mul_p), ("truediv", div, None),
        ("floordiv", floor_divide, floor_div_p), ("mod", remainder, remainder_p),
    ):  # fmt: skip
        attach(f"__{name}__", operator_method(fn, primitive=primitive))
        attach(f"__r{name}__", operator_method(fn, reverse=True))
    attach("__divmod__", _divmod)
    attach("__rdivmod__", lambda self, other: _divmod(other, self))
    for name, compute in (
        ("add_", add), ("sub_", sub), ("mul_", mul), ("div_", div), ("floor_divide_", floor_divide),
        ("remainder_", remainder),
    ):  # fmt: skip
        attach_in_place(name, compute)


_attach_operators()
