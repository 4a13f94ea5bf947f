"""Gradients clipped by the norm of all of them together.

R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural networks" (2013).
"""

from __future__ import annotations

from typing import Any

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, StateError
from mycelia.ops.elementary import sqrt
from mycelia.ops.extremum import maximum, minimum
from mycelia.ops.joining import stack
from mycelia.ops.norms import vector_norm
from mycelia.ops.operands import as_tensor, cast
from mycelia.ops.power import square
from mycelia.ops.reduction import sum as sum_
from mycelia.tensor import Tensor

__all__ = ["clip_by_global_norm", "clip_by_norm"]


def _tensors(x: Any, where: str) -> list[Tensor]:
    if not isinstance(x, (tuple, list)) or not x:
        raise ArgumentTypeError(where, "x", got=type(x).__name__, takes="a tuple or list of tensors that is not empty")
    return [as_tensor(v, where, f"x[{i}]") for i, v in enumerate(x)]


def _positive(value: Any, where: str, argument: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError(where, argument, got=type(value).__name__, takes="a number above 0")
    if not value > 0:
        raise ArgumentValueError(where, argument, got=str(value), takes="a number above 0")
    return float(value)


def _wide(t: Tensor) -> Tensor:
    return t if t.dtype is dt.float64 else cast(t, dt.float32)


def _scaled(t: Tensor, factor: Any) -> Tensor:
    wide: Any = _wide(t)
    return cast(wide * cast(factor, wide.dtype), t.dtype)


def clip_by_global_norm(x: Any, clip_norm: float = 1.0, use_norm: None = None) -> tuple[Tensor, ...]:
    """Tensors scaled by one factor, so that the norm of all their elements together is at most ``clip_norm``.

    Args:
        x: a tuple or list of floating tensors.
        clip_norm: the largest norm, above 0.
        use_norm: None.

    Returns:
        A tuple of tensors of the same shapes and dtypes; the norm is taken in float32.

    Raises:
        ArgumentTypeError: ``x`` is no sequence of tensors.
        ArgumentValueError: ``clip_norm`` is not above 0, or ``use_norm`` is given.

    >>> import mycelia as ms
    >>> print(*ms.ops.clip_by_global_norm((ms.Tensor([3.0]), ms.Tensor([4.0])), 1.0))
    [0.6] [0.8]
    """
    where = "clip_by_global_norm"
    limit = _positive(clip_norm, where, "clip_norm")
    if use_norm is not None:
        raise ArgumentValueError(where, "use_norm", got=repr(use_norm), takes="None")
    tensors = _tensors(x, where)
    total: Any = sum_(square(_wide(tensors[0])))
    for t in tensors[1:]:
        total = total + sum_(square(_wide(t)))
    factor = limit / maximum(sqrt(total), limit)
    return tuple([_scaled(t, factor) for t in tensors])


def clip_by_norm(x: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """Tensors scaled by one factor, so that the norm of their norms is at most ``max_norm``.

    Args:
        x: a floating tensor, or a tuple or list of them.
        max_norm: the largest norm.
        norm_type: the order of the norm; infinity takes the largest element.
        error_if_nonfinite: refuse a norm that is NaN or infinite; only when the operator runs at once.

    Returns:
        A tensor, or a tuple or list of them like ``x``.

    Raises:
        StateError: the norm is not finite and that is to be refused.

    >>> import mycelia as ms
    >>> print(ms.ops.clip_by_norm(ms.Tensor([3.0, 4.0]), 1.0).asnumpy().round(3))
    [0.6 0.8]
    """
    where = "clip_by_norm"
    single = isinstance(x, Tensor)
    tensors = _tensors([x] if single else x, where)
    norms = stack([cast(vector_norm(_wide(t), norm_type), dt.float32) for t in tensors])
    total: Any = vector_norm(norms, norm_type)
    if error_if_nonfinite and not total.is_symbolic and not abs(total.item()) < float("inf"):
        raise StateError(where, message=f"the norm of order {norm_type} is {total.item()}, which is not finite")
    factor = minimum(max_norm / (total + 1e-6), 1.0)
    made = [_scaled(t, factor) for t in tensors]
    return made[0] if single else type(x)(made) if type(x) in (tuple, list) else tuple(made)
