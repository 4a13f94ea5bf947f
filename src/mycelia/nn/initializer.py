"""Initial values of parameters.

An :class:`Initializer` fills a NumPy array in place. Random ones draw from one NumPy generator that
``set_seed`` restarts: after the same seed, the same sequence of initializations gives the same values, and
two parameters of one network never share theirs.

Sources: X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward neural
networks", AISTATS 2010 (Xavier); K. He et al., "Delving deep into rectifiers", ICCV 2015 (He); A. Saxe et
al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", ICLR 2014
(Orthogonal); J. Martens, "Deep learning via Hessian-free optimization", ICML 2010 (Sparse).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.core.random import get_seed, on_seed
from mycelia.nn.truncated_normal import standard_truncated
from mycelia.tensor import Tensor

__all__ = [
    "Constant", "Dirac", "HeNormal", "HeUniform", "Identity", "Initializer", "Normal", "One", "Orthogonal", "Sparse",
    "TruncatedNormal", "Uniform", "VarianceScaling", "XavierNormal", "XavierUniform", "Zero", "initializer",
]  # fmt: skip

Array = np.ndarray[Any, Any]
C = TypeVar("C", bound="type[Initializer]")

_BY_NAME: dict[str, type[Initializer]] = {}
_generator: np.random.Generator | None = None


def _restart(seed: int) -> None:
    global _generator
    _generator = np.random.default_rng(seed)


on_seed(_restart)


def _global_generator() -> np.random.Generator:
    global _generator
    if _generator is None:
        _generator = np.random.default_rng(get_seed())
    return _generator


def _named(*names: str) -> Callable[[C], C]:
    def register(cls: C) -> C:
        for name in (cls.__name__, *names):
            _BY_NAME[name.lower()] = cls
        return cls

    return register


class Initializer:
    """Base of initializers; a subclass defines ``_initialize(arr)``, which fills a NumPy array in place.

    Args:
        kwargs: what the subclass was made with.

    Attributes:
        seed: None, or an int from which this initializer draws alone, the same values at every call.

    >>> import numpy as np
    >>> from mycelia.common.initializer import Initializer, initializer
    >>> class Countdown(Initializer):
    ...     def _initialize(self, arr):
    ...         arr[:] = np.arange(arr.size)[::-1].reshape(arr.shape)
    >>> print(initializer(Countdown(), (3,)))
    [2. 1. 0.]
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self.seed: int | None = None

    def _initialize(self, arr: Array) -> None:
        raise ArgumentTypeError(type(self).__name__, message="the initializer defines no '_initialize(arr)'")

    def __call__(self, arr: Array) -> None:
        """Fill ``arr``, an array of any shape the initializer takes."""
        self._initialize(arr)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._kwargs.items())})"

    @property
    def _random(self) -> np.random.Generator:
        return _global_generator() if self.seed is None else np.random.default_rng(self.seed)


def _sampling_dtype(arr: Array) -> Any:
    return np.float64 if arr.dtype in (np.float64, np.complex128) else np.float32


def _put_normal(arr: Array, random: np.random.Generator, sigma: float, mean: float = 0.0) -> None:
    values = random.standard_normal(arr.shape, dtype=_sampling_dtype(arr))
    arr[...] = values * sigma + mean


def _put_uniform(arr: Array, random: np.random.Generator, bound: float) -> None:
    values = random.random(arr.shape, dtype=_sampling_dtype(arr))
    arr[...] = values * (2 * bound) - bound


def _number(where: str, argument: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentTypeError(where, argument, got=f"{value!r} ({type(value).__name__})", takes="a number")
    return float(value)


def _choice(where: str, argument: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ArgumentValueError(where, argument, got=repr(value), takes=", ".join(map(repr, allowed)))
    return str(value)


@_named("zeros")
class Zero(Initializer):
    """Zeros.

    >>> from mycelia.common.initializer import Zero, initializer
    >>> print(initializer(Zero(), (2,)))
    [0. 0.]
    """

    def _initialize(self, arr: Array) -> None:
        arr[...] = 0


@_named("ones")
class One(Initializer):
    """Ones.

    >>> from mycelia.common.initializer import One, initializer
    >>> print(initializer(One(), (2,)))
    [1. 1.]
    """

    def _initialize(self, arr: Array) -> None:
        arr[...] = 1


class Constant(Initializer):
    """One value everywhere.

    Args:
        value: a number, or a NumPy array that broadcasts to the shape.

    >>> from mycelia.common.initializer import Constant, initializer
    >>> print(initializer(Constant(3), (2,)))
    [3. 3.]
    """

    def __init__(self, value: Any) -> None:
        if isinstance(value, (str, bytes)) or not isinstance(value, (int, float, complex, np.ndarray, np.generic)):
            raise ArgumentTypeError("Constant", "value", got=repr(value), takes="a number or a NumPy array")
        super().__init__(value=value)
        self.value = value

    def _initialize(self, arr: Array) -> None:
        shape = np.shape(self.value)
        fits = len(shape) <= arr.ndim and all(
            n in (1, m) for n, m in zip(reversed(shape), reversed(arr.shape), strict=False)
        )
        if not fits:
            raise ShapeError("Constant", "value", got=f"shape {shape}", takes=f"a shape that broadcasts to {arr.shape}")
        arr[...] = self.value


@_named()
class Uniform(Initializer):
    """Uniform on ``[-scale, scale)``.

    Args:
        scale: the bound.

    >>> from mycelia.common.initializer import Uniform, initializer
    >>> bool((initializer(Uniform(0.5), (8,)).abs() <= 0.5).all())
    True
    """

    def __init__(self, scale: float = 0.07) -> None:
        self.scale = _number("Uniform", "scale", scale)
        super().__init__(scale=scale)

    def _initialize(self, arr: Array) -> None:
        _put_uniform(arr, self._random, self.scale)


@_named()
class Normal(Initializer):
    """Normal with standard deviation ``sigma``.

    Args:
        sigma: the standard deviation.
        mean: the mean.

    >>> from mycelia.common.initializer import Normal, initializer
    >>> initializer(Normal(0.02), (2, 3)).shape
    (2, 3)
    """

    def __init__(self, sigma: float = 0.01, mean: float = 0.0) -> None:
        self.sigma, self.mean = _number("Normal", "sigma", sigma), _number("Normal", "mean", mean)
        super().__init__(sigma=sigma, mean=mean)

    def _initialize(self, arr: Array) -> None:
        _put_normal(arr, self._random, self.sigma, self.mean)


@_named()
class TruncatedNormal(Initializer):
    """Normal restricted to the interval from ``a`` to ``b``.

    Args:
        sigma: standard deviation of the normal that is restricted.
        mean: its mean.
        a: smallest value (a value, not a number of standard deviations).
        b: largest value.

    >>> from mycelia.common.initializer import TruncatedNormal, initializer
    >>> bool((initializer(TruncatedNormal(1.0, a=0.0), (8,)) >= 0).all())
    True
    """

    def __init__(self, sigma: float = 0.01, mean: float = 0.0, a: float = -2.0, b: float = 2.0) -> None:
        where = "TruncatedNormal"
        self.sigma, self.mean = _number(where, "sigma", sigma), _number(where, "mean", mean)
        self.a, self.b = _number(where, "a", a), _number(where, "b", b)
        if self.sigma <= 0:
            raise ArgumentValueError(where, "sigma", got=str(sigma), takes="a positive number")
        if not self.a < self.b:
            raise ArgumentValueError(where, "b", got=f"{b} with a={a}", takes="a number above a")
        super().__init__(sigma=sigma, mean=mean, a=a, b=b)

    def _initialize(self, arr: Array) -> None:
        low, high = (self.a - self.mean) / self.sigma, (self.b - self.mean) / self.sigma
        if low < -7 and high > 7:  # beyond the reach of single precision
            _put_normal(arr, self._random, self.sigma, self.mean)
            np.clip(arr, self.a, self.b, out=arr) if arr.dtype.kind == "f" else None
            return
        values = standard_truncated(arr.size, low, high, self._random)
        arr[...] = np.clip(values * self.sigma + self.mean, self.a, self.b).reshape(arr.shape)


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Inputs and outputs of one unit of a weight of shape (out, in, kernel...).

    Raises:
        ShapeError: the shape has fewer than two axes.

    >>> from mycelia.nn.initializer import fans
    >>> fans((64, 32, 3, 3))
    (288, 576)
    """
    if len(shape) < 2:
        raise ShapeError(
            "initializer", "shape", got=str(tuple(shape)), takes="at least two axes: output and input units",
            hint="it scales by the units of a weight; give a vector 'zeros', 'ones', 'uniform' or 'normal'",
        )  # fmt: skip
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def gain_of(nonlinearity: str, slope: float = 0.0) -> float:
    """How much larger weights are before a nonlinearity, so that the variance is kept.

    Args:
        nonlinearity: ``"leaky_relu"``, ``"relu"``, ``"tanh"``, ``"sigmoid"``, ``"linear"``, ``"conv2d"``, ...
        slope: negative slope of the leaky rectifier.

    Raises:
        ArgumentValueError: another nonlinearity.
    """
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + slope * slope))
    if nonlinearity == "tanh":
        return 5.0 / 3
    convolutions = [f"conv{t}{n}d" for t in ("", "_transpose") for n in (1, 2, 3)]
    known = ("leaky_relu", "relu", "tanh", "sigmoid", "linear", *convolutions)
    _choice("initializer", "nonlinearity", nonlinearity, known)
    return 1.0


class _Xavier(Initializer):
    """Scaled by the mean of inputs and outputs."""

    def __init__(self, gain: float = 1) -> None:
        self.gain = _number(type(self).__name__, "gain", gain)
        super().__init__(gain=gain)

    def _deviation(self, shape: tuple[int, ...]) -> float:
        return self.gain * math.sqrt(2.0 / max(sum(fans(shape)), 1))


@_named("xavier_uniform")
class XavierUniform(_Xavier):
    """Uniform with bound ``gain * sqrt(6 / (inputs + outputs))``.

    Args:
        gain: a factor.

    >>> from mycelia.common.initializer import XavierUniform, initializer
    >>> bool((initializer(XavierUniform(), (3, 3)).abs() <= 1).all())
    True
    """

    def _initialize(self, arr: Array) -> None:
        _put_uniform(arr, self._random, math.sqrt(3.0) * self._deviation(arr.shape))


@_named("xavier_normal")
class XavierNormal(_Xavier):
    """Normal with standard deviation ``gain * sqrt(2 / (inputs + outputs))``.

    Args:
        gain: a factor.

    >>> from mycelia.common.initializer import XavierNormal, initializer
    >>> initializer(XavierNormal(), (3, 3)).shape
    (3, 3)
    """

    def _initialize(self, arr: Array) -> None:
        _put_normal(arr, self._random, self._deviation(arr.shape))


class _He(Initializer):
    """Scaled by the inputs (or outputs) and the gain of the nonlinearity that follows."""

    def __init__(self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
        where = type(self).__name__
        self.negative_slope = _number(where, "negative_slope", negative_slope)
        self.mode = _choice(where, "mode", mode, ("fan_in", "fan_out"))
        self.gain = gain_of(nonlinearity, self.negative_slope)
        self.nonlinearity = nonlinearity
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)

    def _deviation(self, shape: tuple[int, ...]) -> float:
        inputs, outputs = fans(shape)
        return self.gain / math.sqrt(max(inputs if self.mode == "fan_in" else outputs, 1))


@_named("he_uniform")
class HeUniform(_He):
    """Uniform with bound ``gain * sqrt(3 / units)``.

    Args:
        negative_slope: slope of the leaky rectifier that follows.
        mode: ``"fan_in"`` counts the input units, ``"fan_out"`` the output units.
        nonlinearity: what follows; see :func:`gain_of`.

    >>> from mycelia.common.initializer import HeUniform, initializer
    >>> initializer(HeUniform(), (4, 3, 2, 2)).shape
    (4, 3, 2, 2)
    """

    def _initialize(self, arr: Array) -> None:
        _put_uniform(arr, self._random, math.sqrt(3.0) * self._deviation(arr.shape))


@_named("he_normal")
class HeNormal(_He):
    """Normal with standard deviation ``gain / sqrt(units)``.

    Args:
        negative_slope: slope of the leaky rectifier that follows.
        mode: ``"fan_in"`` counts the input units, ``"fan_out"`` the output units.
        nonlinearity: what follows; see :func:`gain_of`.

    >>> from mycelia.common.initializer import HeNormal, initializer
    >>> initializer(HeNormal(mode="fan_out", nonlinearity="relu"), (4, 3)).shape
    (4, 3)
    """

    def _initialize(self, arr: Array) -> None:
        _put_normal(arr, self._random, self._deviation(arr.shape))


#: Standard deviation of a standard normal restricted to two standard deviations.
_TWO_SIGMA = math.sqrt(1 - 4 * math.exp(-2) / math.sqrt(2 * math.pi) / math.erf(math.sqrt(2)))


@_named()
class VarianceScaling(Initializer):
    """Values of variance ``scale / units``.

    Args:
        scale: a positive factor.
        mode: ``"fan_in"`` (input units), ``"fan_out"`` (output units) or ``"fan_avg"`` (their mean).
        distribution: ``"uniform"``, ``"untruncated_normal"``, or ``"truncated_normal"``: within two standard
            deviations, widened so that the variance is as stated.

    Raises:
        ArgumentValueError: another mode or distribution, or a scale that is not positive.

    >>> from mycelia.common.initializer import VarianceScaling, initializer
    >>> initializer(VarianceScaling(2.0, "fan_avg", "uniform"), (4, 3)).shape
    (4, 3)
    """

    def __init__(self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal") -> None:
        where = "VarianceScaling"
        self.scale = _number(where, "scale", scale)
        if self.scale <= 0:
            raise ArgumentValueError(where, "scale", got=str(scale), takes="a positive number")
        self.mode = _choice(where, "mode", mode, ("fan_in", "fan_out", "fan_avg"))
        kinds = ("truncated_normal", "untruncated_normal", "uniform")
        self.distribution = _choice(where, "distribution", distribution, kinds)
        super().__init__(scale=scale, mode=mode, distribution=distribution)

    def _initialize(self, arr: Array) -> None:
        inputs, outputs = fans(arr.shape)
        units = {"fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2}[self.mode]
        deviation = math.sqrt(self.scale / max(units, 1))
        if self.distribution == "uniform":
            _put_uniform(arr, self._random, math.sqrt(3.0) * deviation)
        elif self.distribution == "untruncated_normal":
            _put_normal(arr, self._random, deviation)
        else:
            values = standard_truncated(arr.size, -2.0, 2.0, self._random)
            arr[...] = values.reshape(arr.shape) * (deviation / _TWO_SIGMA)


@_named()
class Orthogonal(Initializer):
    """A (semi-)orthogonal matrix times ``gain``; axes after the first are taken as one.

    Args:
        gain: a factor.

    Raises:
        ShapeError: (when filling) fewer than two axes.

    >>> from mycelia.common.initializer import Orthogonal, initializer
    >>> q = initializer(Orthogonal(), (2, 3))
    >>> print((q @ q.T).round().abs())
    [[1. 0.]
     [0. 1.]]
    """

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = _number("Orthogonal", "gain", gain)
        super().__init__(gain=gain)

    def _initialize(self, arr: Array) -> None:
        if arr.ndim < 2:
            raise ShapeError("Orthogonal", "shape", got=str(arr.shape), takes="at least two axes")
        rows, columns = arr.shape[0], math.prod(arr.shape[1:])
        tall = self._random.standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(tall)
        q = q * np.where(np.diagonal(r) < 0, -1.0, 1.0)  # the sign that makes the distribution uniform
        arr[...] = self.gain * (q if rows >= columns else q.T).reshape(arr.shape)


@_named()
class Identity(Initializer):
    """Ones on the diagonal of a matrix, zeros elsewhere.

    Raises:
        ShapeError: (when filling) not two axes.

    >>> from mycelia.common.initializer import Identity, initializer
    >>> print(initializer(Identity(), (2, 3)))
    [[1. 0. 0.]
     [0. 1. 0.]]
    """

    def _initialize(self, arr: Array) -> None:
        if arr.ndim != 2:
            raise ShapeError("Identity", "shape", got=str(arr.shape), takes="two axes")
        arr[...] = np.eye(*arr.shape)


@_named()
class Dirac(Initializer):
    """A convolution kernel that hands on its input channels: one at the centre, zeros elsewhere.

    Args:
        groups: number of groups; the output channels of each hand on the input channels anew.

    Raises:
        ShapeError: (when filling) not 3 to 5 axes, or output channels that are no multiple of the groups.

    >>> from mycelia.common.initializer import Dirac, initializer
    >>> print(initializer(Dirac(), (2, 2, 3)))
    [[[0. 1. 0.]
      [0. 0. 0.]]
    <BLANKLINE>
     [[0. 0. 0.]
      [0. 1. 0.]]]
    """

    def __init__(self, groups: int = 1) -> None:
        if not isinstance(groups, int) or isinstance(groups, bool) or groups < 1:
            raise ArgumentValueError("Dirac", "groups", got=repr(groups), takes="a positive int")
        super().__init__(groups=groups)
        self.groups = groups

    def _initialize(self, arr: Array) -> None:
        if arr.ndim not in (3, 4, 5):
            raise ShapeError("Dirac", "shape", got=str(arr.shape), takes="3, 4 or 5 axes")
        outputs, inputs = arr.shape[:2]
        if outputs % self.groups:
            raise ShapeError("Dirac", "shape", got=str(arr.shape), takes=f"a multiple of {self.groups} output channels")
        arr[...] = 0
        each = outputs // self.groups
        centre = tuple(n // 2 for n in arr.shape[2:])
        for group in range(self.groups):
            for i in range(min(each, inputs)):
                arr[(group * each + i, i, *centre)] = 1


@_named()
class Sparse(Initializer):
    """A normal matrix in which a fraction of each column is zero.

    Args:
        sparsity: the fraction of zeros, rounded up, from 0 to 1.
        sigma: standard deviation of the others.

    Raises:
        ShapeError: (when filling) not two axes.

    >>> from mycelia.common.initializer import Sparse, initializer
    >>> print((initializer(Sparse(0.5), (4, 3)) == 0).sum(0))
    [2 2 2]
    """

    def __init__(self, sparsity: float, sigma: float = 0.01) -> None:
        self.sparsity, self.sigma = _number("Sparse", "sparsity", sparsity), _number("Sparse", "sigma", sigma)
        if not 0 <= self.sparsity <= 1:
            raise ArgumentValueError("Sparse", "sparsity", got=str(sparsity), takes="a fraction from 0 to 1")
        super().__init__(sparsity=sparsity, sigma=sigma)

    def _initialize(self, arr: Array) -> None:
        if arr.ndim != 2:
            raise ShapeError("Sparse", "shape", got=str(arr.shape), takes="two axes")
        random = self._random
        _put_normal(arr, random, self.sigma)
        zeros = math.ceil(self.sparsity * arr.shape[0])
        rank_in_column = np.argsort(np.argsort(random.random(arr.shape), 0), 0)
        arr[rank_in_column < zeros] = 0


@contextmanager
def no_init_parameters() -> Iterator[None]:
    """A block in which networks are made whose parameters a checkpoint will replace.

    Parameters made here are filled like all others: drawing them takes little time, and those that the
    checkpoint turns out not to have are right from the start.

    >>> import mycelia as ms
    >>> with ms.nn.no_init_parameters():
    ...     net = ms.nn.Dense(2, 3)
    >>> net.weight.shape
    (3, 2)
    """
    yield


def named(name: str, where: str = "initializer", argument: str = "init") -> Initializer:
    """The initializer called ``name`` (case does not matter) with its defaults.

    Raises:
        ArgumentValueError: there is none, or it cannot be made without arguments.
    """
    found = _BY_NAME.get(name.lower())
    if found is None or found is Sparse:
        import difflib

        names = sorted(set(_BY_NAME) - {"sparse"})
        close = difflib.get_close_matches(name.lower(), names, 1)
        hint = f"did you mean '{close[0]}'?" if close else None
        raise ArgumentValueError(where, argument, got=repr(name), takes=", ".join(names), hint=hint)
    return found()


def initializer(init: Any, shape: Any = None, dtype: Any = dt.float32) -> Tensor:
    """A tensor filled by an initializer.

    Args:
        init: the name of an initializer, an :class:`Initializer`, a number, or a Tensor of the shape asked for,
            which is given back.
        shape: a tuple, list or int.
        dtype: element type.

    Raises:
        ArgumentTypeError: ``init`` is none of these.
        ArgumentValueError: there is no initializer of this name.
        ShapeError: ``init`` is a Tensor of another shape, or the initializer does not take the shape.

    >>> import mycelia as ms
    >>> from mycelia.common.initializer import initializer
    >>> initializer("he_normal", (3, 2)).shape
    (3, 2)
    >>> print(initializer(7, 2, ms.int32))
    [7 7]
    """
    if isinstance(init, Tensor):
        wanted = init.shape if shape is None else _shape(shape)
        if wanted != init.shape:
            raise ShapeError("initializer", "init", got=f"a tensor of shape {init.shape}", takes=f"shape {wanted}")
        return init
    if shape is None:
        raise ArgumentTypeError("initializer", "shape", got="None", takes="a tuple, list or int")
    if isinstance(init, str):
        init = named(init)
    elif isinstance(init, (int, float, complex, np.generic)):
        init = Constant(init)
    elif not isinstance(init, Initializer):
        raise ArgumentTypeError(
            "initializer", "init", got=f"{init!r} ({type(init).__name__})",
            takes="a name, an Initializer, a number or a Tensor",
            hint=f"make one: {init.__name__}()" if isinstance(init, type) else None,
        )  # fmt: skip
    return Tensor(shape=_shape(shape), dtype=dt.as_dtype(dtype, "initializer", "dtype"), init=init)


def _shape(shape: Any) -> tuple[int, ...]:
    dims = shape if isinstance(shape, (tuple, list)) else (shape,)
    try:
        made = tuple(operator.index(d) for d in dims)
    except TypeError:
        raise ArgumentTypeError("initializer", "shape", got=repr(shape), takes="a tuple, list or int") from None
    if any(d < 0 for d in made):
        raise ArgumentValueError("initializer", "shape", got=str(made), takes="lengths of at least 0")
    return made
