"""Strategies as users write them, made layouts.

A strategy says for each axis of a tensor into how many parts it is cut: ``(2, 1)`` cuts the first axis in two. The
devices then stand in a matrix with an axis for each that is cut and one, the last, along which parts are repeated
(MindSpore's rule). For an operator whose axes have names (``...ik,...kj->...ij``), an axis that several inputs share
is cut along one axis of the matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.core.layout import Cut, Layout

REPEATED = "repeated"


def check_strategy(where: str, argument: str, given: Any) -> tuple[Any, ...]:
    """A tuple with a strategy (a tuple of numbers), a Layout or None for each tensor.

    Raises:
        ArgumentTypeError: something else.
        ArgumentValueError: a number of parts below one.
    """
    if not isinstance(given, (tuple, list)):
        raise ArgumentTypeError(where, argument, got=repr(given), takes="a tuple with a strategy for each tensor")
    for i, one in enumerate(given):
        if one is None or isinstance(one, Layout):
            continue
        name = f"{argument}[{i}]"
        if not isinstance(one, (tuple, list)) or not all(isinstance(n, int) and not isinstance(n, bool) for n in one):
            raise ArgumentTypeError(where, name, got=repr(one), takes="a tuple of numbers, a Layout or None")
        if any(n < 1 for n in one):
            raise ArgumentValueError(where, name, got=repr(one), takes="numbers of parts from 1 on")
    return tuple(tuple(one) if isinstance(one, list) else one for one in given)


def layouts_of(
    where: str, argument: str, strategies: Sequence[Any], devices: int, names: Sequence[tuple[str, ...]] | None = None
) -> list[Layout | None]:
    """A layout for each strategy.

    Args:
        where: the function that was called.
        argument: its argument.
        strategies: what :func:`check_strategy` gave.
        devices: how many devices there are.
        names: for each tensor the names of its axes, where they are known.

    Raises:
        ArgumentValueError: a number of parts that the devices do not make, or two for one name; all are told.
    """
    problems: list[str] = []
    found: list[Layout | None] = []
    shared: dict[str, int] = {}
    for i, one in enumerate(strategies):
        if one is None or isinstance(one, Layout):
            continue
        if devices % prod(one):
            problems.append(f"{argument}[{i}] = {one} makes {prod(one)} parts, which {devices} devices cannot share")
        for axis, parts in enumerate(one):
            name = names[i][axis] if names is not None and axis < len(names[i]) else f"{i}.{axis}"
            if shared.setdefault(name, parts) != parts:
                problems.append(
                    f"axis {axis} of {argument}[{i}] is cut into {parts} parts, and the same axis of another input "
                    f"into {shared[name]}"
                )
    if names is not None and not problems and devices % prod(shared.values()):
        problems.append(f"{argument} makes {prod(shared.values())} parts, which {devices} devices cannot share")
    if problems:
        raise ArgumentValueError(where, argument, message="; ".join(problems))
    for i, one in enumerate(strategies):
        if one is None or isinstance(one, Layout):
            found.append(one)
            continue
        if names is None:
            matrix = {f"a{axis}": parts for axis, parts in enumerate(one) if parts > 1}
            cuts: list[Cut] = [(f"a{axis}",) if parts > 1 else () for axis, parts in enumerate(one)]
        else:
            matrix = {name: parts for name, parts in shared.items() if parts > 1}
            cuts = [(names[i][axis],) if parts > 1 else () for axis, parts in enumerate(one)]
        rest = devices // prod(matrix.values())
        if rest > 1 or not matrix:
            matrix[REPEATED] = rest
        found.append(Layout(tuple(matrix.values()), tuple(matrix)).with_cuts(cuts))
    return found


#: Class forms of operators that work element by element on two inputs: their last axes are the same.
_PAIRWISE = frozenset(
    ("Add", "Sub", "Mul", "Div", "RealDiv", "FloorDiv", "Pow", "Maximum", "Minimum", "Equal", "Greater", "Less")
)


def axis_names(operator: str, attrs: Mapping[str, Any], ranks: Sequence[int]) -> list[tuple[str, ...]] | None:
    """Names of the axes of an operator's inputs, equal for those that are the same; None where they are not known.

    Args:
        operator: the name of its class form.
        attrs: its attributes.
        ranks: how many axes each input has.
    """
    if operator in ("MatMul", "BatchMatMul") and min(ranks) > 1:
        first, second = ["i", "k"], ["k", "j"]
        if attrs.get("transpose_a"):
            first.reverse()
        if attrs.get("transpose_b"):
            second.reverse()
        batch = [[f"b{n}" for n in range(rank - 2, 0, -1)] for rank in ranks]
        return [(*batch[0], *first), (*batch[1], *second)]
    if operator in _PAIRWISE:
        return [tuple(f"d{n}" for n in range(rank, 0, -1)) for rank in ranks]
    return None
