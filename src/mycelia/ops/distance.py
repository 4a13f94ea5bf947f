"""Distances between vectors: all pairs of rows, the pairs within one tensor.

The gradient of a norm at zero is taken as zero, so that equal rows have no NaN gradient.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.linear import accumulator
from mycelia.ops.operands import as_tensor, broadcast_shapes, same_dtype
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_A = np.array([[1.5, -2.0, 0.5], [0.25, 3.0, -1.0]])
_S = np.array([[1.0, 2.0, -1.0], [0.5, -0.25, 3.0], [2.0, 1.0, 0.75]])


def _infer_cdist(a: TensorType, b: TensorType, *, p: float) -> TensorType:
    check_dtypes("cdist", (a, b), dt.FLOATS, ("x1", "x2"))
    for t, name in ((a, "x1"), (b, "x2")):
        if t.rank < 2:
            raise ShapeError("cdist", name, got=f"shape {t.shape}", takes="shape (..., rows, features)")
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            "cdist", "x2", got=f"shape {b.shape}", takes=f"{a.shape[-1]} features, as 'x1' of shape {a.shape} has"
        )
    batch = broadcast_shapes("cdist", [a.shape[:-2], b.shape[:-2]], ("x1", "x2"))
    return TensorType(a.dtype, (*batch, a.shape[-2], b.shape[-2]))


def _lower_cdist(a: Any, b: Any, *, p: float) -> Any:
    wide = accumulator(a.dtype) or a.dtype
    difference = a.astype(wide)[..., :, None, :] - b.astype(wide)[..., None, :, :]
    return vector_p_norm(difference, p).astype(a.dtype)


def vector_p_norm(x: Any, p: float) -> Any:
    """The p-norm over the last axis of a ``jax`` array, with a derivative of zero where the norm is zero."""
    size = jnp.abs(x)
    if p == 0:
        return (x != 0).astype(x.dtype).sum(-1)
    if p == 1 or not x.shape[-1]:
        return size.sum(-1)
    if np.isinf(p):
        return size.max(-1)
    zero = (x == 0).all(-1)
    if p == 2:
        return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, (x * x).sum(-1))))
    powers = jnp.where(x == 0, 0, jnp.where(x == 0, 1, size) ** p)
    return jnp.where(zero, 0, jnp.where(zero, 1, powers.sum(-1)) ** (1 / p))


cdist_p = Primitive(
    "cdist", infer=_infer_cdist, lower=_lower_cdist, derived_vjp=True,
    samples=lambda: [
        *[Sample((_A, _S * 1.3 + 0.37), {"p": p}) for p in (1.0, 2.0, 3.0, float("inf"))],
        Sample((_A, _S), {"p": 0.0}, grad=False), Sample((_A, _A), {"p": 2.0}, grad=False),
        Sample((np.ones((2, 1, 3)) * _A[:1], _S), {"p": 2.0}),
        Bad((_A, np.zeros((2, 4))), {"p": 2.0}, ShapeError, "3 features"),
    ],
)  # fmt: skip


@operator()
def cdist(x1: Any, x2: Any, p: float = 2.0) -> Tensor:
    """Distances between all pairs of rows.

    Args:
        x1: a tensor of shape (..., n, k).
        x2: a tensor of shape (..., m, k); the leading axes broadcast.
        p: order of the norm, from 0 (how many coordinates differ) to infinity. The gradient at distance
            zero is zero.

    Returns:
        A tensor of shape (..., n, m).

    Raises:
        ShapeError: the numbers of features differ.
        ArgumentValueError: ``p`` is negative.

    >>> import mycelia as ms
    >>> print(ms.ops.cdist(ms.Tensor([[0.0, 0.0]]), ms.Tensor([[3.0, 4.0], [0.0, 1.0]])))
    [[5. 1.]]
    """
    a, b = same_dtype("cdist", x1, x2, names=("x1", "x2"))
    return apply(cdist_p, a, b, p=_order(p, "cdist"))  # type: ignore[no-any-return]


def _order(p: Any, where: str) -> float:
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise ArgumentTypeError(where, "p", got=type(p).__name__, takes="a number")
    if not p >= 0:
        raise ArgumentValueError(where, "p", got=str(p), takes="a number from 0 to infinity")
    return float(p)


def _infer_pdist(x: TensorType, *, p: float) -> TensorType:
    check_dtypes("pdist", (x,), dt.FLOATS)
    if x.rank < 2:
        raise ShapeError("pdist", "input", got=f"shape {x.shape}", takes="shape (..., rows, features)")
    n = x.shape[-2]
    return TensorType(x.dtype, (*x.shape[:-2], n * (n - 1) // 2))


def _lower_pdist(x: Any, *, p: float) -> Any:
    first, second = np.triu_indices(x.shape[-2], 1)
    wide = x.astype(accumulator(x.dtype) or x.dtype)
    return vector_p_norm(wide[..., first, :] - wide[..., second, :], p).astype(x.dtype)


pdist_p = Primitive(
    "pdist", infer=_infer_pdist, lower=_lower_pdist, derived_vjp=True,
    samples=lambda: [
        Sample((_S,), {"p": 2.0}), Sample((_S,), {"p": 1.0}), Sample((_A,), {"p": 3.0}), Sample((_A[:1],), {"p": 2.0}),
        Bad((_A[0],), {"p": 2.0}, ShapeError, "features"),
    ],
)  # fmt: skip


@operator()
def pdist(input: Any, p: float = 2.0) -> Tensor:
    """Distances between the pairs of rows i < j of one tensor, in the order of ``scipy``'s condensed form.

    Args:
        input: a tensor of shape (..., n, k).
        p: order of the norm, from 0 to infinity.

    Returns:
        A tensor of shape (..., n * (n - 1) / 2).

    >>> import mycelia as ms
    >>> print(ms.ops.pdist(ms.Tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])))
    [5.        1.        4.2426405]
    """
    return apply(pdist_p, as_tensor(input, "pdist"), p=_order(p, "pdist"))  # type: ignore[no-any-return]
