"""One value out of two: what a variable holds after paths join, leaf by leaf.

Nests (:mod:`mycelia.core.tree`) must agree in structure. A pair of leaves becomes

- the same Python value, if both are equal and of one type;
- a tensor, if both are tensors of one type, or one is a zero-dimensional tensor and the other a Python
  number (the usual promotion of numbers), or both are numbers that differ (int64, float32, bool, complex64);
- otherwise nothing: :class:`Mismatch` says what the two are and what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np

from mycelia.autodiff.rules import zeros
from mycelia.core import dtypes as dt, tree
from mycelia.core.dtypes import DType
from mycelia.core.errors import GraphTypeError
from mycelia.core.promotion import promote, promote_scalar
from mycelia.frontend.undefined import Maybe, Undefined
from mycelia.ir.builder import Builder
from mycelia.ir.graph import Value
from mycelia.ir.types import TensorType
from mycelia.ops.operands import cast
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.mode import staging
from mycelia.tensor.tensor import wrap

_NUMBERS = (bool, int, float, complex)
_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_COMPARED_BY_VALUE = (str, bytes, frozenset, range, slice, type(None), type(...), Enum, DType, type)


_LENGTHS = (
    "what depends on a tensor keeps its keys and length: write into a tensor or list that was made before, "
    "or go by a Python condition"
)


class Snap:
    """A tensor as it was at one moment: the object, and the value it held."""

    __slots__ = ("tensor", "value")

    def __init__(self, tensor: Tensor, value: Any = None) -> None:
        self.tensor = tensor
        self.value = tensor._value if value is None else value

    @property
    def type(self) -> TensorType:
        value = self.value
        return value.type if type(value) is Value else TensorType(dt.from_numpy(value.dtype), value.shape)

    def inside(self, builder: Builder) -> Value:
        """The value in a builder."""
        value = self.value
        return builder.lift(value) if type(value) is Value else builder.capture(self.tensor, self.type)

    def made_in(self, builder: Builder) -> bool:
        """Whether a builder's own graph computes the value."""
        return type(self.value) is Value and self.value.graph is builder.graph


class Frozen:
    """A Python value as it was at one moment: its leaves, tensors as :class:`Snap`, and its structure."""

    __slots__ = ("leaves", "marker", "obj", "treedef")

    def __init__(self, obj: Any) -> None:
        self.obj = obj
        self.marker = obj if isinstance(obj, Undefined) else None
        content = obj
        while type(content) is Maybe:
            content = content.value
        leaves, self.treedef = tree.flatten(content)
        self.leaves: list[Any] = [Snap(x) if isinstance(x, Tensor) else x for x in leaves]

    @property
    def is_undefined(self) -> bool:
        """Whether there is no value at all, not even one for some paths."""
        return type(self.marker) is Undefined

    def rebuilt(self, leaves: Iterator[Any]) -> Any:
        """The structure with other leaves; a marker stays one."""
        value = self.treedef.unflatten(leaves)
        return self.marker.over(value) if type(self.marker) is Maybe else value


class Mismatch(Exception):
    """Two values cannot become one."""

    def __init__(self, first: str, second: str, hint: str) -> None:
        super().__init__(first, second, hint)
        self.first, self.second, self.hint = first, second, hint

    def error(self, where: str, label: str, when: tuple[str, str]) -> GraphTypeError:
        """The located error: ``label`` is ``first`` ``when[0]`` and ``second`` ``when[1]``."""
        return GraphTypeError(
            where, message=f"{label} is {self.first} {when[0]} and {self.second} {when[1]}", hint=self.hint
        )


def describe(leaf: Any) -> str:
    """A value in a few words, for messages."""
    if isinstance(leaf, Frozen):
        return describe_nest(leaf)
    if isinstance(leaf, Snap):
        return f"{_kind(leaf.tensor)} {leaf.type}"
    if isinstance(leaf, Tensor):
        return f"{_kind(leaf)} {Snap(leaf).type}"
    if leaf is None:
        return "None"
    if isinstance(leaf, (*_NUMBERS, str, bytes)):
        text = repr(leaf)
        return f"the {type(leaf).__name__} {text if len(text) <= 40 else text[:37] + '...'}"
    if isinstance(leaf, (list, tuple, set, dict, frozenset)):
        return f"a {type(leaf).__name__} of length {len(leaf)}"
    name = getattr(leaf, "__name__", None)
    return f"the {type(leaf).__name__} '{name}'" if isinstance(name, str) else f"a {type(leaf).__name__} object"


def describe_nest(value: Frozen) -> str:
    """A frozen value in a few words."""
    if value.marker is not None:
        return "without a value"
    if value.treedef is tree.LEAF:
        return describe(value.leaves[0])
    return describe(value.obj)


def _kind(tensor: Tensor) -> str:
    return "a Parameter" if isinstance(tensor, Parameter) else "a Tensor"


def same(a: Any, b: Any) -> bool:
    """Whether two Python leaves are the same value, as far as that can be told safely."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in _NUMBERS:
        return repr(a) == repr(b)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, (np.generic, *_COMPARED_BY_VALUE)):
        return bool(a == b)
    return (a == b) is True


def join_type(a: Any, b: Any, *, numbers: tuple[bool, bool] = (False, False)) -> TensorType | None:
    """The tensor type that two leaves have together; None if they are the same Python value.

    ``numbers`` says which of them, though tensors now, began as Python numbers and may still be promoted.

    Raises:
        Mismatch: they have none.
    """
    first, second = isinstance(a, Snap), isinstance(b, Snap)
    if first and second:
        return _join_tensors(a, b, numbers)
    if first or second:
        snap, other = (a, b) if first else (b, a)
        if isinstance(other, np.generic):
            other = other.item()
        if type(other) in _NUMBERS:
            return _join_number(a, b, snap, other)
        raise Mismatch(describe(a), describe(b), _hint(a, b))
    if same(a, b):
        return None
    kinds = [_number_dtype(x) for x in (a, b)]
    if kinds[0] is None or kinds[1] is None:
        raise Mismatch(describe(a), describe(b), _hint(a, b))
    wider = max(kinds[0], kinds[1], key=lambda d: _RANK[d.kind])
    for x in (a, b):
        _check_fits(x, wider, a, b)
    return TensorType(wider, ())


def _number_dtype(x: Any) -> DType | None:
    if isinstance(x, np.generic):
        x = x.item()
    return dt._PYTHON.get(type(x)) if type(x) in _NUMBERS else None


def _join_tensors(a: Snap, b: Snap, numbers: tuple[bool, bool]) -> TensorType:
    if a.type == b.type:
        return a.type
    x, y = a.type.dtype, b.type.dtype
    if a.type.shape == b.type.shape == () and any(numbers):
        number, tensor = (x, y) if numbers[0] else (y, x)
        bends = not all(numbers) and _RANK[number.kind] <= _RANK[tensor.kind]
        common = tensor if bends else promote(x, y)
        if common is not None:
            return TensorType(common, ())
    raise Mismatch(describe(a), describe(b), _hint(a, b))


def _join_number(a: Any, b: Any, snap: Snap, number: Any) -> TensorType:
    if snap.type.shape != ():
        raise Mismatch(describe(a), describe(b), _hint(a, b))
    dtype = promote_scalar(snap.type.dtype, type(number))
    _check_fits(number, dtype, a, b)
    return TensorType(dtype, ())


def _check_fits(number: Any, dtype: DType, a: Any, b: Any) -> None:
    if dtype.is_integer and type(number) is int:
        bounds = np.iinfo(dtype.np)
        if not bounds.min <= number <= bounds.max:
            raise Mismatch(describe(a), describe(b), f"{number} does not fit {dtype.name}; use a wider dtype")


def _hint(a: Any, b: Any) -> str:
    tensors = [x for x in (a, b) if isinstance(x, Snap)]
    if len(tensors) == 2:
        if tensors[0].type.dtype is not tensors[1].type.dtype:
            return f"convert one of them, e.g. .astype(ms.{tensors[0].type.dtype.name})"
        return "tensors in a graph keep their shape: make both shapes equal, e.g. by padding, or with ops.where"
    if len(tensors) == 1:
        t = tensors[0].type
        other = a if tensors[0] is b else b
        if isinstance(other, _NUMBERS):
            return f"make it a tensor of that shape, e.g. ops.full({t.shape}, {other!r}, dtype=ms.{t.dtype.name})"
        return f"use a tensor on both paths, e.g. ops.zeros({t.shape}, ms.{t.dtype.name})"
    return "only tensors and numbers can depend on a tensor; choose other objects by a Python condition"


def check_structure(a: Frozen, b: Frozen) -> None:
    """Refuse two nests of different structure.

    Raises:
        Mismatch: they differ.
    """
    if a.treedef != b.treedef:
        one_tensor = a.treedef is tree.LEAF or b.treedef is tree.LEAF
        hint = "use the same kind of value on both paths" if one_tensor else _LENGTHS
        raise Mismatch(describe_nest(a), describe_nest(b), hint)


def materialize(builder: Builder, leaf: Any, type_: TensorType) -> Value:
    """A leaf as a value of ``builder`` of a given type: numbers become constants, tensors are converted."""
    if isinstance(leaf, Snap):
        value = leaf.inside(builder)
        if value.type == type_:
            return value
        with staging(builder):
            return builder.lift(cast(wrap(value), type_.dtype)._value)
    return builder.constant(np.asarray(leaf).astype(type_.dtype.np))


def zeros_in(builder: Builder, type_: TensorType) -> Value:
    """Zeros of a type in ``builder``."""
    with staging(builder):
        return builder.lift(zeros(type_)._value)


def is_number(leaf: Any) -> bool:
    """Whether a leaf is a Python or NumPy number, which becomes a tensor where it depends on one."""
    return _number_dtype(leaf) is not None
