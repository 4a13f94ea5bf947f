"""The random state, and numbers drawn from it: uniform, normal, integers, coin flips.

Numbers are a pure function of a key: two 32-bit words, given to the Threefry 2x32 counter generator (J. K.
Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). The state of a stream is a tensor
``(seed, counter)``; every draw takes it as its key and advances the counter, a write like that of a parameter,
so that a compiled function draws exactly the numbers of the eager run. ``set_seed`` sets the default stream,
which starts with seed 0; a nonzero ``seed`` argument names a stream of its own beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.dtypes import DType, as_dtype
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, DTypeError
from mycelia.core.random import get_seed, on_seed
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import overwrite
from mycelia.ops.declare import Bad, Sample
from mycelia.ops.operands import as_int, as_shape, as_tensor, broadcast_shapes, cast, varargs
from mycelia.ops.registry import attach, operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant, scalar, set_value
from mycelia.tensor.mode import is_staging, running

_KEY = np.array([7, 11], np.uint32)
_WORD = 2**32


def check_key(where: str, key: TensorType) -> None:
    """Refuse a key that is not two 32-bit words."""
    if key.dtype is not dt.uint32 or key.shape != (2,):
        raise DTypeError(where, "key", got=str(key), takes="a uint32 tensor of shape (2,)")


def jax_key(key: Any) -> Any:
    """The key array of two words."""
    return jax.random.wrap_key_data(key, impl="threefry2x32")


def random_words(key: Any, shape: tuple[int, ...], bits: int) -> Any:
    """Random unsigned integers of 16 or 32 bits, several to each 64-bit block of the generator."""
    count, each = int(np.prod(shape)), 64 // bits
    blocks = jax.random.bits(jax_key(key), (-(-count // each),), jnp.uint64)
    words = lax.bitcast_convert_type(blocks, jnp.dtype(f"uint{bits}"))
    return words.reshape(-1)[:count].reshape(shape)


def uniform_floats(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Floats from [0, 1): 23 random bits of mantissa for float32, 52 for float64; half types are rounded."""
    if dtype == jnp.float64:
        return jax.random.uniform(jax_key(key), shape, jnp.float64)
    mantissa = lax.shift_right_logical(random_words(key, shape, 32), jnp.uint32(9))
    made = lax.bitcast_convert_type(mantissa | jnp.uint32(0x3F800000), jnp.float32) - 1
    return (
        made if dtype == jnp.float32 else jnp.minimum(made.astype(dtype), jnp.nextafter(dtype.type(1), dtype.type(0)))
    )


def normal_floats(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Standard normal floats, by the inverse error function of a uniform number from (-1, 1)."""
    if dtype == jnp.float64:
        return jax.random.normal(jax_key(key), shape, jnp.float64)
    low = np.nextafter(np.float32(-1), np.float32(0))
    u = jnp.maximum(uniform_floats(key, shape, jnp.dtype(jnp.float32)) * 2 - 1, low)
    return (np.float32(np.sqrt(2)) * lax.erf_inv(u)).astype(dtype)


def _lower_advance(state: Any) -> tuple[Any, ...]:
    counter = state[1] + jnp.uint32(1)
    return state, jnp.stack([state[0] + (counter == 0).astype(jnp.uint32), counter])


def _infer_advance(state: TensorType) -> tuple[TensorType, ...]:
    check_key("random_advance", state)
    return state, state


#: A key of a state, and the state after it.
random_advance_p = Primitive(
    "random_advance", infer=_infer_advance, lower=_lower_advance, multi=True, differentiable=False,
    samples=lambda: [Sample((_KEY,), grad=False), Sample((np.array([1, _WORD - 1], np.uint32),), grad=False)],
)  # fmt: skip


class Generator:
    """A stream of random numbers with a state of its own.

    >>> import mycelia as ms
    >>> from mycelia.ops.random import Generator
    >>> g = Generator().manual_seed(3)
    >>> saved = g.get_state()
    >>> a = ms.ops.rand(2, generator=g)
    >>> g.set_state(saved)
    >>> bool((a == ms.ops.rand(2, generator=g)).all())
    True
    """

    def __init__(self, seed: int = 0) -> None:
        self._initial = seed
        self._made: Tensor | None = None

    @property
    def _state(self) -> Tensor:
        """Seed and counter; a tensor from the first use on, so that importing the package asks for no device."""
        if self._made is None:
            with running():
                self._made = Tensor(np.array([self._initial % _WORD, 0], np.uint32))
        return self._made

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of ``seed`` (any int; its lowest 32 bits count) and return the generator."""
        self._initial = as_int(seed, "Generator.manual_seed", "seed")
        if self._made is not None or is_staging():
            set_value(self._state, constant(np.array([self._initial % _WORD, 0], np.uint32)))
        return self

    def seed(self) -> int:
        """Start a stream that the operating system chooses, and return its seed."""
        chosen = int(np.random.SeedSequence().generate_state(1)[0])
        self.manual_seed(chosen)
        return chosen

    def initial_seed(self) -> int:
        """The seed the stream started with."""
        return self._initial

    def get_state(self) -> Tensor:
        """The state as a uint8 tensor of 8 bytes: seed and counter."""
        words = np.asarray(self._state._concrete("the state of a random generator"))
        return Tensor(np.frombuffer(words.astype("<u4").tobytes(), np.uint8).copy())

    def set_state(self, state: Tensor) -> None:
        """Go back to a state that :meth:`get_state` gave.

        Raises:
            ArgumentTypeError: not a uint8 tensor of 8 bytes.
        """
        if not isinstance(state, Tensor) or state.dtype is not dt.uint8 or state.shape != (8,):
            raise ArgumentTypeError("Generator.set_state", "state", got=repr(state), takes="a uint8 tensor of 8 bytes")
        words = np.frombuffer(state.asnumpy().tobytes(), "<u4").astype(np.uint32)
        set_value(self._state, constant(words))


#: The stream that operators use unless they are given a seed or a generator.
default_generator = Generator()
#: Streams of nonzero ``seed`` arguments, made when first used.
_seeded: dict[int, Generator] = {}


def _seed_of_stream(seed: int) -> int:
    """The first word of the stream that a ``seed`` argument names; it depends on the global seed as well."""
    return (seed * 0x9E3779B1 + (get_seed() or 0) * 0x85EBCA77 + 1) % _WORD


def _reset(seed: int) -> None:
    default_generator.manual_seed(seed)
    for number, stream in _seeded.items():
        stream.manual_seed(_seed_of_stream(number))


on_seed(_reset)


def stream_of(seed: Any, generator: Generator | None, where: str) -> Generator:
    """The stream that a ``seed`` or ``generator`` argument stands for."""
    if generator is not None:
        if not isinstance(generator, Generator):
            raise ArgumentTypeError(where, "generator", got=type(generator).__name__, takes="a Generator or None")
        return generator
    if seed is None or seed == 0:
        return default_generator
    number = as_int(seed, where, "seed")
    if number < 0:
        raise ArgumentValueError(where, "seed", got=str(seed), takes="an int that is not negative")
    found = _seeded.get(number)
    if found is None:
        found = _seeded[number] = Generator(_seed_of_stream(number))
    return found


def next_key(seed: Any = None, generator: Generator | None = None, where: str = "random") -> Tensor:
    """A key that no draw had before, as a uint32 tensor of shape (2,); advances the stream.

    Args:
        seed: None or 0 for the default stream, any other int for one of its own.
        generator: a stream, which ``seed`` gives way to.
        where: the operator's name in messages.
    """
    state = (default_generator if seed is None and generator is None else stream_of(seed, generator, where))._state
    key, after = apply(random_advance_p, state)
    set_value(state, after)
    return key  # type: ignore[no-any-return]


def manual_seed(seed: int) -> Generator:
    """Start the default stream anew with ``seed``, and return it.

    >>> from mycelia.ops.random import manual_seed, initial_seed
    >>> _ = manual_seed(5)
    >>> initial_seed()
    5
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start the default stream with a seed that the operating system chooses, and return the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed the default stream started with."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default stream as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(state: Tensor) -> None:
    """Go back to a state of the default stream that :func:`get_rng_state` gave."""
    default_generator.set_state(state)


# Primitives ---------------------------------------------------------------------------------------------


def _infer_floats(key: TensorType, *, shape: tuple[int, ...], dtype: DType) -> TensorType:
    check_key("random", key)
    if dtype not in dt.FLOATS:
        raise DTypeError("random", "dtype", got=str(dtype), takes="a floating dtype")
    return TensorType(dtype, shape)


def _float_samples(*exact: DType) -> Any:
    return lambda: [
        *[Sample((_KEY,), {"shape": (3, 5), "dtype": d}, grad=False) for d in exact],
        Sample((_KEY,), {"shape": (), "dtype": dt.float64}, grad=False),
        Sample((_KEY,), {"shape": (0, 2), "dtype": dt.float32}, grad=False),
        Bad((_KEY,), {"shape": (2,), "dtype": dt.int32}, DTypeError, "floating"),
        Bad((_KEY[:1],), {"shape": (2,), "dtype": dt.float32}, DTypeError, "uint32"),
    ]


random_uniform_p = Primitive(
    "random_uniform", infer=_infer_floats, differentiable=False, samples=_float_samples(*dt.FLOATS),
    lower=lambda key, *, shape, dtype: uniform_floats(key, shape, dtype.np),
)  # fmt: skip

random_normal_p = Primitive(
    "random_normal", infer=_infer_floats, differentiable=False, samples=_float_samples(dt.float64),
    lower=lambda key, *, shape, dtype: normal_floats(key, shape, dtype.np),
)  # fmt: skip


def _infer_integers(
    key: TensorType, low: TensorType, high: TensorType, *, shape: tuple[int, ...], dtype: DType
) -> TensorType:
    check_key("randint", key)
    broadcast_shapes("randint", [shape, low.shape, high.shape], ("size", "low", "high"))
    return TensorType(dtype, shape)


def random_blocks(key: Any, shape: tuple[int, ...]) -> Any:
    """Random unsigned integers of 64 bits."""
    return jax.random.bits(jax_key(key), shape, jnp.uint64)


def _lower_integers(key: Any, low: Any, high: Any, *, shape: tuple[int, ...], dtype: DType) -> Any:
    span = jnp.maximum(high - low, 1).astype(jnp.uint64)
    return (low + (random_blocks(key, shape) % span).astype(jnp.int64)).astype(dtype.np)


#: Integers from [low, high), which are int64 tensors that broadcast to ``shape``; ``low`` if there are none.
random_integers_p = Primitive(
    "random_integers", infer=_infer_integers, lower=_lower_integers, differentiable=False,
    samples=lambda: [
        Sample((_KEY, np.array(-3), np.array(4)), {"shape": (3, 5), "dtype": dt.int64}, grad=False, dtypes=False),
        Sample((_KEY, np.arange(4), np.arange(1, 5)), {"shape": (3, 4), "dtype": dt.int32}, grad=False, dtypes=False),
        Sample((_KEY, np.array(5), np.array(5)), {"shape": (2,), "dtype": dt.int64}, grad=False, dtypes=False),
        Bad((_KEY[:1], np.array(0), np.array(4)), {"shape": (3,), "dtype": dt.int64}, DTypeError, "uint32"),
    ],
)  # fmt: skip


def _infer_bernoulli(key: TensorType, p: TensorType, *, shape: tuple[int, ...]) -> TensorType:
    check_key("bernoulli", key)
    if p.dtype not in dt.FLOATS:
        raise DTypeError("bernoulli", "p", got=f"dtype {p.dtype}", takes="floating probabilities")
    broadcast_shapes("bernoulli", [shape, p.shape], ("input", "p"))
    return TensorType(dt.bool_, shape)


def _lower_bernoulli(key: Any, p: Any, *, shape: tuple[int, ...]) -> Any:
    wide = jnp.dtype(jnp.float64 if p.dtype == jnp.float64 else jnp.float32)
    return uniform_floats(key, shape, wide) < p.astype(wide)


#: True with probability ``p``.
random_bernoulli_p = Primitive(
    "random_bernoulli", infer=_infer_bernoulli, lower=_lower_bernoulli, differentiable=False,
    samples=lambda: [
        Sample((_KEY, np.array(0.25)), {"shape": (4, 5)}, grad=False, dtypes=False),
        Sample((_KEY, np.array([0.0, 1.0, 0.5])), {"shape": (50, 3)}, grad=False, dtypes=False),
        Bad((_KEY, np.array([1, 2])), {"shape": (2,)}, DTypeError, "floating"),
    ],
)  # fmt: skip


# Public operators ---------------------------------------------------------------------------------------


def _float_dtype(dtype: Any, where: str, default: DType = dt.float32) -> DType:
    made = default if dtype is None else as_dtype(dtype, where)
    if made not in dt.FLOATS:
        raise DTypeError(where, "dtype", got=str(made), takes="a floating dtype")
    return made


def draw(
    primitive: Primitive, where: str, shape: tuple[int, ...], dtype: DType, seed: Any, generator: Generator | None
) -> Tensor:
    """Numbers of a primitive that takes a key, ``shape`` and ``dtype``."""
    return apply(primitive, next_key(seed, generator, where), shape=shape, dtype=dtype)  # type: ignore[no-any-return]


@operator()
def rand(*size: Any, dtype: Any = None, seed: Any = None, generator: Generator | None = None) -> Tensor:
    """Uniform numbers from [0, 1).

    Args:
        size: the lengths of the axes, as ints or one tuple.
        dtype: a floating dtype, float32 by default.
        seed: a nonzero int draws from a stream of its own.
        generator: the stream to draw from.

    >>> import mycelia as ms
    >>> ms.ops.rand(2, 3).shape
    (2, 3)
    """
    shape = as_shape(varargs(size), "rand", "size")
    return draw(random_uniform_p, "rand", shape, _float_dtype(dtype, "rand"), seed, generator)


@operator()
def rand_like(input: Any, seed: Any = None, *, dtype: Any = None, generator: Generator | None = None) -> Tensor:
    """Uniform numbers from [0, 1) in the shape and dtype of a tensor.

    >>> import mycelia as ms
    >>> ms.ops.rand_like(ms.ops.ones((2, 3))).shape
    (2, 3)
    """
    x = as_tensor(input, "rand_like")
    return draw(random_uniform_p, "rand_like", x.shape, _float_dtype(dtype, "rand_like", x.dtype), seed, generator)


@operator()
def randn(*size: Any, dtype: Any = None, seed: Any = None, generator: Generator | None = None) -> Tensor:
    """Numbers of the standard normal distribution; arguments as :func:`rand`.

    >>> import mycelia as ms
    >>> ms.ops.randn((2, 3)).shape
    (2, 3)
    """
    shape = as_shape(varargs(size), "randn", "size")
    return draw(random_normal_p, "randn", shape, _float_dtype(dtype, "randn"), seed, generator)


@operator()
def randn_like(input: Any, seed: Any = None, *, dtype: Any = None, generator: Generator | None = None) -> Tensor:
    """Numbers of the standard normal distribution in the shape and dtype of a tensor.

    >>> import mycelia as ms
    >>> ms.ops.randn_like(ms.ops.ones((2, 3))).shape
    (2, 3)
    """
    x = as_tensor(input, "randn_like")
    return draw(random_normal_p, "randn_like", x.shape, _float_dtype(dtype, "randn_like", x.dtype), seed, generator)


@operator()
def standard_normal(shape: Any, seed: Any = None) -> Tensor:
    """Numbers of the standard normal distribution.

    >>> import mycelia as ms
    >>> ms.ops.standard_normal((2, 3)).shape
    (2, 3)
    """
    return draw(random_normal_p, "standard_normal", as_shape(shape, "standard_normal"), dt.float32, seed, None)


def _bound(value: Any, where: str, argument: str) -> Tensor:
    if type(value) is int:
        return scalar(value, dt.int64)
    made = as_tensor(value, where, argument)
    if not made.dtype.is_integer:
        raise DTypeError(where, argument, got=f"dtype {made.dtype}", takes="an integer")
    return cast(made, dt.int64)


def _integers(
    where: str, low: Any, high: Any, shape: tuple[int, ...], dtype: DType, seed: Any, generator: Generator | None
) -> Tensor:
    if type(low) is int and type(high) is int and low >= high:
        raise ArgumentValueError(where, "high", got=f"{high} with low {low}", takes="more than low")
    key = next_key(seed, generator, where)
    bounds = _bound(low, where, "low"), _bound(high, where, "high")
    return apply(random_integers_p, key, *bounds, shape=shape, dtype=dtype)  # type: ignore[no-any-return]


@operator()
def randint(
    low: Any, high: Any, size: Any, seed: Any = None, *, dtype: Any = None, generator: Generator | None = None
) -> Tensor:
    """Integers from [low, high).

    Args:
        low: the least.
        high: one more than the greatest.
        size: the shape, a tuple.
        seed: a nonzero int draws from a stream of its own.
        dtype: an integer dtype, int64 by default.
        generator: the stream to draw from.

    Raises:
        ArgumentValueError: ``low`` is not below ``high``.

    >>> import mycelia as ms
    >>> int(ms.ops.randint(3, 4, (2,)).sum())
    6
    """
    kind = dt.int64 if dtype is None else as_dtype(dtype, "randint")
    return _integers("randint", low, high, as_shape(size, "randint", "size"), kind, seed, generator)


@operator()
def randint_like(
    input: Any, low: Any, high: Any, seed: Any = None, *, dtype: Any = None, generator: Generator | None = None
) -> Tensor:
    """Integers from [low, high) in the shape of a tensor, and in its dtype unless one is given.

    >>> import mycelia as ms
    >>> ms.ops.randint_like(ms.Tensor([[1, 2]]), 0, 9).shape
    (1, 2)
    """
    x = as_tensor(input, "randint_like")
    kind = x.dtype if dtype is None else as_dtype(dtype, "randint_like")
    return _integers("randint_like", low, high, x.shape, kind, seed, generator)


def spread_over(where: str, shape: Any, *params: Any, names: tuple[str, ...]) -> tuple[tuple[int, ...], list[Tensor]]:
    """The shape that ``shape`` and the parameters broadcast to, and the parameters as tensors."""
    dims = as_shape(shape, where)
    tensors = [as_tensor(p, where, n) for p, n in zip(params, names, strict=True)]
    return broadcast_shapes(where, [dims, *[t.shape for t in tensors]], ("shape", *names)), tensors


@operator()
def uniform(
    shape: Any, minval: Any, maxval: Any, seed: Any = None, dtype: Any = dt.float32, generator: Generator | None = None
) -> Tensor:
    """Uniform numbers from [minval, maxval).

    Args:
        shape: a shape that broadcasts with the bounds; every element of the result is drawn on its own.
        minval: a number or tensor.
        maxval: a number or tensor.
        seed: a nonzero int draws from a stream of its own.
        dtype: float32, another floating dtype, or an integer dtype.
        generator: the stream to draw from.

    >>> import mycelia as ms
    >>> ms.ops.uniform((2, 3), ms.Tensor(1.0), ms.Tensor(2.0)).shape
    (2, 3)
    """
    dims, (low, high) = spread_over("uniform", shape, minval, maxval, names=("minval", "maxval"))
    kind = as_dtype(dtype, "uniform")
    if kind.is_integer:
        return _integers("uniform", low, high, dims, kind, seed, generator)
    low, high = cast(low, _float_dtype(kind, "uniform")), cast(high, kind)
    return draw(random_uniform_p, "uniform", dims, kind, seed, generator) * (high - low) + low


@operator()
def normal(shape: Any, mean: Any, stddev: Any, seed: Any = None, generator: Generator | None = None) -> Tensor:
    """Numbers of normal distributions, in float32.

    Args:
        shape: a shape that broadcasts with mean and deviation; every element is drawn on its own.
        mean: a number or tensor.
        stddev: standard deviation, a number or tensor.
        seed: a nonzero int draws from a stream of its own.
        generator: the stream to draw from.

    >>> import mycelia as ms
    >>> ms.ops.normal((2, 3), 0.0, 1.0).shape
    (2, 3)
    """
    dims, (centre, spread) = spread_over("normal", shape, mean, stddev, names=("mean", "stddev"))
    made = draw(random_normal_p, "normal", dims, dt.float32, seed, generator)
    return made * cast(spread, dt.float32) + cast(centre, dt.float32)


@operator()
def bernoulli(input: Any, p: Any = 0.5, seed: Any = None, generator: Generator | None = None) -> Tensor:
    """Zeros and ones in the shape and dtype of a tensor; ones with probability ``p``.

    Args:
        input: a tensor; its values do not matter.
        p: a probability, or a tensor of them that broadcasts to the input's shape.
        seed: a nonzero int draws from a stream of its own.
        generator: the stream to draw from.

    Raises:
        ArgumentValueError: ``p`` is a number outside [0, 1].

    >>> import mycelia as ms
    >>> print(ms.ops.bernoulli(ms.Tensor([1.0, 2.0]), 1.0))
    [1. 1.]
    """
    x = as_tensor(input, "bernoulli")
    key = next_key(seed, generator, "bernoulli")
    return cast(apply(random_bernoulli_p, key, _probability(p, "bernoulli"), shape=x.shape), x.dtype)


def _probability(p: Any, where: str, argument: str = "p") -> Tensor:
    if isinstance(p, (int, float)):
        if not 0 <= p <= 1:
            raise ArgumentValueError(where, argument, got=str(p), takes="a number from 0 to 1")
        return scalar(float(p), dt.float32)
    made = as_tensor(p, where, argument)
    return made if made.dtype in dt.FLOATS else cast(made, dt.float32)


def bernoulli_of(input: Any, *, generator: Generator | None = None) -> Tensor:
    """Zeros and ones in the dtype of ``input``, whose values are the probabilities of ones.

    >>> import mycelia as ms
    >>> print(ms.Tensor([0.0, 1.0]).bernoulli())
    [0. 1.]
    """
    x = as_tensor(input, "bernoulli")
    key = next_key(None, generator, "bernoulli")
    return cast(apply(random_bernoulli_p, key, _probability(x, "bernoulli", "input"), shape=x.shape), x.dtype)


def normal_of(mean: Any = 0.0, std: Any = 1.0, size: Any = None, generator: Generator | None = None) -> Tensor:
    """``mint``'s form of :func:`normal`: the shape comes from ``size``, or from mean and deviation.

    >>> import mycelia as ms
    >>> normal_of(ms.ops.ones((2, 1)), ms.ops.ones((3,))).shape
    (2, 3)
    """
    return normal(() if size is None else size, mean, std, generator=generator)


# Tensor methods that fill in place ----------------------------------------------------------------------


def _filled(where: str, primitive: Primitive, self: Tensor, generator: Generator | None) -> Tensor:
    kind = self.dtype if self.dtype in dt.FLOATS else dt.float32
    return draw(primitive, where, self.shape, kind, None, generator)


def _normal_in_place(self: Tensor, mean: Any = 0, std: Any = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of a normal distribution."""
    made = _filled("Tensor.normal_", random_normal_p, self, generator)
    return overwrite(self, made * std + mean, "Tensor.normal_")


def _uniform(self: Tensor, from_: Any = 0.0, to: Any = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform numbers from [from_, to) in the shape and dtype of the tensor."""
    made = _filled("Tensor.uniform", random_uniform_p, self, generator)
    return cast(made * (to - from_) + from_, self.dtype)


def _uniform_in_place(self: Tensor, from_: Any = 0, to: Any = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers from [from_, to)."""
    return overwrite(self, _uniform(self, from_, to, generator), "Tensor.uniform_")


#: The greatest integer that a floating dtype holds with all below it.
_EXACT = {dt.float16: 2**11, dt.bfloat16: 2**8, dt.float32: 2**24, dt.float64: 2**53}


def _random_in_place(self: Tensor, from_: Any = 0, to: Any = None, *, generator: Generator | None = None) -> Tensor:
    """Fill with integers from [from_, to); without ``to``, from all that the dtype holds exactly."""
    if to is None:
        to = _EXACT[self.dtype] + 1 if self.dtype in _EXACT else min(int(np.iinfo(self.dtype.np).max) + 1, 2**63 - 1)
    return overwrite(
        self, _integers("Tensor.random_", from_, to, self.shape, self.dtype, None, generator), "Tensor.random_"
    )


def _bernoulli_in_place(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones with probability ``p``, else zeros."""
    return overwrite(self, bernoulli(self, p, generator=generator), "Tensor.bernoulli_")


_METHODS: dict[str, Callable[..., Tensor]] = {
    "normal_": _normal_in_place, "uniform": _uniform, "uniform_": _uniform_in_place, "random_": _random_in_place,
    "bernoulli": bernoulli_of, "bernoulli_": _bernoulli_in_place,
}  # fmt: skip
for _name, _method in _METHODS.items():
    attach(_name, _method)
