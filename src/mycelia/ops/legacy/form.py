"""Class forms of operators made of one line each.

``form("Softmax(axis=-1)(input)", softmax)`` is the class whose constructor takes ``axis`` and whose instances
are called with ``input``: the function gets the inputs first and then what the constructor was given. A
declaration names both lists of arguments with their defaults as Python writes them; dtypes are named too.
What a default is also says what its argument takes: a bool, a string, a number, a dtype, or an int where a
tuple of ints may stand.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from mycelia.core import dtypes as dt, parallel_context
from mycelia.core.dtypes import DType
from mycelia.core.errors import ArgumentTypeError
from mycelia.ops.layouts import by_strategies
from mycelia.ops.legacy.primitive import Primitive
from mycelia.tensor import Tensor
from mycelia.tensor.mode import STAGE, current_builder, state

_EMPTY = Parameter.empty


class Arguments:
    """A list of arguments: binds what a call gives, in order."""

    __slots__ = ("count", "defaults", "names", "rest")

    def __init__(self, node: ast.arguments) -> None:
        self.names = [a.arg for a in node.args]
        self.count = len(self.names)
        self.rest = node.vararg.arg if node.vararg else None
        given = [_default(d) for d in node.defaults]
        self.defaults = [_EMPTY] * (self.count - len(given)) + given

    def bind(self, where: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The value of each argument.

        Raises:
            ArgumentTypeError: one too many, one twice, one missing, or one there is not.
        """
        if len(args) > self.count and self.rest is None:
            takes = f"at most {self.count}" + (f" ({', '.join(self.names)})" if self.names else "")
            raise ArgumentTypeError(where, message=f"{len(args)} positional arguments were given; it takes {takes}")
        bound = list(args)
        for name, default in zip(self.names[len(args) :], self.defaults[len(args) :], strict=True):
            value = kwargs.pop(name, default) if kwargs else default
            if value is _EMPTY:
                raise ArgumentTypeError(where, name, got="nothing", takes="a value")
            bound.append(value)
        for name in kwargs:
            if name in self.names:
                raise ArgumentTypeError(where, name, got="two values", takes="one")
            raise ArgumentTypeError(where, name, message=f"there is no argument '{name}'", hint=self._hint())
        return bound

    def _hint(self) -> str:
        return f"its arguments are {', '.join(self.names)}" if self.names else "it takes no arguments"

    def parameters(self) -> Iterator[Parameter]:
        """As :mod:`inspect` describes them."""
        for name, default in zip(self.names, self.defaults, strict=True):
            yield Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default)
        if self.rest is not None:
            yield Parameter(self.rest, Parameter.VAR_POSITIONAL)


def _default(node: ast.expr) -> Any:
    return dt.dtype_named(node.id) if isinstance(node, ast.Name) else ast.literal_eval(node)


def _arguments(text: str) -> Arguments:
    parsed = ast.parse(f"def f({text}): ...").body[0]
    assert isinstance(parsed, ast.FunctionDef)
    return Arguments(parsed.args)


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _checked(where: str, name: str, value: Any, default: Any) -> Any:
    """A constructor argument that is of the kind of its default."""
    kind = type(default)
    if value is default or default is None or default is _EMPTY or isinstance(value, Tensor):
        return value
    if kind is DType:
        return dt.as_dtype(value, where, name)
    if kind is bool:
        fits, takes = isinstance(value, (bool, np.bool_)) or (_is_int(value) and value in (0, 1)), "True or False"
    elif kind is str:
        fits, takes = isinstance(value, str), "a string"
    elif kind is float:
        fits, takes = _is_int(value) or isinstance(value, (float, np.floating)), "a number"
    elif kind is int:
        fits = _is_int(value) or (isinstance(value, (tuple, list)) and all(map(_is_int, value)))
        takes = "an int, or a tuple of ints where it is one per axis"
        fits = fits or value is None or (isinstance(value, (float, np.floating)) and float(value).is_integer())
    else:
        fits, takes = (
            isinstance(value, (tuple, list, int, np.integer, np.ndarray)) or value is None,
            "a tuple or an int",
        )
    if not fits:
        raise ArgumentTypeError(where, name, got=f"{value!r} ({type(value).__name__})", takes=takes)
    return tuple(value) if isinstance(value, list) else value


class _Meta(type):
    """Says the constructor's arguments to :mod:`inspect`."""

    @property
    def __signature__(cls) -> Signature:
        if cls.__init__ is not ClassForm.__init__ or cls is ClassForm:  # type: ignore[misc]
            raise AttributeError("__signature__")
        return Signature(list(declared(cls)[0].parameters()))  # type: ignore[arg-type]


class ClassForm(Primitive, metaclass=_Meta):
    """Base of the classes that :func:`form` makes."""

    _declaration: str
    _arguments: tuple[Arguments, Arguments] | None = None
    _compute: Callable[..., Any]
    _check: Callable[..., None] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls = type(self)
        taken, inputs = cls._arguments or declared(cls)
        name = self._declaration.partition("(")[0]
        values = taken.bind(name, args, kwargs)
        checked = {n: _checked(name, n, v, d) for n, v, d in zip(taken.names, values, taken.defaults, strict=True)}
        if cls._check is not None:
            cls._check(**checked)
        self.__dict__.update(checked)
        self.__dict__.update(
            name=name, attrs=dict(checked), init_attrs=checked, _taken=tuple(taken.names), _inputs=inputs
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        inputs: Arguments = own["_inputs"]
        if kwargs or len(args) != inputs.count:
            args = tuple(inputs.bind(own["name"], args, kwargs))
        if state.phase == STAGE:
            guards = current_builder().notes.get("guards")
            if guards is not None:
                guards.watch_object(self, _given)
        if parallel_context.spreads() and (own["attrs"].get("in_strategy") or own["attrs"].get("out_strategy")):
            return self._spread(args)
        return self._compute(*args, *[own[n] for n in own["_taken"]])

    def _spread(self, args: Sequence[Any]) -> Any:
        """Computed with inputs and outputs that lie as their strategies say."""
        own, attrs = self.__dict__, self.__dict__["attrs"]
        if attrs.get("in_strategy"):
            args = by_strategies(own["name"], attrs, "in_strategy", args)
        result = self._compute(*args, *[own[n] for n in own["_taken"]])
        if not attrs.get("out_strategy"):
            return result
        many = isinstance(result, tuple)
        made = by_strategies(own["name"], attrs, "out_strategy", result if many else (result,))
        return tuple(made) if many else made[0]


def _given(instance: ClassForm) -> list[Any]:
    """What a graph depends on besides the inputs."""
    return [instance.__dict__[n] for n in instance.__dict__["_taken"]]


def declared(cls: type[ClassForm]) -> tuple[Arguments, Arguments]:
    """The constructor's arguments and the inputs, read from the declaration the first time they are needed."""
    found = cls._arguments
    if found is None:
        opened = cls._declaration[cls._declaration.index("(") + 1 : -1]
        construct, _, call = opened.rpartition(")(")
        owner = next(c for c in cls.__mro__ if "_declaration" in c.__dict__)
        found = owner._arguments = (_arguments(construct), _arguments(call))  # type: ignore[attr-defined]
    return found


def form(declaration: str, compute: Callable[..., Any], check: Callable[..., None] | None = None) -> type[ClassForm]:
    """The class form of an operator.

    Args:
        declaration: name, constructor arguments and inputs: ``"Softmax(axis=-1)(input)"``.
        compute: called with the inputs and then the constructor's arguments, all by position.
        check: called with the constructor's arguments by name; raises if they are no good.

    Returns:
        A subclass of :class:`ClassForm`.

    >>> from mycelia.ops.legacy.form import form
    >>> Power = form("Power(exponent=2)(x)", lambda x, exponent: x ** exponent)
    >>> Power(3)(2), Power()(x=5)
    (8, 25)
    >>> import inspect
    >>> inspect.signature(Power)
    <Signature (exponent=2)>
    """
    name = declaration.partition("(")[0]
    origin = getattr(compute, "__module__", None) or ""
    public = origin.startswith("mycelia.ops.") and not origin.startswith("mycelia.ops.legacy")
    same = f" It computes :func:`mycelia.ops.{compute.__name__}`." if public else ""
    module = sys._getframe(1).f_globals.get("__name__", __name__)
    body = {
        "_declaration": declaration,
        "_compute": staticmethod(compute),
        "_check": None if check is None else staticmethod(check),
        "__doc__": f"The class form ``{declaration}`` of an operator.{same}",
        "__module__": module,
        "__qualname__": name,
    }
    made: Any = _Meta(name, (ClassForm,), body)
    return made  # type: ignore[no-any-return]


def alias(name: str, of: type[ClassForm]) -> type[ClassForm]:
    """The same class under another name.

    >>> from mycelia.ops.legacy.form import alias, form
    >>> Old = alias("Old", form("New(k=1)(x)", lambda x, k: x + k))
    >>> Old(2)
    Prim[Old]<k=2>
    """
    made = form(name + of._declaration[of._declaration.index("(") :], of._compute, of._check)
    made.__module__ = sys._getframe(1).f_globals.get("__name__", __name__)
    return made
