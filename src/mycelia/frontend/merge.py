"""One value out of two: what a variable holds after paths join, leaf by leaf.

Nests (:mod:`mycelia.core.tree`) must agree in structure. A pair of leaves becomes

- the same Python value, if both are equal and of one type;
- a tensor, if both are tensors of one type, or one is a zero-dimensional tensor and the other a Python
  number (the usual promotion of numbers), or both are numbers that differ (int64, float32, bool, complex64);
- otherwise nothing: :class:`Mismatch` says what the two are and what to write instead.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from mycelia.autodiff.rules import zeros
from mycelia.core import dtypes as dt, tree
from mycelia.core.dtypes import DType
from mycelia.core.errors import GraphTypeError, SourceLocation
from mycelia.core.promotion import promote, promote_scalar
from mycelia.frontend.regions import born
from mycelia.frontend.undefined import Maybe, Undefined
from mycelia.ir.builder import Builder
from mycelia.ir.graph import Value
from mycelia.ir.types import TensorType
from mycelia.ops.operands import cast
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.mode import staging
from mycelia.tensor.scalar import Scalar, plain
from mycelia.tensor.tensor import wrap

_NUMBERS = (bool, int, float, complex)
_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_COMPARED_BY_VALUE = (str, bytes, frozenset, range, slice, type(None), type(...), Enum, DType, type)


_LENGTHS = (
    "what depends on a tensor keeps its keys and length: make it full size before (a tensor, and out[i] = value), "
    "or let a Python value decide"
)
_BOTH_PATHS = "on both paths"


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


Path = tuple[int, ...]


class Frozen:
    """A Python value as it was at one moment: its leaves, tensors as :class:`Snap`, and its structure.

    ``parts`` are the items of a container, frozen, or None for a leaf.
    """

    __slots__ = ("content", "leaves", "marker", "obj", "parts", "treedef")

    def __init__(self, obj: Any) -> None:
        obj = plain(obj) if type(obj) is Scalar else obj  # what a number is joined to depends on its value
        self.obj = obj
        self.marker = obj if isinstance(obj, Undefined) else None
        content = obj
        while type(content) is Maybe:
            content = content.value
        self.content = content
        level = tree.level(content)
        if level is None:
            self.parts: tuple[Frozen, ...] | None = None
            self.treedef = tree.LEAF
            self.leaves: list[Any] = [Snap(content) if isinstance(content, Tensor) else content]
        else:
            spec, items = level
            self.parts = tuple([Frozen(x) for x in items])
            self.treedef = tree.TreeDef(type(content), spec, tuple([p.treedef for p in self.parts]))
            self.leaves = [x for p in self.parts for x in p.leaves]

    @property
    def has_identity(self) -> bool:
        """Whether it is a container that can be changed: what others see of it, too."""
        return self.parts is not None and not isinstance(self.content, tuple)

    def again(self, items: list[Any]) -> Any:
        """A container of the same kind with other items; a marker stays one."""
        value = rebuilt(tree.TreeDef(self.treedef.kind, self.treedef.spec, (tree.LEAF,) * len(items)), items)
        return self.marker.over(value) if type(self.marker) is Maybe else value

    def outline(self, opened: set[Path], path: Path = ()) -> tuple[list[Any], tree.TreeDef]:
        """Leaves and structure, where containers that can be changed are leaves unless ``opened`` has their place."""
        if self.parts is None:
            return self.leaves, tree.LEAF
        if self.has_identity and path not in opened:
            return [self.content], tree.LEAF
        inner = [p.outline(opened, (*path, i)) for i, p in enumerate(self.parts)]
        treedef = tree.TreeDef(self.treedef.kind, self.treedef.spec, tuple([d for _, d in inner]))
        return [x for leaves, _ in inner for x in leaves], treedef

    def made_paths(self, fresh: dict[int, Any], path: Path = ()) -> set[Path]:
        """The places of the containers in it that are in ``fresh``."""
        found = {path} if self.has_identity and id(self.content) in fresh else set()
        for i, part in enumerate(self.parts or ()):
            found |= part.made_paths(fresh, (*path, i))
        return found

    def other_paths(self, now: Frozen, path: Path = ()) -> set[Path]:
        """The places where there is another container now."""
        found = {path} if self.has_identity and self.content is not now.content else set()
        for i, (a, b) in enumerate(zip(self.parts or (), now.parts or (), strict=False)):
            found |= a.other_paths(b, (*path, i))
        return found

    @property
    def is_undefined(self) -> bool:
        """Whether there is no value at all, not even one for some paths."""
        return type(self.marker) is Undefined


def rebuilt(treedef: tree.TreeDef, leaves: list[Any]) -> Any:
    """A nest of new containers; nobody else knows them."""
    value = treedef.unflatten(iter(leaves))
    _born(value, treedef)
    return value


def _born(value: Any, treedef: tree.TreeDef) -> None:
    if treedef.children or treedef.kind in (list, dict):
        if not isinstance(value, tuple):
            born(value)
        level = tree.level(value)
        for item, inner in zip(level[1] if level else (), treedef.children, strict=True):
            _born(item, inner)


class Mismatch(Exception):
    """Two values cannot become one."""

    def __init__(
        self,
        first: str,
        second: str,
        hint: str,
        made_at: tuple[SourceLocation | None, SourceLocation | None] = (None, None),
    ) -> None:
        super().__init__(first, second, hint)
        self.first, self.second, self.hint = first, second, hint
        self.made_at = made_at

    def error(self, where: str, label: str, when: tuple[str, str]) -> GraphTypeError:
        """The located error: ``label`` is ``first`` ``when[0]`` and ``second`` ``when[1]``."""
        hint = self.hint.replace(_BOTH_PATHS, "before the loop") if "loop" in when[0] else self.hint
        if label == "the returned value" and "None" in (self.first, self.second):
            hint = "return a tensor on every path; where a function ends without 'return', it returns None"
        made = GraphTypeError(
            where, message=f"{label} is {self.first} {when[0]} and {self.second} {when[1]}", hint=hint
        )
        here = made.location
        lines = [
            f"the {which} is made at line {at.line}: {at.text}"
            for which, at in zip(("first", "second"), self.made_at, strict=True)
            if at is not None and here is not None and at.file == here.file and at.line != here.line
        ]
        if lines:
            made.explain("; ".join(lines))
        return made


def _made_at(leaf: Any) -> SourceLocation | None:
    node = leaf.value.node if isinstance(leaf, Snap) and type(leaf.value) is Value else None
    return node.location if node is not None else None


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
        return f"the {leaf.__class__.__name__} {text if len(text) <= 40 else text[:37] + '...'}"
    if isinstance(leaf, dict) and leaf and all(isinstance(k, (str, int)) for k in leaf):
        return f"a dict with the key{'s' if len(leaf) > 1 else ''} {_some([repr(k) for k in leaf])}"
    if isinstance(leaf, (list, tuple, set, dict, frozenset)):
        return f"a {type(leaf).__name__} of length {len(leaf)}"
    name = getattr(leaf, "__name__", None)
    return f"the {type(leaf).__name__} '{name}'" if isinstance(name, str) else f"a {type(leaf).__name__} object"


def _some(words: list[str]) -> str:
    return ", ".join(words if len(words) <= 6 else [*words[:5], f"and {len(words) - 5} more"])


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
        raise Mismatch(describe(a), describe(b), _hint(a, b), (_made_at(a), _made_at(b)))
    if same(a, b):
        return None
    kinds = [_number_dtype(x) for x in (a, b)]
    if kinds[0] is None or kinds[1] is None:
        raise Mismatch(describe(a), describe(b), _hint(a, b), (_made_at(a), _made_at(b)))
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
    raise Mismatch(describe(a), describe(b), _hint(a, b), (_made_at(a), _made_at(b)))


def _join_number(a: Any, b: Any, snap: Snap, number: Any) -> TensorType:
    if snap.type.shape != ():
        raise Mismatch(describe(a), describe(b), _hint(a, b), (_made_at(a), _made_at(b)))
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
        return f"use a tensor {_BOTH_PATHS}, e.g. ops.zeros({t.shape}, ms.{t.dtype.name})"
    return "only tensors and numbers can depend on a tensor; choose other objects by a Python condition"


def check_structure(a: Frozen, b: Frozen) -> None:
    """Refuse two nests of different structure.

    Raises:
        Mismatch: they differ.
    """
    if a.treedef != b.treedef:
        one_leaf = a.treedef is tree.LEAF or b.treedef is tree.LEAF
        alike = not one_leaf and type(a.obj) is type(b.obj)
        hint = _LENGTHS if alike else f"use the same kind of value {_BOTH_PATHS}"
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
