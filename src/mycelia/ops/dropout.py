"""Dropout: elements, or whole channels, are zeroed at random and the rest is scaled up.

N. Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting" (2014); channels:
J. Tompson et al., "Efficient object localization using convolutional networks" (2015); alpha dropout:
G. Klambauer et al., "Self-normalizing neural networks" (2017). An element is kept if a random integer of 16
bits (32 where the probability is near 0 or 1) is below a threshold, so probabilities are met to 2**-17.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.operands import cast
from mycelia.ops.random import Generator, check_key, next_key, random_words
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_KEY = np.array([3, 5], np.uint32)
_X = np.linspace(-1.0, 2.0, 24).reshape(2, 3, 4)


def kept(key: Any, shape: tuple[int, ...], p: float) -> Any:
    """A mask that is True with probability ``1 - p``."""
    if p in (0.0, 1.0):
        return jnp.full(shape, p == 0.0)
    bits = 16 if 1 / 256 <= p <= 255 / 256 else 32
    threshold = min(max(round((1 - p) * 2**bits), 1), 2**bits - 1)
    return random_words(key, shape, bits) < threshold


def _infer_dropout(key: TensorType, x: TensorType, *, p: float, mask_shape: tuple[int, ...]) -> tuple[TensorType, ...]:
    check_key("dropout", key)
    check_dtypes("dropout", (x,), dt.FLOATS)
    return x, TensorType(dt.bool_, mask_shape)


def _scale(x: Any, mask: Any, p: float) -> Any:
    factor = np.asarray(1 / (1 - p) if p < 1 else 0.0).astype(x.dtype)
    return jnp.where(mask, x * factor, jnp.zeros((), x.dtype))


def _lower_dropout(key: Any, x: Any, *, p: float, mask_shape: tuple[int, ...]) -> tuple[Any, ...]:
    mask = kept(key, mask_shape, p)
    return _scale(x, mask, p), mask


#: ``x`` with dropped elements, and the mask of those that are kept (of ``mask_shape``, which broadcasts).
dropout_p = Primitive(
    "dropout", infer=_infer_dropout, lower=_lower_dropout, multi=True,
    vjp=lambda cts, key, x, out, *, p, mask_shape: [
        None, None if cts[0] is None else lambda: apply(dropped_p, cts[0], out[1], p=p)
    ],
    samples=lambda: [
        *[Sample((_KEY, _X), {"p": p, "mask_shape": (2, 3, 4)}) for p in (0.5, 0.0, 1.0, 0.001)],
        Sample((_KEY, _X), {"p": 0.25, "mask_shape": (2, 3, 1)}),
        Sample((_KEY, _X[:0]), {"p": 0.5, "mask_shape": (0, 3, 4)}),
        Bad((_KEY, np.arange(3)), {"p": 0.5, "mask_shape": (3,)}, TypeError, "dtype Int64"),
    ],
)  # fmt: skip


def _infer_dropped(x: TensorType, mask: TensorType, *, p: float) -> TensorType:
    check_dtypes("dropout", (x,), dt.FLOATS)
    return x


#: ``x`` scaled where ``mask`` is True and zero elsewhere: dropout with a given mask, and its own gradient.
dropped_p: Primitive = Primitive(
    "dropped", infer=_infer_dropped, lower=lambda x, mask, *, p: _scale(x, mask, p),
    vjp=lambda ct, x, mask, out, *, p: [apply(dropped_p, ct, mask, p=p), None],
    samples=lambda: [
        Sample((_X, _X > 0.3), {"p": 0.5}), Sample((_X, _X[:, :, :1] > 0.3), {"p": 0.25}),
        Sample((np.array([np.inf, np.nan, 1.0]), np.array([False, False, True])), {"p": 0.5}, grad=False),
    ],
)  # fmt: skip


def _probability(p: Any, where: str) -> float:
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise ArgumentTypeError(where, "p", got=f"{p!r} ({type(p).__name__})", takes="a number from 0 to 1")
    if not 0 <= p <= 1:
        raise ArgumentValueError(where, "p", got=str(p), takes="a number from 0 to 1, the probability to drop")
    return float(p)


def _dropout(
    where: str, x: Tensor, p: float, mask_shape: tuple[int, ...], seed: Any = None, generator: Generator | None = None
) -> Tensor:
    key = next_key(seed, generator, where)
    return apply(dropout_p, key, x, p=p, mask_shape=mask_shape)[0]  # type: ignore[no-any-return]


@operator()
def dropout(
    input: Any, p: float = 0.5, training: bool = True, seed: Any = None, generator: Generator | None = None
) -> Tensor:
    """Zero each element with probability ``p`` and multiply the others by ``1 / (1 - p)``.

    Args:
        input: a float tensor of any shape.
        p: probability to drop an element, from 0 to 1.
        training: False gives the input back.
        seed: a nonzero int draws from a stream of its own.
        generator: the stream to draw from.

    Raises:
        ArgumentValueError: ``p`` is not from 0 to 1.

    >>> import mycelia as ms
    >>> print(ms.ops.dropout(ms.Tensor([1.0, 2.0]), p=1.0))
    [0. 0.]
    """
    rate = _probability(p, "dropout")
    x = as_float(input, "dropout")
    return _dropout("dropout", x, rate, x.shape, seed, generator) if training and rate else x


def _channels(where: str, input: Any, p: Any, training: bool, ranks: tuple[int, int]) -> Tensor:
    rate = _probability(p, where)
    x = as_float(input, where)
    if x.ndim not in ranks:
        raise ShapeError(
            where, "input", got=f"shape {x.shape}", takes=f"{ranks[1]} axes, or {ranks[0]} without the batch"
        )
    if not training or not rate:
        return x
    lead = x.ndim - (ranks[1] - 2)
    return _dropout(where, x, rate, x.shape[:lead] + (1,) * (x.ndim - lead))


@operator()
def dropout1d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Zero whole channels of a tensor of shape (batch, channels, length), or (channels, length).

    Args:
        input: a float tensor.
        p: probability to drop a channel.
        training: False gives the input back.

    >>> import mycelia as ms
    >>> y = ms.ops.dropout1d(ms.ops.ones((1, 8, 4)))
    >>> bool((y.amax(-1) == y.amin(-1)).all())
    True
    """
    return _channels("dropout1d", input, p, training, (2, 3))


@operator()
def dropout2d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Zero whole channels of a tensor of shape (batch, channels, height, width); see :func:`dropout1d`.

    >>> import mycelia as ms
    >>> ms.ops.dropout2d(ms.ops.ones((1, 8, 4, 4))).shape
    (1, 8, 4, 4)
    """
    return _channels("dropout2d", input, p, training, (3, 4))


@operator()
def dropout3d(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Zero whole channels of a tensor of shape (batch, channels, depth, height, width); see :func:`dropout1d`.

    >>> import mycelia as ms
    >>> ms.ops.dropout3d(ms.ops.ones((1, 8, 2, 4, 4))).shape
    (1, 8, 2, 4, 4)
    """
    return _channels("dropout3d", input, p, training, (4, 5))


#: ``-scale * alpha`` of SELU, the value that alpha dropout puts in place of what it drops.
_SATURATED = -1.7580993408473766


def _alpha(where: str, input: Any, p: Any, training: bool, whole_channels: bool) -> Tensor:
    rate = _probability(p, where)
    x = as_float(input, where)
    if not training or not rate:
        return x
    if rate == 1:
        return _dropout(where, x, 1.0, x.shape)
    shape = x.shape[:2] + (1,) * (x.ndim - 2) if whole_channels else x.shape
    _, mask = apply(dropout_p, next_key(None, None, where), x, p=rate, mask_shape=shape)
    keep: Any = cast(mask, x.dtype)
    gain = float(((1 - rate) * (1 + rate * _SATURATED**2)) ** -0.5)
    made: Tensor = (x * keep + (1.0 - keep) * _SATURATED) * gain - gain * rate * _SATURATED
    return made


@operator()
def alpha_dropout(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """Dropout that keeps mean 0 and variance 1, for SELU networks.

    Args:
        input: a float tensor of any shape.
        p: probability to drop an element.
        training: False gives the input back.

    >>> import mycelia as ms
    >>> ms.ops.alpha_dropout(ms.ops.ones((2, 3))).shape
    (2, 3)
    """
    return _alpha("alpha_dropout", input, p, training, False)


@operator()
def feature_alpha_dropout(input: Any, p: float = 0.5, training: bool = True) -> Tensor:
    """:func:`alpha_dropout` of whole channels (axis 1).

    >>> import mycelia as ms
    >>> ms.ops.feature_alpha_dropout(ms.ops.ones((2, 3, 4))).shape
    (2, 3, 4)
    """
    return _alpha("feature_alpha_dropout", input, p, training, True)
