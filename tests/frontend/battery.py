"""A table of small programs: each is run eagerly and staged, on several inputs, and both must agree."""

from __future__ import annotations

import dataclasses
import enum
from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from mycelia import Tensor
from mycelia.core import tree

Function = Callable[..., Any]

#: Vectors whose sums are positive, negative, large and zero.
VECTORS: tuple[tuple[Any, ...], ...] = tuple((Tensor(v),) for v in ([1.0, 2.0], [-1.0, -2.0], [20.0, 3.0], [0.0, 0.0]))
#: Numbers as zero-dimensional tensors.
NUMBERS: tuple[tuple[Any, ...], ...] = tuple((Tensor(v),) for v in (2.0, -3.0, 0.0, 15.0))
COUNTS: tuple[tuple[Any, ...], ...] = tuple((Tensor(v),) for v in (0, 1, 3, 6))


class Battery:
    """Collects functions with the arguments they are run on; a decorator.

    ``rows`` are the parameters of a test: the function, its cases, named by the function.
    """

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.differentiable: list[Any] = []

    def __call__(self, *cases: tuple[Any, ...], grad: bool = False) -> Callable[[Function], Function]:
        def add(fn: Function) -> Function:
            row = pytest.param(fn, cases or VECTORS, id=fn.__name__)
            self.rows.append(row)
            if grad:
                self.differentiable.append(row)
            return fn

        return add


def total(result: Any) -> Any:
    """The sum of all float tensors of a nest."""
    floats = [v for v in tree.leaves(result) if isinstance(v, Tensor) and v.dtype.is_inexact]
    return sum([v.sum() for v in floats], Tensor(0.0))


# -- types that programs use -----------------------------------------------------------------------------------

Point = namedtuple("Point", ["x", "y"], defaults=[0])


class Pair(NamedTuple):
    left: Any
    right: Any = None

    @property
    def total(self) -> Any:
        return self.left + self.right if self.right is not None else self.left


class Color(enum.Enum):
    RED = 1
    BLUE = 2

    @property
    def weight(self) -> float:
        return 0.5 if self is Color.RED else 2.0


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Feature(enum.Flag):
    A = enum.auto()
    B = enum.auto()
    C = enum.auto()


@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 2
    names: tuple[str, ...] = ("a", "b")
    rate: float = dataclasses.field(default=0.5)


@dataclasses.dataclass(slots=True)
class State:
    h: Any
    step: int = 0

    def advanced(self, x: Any) -> State:
        return State(self.h + x, self.step + 1)


@dataclasses.dataclass
class Checked:
    x: Any
    scale: Any = None
    log: list[Any] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.scale = self.x * 2 if self.scale is None else self.scale
        self.log.append("made")
