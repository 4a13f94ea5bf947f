"""How public functions call primitives: operands made tensors, promoted, and results put in place.

These are the usual ways, so that a public function is one line over ``apply``: :func:`unary` and
:func:`binary` keep integer dtypes, :func:`unary_float` and :func:`binary_float` turn integers and bools to
float32 first, and :func:`overwrite` is what every in-place method ends with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from mycelia.core.errors import DTypeError, ShapeError
from mycelia.core.promotion import floating, promote_scalar
from mycelia.ir.primitive import Primitive
from mycelia.ops.operands import as_tensor, cast, same_dtype
from mycelia.ops.registry import attach
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, scalar, set_value

_KIND_ORDER = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_PAIR = ("input", "other")
#: Numbers that take the dtype of the tensor beside them, if it can hold their kind.
_BENDING = (int, float)


def unary(primitive: Primitive, where: str, x: Any, **attrs: Any) -> Tensor:
    """Apply a primitive of one input in the input's own dtype."""
    result: Tensor = apply(primitive, x if isinstance(x, Tensor) else as_tensor(x, where), **attrs)
    return result


def as_float(x: Any, where: str, argument: str = "input") -> Tensor:
    """The argument as a floating or complex tensor: integers and bools become float32."""
    t = x if isinstance(x, Tensor) else as_tensor(x, where, argument)
    target = floating(t.dtype)
    return t if t.dtype is target else cast(t, target)


def unary_float(primitive: Primitive, where: str, x: Any, **attrs: Any) -> Tensor:
    """Apply a primitive of one floating or complex input; integers and bools become float32."""
    result: Tensor = apply(primitive, as_float(x, where), **attrs)
    return result


def binary(primitive: Primitive, where: str, a: Any, b: Any, names: Sequence[str] = _PAIR) -> Tensor:
    """Apply a primitive of two inputs in their common dtype."""
    result: Tensor
    if isinstance(a, Tensor):
        if isinstance(b, Tensor):
            if a._value.dtype == b._value.dtype:
                result = apply(primitive, a, b)
                return result
        elif type(b) in _BENDING and promote_scalar(dtype := a.dtype, type(b)) is dtype:
            result = apply(primitive, a, scalar(b, dtype))
            return result
    result = apply(primitive, *same_dtype(where, a, b, names=names))
    return result


def floats(where: str, *values: Any, names: Sequence[str] = _PAIR) -> tuple[Tensor, ...]:
    """Operands in their common floating or complex dtype; integers and bools become float32."""
    made = same_dtype(where, *values, names=names)
    target = floating(made[0].dtype)
    return made if made[0].dtype is target else tuple([cast(t, target) for t in made])


def binary_float(primitive: Primitive, where: str, a: Any, b: Any, names: Sequence[str] = _PAIR) -> Tensor:
    """Apply a primitive of two floating or complex inputs in their common dtype."""
    result: Tensor
    if isinstance(a, Tensor) and (dtype := a.dtype).is_inexact:
        if isinstance(b, Tensor):
            if a._value.dtype == b._value.dtype:
                result = apply(primitive, a, b)
                return result
        elif type(b) in _BENDING:
            result = apply(primitive, a, scalar(b, dtype))
            return result
    result = apply(primitive, *floats(where, a, b, names=names))
    return result


def overwrite(tensor: Tensor, new: Tensor, where: str) -> Tensor:
    """Put ``new`` into ``tensor``, which keeps its shape and dtype, and return it.

    Raises:
        ShapeError: the result has another shape.
        DTypeError: the result is of a higher kind (a float for an integer tensor).
    """
    if new.shape != tensor.shape:
        raise ShapeError(
            where, "self", got=f"a result of shape {new.shape}", takes=f"a result of its own shape {tensor.shape}",
            hint="an in-place method cannot change the shape; use the method without the underscore",
        )  # fmt: skip
    if new.dtype is not tensor.dtype:
        if _KIND_ORDER[new.dtype.kind] > _KIND_ORDER[tensor.dtype.kind]:
            raise DTypeError(
                where, "self", got=f"a result of dtype {new.dtype}", takes=f"one that fits its dtype {tensor.dtype}",
                hint="convert the tensor first, or use the method without the underscore",
            )  # fmt: skip
        new = cast(new, tensor.dtype)
    set_value(tensor, new)
    return tensor


def attach_in_place(name: str, compute: Callable[..., Tensor]) -> None:
    """Make ``name`` the Tensor method that overwrites the tensor with ``compute(tensor, ...)``."""
    where = f"Tensor.{name}"

    @wraps(compute)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return overwrite(self, compute(self, *args, **kwargs), where)

    method.__name__, method.__qualname__ = name, where
    method.__doc__ = (
        f"Overwrite the tensor with ``{compute.__name__}`` of it, and return it; shape and dtype stay.\n\n"
        f"Raises:\n    ShapeError: the result has another shape.\n"
        f"    DTypeError: the result is of a higher kind than the tensor's dtype.\n"
    )
    attach(name, method)


def reflected(fn: Callable[[Any, Any], Tensor]) -> Callable[[Tensor, Any], Tensor]:
    """The right-hand form of an operator: ``fn`` with its operands swapped."""

    @wraps(fn)
    def method(self: Tensor, other: Any) -> Tensor:
        return fn(other, self)

    return method


def operator_method(
    fn: Callable[[Any, Any], Tensor], reverse: bool = False, primitive: Primitive | None = None
) -> Callable[[Tensor, Any], Any]:
    """A dunder method: NotImplemented for what is no operand (None, a string), so that Python says so.

    Args:
        fn: the public function of two operands.
        reverse: whether the tensor is the right operand.
        primitive: what ``fn`` applies to two tensors of one dtype, if that is all it does with them.
    """

    @wraps(fn)
    def method(self: Tensor, other: Any) -> Any:
        if isinstance(other, Tensor):
            if primitive is not None and self._value.dtype == other._value.dtype and not reverse:
                return apply(primitive, self, other)
        elif other is None or isinstance(other, (str, bytes, dict, set)):
            return NotImplemented
        return fn(other, self) if reverse else fn(self, other)

    return method
