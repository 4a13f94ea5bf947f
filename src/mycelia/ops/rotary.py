"""Rotary position embedding: pairs of features turned by an angle that grows with the position.

J. Su et al., "RoFormer: enhanced transformer with rotary position embedding" (2021). The pairs are either the two
halves of the features, or neighbours.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import floats
from mycelia.ops.declare import Bad, Sample, check_dtypes, sum_to
from mycelia.ops.linear import accumulator
from mycelia.ops.operands import broadcast_shapes
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply


def _check_pairs(x: TensorType) -> None:
    check_dtypes("rotary_position_embedding", (x,), dt.FLOATS, ("x",))
    if not x.rank or x.shape[-1] % 2:
        raise ShapeError("rotary_position_embedding", "x", got=f"shape {x.shape}", takes="an even number of features")


def _turned(x: Any, interleaved: bool) -> Any:
    """The pairs (a, b) as (-b, a)."""
    if interleaved:
        return jnp.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    half = x.shape[-1] // 2
    return jnp.concatenate([-x[..., half:], x[..., :half]], -1)


def _infer_turned(x: TensorType, *, interleaved: bool) -> TensorType:
    _check_pairs(x)
    return x


#: Pairs of features turned by a right angle.
turned_pairs_p: Primitive = Primitive(
    "turned_pairs", infer=_infer_turned, lower=lambda x, *, interleaved: _turned(x, interleaved),
    vjp=lambda ct, x, out, *, interleaved: [-apply(turned_pairs_p, ct, interleaved=interleaved)],
    samples=lambda: [
        Sample((np.arange(12.0).reshape(3, 4),), {"interleaved": flag}) for flag in (False, True)
    ] + [Bad((np.ones((2, 3)),), {"interleaved": True}, ShapeError, "even number")],
)  # fmt: skip


def _infer(x: TensorType, cos: TensorType, sin: TensorType, *, interleaved: bool) -> TensorType:
    _check_pairs(x)
    check_dtypes("rotary_position_embedding", (x, cos, sin), dt.FLOATS, ("x", "cos", "sin"))
    if broadcast_shapes("rotary_position_embedding", [x.shape, cos.shape, sin.shape], ("x", "cos", "sin")) != x.shape:
        raise ShapeError(
            "rotary_position_embedding", "cos", got=f"shape {cos.shape}", takes=f"one that broadcasts to {x.shape}"
        )
    return x


def _lower(x: Any, cos: Any, sin: Any, *, interleaved: bool) -> Any:
    wide = accumulator(x.dtype) or x.dtype
    made = x.astype(wide) * cos.astype(wide) + _turned(x.astype(wide), interleaved) * sin.astype(wide)
    return made.astype(x.dtype)


def _vjp(ct: Any, x: Any, cos: Any, sin: Any, out: Tensor, *, interleaved: bool) -> list[Any]:
    return [
        lambda: ct * cos - apply(turned_pairs_p, ct * sin, interleaved=interleaved), lambda: sum_to(ct * x, cos.shape),
        lambda: sum_to(ct * apply(turned_pairs_p, x, interleaved=interleaved), sin.shape),
    ]  # fmt: skip


_X = np.sin(np.arange(24.0)).reshape(2, 3, 4)
_ANGLES = np.arange(3.0)[:, None] * np.array([0.3, 0.7, 0.3, 0.7])


rotary_embedding_p = Primitive(
    "rotary_embedding", infer=_infer, lower=_lower, vjp=_vjp,
    samples=lambda: [
        *[Sample((_X, np.cos(_ANGLES), np.sin(_ANGLES)), {"interleaved": flag}) for flag in (False, True)],
        Bad((np.ones((2, 3)), np.ones(3), np.ones(3)), {"interleaved": False}, ShapeError, "even number"),
        Bad((np.ones(4), np.ones((2, 4)), np.ones(4)), {"interleaved": False}, ShapeError, "broadcasts to"),
    ],
)  # fmt: skip


@operator()
def rotary_position_embedding(x: Any, cos: Any, sin: Any, mode: int = 0) -> Tensor:
    """``x * cos + turned(x) * sin``, where ``turned`` makes ``(-b, a)`` of each pair of features ``(a, b)``.

    Args:
        x: a float tensor with features on the last axis, an even number of them.
        cos: cosines of the angles, of a shape that broadcasts to that of ``x``.
        sin: sines of the angles, likewise.
        mode: 0: the pairs are the two halves; 1: they are neighbours.

    Raises:
        ShapeError: an odd number of features.

    >>> import mycelia as ms
    >>> print(ms.ops.rotary_position_embedding(ms.Tensor([1.0, 2.0]), ms.Tensor([0.0, 0.0]), ms.Tensor([1.0, 1.0])))
    [-2.  1.]
    """
    if mode not in (0, 1) or isinstance(mode, bool):
        raise ArgumentValueError("rotary_position_embedding", "mode", got=repr(mode), takes="0 or 1")
    operands = floats("rotary_position_embedding", x, cos, sin, names=("x", "cos", "sin"))
    return apply(rotary_embedding_p, *operands, interleaved=mode == 1)  # type: ignore[no-any-return]
