"""Which axes of the arguments vary in length, and the lengths they are padded to.

An axis varies if ``Cell.set_inputs`` says so (None or a ``Symbol`` in the shape of a Tensor without data), or,
with ``jit(dynamic=1)``, if it has been met with two lengths. It is padded to a power of two, or to
``divisor * 2**k + remainder`` of its Symbol, so that few graphs serve all lengths.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mycelia.core import tree
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.tensor import Parameter, Tensor
from mycelia.tensor.symbol import Symbol, Unfilled


@dataclass(frozen=True)
class Axis:
    """A varying axis: which tensor argument, which of its axes, its length now and when padded."""

    tensor: int
    axis: int
    length: int
    padded: int


def padded_length(length: int, symbol: Symbol | None = None) -> int:
    """The length that an axis is padded to.

    >>> [padded_length(n) for n in (1, 3, 8, 9)]
    [1, 4, 8, 16]
    >>> [padded_length(n, Symbol(divisor=10, max=50)) for n in (3, 25, 41)]
    [10, 40, 50]
    """
    if symbol is None:
        return 1 << max(length - 1, 0).bit_length()
    least = max(length, symbol.min)
    step = symbol.divisor
    while step + symbol.remainder < least:
        step *= 2
    made = step + symbol.remainder
    if symbol.max > symbol.min and least <= symbol.max:
        made = min(made, symbol.max)
    return made


def check_inputs(name: str, construct: Callable[..., Any], inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse what ``set_inputs`` cannot take.

    Raises:
        ArgumentValueError: positional and keyword inputs are mixed, or an input that ``construct`` does not have.
    """
    where = f"{name}.set_inputs"
    if inputs and kwargs:
        raise ArgumentValueError(
            where, "inputs", got="inputs by position and by name", takes="all inputs by position, or some by name"
        )
    names = list(inspect.signature(construct).parameters.values())
    variadic = any(p.kind is p.VAR_POSITIONAL for p in names)
    known = [p.name for p in names]
    wrong = [k for k in kwargs if k not in known]
    if wrong:
        raise ArgumentValueError(where, wrong[0], got="a value", takes=f"one of {', '.join(known)}")
    if len(inputs) > len(known) and not variadic:
        raise ArgumentValueError(
            where, "inputs", got=f"{len(inputs)} inputs", takes=f"{len(known)}: {', '.join(known)}"
        )


def declared_axes(cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Axis]:
    """The axes that ``set_inputs`` of a Cell declares to vary.

    Raises:
        ShapeError: an argument has another rank, dtype or fixed length than was declared.
    """
    spec = cell.__dict__.get("_input_spec") if hasattr(cell, "__dict__") else None
    if spec is None or kwargs:
        return []
    names: list[Any] = list(inspect.signature(cell.construct).parameters)
    if spec[0]:
        names = list(range(len(args)))  # by position
    given = dict(enumerate(spec[0])) | spec[1]
    found: list[Axis] = []
    count = 0
    called = list(inspect.signature(cell.construct).parameters)
    for position, (name, value) in enumerate(zip(names, args, strict=False)):
        label = called[position] if position < len(called) else str(name)
        wanted = tree.leaves(given[name]) if name in given else []
        leaves = tree.leaves(value)
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, Parameter) or not isinstance(leaf, Tensor):
                continue
            if len(wanted) == len(leaves) and isinstance(wanted[i], Tensor):
                found += _of_tensor(cell, label, count, leaf, wanted[i])
            count += 1
    return found


def _of_tensor(cell: Any, name: str, index: int, tensor: Tensor, wanted: Tensor) -> list[Axis]:
    declared = wanted._value
    dims = declared.dims if type(declared) is Unfilled else declared.shape
    fits = len(dims) == tensor.ndim and all(
        not isinstance(d, int) or d == n for d, n in zip(dims, tensor.shape, strict=True)
    )
    if not fits or declared.dtype != tensor._value.dtype:
        shape = ", ".join("None" if d is None else str(d) for d in dims)
        raise ShapeError(
            type(cell).__name__, name, got=f"{tensor.dtype.name}{list(tensor.shape)}",
            takes=f"{wanted.dtype.name}[{shape}], as set_inputs says",
        )  # fmt: skip
    return [
        Axis(index, i, n, padded_length(n, d if isinstance(d, Symbol) else None))
        for i, (d, n) in enumerate(zip(dims, tensor.shape, strict=True))
        if not isinstance(d, int)
    ]


class SeenShapes:
    """The lengths that the axes of tensor arguments have been met with."""

    def __init__(self) -> None:
        self._seen: dict[int, list[set[int]]] = {}

    def axes(self, tensors: list[Tensor]) -> list[Axis]:
        """The axes with more than one length by now, those of this call included."""
        found = []
        for i, t in enumerate(tensors):
            seen = self._seen.setdefault(i, [])
            if len(seen) != t.ndim:
                seen[:] = [set() for _ in t.shape]
            for axis, (lengths, n) in enumerate(zip(seen, t.shape, strict=True)):
                lengths.add(n)
                if len(lengths) > 1:
                    found.append(Axis(i, axis, n, padded_length(n)))
        return found
