"""Random numbers of further distributions, permutations and choices; the keys come from :mod:`mycelia.ops.random`.

Where there is a closed form they are made of uniform numbers by the inverse of the distribution function; gamma
by rejection (G. Marsaglia and W. W. Tsang, 2000), Poisson by rejection (W. Hörmann, 1993), choices without
replacement by Gumbel noise (T. Vieira, 2014), permutations by sorting 64-bit integers. No gradient flows to the
parameters of a rejection.
"""

from __future__ import annotations

from math import erf, sqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType, as_dtype
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float, overwrite
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.linear import accumulator
from mycelia.ops.operands import as_int, as_shape, as_tensor, broadcast_shapes, cast
from mycelia.ops.random import (
    Generator,
    _float_dtype,
    check_key,
    draw,
    jax_key,
    next_key,
    random_blocks,
    random_normal_p,
    spread_over,
    uniform_floats,
)
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_KEY = np.array([7, 11], np.uint32)


# Primitives ---------------------------------------------------------------------------------------------


def _infer_gamma(key: TensorType, alpha: TensorType, *, shape: tuple[int, ...]) -> TensorType:
    check_key("gamma", key)
    check_dtypes("gamma", (alpha,), dt.FLOATS, ("alpha",))
    broadcast_shapes("gamma", [shape, alpha.shape], ("shape", "alpha"))
    return TensorType(alpha.dtype, shape)


def _lower_gamma(key: Any, alpha: Any, *, shape: tuple[int, ...]) -> Any:
    wide = jnp.broadcast_to(alpha.astype(accumulator(alpha.dtype) or alpha.dtype), shape)
    return jax.random.gamma(jax_key(key), wide, dtype=wide.dtype).astype(alpha.dtype)


#: Gamma numbers of shape parameter ``alpha`` and scale 1.
random_gamma_p = Primitive(
    "random_gamma", infer=_infer_gamma, lower=_lower_gamma, differentiable=False,
    samples=lambda: [
        Sample((_KEY, np.array([0.5, 1.0, 7.5])), {"shape": (2, 3)}, grad=False, dtypes=False),
        Sample((_KEY, np.array(2.0)), {"shape": ()}, grad=False, dtypes=False),
        Sample((_KEY, np.array(2.0)), {"shape": (0, 2)}, grad=False, dtypes=False),
        Bad((_KEY, np.array([1, 2])), {"shape": (2,)}, DTypeError, "Int64"),
    ],
)  # fmt: skip


def _infer_poisson(key: TensorType, rate: TensorType, *, shape: tuple[int, ...]) -> TensorType:
    check_key("poisson", key)
    check_dtypes("poisson", (rate,), dt.FLOATS, ("rate",))
    broadcast_shapes("poisson", [shape, rate.shape], ("shape", "rate"))
    return TensorType(dt.int64, shape)


#: Poisson counts of mean ``rate``.
random_poisson_p = Primitive(
    "random_poisson", infer=_infer_poisson, differentiable=False,
    lower=lambda key, rate, *, shape: jax.random.poisson(jax_key(key), rate.astype(jnp.float32), shape, jnp.int64),
    samples=lambda: [
        Sample((_KEY, np.array([0.5, 20.0])), {"shape": (3, 2)}, grad=False),
        Sample((_KEY, np.array(0.0)), {"shape": (4,)}, grad=False),
        Bad((_KEY, np.array([1, 2])), {"shape": (2,)}, DTypeError, "Int64"),
    ],
)  # fmt: skip


def _infer_permutation(key: TensorType, *, n: int, dtype: DType) -> TensorType:
    check_key("randperm", key)
    return TensorType(dtype, (n,))


def _order(key: Any, n: int) -> Any:
    return jnp.argsort(random_blocks(key, (n,)))


#: The integers below ``n`` in random order.
random_permutation_p = Primitive(
    "random_permutation", infer=_infer_permutation, differentiable=False,
    lower=lambda key, *, n, dtype: _order(key, n).astype(dtype.np),
    samples=lambda: [
        Sample((_KEY,), {"n": 7, "dtype": dt.int64}, grad=False),
        Sample((_KEY,), {"n": 0, "dtype": dt.int32}, grad=False),
    ],
)  # fmt: skip


def _infer_shuffle(key: TensorType, x: TensorType, *, inverse: bool) -> TensorType:
    check_key("shuffle", key)
    return x


def _lower_shuffle(key: Any, x: Any, *, inverse: bool) -> Any:
    if not x.ndim or not x.shape[0]:
        return x
    order = _order(key, x.shape[0])
    return x[jnp.argsort(order) if inverse else order]


#: ``x`` with its slices along axis 0 in random order, or put back from it.
shuffle_p: Primitive = Primitive(
    "shuffle", infer=_infer_shuffle, lower=_lower_shuffle,
    vjp=lambda ct, key, x, out, *, inverse: [None, apply(shuffle_p, key, ct, inverse=not inverse)],
    samples=lambda: [
        Sample((_KEY, np.arange(12.0).reshape(4, 3)), {"inverse": False}),
        Sample((_KEY, np.arange(5.0)), {"inverse": True}),
        Sample((_KEY, np.zeros((0, 2))), {"inverse": False}), Sample((_KEY, np.array(2.0)), {"inverse": False}),
    ],
)  # fmt: skip


def _infer_categorical(key: TensorType, logits: TensorType, *, count: int, replace: bool) -> TensorType:
    check_key("multinomial", key)
    check_dtypes("multinomial", (logits,), dt.FLOATS)
    if not logits.rank or not logits.shape[-1]:
        raise ShapeError("multinomial", "input", got=f"shape {logits.shape}", takes="categories on the last axis")
    if not replace and count > logits.shape[-1]:
        raise ArgumentValueError(
            "multinomial",
            "num_samples",
            got=str(count),
            takes=f"at most the {logits.shape[-1]} categories without replacement",
        )
    return TensorType(dt.int64, (*logits.shape[:-1], count))


def _lower_categorical(key: Any, logits: Any, *, count: int, replace: bool) -> Any:
    wide = logits.astype(jnp.float64)
    if not replace:
        u = _below_one(_positive(key, wide.shape, np.dtype(np.float64)))
        return jnp.argsort(-(wide - jnp.log(-jnp.log(u))), axis=-1, stable=True)[..., :count]
    shares = jnp.cumsum(jax.nn.softmax(wide, axis=-1), axis=-1)
    point = uniform_floats(key, (*wide.shape[:-1], count), np.dtype(np.float64)) * shares[..., -1:]
    below = (shares[..., None, :] <= point[..., :, None]).sum(-1)
    return jnp.minimum(below, wide.shape[-1] - 1)


#: ``count`` categories for each row of logits, with or without replacement.
random_categorical_p = Primitive(
    "random_categorical", infer=_infer_categorical, lower=_lower_categorical, differentiable=False,
    samples=lambda: [
        Sample((_KEY, np.zeros((2, 3))), {"count": 5, "replace": True}, grad=False),
        Sample((_KEY, np.array([-np.inf, 0.0, 1.0])), {"count": 2, "replace": False}, grad=False),
        Bad((_KEY, np.zeros(3)), {"count": 4, "replace": False}, ArgumentValueError, "at most the 3"),
        Bad((_KEY, np.zeros((2, 0))), {"count": 1, "replace": True}, ShapeError, "categories"),
    ],
)  # fmt: skip


def _infer_truncated(key: TensorType, *, shape: tuple[int, ...], dtype: DType, low: float, high: float) -> TensorType:
    check_key("truncated_normal", key)
    return TensorType(dtype, shape)


def _lower_truncated(key: Any, *, shape: tuple[int, ...], dtype: DType, low: float, high: float) -> Any:
    wide = np.dtype(np.float64) if dtype is dt.float64 else np.dtype(np.float32)
    least, most = erf(low / sqrt(2.0)), erf(high / sqrt(2.0))
    share = least + (most - least) * uniform_floats(key, shape, wide)
    return jnp.clip(sqrt(2.0) * lax.erf_inv(share), low, high).astype(dtype.np)


#: Standard normal numbers between two bounds.
random_truncated_normal_p = Primitive(
    "random_truncated_normal", infer=_infer_truncated, lower=_lower_truncated, differentiable=False,
    samples=lambda: [
        Sample((_KEY,), {"shape": (3, 4), "dtype": dt.float64, "low": a, "high": b}, grad=False)
        for a, b in ((-2.0, 2.0), (0.5, 3.0))
    ],
)  # fmt: skip


def _positive(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform numbers from (0, 1]."""
    return 1 - uniform_floats(key, shape, dtype)


def _continuous(name: str, made: Any) -> Primitive:
    """A primitive of numbers that are a function of one uniform number from (0, 1]."""

    def infer(key: TensorType, *, shape: tuple[int, ...], dtype: DType) -> TensorType:
        check_key(name, key)
        check_dtypes(name, (TensorType(dtype, shape),), dt.FLOATS, ("dtype",))
        return TensorType(dtype, shape)

    def lower(key: Any, *, shape: tuple[int, ...], dtype: DType) -> Any:
        wide = np.dtype(np.float64) if dtype is dt.float64 else np.dtype(np.float32)
        return made(_positive(key, shape, wide)).astype(dtype.np)

    return Primitive(
        name, infer=infer, lower=lower, differentiable=False,
        samples=lambda: [
            Sample((_KEY,), {"shape": (3, 4), "dtype": dt.float64}, grad=False),
            Bad((_KEY,), {"shape": (3,), "dtype": dt.int32}, DTypeError, "Int32"),
        ],
    )  # fmt: skip


def _below_one(u: Any) -> Any:
    return jnp.minimum(u, 1 - float(np.finfo(u.dtype).epsneg))


def _laplace_of(u: Any) -> Any:
    half = jnp.minimum(u, 1 - u)
    tiny = float(np.finfo(u.dtype).tiny)
    return jnp.where(u > 0.5, -1, 1) * jnp.log(2 * jnp.maximum(half, tiny))


random_exponential_p = _continuous("random_exponential", lambda u: -jnp.log(u))
random_laplace_p = _continuous("random_laplace", _laplace_of)
random_cauchy_p = _continuous("random_cauchy", lambda u: jnp.tan(np.pi * (u - 0.5)))
random_gumbel_p = _continuous("random_gumbel", lambda u: -jnp.log(-jnp.log(_below_one(u))))


# Public operators ---------------------------------------------------------------------------------------


def gumbel(shape: Any, dtype: DType = dt.float32, seed: Any = None, generator: Generator | None = None) -> Tensor:
    """Numbers of the standard Gumbel distribution: ``-log(-log(u))``.

    >>> gumbel((2, 3)).shape
    (2, 3)
    """
    return draw(random_gumbel_p, "gumbel", as_shape(shape, "gumbel"), dtype, seed, generator)


@operator()
def standard_laplace(shape: Any, seed: Any = None) -> Tensor:
    """Numbers of the Laplace distribution of mean 0 and scale 1.

    >>> import mycelia as ms
    >>> ms.ops.standard_laplace((2, 3)).shape
    (2, 3)
    """
    return draw(random_laplace_p, "standard_laplace", as_shape(shape, "standard_laplace"), dt.float32, seed, None)


@operator()
def laplace(shape: Any, mean: Any, lambda_param: Any, seed: Any = None) -> Tensor:
    """Numbers of Laplace distributions.

    Args:
        shape: a shape that broadcasts with the parameters; every element is drawn on its own.
        mean: a number or tensor.
        lambda_param: scale, a number or tensor.
        seed: a nonzero int draws from a stream of its own.

    >>> import mycelia as ms
    >>> ms.ops.laplace((2, 3), 0.0, 1.0).shape
    (2, 3)
    """
    dims, (centre, scale) = spread_over("laplace", shape, mean, lambda_param, names=("mean", "lambda_param"))
    made: Any = draw(random_laplace_p, "laplace", dims, dt.float32, seed, None)
    return made * cast(scale, dt.float32) + cast(centre, dt.float32)  # type: ignore[no-any-return]


@operator()
def gamma(shape: Any, alpha: Any, beta: Any, seed: Any = None) -> Tensor:
    """Numbers of gamma distributions.

    Args:
        shape: a shape that broadcasts with the parameters; every element is drawn on its own.
        alpha: shape parameter, positive, a number or tensor.
        beta: rate, positive, a number or tensor.
        seed: a nonzero int draws from a stream of its own.

    >>> import mycelia as ms
    >>> ms.ops.gamma((2, 3), 1.0, 1.0).shape
    (2, 3)
    """
    dims, (a, b) = spread_over("gamma", shape, alpha, beta, names=("alpha", "beta"))
    key = next_key(seed, None, "gamma")
    made: Any = apply(random_gamma_p, key, a if a.dtype in dt.FLOATS else cast(a, dt.float32), shape=dims)
    return made / cast(b, made.dtype)  # type: ignore[no-any-return]


@operator()
def random_gamma(shape: Any, alpha: Any, seed: Any = None) -> Tensor:
    """Numbers of gamma distributions of rate 1: ``shape`` of them for each element of ``alpha``.

    Returns:
        A tensor of shape ``(*shape, *alpha.shape)``.

    >>> import mycelia as ms
    >>> ms.ops.random_gamma((2,), ms.Tensor([1.0, 2.0, 3.0])).shape
    (2, 3)
    """
    a = as_float(alpha, "random_gamma", "alpha")
    dims = (*as_shape(shape, "random_gamma"), *a.shape)
    return apply(random_gamma_p, next_key(seed, None, "random_gamma"), a, shape=dims)  # type: ignore[no-any-return]


def beta(alpha: Any, beta: Any, shape: Any = (), seed: Any = None) -> Tensor:
    """Numbers of beta distributions: of two gamma numbers, the share of the first.

    >>> import mycelia as ms
    >>> 0.0 <= beta(2.0, 3.0).item() <= 1.0
    True
    """
    first: Any = gamma(
        broadcast_shapes("beta", [as_shape(shape, "beta"), as_tensor(beta, "beta").shape]), alpha, 1.0, seed
    )
    second: Any = gamma(first.shape, beta, 1.0, seed)
    return first / (first + second)  # type: ignore[no-any-return]


@operator()
def random_poisson(shape: Any, rate: Any, seed: Any = None, dtype: Any = dt.float32) -> Tensor:
    """Poisson counts: ``shape`` of them for each element of ``rate``.

    Args:
        shape: a tuple or an integer tensor.
        rate: means, a number or tensor.
        seed: a nonzero int draws from a stream of its own.
        dtype: of the result.

    Returns:
        A tensor of shape ``(*shape, *rate.shape)``.

    >>> import mycelia as ms
    >>> ms.ops.random_poisson((2,), ms.Tensor([1.0, 2.0, 3.0])).shape
    (2, 3)
    """
    mean = as_float(rate, "random_poisson", "rate")
    dims = (*as_shape(shape, "random_poisson"), *mean.shape)
    counts = apply(random_poisson_p, next_key(seed, None, "random_poisson"), mean, shape=dims)
    return cast(counts, as_dtype(dtype, "random_poisson"))


@operator()
def poisson(shape: Any, mean: Any, seed: Any = None) -> Tensor:
    """Poisson counts in a shape that broadcasts with the means, as int32.

    >>> import mycelia as ms
    >>> ms.ops.poisson((2, 1), ms.Tensor([1.0, 2.0, 3.0])).shape
    (2, 3)
    """
    dims, (rate,) = spread_over("poisson", shape, mean, names=("mean",))
    rate = rate if rate.dtype in dt.FLOATS else cast(rate, dt.float32)
    return cast(apply(random_poisson_p, next_key(seed, None, "poisson"), rate, shape=dims), dt.int32)


@operator()
def randperm(
    n: Any, seed: Any = 0, offset: int = 0, dtype: Any = dt.int64, generator: Generator | None = None
) -> Tensor:
    """The integers from 0 to n - 1 in random order.

    Args:
        n: how many, an int or an integer tensor.
        seed: a nonzero int draws from a stream of its own.
        offset: accepted; the stream knows its place.
        dtype: of the result.
        generator: the stream to draw from.

    >>> import mycelia as ms
    >>> int(ms.ops.randperm(5).sum())
    10
    """
    count = as_int(n, "randperm", "n")
    if count < 0:
        raise ArgumentValueError("randperm", "n", got=str(count), takes="an int that is not negative")
    key = next_key(seed, generator, "randperm")
    return apply(random_permutation_p, key, n=count, dtype=as_dtype(dtype, "randperm"))  # type: ignore[no-any-return]


@operator()
def shuffle(x: Any, seed: Any = None) -> Tensor:
    """The slices along axis 0 in random order.

    >>> import mycelia as ms
    >>> int(ms.ops.shuffle(ms.Tensor([1, 2, 3])).sum())
    6
    """
    return apply(shuffle_p, next_key(seed, None, "shuffle"), as_tensor(x, "shuffle", "x"), inverse=False)  # type: ignore[no-any-return]


def _choices(where: str, logits: Tensor, count: Any, replace: bool, seed: Any, generator: Generator | None) -> Tensor:
    number = as_int(count, where, "num_samples")
    if number < 1:
        raise ArgumentValueError(where, "num_samples", got=str(number), takes="a positive int")
    key = next_key(seed, generator, where)
    return apply(random_categorical_p, key, logits, count=number, replace=bool(replace))  # type: ignore[no-any-return]


def _log_weights(input: Any, where: str, ranks: tuple[int, ...] = (1, 2)) -> Tensor:
    from mycelia.ops.elementary import log

    x = as_float(input, where)
    if x.ndim not in ranks:
        raise ShapeError(where, "input", got=f"shape {x.shape}", takes="shape (categories,) or (rows, categories)")
    return log(x)


@operator(methods=True)
def multinomial(
    input: Any, num_samples: int, replacement: bool = True, seed: Any = None, generator: Generator | None = None
) -> Tensor:
    """Categories drawn in proportion to weights, as int32.

    Args:
        input: weights that are not negative, of shape (categories,) or (rows, categories).
        num_samples: how many for each row.
        replacement: whether a category may be drawn again.
        seed: a nonzero int draws from a stream of its own.
        generator: the stream to draw from.

    Raises:
        ArgumentValueError: more samples than categories without replacement.

    >>> import mycelia as ms
    >>> print(ms.ops.multinomial(ms.Tensor([0.0, 1.0]), 3))
    [1 1 1]
    """
    logits = _log_weights(input, "multinomial")
    return cast(_choices("multinomial", logits, num_samples, replacement, seed, generator), dt.int32)


@operator()
def multinomial_with_replacement(x: Any, seed: Any, offset: Any, numsamples: int, replacement: bool = False) -> Tensor:
    """Categories drawn in proportion to weights, as int64.

    Args:
        x: weights of shape (categories,) or (rows, categories).
        seed: a nonzero int draws from a stream of its own.
        offset: accepted; the stream knows its place.
        numsamples: how many for each row.
        replacement: whether a category may be drawn again.

    >>> import mycelia as ms
    >>> print(ms.ops.multinomial_with_replacement(ms.Tensor([0.0, 1.0]), 1, 0, 2, True))
    [1 1]
    """
    logits = _log_weights(x, "multinomial_with_replacement")
    return _choices("multinomial_with_replacement", logits, numsamples, replacement, seed, None)


@operator()
def random_categorical(logits: Any, num_sample: int, seed: Any = 0, dtype: Any = dt.int64) -> Tensor:
    """Categories drawn by their logits, with replacement.

    Args:
        logits: unnormalized log-probabilities of shape (rows, categories).
        num_sample: how many for each row.
        seed: a nonzero int draws from a stream of its own.
        dtype: int16, int32 or int64.

    >>> import mycelia as ms
    >>> ms.ops.random_categorical(ms.ops.zeros((2, 3)), 5).shape
    (2, 5)
    """
    x = as_float(logits, "random_categorical", "logits")
    if x.ndim != 2:
        raise ShapeError("random_categorical", "logits", got=f"shape {x.shape}", takes="shape (rows, categories)")
    made = as_dtype(dtype, "random_categorical")
    if made not in (dt.int16, dt.int32, dt.int64):
        raise DTypeError("random_categorical", "dtype", got=str(made), takes="Int16, Int32 or Int64")
    return cast(_choices("random_categorical", x, num_sample, True, seed, None), made)


def truncated_normal(
    shape: Any, low: float = -2.0, high: float = 2.0, dtype: Any = dt.float32, seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Numbers of the standard normal distribution that lie between two bounds.

    >>> bool((truncated_normal((100,)).abs() <= 2).all())
    True
    """
    if not low < high:
        raise ArgumentValueError("truncated_normal", "high", got=f"{high} with low {low}", takes="more than low")
    kind = _float_dtype(dtype, "truncated_normal")
    key = next_key(seed, generator, "truncated_normal")
    return apply(  # type: ignore[no-any-return]
        random_truncated_normal_p, key, shape=as_shape(shape, "truncated_normal"), dtype=kind, low=float(low),
        high=float(high),
    )  # fmt: skip


@operator()
def choice_with_mask(input_x: Any, count: int = 256, seed: Any = None) -> tuple[Tensor, Tensor]:
    """Positions of True elements in random order.

    Args:
        input_x: a bool tensor of 1 to 5 axes.
        count: how many positions to give; 0 for as many as there are elements.
        seed: a nonzero int draws from a stream of its own.

    Returns:
        Positions of shape (count, axes) in int32, and a bool for each that is False where there was none left.

    >>> import mycelia as ms
    >>> index, mask = ms.ops.choice_with_mask(ms.Tensor([False, True]), 2)
    >>> print(index[0], mask)
    [1] [ True False]
    """
    x = as_tensor(input_x, "choice_with_mask", "input_x")
    if x.dtype is not dt.bool_ or not 1 <= x.ndim <= 5:
        raise ArgumentTypeError("choice_with_mask", "input_x", got=str(x.dtype), takes="a bool tensor of 1 to 5 axes")
    number = as_int(count, "choice_with_mask", "count")
    if number < 0:
        raise ArgumentValueError("choice_with_mask", "count", got=str(count), takes="an int that is not negative")
    index, mask = apply(random_places_p, next_key(seed, None, "choice_with_mask"), x, count=number or x.size)
    return index, mask


def _infer_places(key: TensorType, x: TensorType, *, count: int) -> tuple[TensorType, ...]:
    check_key("choice_with_mask", key)
    return TensorType(dt.int32, (count, x.rank)), TensorType(dt.bool_, (count,))


def _lower_places(key: Any, x: Any, *, count: int) -> tuple[Any, ...]:
    flat = x.reshape(-1)
    if not flat.size:
        return jnp.zeros((count, x.ndim), jnp.int32), jnp.zeros(count, bool)
    order = _order(key, flat.size)
    order = order[jnp.argsort(~flat[order], stable=True)]
    padded = jnp.pad(order, (0, max(count - flat.size, 0)))[:count]
    found = jnp.pad(flat[order], (0, max(count - flat.size, 0)))[:count]
    places = jnp.stack(jnp.unravel_index(padded, x.shape), -1)
    return jnp.where(found[:, None], places, 0).astype(jnp.int32), found


#: Positions of True elements in random order, and which of them are real.
random_places_p = Primitive(
    "random_places", infer=_infer_places, lower=_lower_places, multi=True, differentiable=False,
    samples=lambda: [
        Sample((_KEY, np.array([[True, False], [True, True]])), {"count": 4}, grad=False),
        Sample((_KEY, np.array([False, True])), {"count": 5}, grad=False),
    ],
)  # fmt: skip


# Tensor methods -----------------------------------------------------------------------------------------


def _own(where: str, primitive: Primitive, self: Tensor, generator: Generator | None = None) -> Any:
    kind = self.dtype if self.dtype in dt.FLOATS else dt.float32
    return draw(primitive, where, self.shape, kind, None, generator)


def _exponential_in_place(self: Tensor, lambd: Any = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the exponential distribution of rate ``lambd``."""
    return overwrite(
        self, _own("Tensor.exponential_", random_exponential_p, self, generator) / lambd, "Tensor.exponential_"
    )


def _cauchy(self: Tensor, median: Any = 0.0, sigma: Any = 1.0) -> Tensor:
    """Numbers of a Cauchy distribution in the shape of the tensor."""
    return _own("Tensor.cauchy", random_cauchy_p, self) * sigma + median  # type: ignore[no-any-return]


def _log_normal(self: Tensor, mean: Any = 1.0, std: Any = 2.0) -> Tensor:
    """Exponentials of numbers of a normal distribution in the shape of the tensor."""
    from mycelia.ops.elementary import exp

    return exp(_own("Tensor.log_normal", random_normal_p, self) * std + mean)


def _random_categorical(self: Tensor, num_sample: int, seed: Any = 0, dtype: Any = dt.int64) -> Tensor:
    """:func:`mycelia.ops.random_categorical` with the tensor as logits."""
    return random_categorical(self, num_sample, seed, dtype)


attach("exponential_", _exponential_in_place)
attach("cauchy", _cauchy)
attach("log_normal", _log_normal)
attach("random_categorical", _random_categorical)
