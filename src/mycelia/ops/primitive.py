"""Primitives as classes: the names of ``mindspore.ops.primitive``."""

from mycelia.ops.legacy.primitive import (
    Primitive,
    PrimitiveWithCheck,
    PrimitiveWithInfer,
    constexpr,
    constexpr as _primexpr,
    prim_arg_register,
    prim_attr_register,
)

__all__ = [
    "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "_primexpr", "constexpr", "prim_arg_register",
    "prim_attr_register",
]  # fmt: skip
