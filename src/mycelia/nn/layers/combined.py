"""A layer, batch normalization and an activation in one, and a layer applied at every time step."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core.errors import ShapeError
from mycelia.nn.cell import Cell
from mycelia.nn.layers import arguments as arg
from mycelia.nn.layers.activation import LeakyReLU, activation_of
from mycelia.nn.layers.batch_norm import BatchNorm1d, BatchNorm2d
from mycelia.nn.layers.conv import Conv2d
from mycelia.nn.layers.dense import Dense


def _activation(where: str, activation: Any, alpha: float) -> Any:
    return LeakyReLU(alpha) if activation == "leakyrelu" else activation_of(where, activation)


class Conv2dBnAct(Cell):
    """A convolution of images, then batch normalization and an activation where asked for.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: an int or a pair.
        stride: an int or a pair.
        pad_mode: ``"same"``, ``"valid"`` or ``"pad"``; see :class:`Conv2d`.
        padding: an int or four ints.
        dilation: an int or a pair.
        group: groups that the channels are divided into.
        has_bias: whether the convolution has a bias.
        weight_init: initial kernel.
        bias_init: initial bias.
        has_bn: whether there is batch normalization.
        momentum: weight of its old statistics.
        eps: added to its variance.
        activation: a name, a Cell or an operator, or None.
        alpha: slope of ``"leakyrelu"``.
        after_fake: kept.

    >>> import mycelia as ms
    >>> ms.nn.Conv2dBnAct(3, 8, 3, has_bn=True, activation="relu")(ms.ops.ones((1, 3, 5, 5))).shape
    (1, 8, 5, 5)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = "normal",
        bias_init: Any = "zeros",
        has_bn: bool = False,
        momentum: float = 0.997,
        eps: float = 1e-5,
        activation: Any = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.conv = Conv2d(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias, weight_init,
            bias_init,
        )  # fmt: skip
        arg.flag("Conv2dBnAct", "has_bn", has_bn)
        arg.flag("Conv2dBnAct", "after_fake", after_fake)
        self.has_bn, self.has_act, self.after_fake = has_bn, activation is not None, after_fake
        if has_bn:
            self.batchnorm = BatchNorm2d(out_channels, eps, momentum)
        self.activation = _activation("Conv2dBnAct", activation, alpha)

    def construct(self, x: Any) -> Any:
        y = self.conv(x)
        if self.has_bn:
            y = self.batchnorm(y)
        return self.activation(y) if self.has_act else y


class DenseBnAct(Cell):
    """A fully connected layer, then batch normalization and an activation where asked for.

    Args:
        in_channels: features of the input.
        out_channels: features of the output.
        weight_init: initial weight.
        bias_init: initial bias.
        has_bias: whether the layer has a bias.
        has_bn: whether there is batch normalization.
        momentum: weight of its old statistics.
        eps: added to its variance.
        activation: a name, a Cell or an operator, or None.
        alpha: slope of ``"leakyrelu"``.
        after_fake: kept.

    >>> import mycelia as ms
    >>> ms.nn.DenseBnAct(3, 4, has_bn=True, activation="relu")(ms.ops.ones((2, 3))).shape
    (2, 4)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = "normal",
        bias_init: Any = "zeros",
        has_bias: bool = True,
        has_bn: bool = False,
        momentum: float = 0.9,
        eps: float = 1e-5,
        activation: Any = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        arg.flag("DenseBnAct", "has_bn", has_bn)
        arg.flag("DenseBnAct", "after_fake", after_fake)
        self.has_bn, self.has_act, self.after_fake = has_bn, activation is not None, after_fake
        if has_bn:
            self.batchnorm = BatchNorm1d(out_channels, eps, momentum)
        self.activation = _activation("DenseBnAct", activation, alpha)

    def construct(self, x: Any) -> Any:
        y = self.dense(x)
        if self.has_bn:
            y = self.batchnorm(y)
        return self.activation(y) if self.has_act else y


class TimeDistributed(Cell):
    """A layer applied to every slice of an axis.

    Args:
        layer: a Cell or an operator.
        time_axis: the axis.
        reshape_with_axis: an axis beside it that the slices are put into, so that the layer is called once;
            None: it is called for each slice.

    Raises:
        ShapeError: ``reshape_with_axis`` is not beside ``time_axis``.

    >>> import mycelia as ms
    >>> net = ms.nn.TimeDistributed(ms.nn.Dense(2, 3), time_axis=1, reshape_with_axis=0)
    >>> net(ms.ops.ones((4, 5, 2))).shape
    (4, 5, 3)
    """

    def __init__(self, layer: Any, time_axis: int, reshape_with_axis: int | None = None) -> None:
        super().__init__()
        self.layer = arg.function("TimeDistributed", "layer", layer, "a Cell or an operator")
        self.time_axis = arg.positive("TimeDistributed", "time_axis", time_axis, -(2**31))
        self.reshape_with_axis = reshape_with_axis
        if reshape_with_axis is not None:
            arg.positive("TimeDistributed", "reshape_with_axis", reshape_with_axis, -(2**31))

    def construct(self, inputs: Any) -> Any:
        t = arg.tensor("TimeDistributed", "inputs", inputs)
        axis = self.time_axis % t.ndim
        if self.reshape_with_axis is None:
            return ops.stack([self.layer(part) for part in ops.unbind(t, axis)], axis)
        other = self.reshape_with_axis % t.ndim
        first = min(axis, other)
        if abs(axis - other) != 1:
            raise ShapeError(
                "TimeDistributed",
                "reshape_with_axis",
                got=str(self.reshape_with_axis),
                takes="an axis beside 'time_axis'",
            )
        pair = t.shape[first : first + 2]
        y = self.layer(ops.reshape(t, (*t.shape[:first], pair[0] * pair[1], *t.shape[first + 2 :])))
        return ops.reshape(y, (*y.shape[:first], *pair, *y.shape[first + 1 :]))
