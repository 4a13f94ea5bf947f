"""Transforms made of transforms: one after another, or chosen at random."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.dataset import arguments, seeds
from mycelia.dataset.transforms.base import Transform

F = TypeVar("F", bound=Callable[..., Any])


def _checked(where: str, transforms: Any) -> list[Callable[..., Any]]:
    if not isinstance(transforms, (list, tuple)):
        raise ArgumentTypeError(where, "transforms", got=repr(transforms), takes="a list of functions and transforms")
    if not transforms:
        raise ArgumentValueError(where, "transforms", got="an empty list", takes="at least one function or transform")
    for transform in transforms:
        if not callable(transform) or isinstance(transform, type):
            raise ArgumentTypeError(
                where, "transforms", got=f"{transform!r} among them", takes="functions and transforms"
            )
    return list(transforms)


def _apply(transforms: list[Callable[..., Any]], values: tuple[Any, ...]) -> Any:
    result: Any = values
    for transform in transforms:
        result = transform(*values)
        values = result if isinstance(result, tuple) else (result,)
    return result


class _Combined(Transform):
    def __init__(self, transforms: Any) -> None:
        self.transforms = _checked(type(self).__name__, transforms)
        known = [t for t in self.transforms if isinstance(t, Transform)]
        self.foreign = len(known) < len(self.transforms) or any(t.foreign for t in known)
        self.random = self.foreign or any(t.random for t in known)
        self.heavy = self.foreign or any(t.heavy for t in known)


class Compose(_Combined):
    """Apply transforms one after another.

    Args:
        transforms: a list of functions and transforms; one that returns a tuple gives the next several
            values.

    Raises:
        ArgumentTypeError: not a list of things that can be called.
        ArgumentValueError: an empty list.

    >>> import numpy as np
    >>> from mycelia.dataset import transforms
    >>> transforms.Compose([transforms.Fill(2), lambda x: x + 1])(np.zeros(2, np.int32))
    array([3, 3], dtype=int32)
    """

    def __init__(self, transforms: Any) -> None:
        super().__init__(transforms)
        self.batches = all(isinstance(t, Transform) and t.batches for t in self.transforms)

    def __call__(self, *values: Any) -> Any:
        return _apply(self.transforms, values)

    def on_batch(self, block: np.ndarray) -> np.ndarray:
        for transform in self.transforms:
            assert isinstance(transform, Transform)
            block = transform.on_batch(block)
        return block


class _RandomlyCombined(_Combined):
    def __init__(self, transforms: Any) -> None:
        super().__init__(transforms)
        self.random = True


class RandomApply(_RandomlyCombined):
    """Apply a list of transforms, all of them or none.

    Args:
        transforms: functions and transforms.
        prob: the probability that they are applied.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types or values.

    >>> from mycelia.dataset import transforms
    >>> transforms.RandomApply([transforms.Fill(0)], prob=1.0)([1, 2])
    array([0, 0])
    """

    def __init__(self, transforms: Any, prob: float = 0.5) -> None:
        super().__init__(transforms)
        self.prob = arguments.probability("RandomApply", prob)

    def __call__(self, *values: Any) -> Any:
        if seeds.sample_random().random() < self.prob:
            return _apply(self.transforms, values)
        return values[0] if len(values) == 1 else values


class RandomChoice(_RandomlyCombined):
    """Apply one of the transforms, each with the same probability.

    Args:
        transforms: functions and transforms.

    Raises:
        ArgumentTypeError, ArgumentValueError: not a list of things that can be called, or an empty one.
    """

    def __call__(self, *values: Any) -> Any:
        return _apply([seeds.sample_random().choice(self.transforms)], values)


class RandomOrder(_RandomlyCombined):
    """Apply all transforms, in random order.

    Args:
        transforms: functions and transforms.

    Raises:
        ArgumentTypeError, ArgumentValueError: not a list of things that can be called, or an empty one.
    """

    def __call__(self, *values: Any) -> Any:
        order = list(self.transforms)
        seeds.sample_random().shuffle(order)
        return _apply(order, values)


def not_random(function: F) -> F:
    """Mark a function as one that always gives the same result for the same input."""
    function.random = False  # type: ignore[attr-defined]
    return function
