"""The larger or smaller of two tensors, element by element.

``maximum`` and ``minimum`` give NaN where an operand is NaN; ``fmax`` and ``fmin`` the other operand. Where both
are equal the gradient of ``maximum`` and ``minimum`` is shared half and half; ``fmax`` and ``fmin`` give it to
the first operand.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ops.calls import binary
from mycelia.ops.declare import Bad, Sample, elementwise
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_A = np.array([[-2.5, -1.0, 0.5], [1.0, 2.0, 3.5]])
_B = np.array([[-2.0, -1.5, 1.5], [0.5, 2.5, -3.5]])
_NAN = np.array([1.0, np.nan, np.nan, np.inf, -0.0])
_NAN_TOO = np.array([np.nan, 2.0, np.nan, 1.0, 0.0])


def _samples() -> list[Any]:
    return [
        Sample((_A, _B)), Sample((_A, _B[0])), Sample((np.array(0.25), _B)), Sample((np.zeros((0, 3)), _B[0])),
        Sample((_A, _A), grad=False), Sample((_NAN[:4], _NAN_TOO[:4]), grad=False, dtypes=False),
        Bad((_A, np.zeros(2)), {}, ShapeError, "broadcasts"),
        Bad((_A + 0j, _A + 0j), {}, DTypeError, "Complex128"),
    ]  # fmt: skip


def _share(ct: Any, a: Any, b: Any) -> Any:
    zero = jnp.zeros_like(ct)
    return jnp.where(a < b, zero, jnp.where(a == b, ct / 2, ct))


#: What the larger of ``a`` and ``b`` gives ``a`` of its cotangent: all, half where they are equal, else nothing.
share_p: Primitive = elementwise(
    "maximum_share", _share, arity=3, dtypes=dt.FLOATS, names=("ct", "input", "other"),
    vjp=lambda ct, given, a, b, out: (lambda: apply(share_p, ct, a, b), None, None),
    samples=lambda: [
        Sample((np.array([1.0, -2.0, 3.0]), np.array([1.0, 2.0, 3.0]), np.array([1.5, 2.0, -1.0])), grad=False),
        Sample((np.array([1.0, -2.0, np.inf]), np.array([np.nan, 2.0, 1.0]), np.array([1.5, np.nan, 2.0])), grad=False),
        Sample((np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(3))),
    ],
)  # fmt: skip


def _maximum(a: Any, b: Any) -> Any:
    return a | b if a.dtype == bool else lax.max(a, b)


def _minimum(a: Any, b: Any) -> Any:
    return a & b if a.dtype == bool else lax.min(a, b)


maximum_p = elementwise(
    "maximum", _maximum, arity=2, dtypes=(dt.bool_, *dt.REALS), onnx="Max", samples=_samples,
    vjp=lambda ct, a, b, out: (lambda: apply(share_p, ct, a, b), lambda: apply(share_p, ct, b, a)),
)  # fmt: skip
minimum_p = elementwise(
    "minimum", _minimum, arity=2, dtypes=(dt.bool_, *dt.REALS), onnx="Min", samples=_samples,
    vjp=lambda ct, a, b, out: (lambda: apply(share_p, ct, b, a), lambda: apply(share_p, ct, a, b)),
)  # fmt: skip


def _fmax(a: Any, b: Any) -> Any:
    return a | b if a.dtype == bool else jnp.fmax(a, b)


def _fmin(a: Any, b: Any) -> Any:
    return a & b if a.dtype == bool else jnp.fmin(a, b)


def _first_if(ct: Tensor, taken: Tensor) -> tuple[Any, Any]:
    from mycelia.ops.selection import where

    return lambda: where(taken, ct, 0), lambda: where(taken, 0, ct)


def _number_gradient(ct: Tensor, a: Tensor, b: Tensor, first: Any) -> tuple[Any, Any]:
    from mycelia.ops.logical import isnan

    return _first_if(ct, first | isnan(b))


fmax_p = elementwise(
    "fmax", _fmax, arity=2, dtypes=(dt.bool_, *dt.REALS), samples=_samples,
    vjp=lambda ct, a, b, out: _number_gradient(ct, a, b, a >= b),
)  # fmt: skip
fmin_p = elementwise(
    "fmin", _fmin, arity=2, dtypes=(dt.bool_, *dt.REALS), samples=_samples,
    vjp=lambda ct, a, b, out: _number_gradient(ct, a, b, a <= b),
)  # fmt: skip


@operator(methods=True)
def maximum(input: Any, other: Any) -> Tensor:
    """The larger of two tensors, element by element with broadcasting; NaN where either is NaN.

    Args:
        input: a real tensor or number.
        other: a real tensor or number that broadcasts with it.

    Returns:
        A tensor of the promoted dtype.

    Raises:
        DTypeError: complex numbers, which have no order.

    >>> import mycelia as ms
    >>> print(ms.ops.maximum(ms.Tensor([1, 5]), 3))
    [3 5]
    """
    return binary(maximum_p, "maximum", input, other)


@operator(methods=True)
def minimum(input: Any, other: Any) -> Tensor:
    """The smaller of two tensors, element by element with broadcasting; NaN where either is NaN.

    >>> import mycelia as ms
    >>> print(ms.ops.minimum(ms.Tensor([1, 5]), 3))
    [1 3]
    """
    return binary(minimum_p, "minimum", input, other)


@operator(methods=True)
def fmax(input: Any, other: Any) -> Tensor:
    """The larger of two tensors; where one is NaN, the other.

    >>> import mycelia as ms
    >>> print(ms.ops.fmax(ms.Tensor([1.0, float("nan")]), 0.5))
    [1.  0.5]
    """
    return binary(fmax_p, "fmax", input, other)


@operator(methods=True)
def fmin(input: Any, other: Any) -> Tensor:
    """The smaller of two tensors; where one is NaN, the other.

    >>> import mycelia as ms
    >>> print(ms.ops.fmin(ms.Tensor([1.0, float("nan")]), 0.5))
    [0.5 0.5]
    """
    return binary(fmin_p, "fmin", input, other)
