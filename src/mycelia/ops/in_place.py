"""Functions that overwrite their first argument: ``relu_(x)`` is ``relu`` of ``x`` put into ``x``.

The result must fit the tensor's shape and dtype (see :func:`mycelia.ops.calls.overwrite`).
"""

from __future__ import annotations

from typing import Any

from mycelia.core.errors import ArgumentTypeError
from mycelia.ops.activation import elu_ext, sigmoid, silu
from mycelia.ops.calls import overwrite
from mycelia.ops.creation import zeros_like
from mycelia.ops.elementary import tanh
from mycelia.ops.rectifiers import hardtanh, relu, threshold_ext
from mycelia.ops.registry import operator
from mycelia.ops.selection import clamp
from mycelia.ops.special import erfinv
from mycelia.tensor import Tensor


def _target(value: Any, where: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise ArgumentTypeError(where, "input", got=type(value).__name__, takes="a Tensor, which is overwritten")
    return value


@operator()
def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Overwrite a tensor with :func:`clamp` of it.

    >>> import mycelia as ms
    >>> x = ms.Tensor([1.0, 5.0])
    >>> print(ms.ops.clamp_(x, 2, 3) is x, x)
    True [2. 3.]
    """
    return overwrite(_target(input, "clamp_"), clamp(input, min, max), "clamp_")


@operator()
def erfinv_(input: Tensor) -> Tensor:
    """Overwrite a tensor with :func:`erfinv` of it.

    >>> import mycelia as ms
    >>> print(ms.ops.erfinv_(ms.Tensor([0.0])))
    [0.]
    """
    return overwrite(_target(input, "erfinv_"), erfinv(input), "erfinv_")


@operator()
def tanh_(input: Tensor) -> Tensor:
    """Overwrite a tensor with :func:`tanh` of it.

    >>> import mycelia as ms
    >>> print(ms.ops.tanh_(ms.Tensor([0.0])))
    [0.]
    """
    return overwrite(_target(input, "tanh_"), tanh(input), "tanh_")


@operator()
def zero_(input: Tensor) -> Tensor:
    """Overwrite a tensor with zeros.

    >>> import mycelia as ms
    >>> print(ms.ops.zero_(ms.Tensor([3, 4])))
    [0 0]
    """
    return overwrite(_target(input, "zero_"), zeros_like(input), "zero_")


@operator()
def relu_(input: Tensor) -> Tensor:
    """Overwrite a tensor with :func:`relu` of it.

    >>> import mycelia as ms
    >>> print(ms.ops.relu_(ms.Tensor([-1.0, 2.0])))
    [0. 2.]
    """
    return relu(_target(input, "relu_"), True)


@operator(aliases=("inplace_sigmoid",))
def sigmoid_(input: Tensor) -> Tensor:
    """Overwrite a tensor with :func:`sigmoid` of it.

    >>> import mycelia as ms
    >>> print(ms.ops.sigmoid_(ms.Tensor([0.0])))
    [0.5]
    """
    return overwrite(_target(input, "sigmoid_"), sigmoid(input), "sigmoid_")


@operator(aliases=("inplace_silu",))
def silu_(input: Tensor) -> Tensor:
    """Overwrite a tensor with :func:`silu` of it.

    >>> import mycelia as ms
    >>> print(ms.ops.silu_(ms.Tensor([0.0])))
    [0.]
    """
    return silu(_target(input, "silu_"), True)


@operator(aliases=("inplace_elu",))
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Overwrite a tensor with :func:`elu` of it.

    >>> import mycelia as ms
    >>> print(ms.ops.elu_(ms.Tensor([0.0, 2.0])))
    [0. 2.]
    """
    return elu_ext(_target(input, "elu_"), alpha, True)


@operator()
def hardtanh_(input: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    """Overwrite a tensor with :func:`hardtanh` of it.

    >>> import mycelia as ms
    >>> print(ms.ops.hardtanh_(ms.Tensor([-3.0, 0.5])))
    [-1.   0.5]
    """
    return hardtanh(_target(input, "hardtanh_"), min_val, max_val, True)


@operator()
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Overwrite a tensor with :func:`threshold` of it.

    >>> import mycelia as ms
    >>> print(ms.ops.threshold_(ms.Tensor([0.0, 2.0]), 1, 20))
    [20.  2.]
    """
    return threshold_ext(_target(input, "threshold_"), threshold, value, True)
