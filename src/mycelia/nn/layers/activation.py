"""Activation functions as Cells, and by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, MissingKeyError, ShapeError
from mycelia.nn.cell import Cell
from mycelia.nn.layers import arguments as arg
from mycelia.nn.layers.plain import PlainCell
from mycelia.ops.softmax import softmax
from mycelia.tensor import Parameter, Tensor


class ReLU(PlainCell):
    """``max(x, 0)``.

    >>> import mycelia as ms
    >>> print(ms.nn.ReLU()(ms.Tensor([-1.0, 2.0])))
    [0. 2.]
    """

    def construct(self, input: Any) -> Any:
        return ops.relu(input)


class ReLU6(PlainCell):
    """``min(max(x, 0), 6)``.

    >>> import mycelia as ms
    >>> print(ms.nn.ReLU6()(ms.Tensor([-1.0, 2.0, 8.0])))
    [0. 2. 6.]
    """

    def construct(self, x: Any) -> Any:
        return ops.relu6(x)


class LeakyReLU(Cell):
    """``x`` where it is positive, ``alpha * x`` elsewhere.

    Args:
        alpha: slope of the negative side.

    >>> import mycelia as ms
    >>> print(ms.nn.LeakyReLU(0.5)(ms.Tensor([-1.0, 2.0])))
    [-0.5  2. ]
    """

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        self.alpha = arg.number("LeakyReLU", "alpha", alpha)

    def construct(self, x: Any) -> Any:
        return ops.leaky_relu(x, self.alpha)


class RReLU(Cell):
    """``x`` where it is positive, ``a * x`` elsewhere, ``a`` drawn uniformly for each element.

    Args:
        lower: smallest slope.
        upper: largest slope.

    Raises:
        ArgumentValueError: ``lower`` is above ``upper``.

    >>> import mycelia as ms
    >>> print(ms.nn.RReLU(0.5, 0.5)(ms.Tensor([-1.0, 2.0])))
    [-0.5  2. ]
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3) -> None:
        super().__init__()
        self.lower = arg.number("RReLU", "lower", lower)
        self.upper = arg.number("RReLU", "upper", upper)
        arg.ordered("RReLU", "upper", lower, upper)

    def construct(self, x: Any) -> Any:
        return ops.rrelu(x, self.lower, self.upper)


class PReLU(Cell):
    """``x`` where it is positive, ``w * x`` elsewhere, ``w`` learned for each channel.

    Args:
        channel: number of slopes: 1, or the channels of the input (axis 1).
        w: their initial value: a number, a list or a Tensor of shape (channel,).

    Raises:
        ArgumentTypeError: ``w`` is something else.
        ShapeError: ``w`` has another length.

    >>> import mycelia as ms
    >>> print(ms.nn.PReLU(2, [0.5, 0.25])(ms.Tensor([[-1.0, -1.0]])))
    [[-0.5  -0.25]]
    """

    def __init__(self, channel: int = 1, w: Any = 0.25) -> None:
        super().__init__()
        arg.positive("PReLU", "channel", channel)
        if isinstance(w, bool) or not isinstance(w, (int, float, list, tuple, np.ndarray, Tensor)):
            raise ArgumentTypeError(
                "PReLU", "w", got=f"{w!r} ({type(w).__name__})", takes="a number, a list or a Tensor"
            )
        if isinstance(w, (int, float)):
            w = [w] * channel
        value = w if isinstance(w, Tensor) else Tensor(w, dt.float32)
        if value.shape != (channel,):
            raise ShapeError("PReLU", "w", got=f"shape {value.shape}", takes=f"({channel},), one slope a channel")
        self.w = Parameter(value, name="a")

    def construct(self, x: Any) -> Any:
        return ops.prelu(x, self.w)


class PReLUExt(Cell):
    """:class:`PReLU` under other keywords, its slopes in ``weight``.

    Args:
        num_parameters: number of slopes: 1, or the channels of the input (axis 1).
        init: initial value of all slopes.
        dtype: dtype of the slopes; float32 by default.

    >>> import mycelia as ms
    >>> print(ms.nn.PReLUExt(init=0.5)(ms.Tensor([[-1.0, 2.0]])))
    [[-0.5  2. ]]
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = arg.positive("PReLUExt", "num_parameters", num_parameters)
        self.init = arg.number("PReLUExt", "init", init)
        kind = arg.floating_dtype("PReLUExt", dtype)
        self.weight = arg.parameter("PReLUExt", "init", self.init, (num_parameters,), kind, "weight")

    def construct(self, input: Any) -> Any:
        return ops.prelu(input, self.weight)


class ELU(Cell):
    """``x`` where it is positive, ``alpha * (exp(x) - 1)`` elsewhere.

    Args:
        alpha: a number.

    >>> import mycelia as ms
    >>> print(ms.nn.ELU()(ms.Tensor([0.0, 2.0])))
    [0. 2.]
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = arg.number("ELU", "alpha", alpha)

    def construct(self, x: Any) -> Any:
        return ops.elu(x, self.alpha)


class CELU(Cell):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``.

    Args:
        alpha: a number other than 0.

    >>> import mycelia as ms
    >>> print(ms.nn.CELU()(ms.Tensor([0.0, 2.0])))
    [0. 2.]
    """

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.alpha = arg.nonzero("CELU", "alpha", alpha)

    def construct(self, x: Any) -> Any:
        return ops.celu(x, self.alpha)


class SeLU(PlainCell):
    """``scale * (x`` where it is positive, ``alpha * (exp(x) - 1)`` elsewhere), self-normalizing constants.

    >>> import mycelia as ms
    >>> print(ms.nn.SeLU()(ms.Tensor([0.0, 1.0])))
    [0.       1.050701]
    """

    def construct(self, input_x: Any) -> Any:
        return ops.selu(input_x)


class SiLU(PlainCell):
    """``x * sigmoid(x)``.

    >>> import mycelia as ms
    >>> print(ms.nn.SiLU()(ms.Tensor([0.0, 2.0])))
    [0.       1.761594]
    """

    def construct(self, x: Any) -> Any:
        return ops.silu(x)


class Mish(PlainCell):
    """``x * tanh(log(1 + exp(x)))``.

    >>> import mycelia as ms
    >>> print(ms.nn.Mish()(ms.Tensor([0.0])))
    [0.]
    """

    def construct(self, input_x: Any) -> Any:
        return ops.mish(input_x)


class GELU(Cell):
    """``x`` times the probability that a standard normal is below ``x``.

    Args:
        approximate: True for the approximation with tanh, False for the exact one with erf.

    >>> import mycelia as ms
    >>> print(ms.nn.GELU(approximate=False)(ms.Tensor([1.0])))
    [0.8413447]
    """

    def __init__(self, approximate: bool = True) -> None:
        super().__init__()
        arg.flag("GELU", "approximate", approximate)
        self.approximate = "tanh" if approximate else "none"

    def construct(self, x: Any) -> Any:
        return ops.gelu(x, self.approximate)


class FastGelu(PlainCell):
    """``x / (1 + exp(-1.702 * |x|)) * exp(0.851 * (x - |x|))``.

    >>> import mycelia as ms
    >>> print(ms.nn.FastGelu()(ms.Tensor([0.0])))
    [0.]
    """

    def construct(self, x: Any) -> Any:
        return ops.fast_gelu(x)


class Sigmoid(PlainCell):
    """``1 / (1 + exp(-x))``.

    >>> import mycelia as ms
    >>> print(ms.nn.Sigmoid()(ms.Tensor([0.0])))
    [0.5]
    """

    def construct(self, x: Any) -> Any:
        return ops.sigmoid(x)


class LogSigmoid(PlainCell):
    """``log(1 / (1 + exp(-x)))``.

    >>> import mycelia as ms
    >>> print(ms.nn.LogSigmoid()(ms.Tensor([0.0])))
    [-0.6931472]
    """

    def construct(self, input_x: Any) -> Any:
        return ops.logsigmoid(input_x)


class HSigmoid(PlainCell):
    """``min(max(x / 6 + 1 / 2, 0), 1)``.

    >>> import mycelia as ms
    >>> print(ms.nn.HSigmoid()(ms.Tensor([-4.0, 0.0, 4.0])))
    [0.  0.5 1. ]
    """

    def construct(self, input: Any) -> Any:
        return ops.hardsigmoid(input)


class HSwish(PlainCell):
    """``x * min(max(x + 3, 0), 6) / 6``.

    >>> import mycelia as ms
    >>> print(ms.nn.HSwish()(ms.Tensor([-4.0, 0.0, 4.0])))
    [-0.  0.  4.]
    """

    def construct(self, input: Any) -> Any:
        return ops.hardswish(input)


class Tanh(PlainCell):
    """Hyperbolic tangent.

    >>> import mycelia as ms
    >>> print(ms.nn.Tanh()(ms.Tensor([0.0])))
    [0.]
    """

    def construct(self, x: Any) -> Any:
        return ops.tanh(x)


class Tanhshrink(PlainCell):
    """``x - tanh(x)``.

    >>> import mycelia as ms
    >>> print(ms.nn.Tanhshrink()(ms.Tensor([0.0])))
    [0.]
    """

    def construct(self, x: Any) -> Any:
        return ops.tanhshrink(x)


class Hardtanh(Cell):
    """``x`` kept within bounds.

    Args:
        min_val: lower bound.
        max_val: upper bound, not below the lower one.

    >>> import mycelia as ms
    >>> print(ms.nn.Hardtanh()(ms.Tensor([-2.0, 0.5, 2.0])))
    [-1.   0.5  1. ]
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        self.min_val = arg.number("Hardtanh", "min_val", min_val)
        self.max_val = arg.number("Hardtanh", "max_val", max_val)
        arg.ordered("Hardtanh", "max_val", min_val, max_val)

    def construct(self, x: Any) -> Any:
        return ops.hardtanh(x, self.min_val, self.max_val)


class Softsign(PlainCell):
    """``x / (1 + |x|)``.

    >>> import mycelia as ms
    >>> print(ms.nn.Softsign()(ms.Tensor([1.0])))
    [0.5]
    """

    def construct(self, x: Any) -> Any:
        return ops.softsign(x)


class SoftShrink(Cell):
    """``x`` moved towards zero by ``lambd``, and zero within it.

    Args:
        lambd: a number of at least 0.

    >>> import mycelia as ms
    >>> print(ms.nn.SoftShrink()(ms.Tensor([-2.0, 0.25, 2.0])))
    [-1.5  0.   1.5]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = arg.number("SoftShrink", "lambd", lambd)
        arg.ordered("SoftShrink", "lambd", 0, lambd)

    def construct(self, input: Any) -> Any:
        return ops.softshrink(input, self.lambd)


class HShrink(Cell):
    """``x`` outside of ``[-lambd, lambd]``, zero within.

    Args:
        lambd: a number.

    >>> import mycelia as ms
    >>> print(ms.nn.HShrink()(ms.Tensor([-2.0, 0.25, 2.0])))
    [-2.  0.  2.]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = arg.number("HShrink", "lambd", lambd)

    def construct(self, input: Any) -> Any:
        return ops.hardshrink(input, self.lambd)


class Threshold(Cell):
    """``x`` where it is above ``threshold``, ``value`` elsewhere.

    Args:
        threshold: a number.
        value: a number.

    >>> import mycelia as ms
    >>> print(ms.nn.Threshold(0.5, 9.0)(ms.Tensor([0.25, 2.0])))
    [9. 2.]
    """

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self.threshold = arg.number("Threshold", "threshold", threshold)
        self.value = arg.number("Threshold", "value", value)

    def construct(self, input_x: Any) -> Any:
        return ops.threshold(input_x, self.threshold, self.value)


class GLU(Cell):
    """The first half of an axis times the sigmoid of the second half.

    Args:
        axis: the axis that is halved; of even length.

    >>> import mycelia as ms
    >>> print(ms.nn.GLU()(ms.Tensor([[2.0, 0.0]])))
    [[1.]]
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Any) -> Any:
        return ops.glu(x, self.axis)


class LRN(Cell):
    """Local response normalization across neighbouring channels.

    Each value is divided by ``(bias + alpha * sum of squares over 2 * depth_radius + 1 channels) ** beta``.

    Args:
        depth_radius: channels on each side.
        bias: a number.
        alpha: a number.
        beta: a number.
        norm_region: ``"ACROSS_CHANNELS"``.

    >>> import mycelia as ms
    >>> ms.nn.LRN()(ms.ops.ones((1, 3, 2, 2))).shape
    (1, 3, 2, 2)
    """

    def __init__(
        self,
        depth_radius: int = 5,
        bias: float = 1.0,
        alpha: float = 1.0,
        beta: float = 0.5,
        norm_region: str = "ACROSS_CHANNELS",
    ) -> None:
        super().__init__()
        self.depth_radius = arg.positive("LRN", "depth_radius", depth_radius, 0)
        self.bias = arg.number("LRN", "bias", bias)
        self.alpha = arg.number("LRN", "alpha", alpha)
        self.beta = arg.number("LRN", "beta", beta)
        self.norm_region = arg.choice("LRN", "norm_region", norm_region, ("ACROSS_CHANNELS",))

    def construct(self, input_x: Any) -> Any:
        return ops.lrn(input_x, self.depth_radius, self.bias, self.alpha, self.beta, self.norm_region)


class Softmax(Cell):
    """``exp(x)`` divided by its sum over an axis.

    Args:
        axis: an axis, or a tuple of them that are taken as one.

    >>> import mycelia as ms
    >>> print(ms.nn.Softmax()(ms.Tensor([0.0, 0.0])))
    [0.5 0.5]
    """

    def __init__(self, axis: Any = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, input: Any) -> Any:
        return softmax(input, self.axis)


class LogSoftmax(Cell):
    """Logarithm of :class:`Softmax`.

    Args:
        axis: an axis.

    >>> import mycelia as ms
    >>> print(ms.nn.LogSoftmax()(ms.Tensor([0.0, 0.0])))
    [-0.6931472 -0.6931472]
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Any) -> Any:
        return ops.log_softmax(x, self.axis)


class LogSoftmaxExt(Cell):
    """:class:`LogSoftmax` whose axis may be left out.

    Args:
        dim: an axis; by default axis 0 of inputs with 0, 1 or 3 axes and axis 1 of others.

    >>> import mycelia as ms
    >>> print(ms.nn.LogSoftmaxExt()(ms.Tensor([0.0, 0.0])))
    [-0.6931472 -0.6931472]
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def construct(self, x: Any) -> Any:
        x = arg.tensor("LogSoftmaxExt", "x", x)
        axis = self.dim if self.dim is not None else (0 if x.ndim in (0, 1, 3) else 1)
        return ops.log_softmax(x, axis)


class Softmin(Cell):
    """:class:`Softmax` of ``-x``.

    Args:
        axis: an axis, or a tuple of them.

    >>> import mycelia as ms
    >>> print(ms.nn.Softmin()(ms.Tensor([0.0, 0.0])))
    [0.5 0.5]
    """

    def __init__(self, axis: Any = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Any) -> Any:
        return ops.softmin(x, self.axis)


class Softmax2d(PlainCell):
    """:class:`Softmax` over the channels of images.

    Inputs:
        x: a tensor of shape (batch, channels, height, width), or without the batch.

    >>> import mycelia as ms
    >>> print(ms.nn.Softmax2d()(ms.ops.zeros((2, 1, 1))).flatten())
    [0.5 0.5]
    """

    def construct(self, x: Any) -> Any:
        t = arg.axes_of_input("Softmax2d", "x", x, (3, 4), "(batch,) channels, height, width")
        return softmax(t, -3)


#: The activations that have a name.
_BY_NAME: dict[str, type[Cell]] = {
    "softmin": Softmin, "softmax": Softmax, "softmax2d": Softmax2d, "logsoftmax": LogSoftmax,
    "logsoftmaxExt": LogSoftmaxExt, "relu": ReLU, "relu6": ReLU6, "rrelu": RReLU, "silu": SiLU, "tanh": Tanh,
    "tanhshrink": Tanhshrink, "hardtanh": Hardtanh, "gelu": GELU, "fast_gelu": FastGelu, "elu": ELU, "sigmoid": Sigmoid,
    "softsign": Softsign, "prelu": PReLU, "preluExt": PReLUExt, "leakyrelu": LeakyReLU, "hswish": HSwish,
    "hsigmoid": HSigmoid, "logsigmoid": LogSigmoid, "softshrink": SoftShrink, "hshrink": HShrink,
    "mish": Mish, "selu": SeLU, "celu": CELU, "glu": GLU,
}  # fmt: skip


def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """A new activation by name, with its defaults; None for None.

    Args:
        name: ``"relu"``, ``"gelu"``, ``"sigmoid"``, ...
        prim_name: who asks, for messages.

    Raises:
        MissingKeyError: there is none of this name.

    >>> import mycelia as ms
    >>> ms.nn.get_activation("sigmoid")
    Sigmoid()
    """
    if name is None:
        return None
    if name not in _BY_NAME:
        import difflib

        close = difflib.get_close_matches(str(name), _BY_NAME, 1)
        raise MissingKeyError(
            prim_name or "get_activation", "name", got=repr(name), takes=", ".join(_BY_NAME),
            hint=f"did you mean '{close[0]}'?" if close else None,
        )  # fmt: skip
    return _BY_NAME[name]()


def activation_of(where: str, activation: Any) -> Callable[..., Any] | None:
    """What a layer's ``activation`` argument stands for: a name, a Cell, an operator or a function."""
    if isinstance(activation, str):
        return get_activation(activation, where)
    if activation is None:
        return None
    return arg.function(where, "activation", activation, "a name, a Cell, an operator or None")
