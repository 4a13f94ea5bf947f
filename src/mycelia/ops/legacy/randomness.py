"""Class forms of random operators; a seed that is not 0 names a stream of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ops.distributions import (
    choice_with_mask,
    gamma,
    multinomial,
    multinomial_with_replacement,
    poisson,
    random_categorical,
    random_gamma,
    random_poisson,
    randperm,
    shuffle,
    standard_laplace,
    truncated_normal,
)
from mycelia.ops.elementary import exp
from mycelia.ops.legacy.form import form
from mycelia.ops.operands import as_int, as_shape, as_tensor, cast
from mycelia.ops.padding import pad
from mycelia.ops.random import bernoulli, rand, randint, randn
from mycelia.ops.reduction import sum as sum_
from mycelia.ops.selection import where
from mycelia.ops.shape import reshape
from mycelia.ops.slicing import narrow
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant

__all__ = [
    "Bernoulli", "DropoutDoMask", "DropoutGenMask", "Gamma", "LogNormalReverse", "Multinomial",
    "MultinomialWithReplacement", "Poisson", "RandomCategorical", "RandomChoiceWithMask", "RandomGamma",
    "RandomPoisson", "RandomShuffle", "Randperm", "RandpermV2", "StandardLaplace", "StandardNormal",
    "TruncatedNormal", "UniformInt", "UniformReal",
]  # fmt: skip


def _seed(seed: int, seed2: int) -> Any:
    return seed or seed2 or None


def _seeded(draw: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose last argument is a seed, given two of them."""

    def compute(*args: Any) -> Any:
        return draw(*args[:-2], _seed(args[-2], args[-1]))

    return compute


def _uniform(shape: Any, seed: int, seed2: int) -> Tensor:
    return rand(as_shape(shape, "UniformReal"), seed=_seed(seed, seed2))


def _normal(shape: Any, seed: int, seed2: int) -> Tensor:
    return randn(as_shape(shape, "StandardNormal"), seed=_seed(seed, seed2))


def _one(value: Any, argument: str) -> int:
    return as_int(value.item() if isinstance(value, Tensor) else value, "UniformInt", argument)


def _integers(shape: Any, minval: Any, maxval: Any, seed: int, seed2: int) -> Tensor:
    low, high = _one(minval, "minval"), _one(maxval, "maxval")
    if low >= high:
        raise ArgumentValueError("UniformInt", "minval", got=str(low), takes=f"less than 'maxval', {high}")
    return randint(low, high, as_shape(shape, "UniformInt"), _seed(seed, seed2), dtype=dt.int32)


def _permutation(n: Any, max_length: int, rest: int, dtype: dt.DType) -> Tensor:
    made = randperm(n.item() if isinstance(n, Tensor) else n, dtype=dtype)
    if made.size > max_length:
        raise ArgumentValueError("Randperm", "n", got=str(made.size), takes=f"at most max_length, {max_length}")
    return pad(made, (0, max_length - made.size), value=rest)


def _log_normal(input: Any, mean: float, std: float) -> Tensor:
    """Numbers whose logarithms are normal, of the shape of ``input``."""
    t = as_tensor(input, "LogNormalReverse")
    normal: Any = randn(t.shape, dtype=t.dtype)
    return exp(normal * std + mean)


def _check_count(count: int, seed: int, seed2: int) -> None:
    if count < 1:
        raise ArgumentValueError("RandomChoiceWithMask", "count", got=str(count), takes="an int of at least 1")


Bernoulli = form(
    "Bernoulli(seed=-1, offset=0)(x, p)",
    lambda x, p, seed, offset: bernoulli(x, p, None if seed < 0 else seed),
)
Gamma = form("Gamma(seed=0, seed2=0)(shape, alpha, beta)", _seeded(gamma))
LogNormalReverse = form("LogNormalReverse(mean=1.0, std=2.0)(input)", _log_normal)
Multinomial = form(
    "Multinomial(seed=0, seed2=0, dtype=int32)(x, num_samples)",
    lambda x, num_samples, seed, seed2, dtype: cast(multinomial(x, num_samples, True, _seed(seed, seed2)), dtype),
)
MultinomialWithReplacement = form(
    "MultinomialWithReplacement(numsamples, replacement=False)(x, seed, offset)", multinomial_with_replacement
)
Poisson = form("Poisson(seed=0, seed2=0)(shape, mean)", _seeded(poisson))
RandomCategorical = form("RandomCategorical(dtype=int64)(logits, num_sample, seed)", random_categorical)
RandomChoiceWithMask = form(
    "RandomChoiceWithMask(count=256, seed=0, seed2=0)(input_x)", _seeded(choice_with_mask), _check_count
)
RandomGamma = form("RandomGamma(seed=0, seed2=0)(shape, alpha)", _seeded(random_gamma))
RandomPoisson = form(
    "RandomPoisson(seed=0, seed2=0, dtype=int64)(shape, rate)",
    lambda shape, rate, seed, seed2, dtype: random_poisson(shape, rate, _seed(seed, seed2), dtype),
)
RandomShuffle = form("RandomShuffle(seed=0, seed2=0)(x)", _seeded(shuffle))
Randperm = form("Randperm(max_length=1, pad=-1, dtype=int32)(n)", _permutation)
RandpermV2 = form("RandpermV2(seed=0, offset=0, dtype=int64)(n)", randperm)
StandardLaplace = form("StandardLaplace(seed=0, seed2=0)(shape)", _seeded(standard_laplace))
StandardNormal = form("StandardNormal(seed=0, seed2=0)(shape)", _normal)
TruncatedNormal = form(
    "TruncatedNormal(dtype=float32, seed=0, seed2=0)(shape)",
    lambda shape, dtype, seed, seed2: truncated_normal(shape, dtype=dtype, seed=_seed(seed, seed2)),
)
UniformInt = form("UniformInt(seed=0, seed2=0)(shape, minval, maxval)", _integers)
UniformReal = form("UniformReal(seed=0, seed2=0)(shape)", _uniform)

# dropout in two steps: a mask of bits, and its use


def _bits(shape: Any, keep_prob: Any, seed0: int, seed1: int) -> Tensor:
    """A bit for each element, 1 with probability ``keep_prob``, eight to a byte, in blocks of 128 elements."""
    dims = as_shape(shape, "DropoutGenMask")
    keep = keep_prob.item() if isinstance(keep_prob, Tensor) else keep_prob
    if not 0 <= keep <= 1:
        raise ArgumentValueError("DropoutGenMask", "keep_prob", got=str(keep), takes="a probability")
    count = -(-int(np.prod(dims)) // 128) * 128
    drawn: Any = rand((count // 8, 8), seed=_seed(seed0, seed1))
    bits: Any = cast(drawn < keep, dt.int32)
    return cast(sum_(bits * constant(2 ** np.arange(8, dtype=np.int32)), -1), dt.uint8)


def _masked(x: Any, mask: Any, keep_prob: Any) -> Tensor:
    t, bits = as_tensor(x, "DropoutDoMask", "x"), as_tensor(mask, "DropoutDoMask", "mask")
    keep = keep_prob.item() if isinstance(keep_prob, Tensor) else keep_prob
    if bits.dtype is not dt.uint8 or bits.size * 8 < t.size:
        raise ShapeError(
            "DropoutDoMask", "mask", got=f"{bits.dtype}{list(bits.shape)}", takes="a mask of as many elements"
        )
    spread: Any = reshape(cast(bits, dt.int32), (-1, 1))
    flags = (spread // constant(2 ** np.arange(8, dtype=np.int32))) % 2
    kept: Any = reshape(narrow(reshape(flags, (-1,)), 0, 0, t.size), t.shape)
    scaled: Any = t
    made: Tensor = where(kept == 1, scaled / keep if keep else 0, 0)
    return made


DropoutDoMask = form("DropoutDoMask()(x, mask, keep_prob)", _masked)
DropoutGenMask = form("DropoutGenMask(Seed0=0, Seed1=0)(shape, keep_prob)", _bits)
