"""``max``, ``min``, ``sorted`` and ``list.sort`` where comparisons depend on tensors.

Python sorts by asking which of two values is less. Where a tensor answers, both orders are staged: a comparison
becomes the choice of a pair, and a list of n values is sorted by n (n - 1) / 2 such choices, in the order of an
insertion sort, which keeps equal values in their order as Python's sort does. Tuples and lists are compared item
by item.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence
from typing import Any

from mycelia.frontend.branches import all_of, any_of, choose, fold, truth
from mycelia.frontend.effects import raise_unless
from mycelia.frontend.implicit import see
from mycelia.frontend.regions import advance
from mycelia.tensor import Tensor


def involves_tensors(values: Sequence[Any]) -> bool:
    """Whether any value is a tensor, or a tuple or list with one."""
    return any(isinstance(v, Tensor) or (isinstance(v, (tuple, list)) and involves_tensors(v)) for v in values)


def less(a: Any, b: Any) -> Any:
    """``a < b``: a bool, or what a tensor makes of it."""
    if isinstance(a, (tuple, list)) and type(a) is type(b) and involves_tensors((a, b)):
        return _less_from(a, b, 0)
    return see(a) < see(b)


def _less_from(a: Sequence[Any], b: Sequence[Any], i: int) -> Any:
    """As ``less``, of what is left from item ``i`` on; the items before are equal."""
    if i == min(len(a), len(b)):
        return len(a) < len(b)
    tied = a[i] is b[i] or truth(see(a[i]) == see(b[i]))
    if type(tied) is bool:
        return _less_from(a, b, i + 1) if tied else less(a[i], b[i])
    return any_of(less(a[i], b[i]), lambda: all_of(tied, lambda: _less_from(a, b, i + 1)))


def extreme(name: str) -> Callable[..., Any]:
    """``max`` or ``min``, also of tensors."""
    original = getattr(builtins, name)
    better = (lambda a, b: less(b, a)) if name == "max" else less

    def found(*args: Any, key: Any = None, **kwargs: Any) -> Any:
        values = list(advance(see(args[0]))) if len(args) == 1 else list(args)
        ranks = values if key is None else [key(v) for v in values]
        if not involves_tensors(ranks) or not values:
            return original(values, key=key, **kwargs) if len(args) == 1 else original(*args, key=key, **kwargs)
        best, rank = values[0], ranks[0]
        for value, other in zip(values[1:], ranks[1:], strict=True):
            wins = truth(better(other, rank))
            if type(wins) is bool:
                best, rank = (value, other) if wins else (best, rank)
            else:
                best, rank = choose(name, wins, _pair(value, other), _pair(best, rank))
        return best

    found.__name__ = name
    return found


def _pair(a: Any, b: Any) -> Callable[[], tuple[Any, Any]]:
    return functools.partial(tuple, (a, b))


def ordered(iterable: Any, *, key: Any = None, reverse: bool = False) -> list[Any]:
    """``sorted``, also by tensors."""
    values = list(advance(see(iterable)))
    ranks = [see(v) for v in values] if key is None else [key(v) for v in values]
    if not involves_tensors(ranks):
        return [values[i] for i in sorted(range(len(values)), key=ranks.__getitem__, reverse=reverse)]
    items = list(zip(ranks, values, strict=True))
    for end in range(1, len(items)):
        for i in range(end, 0, -1):
            a, b = items[i - 1], items[i]
            swap = truth(less(a[0], b[0]) if reverse else less(b[0], a[0]))
            if type(swap) is bool:
                if not swap:
                    break
                items[i - 1], items[i] = b, a
            else:
                items[i - 1], items[i] = choose("sorted", swap, _pair(b, a), _pair(a, b))
    return [value for _, value in items]


def count(items: Sequence[Any], value: Any) -> Any:
    """``items.count(value)``."""
    if not involves_tensors((value, *items)):
        return items.count(value)
    return sum([x is value or truth(see(x) == see(value)) for x in items])


def index(items: Sequence[Any], value: Any, *bounds: int) -> Any:
    """``items.index(value)``: where the first is that equals it."""
    if not involves_tensors((value, *items)):
        return items.index(value, *bounds)
    places = range(len(items))[slice(*bounds, None) if len(bounds) == 1 else slice(*(bounds or (None,)))]
    equal = [(i, items[i] is value or truth(see(items[i]) == see(value))) for i in places]
    known = next((k for k, (_, e) in enumerate(equal) if e is True), len(equal))
    asked = [(i, e) for i, e in equal[:known] if isinstance(e, Tensor)]
    found = fold(False, [e for _, e in equal])
    if type(found) is bool and not asked:
        return items.index(value, *bounds) if not found else equal[known][0]
    if type(found) is not bool:
        raise_unless(found, ValueError("the value is not in the list"))
    result: Any = equal[known][0] if known < len(equal) else -1
    for i, e in reversed(asked):
        result = choose("index", e, functools.partial(int, i), functools.partial(_same, result))
    return result


def _same(value: Any) -> Any:
    return value
