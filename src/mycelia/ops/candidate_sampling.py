"""Classes drawn to stand for all others in a loss over very many classes, with their expected counts.

S. Jean et al., "On using very large target vocabulary for neural machine translation" (2015). With ``unique`` the
expected count of a class is the probability that it is drawn at least once in as many draws as it took to find
the unique ones; drawing all classes takes none.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample
from mycelia.ops.operands import as_int, as_tensor
from mycelia.ops.random import check_key, next_key, uniform_floats
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_KEY = np.array([7, 11], np.uint32)


def _infer(
    key: TensorType, true: TensorType, *, count: int, unique: bool, classes: int, log_uniform: bool
) -> tuple[TensorType, ...]:
    where = "log_uniform_candidate_sampler" if log_uniform else "uniform_candidate_sampler"
    check_key(where, key)
    if not true.dtype.is_integer:
        raise DTypeError(where, "true_classes", got=f"dtype {true.dtype}", takes="integers")
    if true.rank != 2:
        raise ShapeError(where, "true_classes", got=f"shape {true.shape}", takes="shape (batch, num_true)")
    if unique and count > classes:
        raise ArgumentValueError(where, "num_sampled", got=str(count), takes=f"at most range_max, {classes}, if unique")
    return TensorType(true.dtype, (count,)), TensorType(dt.float32, true.shape), TensorType(dt.float32, (count,))


def _shares(classes: int, log_uniform: bool) -> np.ndarray[Any, Any]:
    """The probability of each class."""
    index = np.arange(classes, dtype=np.float64)
    if log_uniform:
        made: np.ndarray[Any, Any] = np.log((index + 2) / (index + 1)) / np.log(classes + 1)
        return made
    return np.full(classes, 1 / classes)


def _lower(key: Any, true: Any, *, count: int, unique: bool, classes: int, log_uniform: bool) -> tuple[Any, ...]:
    shares = _shares(classes, log_uniform)
    if unique:
        # the order of exponential waiting times is that of drawing without replacement
        waits = -jnp.log1p(-uniform_floats(key, (classes,), np.dtype(np.float64))) / shares
        drawn = jnp.argsort(waits)[:count]
        # how many draws it takes, in the mean, until the last of them is found
        tries = jnp.sort(waits)[count - 1] if count < classes else jnp.asarray(np.inf)
        expected = 1 - jnp.exp(-tries * shares) if log_uniform else jnp.full(classes, count / classes)
    else:
        point = uniform_floats(key, (count,), np.dtype(np.float64))
        drawn = jnp.minimum((np.cumsum(shares)[None, :] <= point[:, None]).sum(1), classes - 1)
        expected = jnp.asarray(shares * count)
    of_true = jnp.take(expected, true.astype(jnp.int64), mode="fill", fill_value=np.nan)
    return drawn.astype(true.dtype), of_true.astype(jnp.float32), expected[drawn].astype(jnp.float32)


def _attrs(count: int, unique: bool, classes: int, log_uniform: bool) -> dict[str, Any]:
    return {"count": count, "unique": unique, "classes": classes, "log_uniform": log_uniform}


_TRUE = np.array([[1, 3], [0, 2]])

#: Classes drawn, the expected counts of the true classes, and those of the drawn ones.
candidate_sampler_p = Primitive(
    "candidate_sampler", infer=_infer, lower=_lower, multi=True, differentiable=False,
    samples=lambda: [
        *[
            Sample((_KEY, _TRUE), _attrs(3, unique, 5, log_uniform), grad=False, dtypes=False)
            for unique in (False, True) for log_uniform in (False, True)
        ],
        Sample((_KEY, _TRUE), _attrs(5, True, 5, True), grad=False, dtypes=False),
        Bad((_KEY, _TRUE), _attrs(6, True, 5, False), ArgumentValueError, "at most range_max"),
        Bad((_KEY, _TRUE[0]), _attrs(2, True, 5, False), ShapeError, "num_true"),
    ],
)  # fmt: skip


def _sampled(
    where: str, true: Any, num_true: Any, count: Any, unique: Any, classes: Any, seed: Any, log_uniform: bool
) -> tuple[Tensor, Tensor, Tensor]:
    labels = as_tensor(true, where, "true_classes")
    number, most, each = (
        as_int(v, where, n) for v, n in ((count, "num_sampled"), (classes, "range_max"), (num_true, "num_true"))
    )
    if number < 1 or most < 1:
        raise ArgumentValueError(where, "num_sampled", got=f"{number} of {most} classes", takes="positive numbers")
    if labels.ndim == 2 and labels.shape[1] != each:
        raise ShapeError(
            where, "true_classes", got=f"shape {labels.shape}", takes=f"num_true, {each}, on the last axis"
        )
    key = next_key(seed, None, where)
    drawn, of_true, of_drawn = apply(
        candidate_sampler_p, key, labels, count=number, unique=bool(unique), classes=most, log_uniform=log_uniform
    )
    return drawn, of_true, of_drawn


@operator()
def uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int = 0,
    remove_accidental_hits: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Classes drawn evenly, and expected counts.

    Args:
        true_classes: the right classes, integers of shape (batch, num_true).
        num_true: how many right classes each sample has.
        num_sampled: how many to draw.
        unique: draw without replacement.
        range_max: number of classes.
        seed: a nonzero int draws from a stream of its own.
        remove_accidental_hits: accepted; drawn classes are given whether they are right ones or not.

    Returns:
        The drawn classes, the expected count of each right class, and of each drawn class.

    >>> import mycelia as ms
    >>> drawn, _, counts = ms.ops.uniform_candidate_sampler(ms.Tensor([[1], [3]]), 1, 3, True, 4)
    >>> print(counts)
    [0.75 0.75 0.75]
    """
    return _sampled("uniform_candidate_sampler", true_classes, num_true, num_sampled, unique, range_max, seed, False)


@operator()
def log_uniform_candidate_sampler(
    true_classes: Any, num_true: int = 1, num_sampled: int = 5, unique: bool = True, range_max: int = 5, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Classes drawn with probability ``log((c + 2) / (c + 1)) / log(range_max + 1)``, and expected counts.

    Args:
        true_classes: the right classes, integers of shape (batch, num_true).
        num_true: how many right classes each sample has.
        num_sampled: how many to draw.
        unique: draw without replacement.
        range_max: number of classes, ordered by frequency.
        seed: a nonzero int draws from a stream of its own.

    Returns:
        The drawn classes, the expected count of each right class, and of each drawn class.

    >>> import mycelia as ms
    >>> drawn, _, _ = ms.ops.log_uniform_candidate_sampler(ms.Tensor([[1], [3]]), 1, 5, True, 5)
    >>> sorted(drawn.tolist())
    [0, 1, 2, 3, 4]
    """
    return _sampled("log_uniform_candidate_sampler", true_classes, num_true, num_sampled, unique, range_max, seed, True)
