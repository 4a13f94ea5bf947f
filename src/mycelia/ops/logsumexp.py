"""The logarithm of a sum of exponentials over axes, computed after the largest element is taken out."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax.scipy.special import logsumexp as _jax_logsumexp

from mycelia.core import dtypes as dt
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.keywords import renaming
from mycelia.ops.operands import as_axes, as_tensor, cast
from mycelia.ops.outputs import one
from mycelia.ops.reduction import over, reduced_shape, spread
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Tensor

_TABLE = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.0]])

Ints = tuple[int, ...]


def _infer_logsumexp(x: TensorType, *, axes: Ints, keepdims: bool) -> TensorType:
    check_dtypes("logsumexp", (x,), dt.FLOATS)
    return TensorType(x.dtype, reduced_shape(x.shape, axes, keepdims))


def _lower_logsumexp(x: Any, *, axes: Ints, keepdims: bool) -> Any:
    if not axes:
        return x
    wide = x.astype(np.float32) if x.dtype in (dt.float16.np, dt.bfloat16.np) else x
    return _jax_logsumexp(wide, axis=axes, keepdims=keepdims).astype(x.dtype)


def _vjp_logsumexp(ct: Any, x: Any, out: Any, *, axes: Ints, keepdims: bool) -> list[Any]:
    from mycelia.ops.elementary import exp

    above: Any = spread(ct, x.shape, axes)
    return [above * exp(x - spread(out, x.shape, axes))]


logsumexp_p = Primitive(
    "logsumexp", infer=_infer_logsumexp, lower=_lower_logsumexp, vjp=_vjp_logsumexp, onnx="ReduceLogSumExp",
    samples=lambda: [
        Sample((_TABLE,), over((0,))), Sample((_TABLE,), over((0, 1), True)), Sample((np.array(2.0),), over(())),
        Sample((_TABLE * 1000,), over((1,)), dtypes=False), Sample((np.zeros((2, 0)),), over((1,)), grad=False),
        Sample((np.array([-np.inf, -np.inf]),), over((0,)), grad=False),
        Sample((np.array([np.inf, 1.0]),), over((0,)), grad=False),
        Bad((np.array([1]),), over((0,)), TypeError, "Int64"),
    ],
)  # fmt: skip


@operator()
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Tensor:
    """Logarithm of the sum of exponentials over axes, without overflow.

    Args:
        input: a floating tensor; integers and bools become float32.
        dim: an axis or a tuple of axes; an empty one means all of them.
        keepdim: keep folded axes with length 1.

    Returns:
        A tensor without the folded axes; minus infinity where there is nothing to add.

    Raises:
        OutOfRangeError: there is no such axis.

    >>> import mycelia as ms
    >>> print(f"{ms.ops.logsumexp(ms.Tensor([1000.0, 1000.0]), 0).item():.2f}")
    1000.69
    """
    x = as_tensor(input, "logsumexp")
    if not x.dtype.is_inexact:
        x = cast(x, dt.float32)
    return one(logsumexp_p, x, axes=as_axes(dim, x.ndim, "logsumexp", "dim"), keepdims=bool(keepdim))


attach("logsumexp", renaming(logsumexp, axis="dim", keep_dims="keepdim"))
