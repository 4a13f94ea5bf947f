"""Functions on Python values that programs call in place of Python's own operators: scalars, sequences, dicts.

They are plain functions: on numbers and containers they do what Python does, also while a graph is made.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.core.tree import map_leaves
from mycelia.ops.axes import shape
from mycelia.ops.legacy.arrays import ScalarCast, ScalarToArray
from mycelia.ops.operands import as_tensor, cast
from mycelia.ops.sequences import range as _range
from mycelia.ops.shape import reshape
from mycelia.ops.state import stop_gradient
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import set_value

__all__ = [
    "array_to_scalar", "bool_and", "bool_eq", "bool_not", "bool_or", "dict_getitem", "dict_setitem", "dtype",
    "hastype", "in_dict", "is_", "is_not", "isconstant", "list_equal", "list_getitem", "list_len", "list_setitem",
    "make_dict", "make_list", "make_range", "make_slice", "make_tuple", "mixed_precision_cast", "not_in_dict",
    "reshape_", "scalar_add", "scalar_cast", "scalar_div", "scalar_eq", "scalar_floordiv", "scalar_ge", "scalar_gt",
    "scalar_le", "scalar_log", "scalar_lt", "scalar_max", "scalar_min", "scalar_mod", "scalar_mul", "scalar_ne",
    "scalar_pow", "scalar_sub", "scalar_to_array", "scalar_uadd", "scalar_usub", "shape_", "shape_mul",
    "stop_gradient_", "string_concat", "string_eq", "tensor_range", "tuple_div", "tuple_equal", "tuple_getitem",
    "tuple_len", "tuple_reversed", "tuple_setitem", "typeof",
]  # fmt: skip

scalar_add, scalar_sub, scalar_mul, scalar_div = operator.add, operator.sub, operator.mul, operator.truediv
scalar_floordiv, scalar_mod, scalar_pow = operator.floordiv, operator.mod, operator.pow
scalar_eq, scalar_ne, scalar_lt, scalar_le = operator.eq, operator.ne, operator.lt, operator.le
scalar_gt, scalar_ge = operator.gt, operator.ge
scalar_uadd, scalar_usub = operator.pos, operator.neg
scalar_max, scalar_min, scalar_log = max, min, math.log
bool_not, bool_eq, string_eq, string_concat = operator.not_, operator.eq, operator.eq, operator.concat
is_, is_not = operator.is_, operator.is_not
list_len = tuple_len = len
list_equal = tuple_equal = operator.eq
list_getitem = tuple_getitem = dict_getitem = operator.getitem
make_range, make_slice = range, slice
reshape_, shape_ = reshape, shape
tensor_range = _range
typeof = type


def bool_and(x: Any, y: Any) -> Any:
    """``x and y`` of two bools."""
    return x and y


def bool_or(x: Any, y: Any) -> Any:
    """``x or y`` of two bools."""
    return x or y


def in_dict(key: Any, mapping: dict[Any, Any]) -> bool:
    """Whether a key is in a dict."""
    return key in mapping


def not_in_dict(key: Any, mapping: dict[Any, Any]) -> bool:
    """Whether a key is not in a dict."""
    return key not in mapping


def make_tuple(*members: Any) -> tuple[Any, ...]:
    """A tuple of the arguments."""
    return members


def make_list(*members: Any) -> list[Any]:
    """A list of the arguments."""
    return list(members)


def make_dict(keys: Any, values: Any) -> dict[Any, Any]:
    """A dict of keys and as many values.

    >>> from mycelia.ops.legacy.python_values import make_dict
    >>> make_dict(("a", "b"), (1, 2))
    {'a': 1, 'b': 2}
    """
    return dict(zip(keys, values, strict=True))


def tuple_setitem(sequence: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    """The tuple with one member replaced.

    >>> from mycelia.ops.legacy.python_values import tuple_setitem
    >>> tuple_setitem((1, 2, 3), 1, 9)
    (1, 9, 3)
    """
    made = list(sequence)
    made[index] = value
    return tuple(made)


def list_setitem(sequence: list[Any], index: int, value: Any) -> list[Any]:
    """The list with one member replaced; the list itself stays."""
    made = list(sequence)
    made[index] = value
    return made


def dict_setitem(mapping: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    """The dict with one value set; the dict itself stays."""
    return {**mapping, key: value}


def tuple_div(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    """The quotients of two tuples of ints of the same length, which must be whole.

    >>> from mycelia.ops.legacy.python_values import tuple_div
    >>> tuple_div((8, 9), (2, 3))
    (4, 3)
    """
    if len(x) != len(y) or any(not b or a % b for a, b in zip(x, y, strict=False)):
        raise ArgumentValueError("tuple_div", "y", got=str(y), takes=f"a divisor for each number of {x}")
    return tuple([a // b for a, b in zip(x, y, strict=True)])


def tuple_reversed(sequence: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tuple in the other order."""
    return tuple(reversed(sequence))


def shape_mul(dims: tuple[int, ...]) -> int:
    """The product of the lengths of a shape.

    >>> from mycelia.ops.legacy.python_values import shape_mul
    >>> shape_mul((2, 3))
    6
    """
    return math.prod(dims)


def dtype(x: Any) -> DType:
    """The dtype of a tensor.

    >>> import mycelia as ms
    >>> ms.ops.dtype(ms.Tensor([1.0]))
    mycelia.float32
    """
    return as_tensor(x, "dtype", "x").dtype


def hastype(x: Any, kind: Any) -> bool:
    """Whether a value is of a Python type, or a tensor of a dtype."""
    if isinstance(kind, DType):
        return isinstance(x, Tensor) and x.dtype is kind
    return isinstance(x, kind)


def isconstant(x: Any) -> bool:
    """Whether a value is known while a graph is made: anything but a tensor without data.

    >>> import mycelia as ms
    >>> ms.ops.isconstant(1)
    True
    """
    return not (isinstance(x, Tensor) and x.is_symbolic)


def array_to_scalar(x: Any) -> Any:
    """The only element of a tensor as a Python number."""
    return as_tensor(x, "array_to_scalar", "x").item()


def scalar_cast(input_x: Any, input_y: Any) -> Any:
    """A Python number as a number of the kind of a dtype.

    >>> import mycelia as ms
    >>> ms.ops.scalar_cast(2.7, ms.int64)
    2
    """
    return ScalarCast()(input_x, input_y)


def scalar_to_array(input_x: Any) -> Tensor:
    """A zero-dimensional tensor of a number: int32 of an int, float32 of a float.

    >>> import mycelia as ms
    >>> ms.ops.scalar_to_array(1.5)
    Tensor(shape=[], dtype=Float32, value= 1.50000000e+00)
    """
    return ScalarToArray()(input_x)  # type: ignore[no-any-return]


def mixed_precision_cast(dst_dtype: Any, x: Any) -> Any:
    """A nest with its floating tensors converted; everything else stays.

    Args:
        dst_dtype: float16, bfloat16 or float32.
        x: a tensor, or tuples, lists and dicts of them.

    >>> import mycelia as ms
    >>> a, b = ms.ops.mixed_precision_cast(ms.float16, (ms.Tensor([1.0]), ms.Tensor([1])))
    >>> a.dtype, b.dtype
    (mycelia.float16, mycelia.int64)
    """
    target = dt.as_dtype(dst_dtype, "mixed_precision_cast", "dst_dtype")
    if not target.is_floating:
        raise ArgumentTypeError("mixed_precision_cast", "dst_dtype", got=str(target), takes="a floating dtype")
    return map_leaves(lambda v: cast(v, target) if isinstance(v, Tensor) and v.dtype.is_floating else v, x)


def stop_gradient_(input: Tensor) -> Tensor:
    """Cut a tensor off from what it was computed of, in place.

    >>> import mycelia as ms
    >>> print(ms.ops.stop_gradient_(ms.Tensor([1.0])))
    [1.]
    """
    set_value(input, stop_gradient(input))
    return input
