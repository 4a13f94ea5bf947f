"""Transforms of columns, for ``map``: casts, padding, masks, combinations.

Images have their own in :mod:`mycelia.dataset.vision`.
"""

from mycelia.dataset.transforms.arrays import (
    Concatenate as Concatenate,
    Duplicate as Duplicate,
    Fill as Fill,
    Mask as Mask,
    OneHot as OneHot,
    PadEnd as PadEnd,
    Relational as Relational,
    Slice as Slice,
    TypeCast as TypeCast,
    Unique as Unique,
)
from mycelia.dataset.transforms.combine import (
    Compose as Compose,
    RandomApply as RandomApply,
    RandomChoice as RandomChoice,
    RandomOrder as RandomOrder,
    not_random as not_random,
)

__all__ = [
    "Compose", "Concatenate", "Duplicate", "Fill", "Mask", "OneHot", "PadEnd", "RandomApply", "RandomChoice",
    "RandomOrder", "Relational", "Slice", "TypeCast", "Unique", "not_random",
]  # fmt: skip
