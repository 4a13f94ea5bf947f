"""Augmentation policies: random choices among transforms of an image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError
from mycelia.dataset import arguments, seeds
from mycelia.dataset.transforms.base import Transform


def _transforms(where: str, argument: str, value: Any) -> list[Callable[..., Any]]:
    if not isinstance(value, (list, tuple)):
        raise ArgumentTypeError(where, argument, got=repr(value), takes="a list of transforms")
    if not value:
        raise ArgumentValueError(where, argument, got="an empty list", takes="at least one transform")
    for item in value:
        if not callable(item) or isinstance(item, type):
            raise ArgumentTypeError(where, argument, got=f"{item!r} among them", takes="transforms")
    return list(value)


class UniformAugment(Transform):
    """Apply a few of the transforms, drawn anew for each image, each of those with probability 1/2.

    Args:
        transforms: the transforms.
        num_ops: how many are drawn.

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types, or more than there are.
    """

    random = True
    heavy = True

    def __init__(self, transforms: list[Any], num_ops: int = 2) -> None:
        self.transforms = _transforms("UniformAugment", "transforms", transforms)
        self.num_ops = arguments.integer("UniformAugment", "num_ops", num_ops, 1, len(self.transforms))
        self.foreign = any(not isinstance(t, Transform) or t.foreign for t in self.transforms)

    def __call__(self, *values: Any) -> Any:
        draw = seeds.sample_random()
        value = _one("UniformAugment", values)
        for transform in draw.sample(self.transforms, self.num_ops):
            if draw.random() < 0.5:
                value = transform(value)
        return value


class RandomSelectSubpolicy(Transform):
    """Apply one of several policies, drawn anew for each image.

    Args:
        policy: a list of policies, each a list of pairs (transform, probability).

    Raises:
        ArgumentTypeError, ArgumentValueError: wrong types, or a probability outside 0 to 1.
    """

    random = True
    heavy = True

    def __init__(self, policy: list[list[tuple[Any, float]]]) -> None:
        where = "RandomSelectSubpolicy"
        if not isinstance(policy, list) or not policy:
            raise ArgumentTypeError(
                where, "policy", got=repr(policy), takes="a list of lists of (transform, probability)"
            )
        self.policy = []
        for part in policy:
            if not isinstance(part, list) or not part or not all(isinstance(p, tuple) and len(p) == 2 for p in part):
                raise ArgumentTypeError(
                    where, "policy", got=f"{part!r} in it", takes="lists of (transform, probability)"
                )
            chosen = _transforms(where, "policy", [transform for transform, _ in part])
            self.policy.append(
                [(t, arguments.probability(where, p, "policy")) for t, (_, p) in zip(chosen, part, strict=True)]
            )
        every = [t for part in self.policy for t, _ in part]
        self.foreign = any(not isinstance(t, Transform) or t.foreign for t in every)

    def __call__(self, *values: Any) -> Any:
        draw = seeds.sample_random()
        value = _one("RandomSelectSubpolicy", values)
        for transform, probability in draw.choice(self.policy):
            if draw.random() < probability:
                value = transform(value)
        return value


def _one(where: str, values: tuple[Any, ...]) -> Any:
    if len(values) != 1:
        raise ArgumentTypeError(where, "img", got=f"{len(values)} columns", takes="one image")
    return values[0]
