"""Number theory of integers: greatest common divisor and least common multiple."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import DTypeError, ShapeError
from mycelia.ops.calls import binary
from mycelia.ops.declare import Bad, Sample, elementwise
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor

_A = np.array([[12, 18, 0], [7, 100, 36]])
_B = np.array([8, 0, 24])


def _samples() -> list[Any]:
    return [
        Sample((_A, _B)), Sample((_A, np.array(6))), Sample((np.zeros((0, 3), np.int64), _B)),
        Sample((np.array([-12, 12, 0]), np.array([18, -18, 0])), dtypes=False),
        Bad((_A, np.zeros(2, np.int64)), {}, ShapeError, "broadcasts"),
        Bad((np.array([1.5]), np.array([1.5])), {}, DTypeError, "Float64"),
    ]  # fmt: skip


gcd_p = elementwise("gcd", jnp.gcd, arity=2, dtypes=dt.INTEGERS, differentiable=False, samples=_samples)
lcm_p = elementwise("lcm", jnp.lcm, arity=2, dtypes=dt.INTEGERS, differentiable=False, samples=_samples)


@operator(methods=True)
def gcd(input: Any, other: Any) -> Tensor:
    """Greatest common divisor, not negative, with broadcasting; that of 0 and n is n.

    Raises:
        DTypeError: not integers.

    >>> import mycelia as ms
    >>> print(ms.ops.gcd(ms.Tensor([12, 7]), 18))
    [6 1]
    """
    return binary(gcd_p, "gcd", input, other)


@operator(methods=True)
def lcm(input: Any, other: Any) -> Tensor:
    """Least common multiple, not negative, with broadcasting; that of 0 and n is 0.

    Raises:
        DTypeError: not integers.

    >>> import mycelia as ms
    >>> print(ms.ops.lcm(ms.Tensor([12, 7]), 18))
    [ 36 126]
    """
    return binary(lcm_p, "lcm", input, other)
