"""Functions over nested sequences, and functions chosen by the types of their arguments.

``HyperMap`` applies a function to the leaves of nests that have the same shape, ``Map`` to the members of
sequences. ``MultitypeFuncGraph`` holds functions registered for types and calls the first one that fits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from mycelia.core.dtypes import DType
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.ops.arithmetic import add, div, floor_divide, floor_mod, mul, sub
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.dispatch import stageable

__all__ = [
    "HyperMap", "Map", "MultitypeFuncGraph", "add_flags", "augassign_add", "augassign_div", "augassign_floordiv",
    "augassign_mod", "augassign_mul", "augassign_sub", "hyper_add", "iter_converter", "ms_hasnext", "ms_next",
    "tail", "zip_operation",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, (Tensor, type))


#: What the type names of ``MultitypeFuncGraph.register`` stand for.
_KINDS: dict[str, Callable[[Any], bool]] = {
    "tensor": lambda v: isinstance(v, Tensor),
    "parameter": lambda v: isinstance(v, Parameter),
    "number": lambda v: isinstance(v, (int, float, complex)),
    "bool": lambda v: isinstance(v, bool),
    "int": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "float": lambda v: isinstance(v, float),
    "complex": lambda v: isinstance(v, complex),
    "string": lambda v: isinstance(v, str),
    "tuple": lambda v: isinstance(v, tuple),
    "list": lambda v: isinstance(v, list),
    "dictionary": lambda v: isinstance(v, dict),
    "dict": lambda v: isinstance(v, dict),
    "none": lambda v: v is None,
    "typenone": lambda v: v is None,
    "slice": lambda v: isinstance(v, slice),
    "ellipsis": lambda v: v is Ellipsis,
    "type": lambda v: isinstance(v, (type, DType)),
    "function": _is_function,
    "any": lambda v: True,
}
_OF_PYTHON = {
    Tensor: "tensor", Parameter: "parameter", bool: "bool", int: "int", float: "float", complex: "complex",
    str: "string", tuple: "tuple", list: "list", dict: "dict", type(None): "none", slice: "slice",
}  # fmt: skip


def _kind(name: Any) -> str:
    given = _OF_PYTHON.get(name, name) if isinstance(name, type) else name
    lowered = given.lower() if isinstance(given, str) else None
    if lowered not in _KINDS:
        raise ArgumentValueError(
            "MultitypeFuncGraph.register", "type_names", got=repr(name),
            takes="type names: " + ", ".join(f'"{k.capitalize()}"' for k in _KINDS),
        )  # fmt: skip
    return lowered


class MultitypeFuncGraph:
    """One name for functions of arguments of different types.

    Args:
        name: for messages.
        read_value: accepted; Parameters are given as what they are, Tensors.

    Raises:
        ArgumentTypeError: (when called) no function is registered for such arguments.

    >>> import mycelia as ms
    >>> halve = ms.ops.MultitypeFuncGraph("halve")
    >>> @halve.register("Tensor")
    ... def _halve_tensor(x):
    ...     return x / 2
    >>> @halve.register("Number")
    ... def _halve_number(x):
    ...     return x // 2
    >>> print(halve(ms.Tensor([3.0])), halve(3))
    [1.5] 1
    """

    def __init__(self, name: str, read_value: bool = False) -> None:
        if not isinstance(name, str):
            raise ArgumentTypeError("MultitypeFuncGraph", "name", got=type(name).__name__, takes="a string")
        self.name = name
        self.read_value = read_value
        self.entries: list[tuple[tuple[str, ...], Callable[..., Any]]] = []

    def register(self, *type_names: Any) -> Callable[[F], F]:
        """A decorator that registers a function for arguments of these types, in their order.

        Args:
            type_names: a name for each argument: ``"Tensor"``, ``"Number"``, ``"Tuple"``, ``"Function"``, ...

        Raises:
            ArgumentValueError: an unknown name.
        """
        kinds = tuple([_kind(name) for name in type_names])

        def put(fn: F) -> F:
            self.entries.append((kinds, fn))
            return fn

        return put

    def set_doc_url(self, doc_url: str) -> None:
        """Note where the function is documented."""
        self.doc_url = doc_url

    def __call__(self, *args: Any) -> Any:
        for kinds, fn in self.entries:
            if len(kinds) == len(args) and all(_KINDS[k](a) for k, a in zip(kinds, args, strict=True)):
                return stageable(fn)(*args)
        known = ["(" + ", ".join(k.capitalize() for k in kinds) + ")" for kinds, _ in self.entries]
        got = ", ".join(type(a).__name__ for a in args)
        raise ArgumentTypeError(
            self.name, message=f"no function is registered for arguments ({got})",
            hint=f"there are functions for {', '.join(known)}" if known else "none has been registered yet",
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"MultitypeFuncGraph('{self.name}', {len(self.entries)} functions)"


def _same_length(where: str, sequences: tuple[Any, ...]) -> int:
    first = sequences[0]
    for i, other in enumerate(sequences[1:], 1):
        if not isinstance(other, (tuple, list)):
            raise ArgumentTypeError(where, f"argument {i}", got=type(other).__name__, takes="a sequence like the first")
        if len(other) != len(first):
            raise ArgumentValueError(
                where, f"argument {i}", got=f"a sequence of {len(other)}", takes=f"{len(first)} members like the first"
            )
    return len(first)


class Map:
    """Apply a function to the members of sequences.

    Args:
        ops: the function; without it, the first argument of a call.
        reverse: begin with the last members; the order of the results stays.

    >>> import mycelia as ms
    >>> ms.ops.Map()(lambda x, y: x + y, (1, 2), (10, 20))
    (11, 22)
    """

    _nested = False

    def __init__(self, ops: Callable[..., Any] | None = None, reverse: bool = False) -> None:
        where = type(self).__name__
        if ops is not None and not callable(ops):
            raise ArgumentTypeError(where, "ops", got=type(ops).__name__, takes="a function or None")
        if not isinstance(reverse, bool):
            raise ArgumentTypeError(where, "reverse", got=repr(reverse), takes="True or False")
        self.ops = ops
        self.reverse = reverse

    def __call__(self, *args: Any) -> Any:
        where, fn = type(self).__name__, self.ops
        if fn is None:
            if not args or not callable(args[0]):
                raise ArgumentTypeError(where, "argument 0", got=type(args[0]).__name__ if args else "nothing",
                                        takes="a function, which the constructor was not given")  # fmt: skip
            fn, args = args[0], args[1:]
        if not args:
            raise ArgumentTypeError(where, "argument 1", got="nothing", takes="a sequence")
        return self._apply(where, stageable(fn), args)

    def _apply(self, where: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if not isinstance(args[0], (tuple, list)):
            if self._nested:
                return fn(*args)
            raise ArgumentTypeError(where, "argument 1", got=type(args[0]).__name__, takes="a tuple or list")
        count = _same_length(where, args)
        inner: Callable[[tuple[Any, ...]], Any]
        inner = partial(self._apply, where, fn) if self._nested else (lambda members: fn(*members))
        order = range(count - 1, -1, -1) if self.reverse else range(count)
        made = [inner(tuple([a[i] for a in args])) for i in order]
        return tuple(reversed(made)) if self.reverse else tuple(made)


class HyperMap(Map):
    """Apply a function to the leaves of nested tuples and lists that have the same shape.

    Args:
        ops: the function, often a :class:`MultitypeFuncGraph`; without it, the first argument of a call.
        reverse: begin with the last members; the order of the results stays.

    Returns:
        A nest of tuples of results; of arguments that are no sequences, the result itself.

    Raises:
        ArgumentValueError: (when called) the nests have different shapes.

    >>> import mycelia as ms
    >>> ms.ops.HyperMap()(lambda x, y: x * y, ((1, 2), 3), ((4, 5), 6))
    ((4, 10), 18)
    """

    _nested = True


#: Adds nests of tensors leaf by leaf.
hyper_add = HyperMap(add)

augassign_add, augassign_sub, augassign_mul, augassign_div = add, sub, mul, div
augassign_floordiv, augassign_mod = floor_divide, floor_mod


def add_flags(fn: Any = None, **flags: Any) -> Any:
    """Mark a function or a Cell with flags.

    Args:
        fn: what is marked; without it, a decorator is returned.
        flags: name = value.

    >>> import mycelia as ms
    >>> @ms.ops.add_flags(has_effect=True)
    ... def f(x):
    ...     return x
    >>> f.flags
    {'has_effect': True}
    """

    def mark(function: Any) -> Any:
        if hasattr(function, "add_flags"):
            function.add_flags(**flags)
        else:
            function.flags = {**getattr(function, "flags", {}), **flags}
        return function

    return mark if fn is None else mark(fn)


def tail(sequence: Any) -> Any:
    """All members of a sequence but the first.

    >>> from mycelia.ops.legacy.maps import tail
    >>> tail((1, 2, 3))
    (2, 3)
    """
    return sequence[1:]


def zip_operation(*sequences: Any) -> tuple[Any, ...]:
    """The members of sequences side by side.

    >>> from mycelia.ops.legacy.maps import zip_operation
    >>> zip_operation((1, 2), (3, 4))
    ((1, 3), (2, 4))
    """
    return tuple(zip(*sequences, strict=False))


def iter_converter(value: Any) -> Any:
    """The members of a tensor, list, tuple or dict as a tuple, to be walked with :func:`ms_next`.

    >>> from mycelia.ops.legacy.maps import iter_converter
    >>> iter_converter([1, 2])
    (1, 2)
    """
    return tuple(value)


def ms_hasnext(members: Any) -> bool:
    """Whether there is a member left.

    >>> from mycelia.ops.legacy.maps import ms_hasnext
    >>> ms_hasnext((1,)), ms_hasnext(())
    (True, False)
    """
    return len(members) > 0


def ms_next(members: Any) -> tuple[Any, Any]:
    """The first member, and the others.

    >>> from mycelia.ops.legacy.maps import ms_next
    >>> ms_next((1, 2, 3))
    (1, (2, 3))
    """
    return members[0], tuple(itertools.islice(members, 1, None))
