"""Python numbers that are inputs of a graph instead of constants in it.

While a function is staged, a number that is known to vary from call to call (a learning rate, say) is stood in
for by a :class:`Scalar`. Arithmetic with it makes further ones, which remember how they were computed; where one
meets a tensor, its value becomes an input of the graph. Before each run the recorded arithmetic is done again in
Python on the numbers of that call, so its results are those of the plain program to the last bit, and each is
converted to the dtype that the number would have been converted to as a constant.

Whoever asks for the number itself (``int``, ``if``, ``range``, formatting, hashing, NumPy, ``math``) gets it, and
what it was computed from is *pinned*: the staged graph is then good for this value only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.core.dtypes import DType
from mycelia.core.errors import SourceLocation, user_location
from mycelia.tensor.tensor import Tensor, wrap

_PLAIN = (bool, int, float)


class ScalarSession:
    """The scalars of one staging.

    Attributes:
        roots: the scalars that stand for numbers of the program, in the order in which they were met.
        inputs: what became an input: the scalar, the dtype, and the tensor that carries its value.
        pinned: the indices of roots whose number was asked for, and the line that asked first.
    """

    def __init__(self) -> None:
        self.roots: list[Scalar] = []
        self.inputs: dict[tuple[int, str], tuple[Scalar, DType, Tensor]] = {}
        self.pinned: dict[int, SourceLocation | None] = {}
        self.open = True

    def root(self, value: Any) -> Scalar:
        """A scalar that stands for a number."""
        made = Scalar(self, value, None, (), frozenset([len(self.roots)]))
        self.roots.append(made)
        return made

    def feed(self, values: list[Any]) -> None:
        """Give the inputs their values for new numbers of the roots."""
        from mycelia.tensor.dispatch import _scalar_array

        memo: dict[int, Any] = {id(r): v for r, v in zip(self.roots, values, strict=True)}
        for scalar, dtype, tensor in self.inputs.values():
            value = scalar._again(memo)
            sign = str(value)[0] == "-" if value == 0 else False
            tensor._value = _scalar_array(value, type(value), sign, dtype)


class Scalar:
    """A number of the program that may be another one at the next call; see the module's docstring."""

    __slots__ = ("_fn", "_operands", "_roots", "_session", "_value")

    __array_ufunc__ = None

    def __init__(
        self, session: ScalarSession, value: Any, fn: Callable[..., Any] | None, operands: tuple[Any, ...],
        roots: frozenset[int],
    ) -> None:  # fmt: skip
        self._session, self._value, self._fn, self._operands, self._roots = session, value, fn, operands, roots

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance says what the number is
        return type(self._value)

    def _plain(self) -> Any:
        """The number; the roots are pinned."""
        session = self._session
        if session.open and not self._roots <= session.pinned.keys():
            location = user_location()
            for i in self._roots:
                session.pinned.setdefault(i, location)
        return self._value

    def _again(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        assert self._fn is not None
        value = self._fn(*[x._again(memo) if type(x) is Scalar else x for x in self._operands])
        memo[id(self)] = value
        return value

    def _tensor(self, dtype: DType) -> Tensor:
        """The number as a zero-dimensional tensor: an input of the graph being built."""
        from mycelia.tensor.dispatch import scalar, value_in_graph

        session = self._session
        if not session.open:
            return scalar(self._value, dtype)
        key = (id(self), dtype.name)
        if key not in session.inputs:
            session.inputs[key] = (self, dtype, wrap(np.asarray(self._value).astype(dtype.np)))
        return wrap(value_in_graph(session.inputs[key][2]))

    def _make(self, fn: Callable[..., Any], *operands: Any) -> Any:
        values = []
        for x in operands:
            if type(x) is not Scalar and type(x) not in _PLAIN:
                if isinstance(x, Tensor):
                    return NotImplemented
                return fn(*[o._plain() if type(o) is Scalar else o for o in operands])
            values.append(x._value if type(x) is Scalar else x)
        value = fn(*values)
        if type(value) not in (int, float) or not self._session.open:
            return fn(*[o._plain() if type(o) is Scalar else o for o in operands])
        roots = frozenset().union(*[x._roots for x in operands if type(x) is Scalar])
        return Scalar(self._session, value, fn, operands, roots)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._plain().__reduce_ex__(protocol)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self._plain(), dtype)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain(), name)


def _derived(fn: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: Scalar, other: Any) -> Any:
        return self._make(fn, self, other)

    def reflected(self: Scalar, other: Any) -> Any:
        return self._make(fn, other, self)

    return forward, reflected


def _unary(fn: Callable[..., Any]) -> Callable[..., Any]:
    def made(self: Scalar) -> Any:
        return self._make(fn, self)

    return made


def _asked(fn: Callable[..., Any]) -> Callable[..., Any]:
    def plain(self: Scalar, *args: Any) -> Any:
        if args and isinstance(args[0], Tensor):
            return NotImplemented
        return fn(self._plain(), *[a._plain() if type(a) is Scalar else a for a in args])

    return plain


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
    _forward, _back = _derived(getattr(operator, _name))
    setattr(Scalar, f"__{_name}__", _forward)
    setattr(Scalar, f"__r{_name}__", _back)
for _name in ("neg", "pos", "abs"):
    setattr(Scalar, f"__{_name}__", _unary(getattr(operator, _name)))
for _name, _fn in (
    ("lt", operator.lt), ("le", operator.le), ("gt", operator.gt), ("ge", operator.ge), ("eq", operator.eq),
    ("ne", operator.ne), ("pow", pow), ("rpow", lambda a, b: b**a), ("divmod", divmod),
    ("rdivmod", lambda a, b: divmod(b, a)), ("and", operator.and_), ("rand", lambda a, b: b & a),
    ("or", operator.or_), ("ror", lambda a, b: b | a), ("xor", operator.xor), ("rxor", lambda a, b: b ^ a),
    ("lshift", operator.lshift), ("rlshift", lambda a, b: b << a), ("rshift", operator.rshift),
    ("rrshift", lambda a, b: b >> a), ("invert", operator.invert), ("bool", bool), ("int", int), ("float", float),
    ("complex", complex), ("index", operator.index), ("hash", hash), ("str", str), ("repr", repr),
    ("format", format), ("round", round), ("trunc", lambda a: a.__trunc__()), ("floor", lambda a: a.__floor__()),
    ("ceil", lambda a: a.__ceil__()),
):  # fmt: skip
    setattr(Scalar, f"__{_name}__", _asked(_fn))


def plain(value: Any) -> Any:
    """``value``, a :class:`Scalar` as the number it stands for; tuples and lists likewise, at any depth."""
    kind = type(value)
    if kind is Scalar:
        return value._plain()
    if kind is tuple or kind is list:
        return kind([plain(v) for v in value])
    return value


def kind_of(value: Any) -> type:
    """The type of a number as promotion takes it: that of the number a :class:`Scalar` stands for."""
    kind = type(value)
    return type(value._value) if kind is Scalar else kind
