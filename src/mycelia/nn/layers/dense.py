"""Fully connected layers."""

from __future__ import annotations

import math
from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.nn.cell import Cell
from mycelia.nn.initializer import HeUniform, Uniform
from mycelia.nn.layers import arguments as arg
from mycelia.nn.layers.activation import activation_of


class Dense(Cell):
    """``y = activation(x @ weight.T + bias)``.

    Args:
        in_channels: features of the input, on its last axis.
        out_channels: features of the output.
        weight_init: initial weight: a name, an Initializer, a number or a Tensor of shape (out, in); by
            default uniform within ``1 / sqrt(in_channels)``.
        bias_init: initial bias, likewise, of shape (out,).
        has_bias: whether there is a bias.
        activation: a name such as ``"relu"``, a Cell or an operator, or None.
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (..., in_channels).

    Outputs:
        A tensor of shape (..., out_channels).

    Raises:
        ShapeError: the input has another number of features, or an initial value another shape.

    >>> import mycelia as ms
    >>> ms.nn.Dense(3, 4, activation="relu")(ms.ops.ones((2, 3))).shape
    (2, 4)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = None,
        bias_init: Any = None,
        has_bias: bool = True,
        activation: Any = None,
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__()
        where = type(self).__name__
        self.in_channels = arg.positive(where, "in_channels", in_channels)
        self.out_channels = arg.positive(where, "out_channels", out_channels)
        arg.flag(where, "has_bias", has_bias)
        self.has_bias = has_bias
        kind = arg.floating_dtype(where, dtype)
        weight = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = arg.parameter(where, "weight_init", weight, (out_channels, in_channels), kind, "weight")
        self.bias = None
        if has_bias:
            bias = Uniform(1 / math.sqrt(in_channels)) if bias_init is None else bias_init
            self.bias = arg.parameter(where, "bias_init", bias, (out_channels,), kind, "bias")
        self.activation = activation_of(where, activation)
        self.activation_flag = self.activation is not None

    def construct(self, x: Any) -> Any:
        y = ops.dense(arg.channels_of("Dense", "x", x, -1, self.in_channels, "features"), self.weight, self.bias)
        return y if self.activation is None else self.activation(y)

    def extend_repr(self) -> str:
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        if self.has_bias:
            text += f", has_bias={self.has_bias}"
        if self.activation_flag:
            text += f", activation={self.activation}"
        return text


class Linear(Cell):
    """``y = x @ weight.T + bias``; :class:`Dense` under other keywords.

    Args:
        in_features: features of the input, on its last axis.
        out_features: features of the output.
        bias: whether there is a bias.
        weight_init: initial weight, of shape (out, in).
        bias_init: initial bias, of shape (out,).
        dtype: dtype of the parameters; float32 by default.

    Raises:
        ShapeError: the input has another number of features, or an initial value another shape.

    >>> import mycelia as ms
    >>> ms.nn.Linear(3, 4)(ms.ops.ones((2, 3))).shape
    (2, 4)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = arg.positive("Linear", "in_features", in_features)
        self.out_features = arg.positive("Linear", "out_features", out_features)
        arg.flag("Linear", "bias", bias)
        self.has_bias = bias
        kind = arg.floating_dtype("Linear", dtype)
        weight = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = arg.parameter("Linear", "weight_init", weight, (out_features, in_features), kind, "weight")
        self.bias = None
        if bias:
            init = Uniform(1 / math.sqrt(in_features)) if bias_init is None else bias_init
            self.bias = arg.parameter("Linear", "bias_init", init, (out_features,), kind, "bias")

    def construct(self, x: Any) -> Any:
        return ops.dense(arg.channels_of("Linear", "x", x, -1, self.in_features, "features"), self.weight, self.bias)

    def extend_repr(self) -> str:
        text = f"input_features={self.in_features}, output_features={self.out_features}"
        return f"{text}, has_bias={self.has_bias}" if self.has_bias else text


class BiDense(Cell):
    """``y[o] = x1 @ weight[o] @ x2 + bias[o]``: bilinear in two inputs.

    Args:
        in1_channels: features of the first input.
        in2_channels: features of the second input.
        out_channels: features of the output.
        weight_init: initial weight, of shape (out, in1, in2); by default uniform within
            ``1 / sqrt(in1_channels)``.
        bias_init: initial bias, of shape (out,).
        has_bias: whether there is a bias.
        dtype: dtype of the parameters.

    Inputs:
        input1: a tensor of shape (..., in1_channels).
        input2: a tensor of shape (..., in2_channels) with the same leading axes.

    Raises:
        ShapeError: an input has another number of features.

    >>> import mycelia as ms
    >>> ms.nn.BiDense(3, 5, 4)(ms.ops.ones((2, 3)), ms.ops.ones((2, 5))).shape
    (2, 4)
    """

    def __init__(
        self,
        in1_channels: int,
        in2_channels: int,
        out_channels: int,
        weight_init: Any = None,
        bias_init: Any = None,
        has_bias: bool = True,
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__()
        self.in1_channels = arg.positive("BiDense", "in1_channels", in1_channels)
        self.in2_channels = arg.positive("BiDense", "in2_channels", in2_channels)
        self.out_channels = arg.positive("BiDense", "out_channels", out_channels)
        arg.flag("BiDense", "has_bias", has_bias)
        self.has_bias = has_bias
        kind = arg.floating_dtype("BiDense", dtype)
        init = Uniform(1 / math.sqrt(in1_channels))
        shape = (out_channels, in1_channels, in2_channels)
        weight = init if weight_init is None else weight_init
        self.weight = arg.parameter("BiDense", "weight_init", weight, shape, kind, "weight")
        self.bias = None
        if has_bias:
            bias = init if bias_init is None else bias_init
            self.bias = arg.parameter("BiDense", "bias_init", bias, (out_channels,), kind, "bias")

    def construct(self, input1: Any, input2: Any) -> Any:
        a = arg.channels_of("BiDense", "input1", input1, -1, self.in1_channels, "features")
        b = arg.channels_of("BiDense", "input2", input2, -1, self.in2_channels, "features")
        return ops.bidense(a, b, self.weight, self.bias)

    def extend_repr(self) -> str:
        text = (
            f"in1_channels={self.in1_channels}, in2_channels={self.in2_channels}, output_channels={self.out_channels}"
        )
        return f"{text}, has_bias={self.has_bias}" if self.has_bias else text
