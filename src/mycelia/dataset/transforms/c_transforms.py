"""The transforms under the module name of MindSpore 1.x for those written in C++."""

from mycelia.dataset.transforms import (
    Compose,
    Concatenate,
    Duplicate,
    Fill,
    Mask,
    OneHot,
    PadEnd,
    RandomApply,
    RandomChoice,
    Relational,
    Slice,
    TypeCast,
    Unique,
)

__all__ = [
    "Compose",
    "Concatenate",
    "Duplicate",
    "Fill",
    "Mask",
    "OneHot",
    "PadEnd",
    "RandomApply",
    "RandomChoice",
    "Relational",
    "Slice",
    "TypeCast",
    "Unique",
]
