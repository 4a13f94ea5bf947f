"""Class forms of random operators; a seed that is not 0 names a stream of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ops.indexing import index_select
from mycelia.ops.joining import stack
from mycelia.ops.legacy.form import form
from mycelia.ops.operands import as_int, as_shape, as_tensor, cast
from mycelia.ops.padding import pad
from mycelia.ops.random import rand, randint, randn
from mycelia.ops.selection import where
from mycelia.ops.shape import reshape
from mycelia.ops.slicing import narrow
from mycelia.ops.sorting import sort
from mycelia.ops.special import erfinv
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant

__all__: list[str] = []  # generated


def _seed(seed: int, seed2: int) -> Any:
    return seed or seed2 or None


def _uniform(shape: Any, seed: int, seed2: int) -> Tensor:
    return rand(as_shape(shape, "UniformReal"), seed=_seed(seed, seed2))


def _normal(shape: Any, seed: int, seed2: int) -> Tensor:
    return randn(as_shape(shape, "StandardNormal"), seed=_seed(seed, seed2))


def _integers(shape: Any, minval: Any, maxval: Any, seed: int, seed2: int) -> Tensor:
    low, high = (as_int(v.item() if isinstance(v, Tensor) else v, "UniformInt", n)
                 for v, n in ((minval, "minval"), (maxval, "maxval")))  # fmt: skip
    if low >= high:
        raise ArgumentValueError("UniformInt", "minval", got=str(low), takes=f"less than 'maxval', {high}")
    return randint(low, high, as_shape(shape, "UniformInt"), _seed(seed, seed2), dtype=dt.int32)


def _laplace(shape: Any, seed: int, seed2: int) -> Tensor:
    """By the inverse of the distribution function: ``-sign(u) * log(1 - 2 |u|)`` of a uniform ``u`` around 0."""
    from mycelia.ops.elementary import log1p
    from mycelia.ops.rounding import abs as abs_, sign

    u: Any = rand(as_shape(shape, "StandardLaplace"), seed=_seed(seed, seed2))
    centered = 0.5 - u  # from (-0.5, 0.5]
    tail: Any = log1p(-2 * where(centered >= 0.5, 0, abs_(centered)))
    made: Tensor = -sign(centered) * tail
    return made


def _truncated(shape: Any, dtype: dt.DType, seed: int, seed2: int) -> Tensor:
    """A normal number from [-2, 2], by the inverse of its distribution function."""
    inside = 0.9544997361036416  # erf(2 / sqrt(2))
    u: Any = rand(as_shape(shape, "TruncatedNormal"), seed=_seed(seed, seed2))
    bent: Any = erfinv((2 * u - 1) * inside)
    return cast(bent * float(np.sqrt(2)), dtype)


def _permutation(count: Any, seed: Any, dtype: dt.DType, where_: str) -> Tensor:
    """The numbers below ``count`` in random order: the order of as many uniform numbers."""
    n = as_int(count.item() if isinstance(count, Tensor) else count, where_, "n")
    if n < 0:
        raise ArgumentValueError(where_, "n", got=str(n), takes="at least 0")
    return cast(sort(rand((n,), seed=seed))[1], dtype)


def _padded_permutation(n: Any, max_length: int, pad_with: int, dtype: dt.DType) -> Tensor:
    made = _permutation(n, None, dtype, "Randperm")
    if made.size > max_length:
        raise ArgumentValueError("Randperm", "n", got=str(made.size), takes=f"at most max_length, {max_length}")
    return pad(made, (0, max_length - made.size), value=pad_with)


def _shuffled(x: Any, seed: int, seed2: int) -> Tensor:
    t = as_tensor(x, "RandomShuffle", "x")
    if not t.ndim:
        return t
    return index_select(t, 0, _permutation(t.shape[0], _seed(seed, seed2), dt.int64, "RandomShuffle"))


def _chosen(input_x: Any, count: int, seed: int, seed2: int) -> tuple[Tensor, Tensor]:
    """The coordinates of ``count`` true places in random order, and which of them are real: others are 0."""
    where_ = "RandomChoiceWithMask"
    t = as_tensor(input_x, where_, "input_x")
    if t.dtype is not dt.bool_:
        raise ArgumentTypeError(where_, "input_x", got=f"dtype {t.dtype}", takes="a bool tensor")
    if not t.ndim or count < 1:
        raise ArgumentValueError(where_, "count", got=f"{count} of shape {t.shape}", takes="at least 1, of 1 to 5 axes")
    flat = reshape(t, (-1,))
    keys, order = sort(where(flat, rand((t.size,), seed=_seed(seed, seed2)), 2.0))
    short = max(count - t.size, 0)
    keys, order = (narrow(pad(v, (0, short), value=fill), 0, 0, count) for v, fill in ((keys, 2.0), (order, 0)))
    found: Any = keys
    found = found < 2
    place: Any = where(found, order, 0)
    rows = []
    for length in reversed(t.shape):
        rows.append(place % length)
        place = place // length
    return cast(stack(rows[::-1], -1), dt.int32), found


def _check_count(where_: str) -> Any:
    def check(*, count: int, **given: Any) -> None:
        if count < 1:
            raise ArgumentValueError(where_, "count", got=str(count), takes="an int of at least 1")

    return check


RandomChoiceWithMask = form(
    "RandomChoiceWithMask(count=256, seed=0, seed2=0)(input_x)", _chosen, _check_count("RandomChoiceWithMask")
)
RandomShuffle = form("RandomShuffle(seed=0, seed2=0)(x)", _shuffled)
Randperm = form("Randperm(max_length=1, pad=-1, dtype=int32)(n)", _padded_permutation)
RandpermV2 = form(
    "RandpermV2(seed=0, offset=0, dtype=int64)(n)",
    lambda n, seed, offset, dtype: _permutation(n, seed or offset or None, dtype, "RandpermV2"),
)
StandardLaplace = form("StandardLaplace(seed=0, seed2=0)(shape)", _laplace)
StandardNormal = form("StandardNormal(seed=0, seed2=0)(shape)", _normal)
TruncatedNormal = form("TruncatedNormal(dtype=float32, seed=0, seed2=0)(shape)", _truncated)
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
    return cast(cast(drawn < keep, dt.int32).mul(constant(2 ** np.arange(8, dtype=np.int32))).sum(-1), dt.uint8)  # type: ignore[attr-defined]


def _masked(x: Any, mask: Any, keep_prob: Any) -> Tensor:
    t, bits = as_tensor(x, "DropoutDoMask", "x"), as_tensor(mask, "DropoutDoMask", "mask")
    keep = keep_prob.item() if isinstance(keep_prob, Tensor) else keep_prob
    if bits.dtype is not dt.uint8 or bits.size * 8 < t.size:
        raise ShapeError("DropoutDoMask", "mask", got=f"{bits.dtype}{list(bits.shape)}", takes="a mask of as many elements")
    spread: Any = reshape(cast(bits, dt.int32), (-1, 1))
    flags = (spread // constant(2 ** np.arange(8, dtype=np.int32))) % 2
    kept = reshape(narrow(reshape(flags, (-1,)), 0, 0, t.size), t.shape)
    scaled: Any = t
    return where(kept == 1, scaled / keep if keep else 0, 0)  # type: ignore[no-any-return]


DropoutDoMask = form("DropoutDoMask()(x, mask, keep_prob)", _masked)
DropoutGenMask = form("DropoutGenMask(Seed0=0, Seed1=0)(shape, keep_prob)", _bits)
