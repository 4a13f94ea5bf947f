"""Normalization over features: layer, group and instance normalization.

J. Ba et al., "Layer normalization", 2016; Y. Wu and K. He, "Group normalization", ECCV 2018; D. Ulyanov et
al., "Instance normalization", 2016.
"""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, OutOfRangeError, ShapeError
from mycelia.nn.cell import Cell
from mycelia.nn.layers import arguments as arg
from mycelia.ops.batch_normalization import running_statistics_p
from mycelia.ops.normalization import layer_norm_p
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, set_value


class LayerNorm(Cell):
    """Normalization over the last axes of each sample.

    Args:
        normalized_shape: lengths of the normalized axes, a tuple or list.
        begin_norm_axis: first axis that is normalized over.
        begin_params_axis: first axis that ``gamma`` and ``beta`` have.
        gamma_init: initial scale: a name, an Initializer, a number or a Tensor of ``normalized_shape``.
        beta_init: initial shift, likewise.
        epsilon: added to the variance.
        dtype: dtype of the parameters.

    Inputs:
        input_x: a tensor whose axes from ``begin_params_axis`` on have ``normalized_shape``.

    Raises:
        ShapeError: they do not.
        OutOfRangeError: an axis the input does not have.

    >>> import mycelia as ms
    >>> print(ms.nn.LayerNorm((2,))(ms.Tensor([[1.0, 3.0]])).round())
    [[-1.  1.]]
    """

    def __init__(
        self,
        normalized_shape: Any,
        begin_norm_axis: int = -1,
        begin_params_axis: int = -1,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        epsilon: float = 1e-7,
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__()
        shape = _lengths("LayerNorm", normalized_shape)
        self.normalized_shape = normalized_shape
        self._shape = shape
        self.begin_norm_axis = arg.positive("LayerNorm", "begin_norm_axis", begin_norm_axis, -len(shape) - 16)
        self.begin_params_axis = arg.positive("LayerNorm", "begin_params_axis", begin_params_axis, -len(shape) - 16)
        self.epsilon = arg.number("LayerNorm", "epsilon", epsilon)
        kind = arg.floating_dtype("LayerNorm", dtype)
        self.gamma = arg.parameter("LayerNorm", "gamma_init", gamma_init, shape, kind, "gamma")
        self.beta = arg.parameter("LayerNorm", "beta_init", beta_init, shape, kind, "beta")

    def construct(self, input_x: Any) -> Any:
        t: Tensor = arg.floating_input("LayerNorm", "input_x", input_x)
        rank = len(t.shape)
        begin = _axis("begin_norm_axis", self.begin_norm_axis, rank)
        if t.shape[_axis("begin_params_axis", self.begin_params_axis, rank) :] != self._shape:
            raise ShapeError(
                "LayerNorm", "input_x", got=f"shape {t.shape}",
                takes=f"shape {self._shape} from axis {self.begin_params_axis} on, as 'normalized_shape' says",
            )  # fmt: skip
        return apply(layer_norm_p, t, self.gamma, self.beta, begin=begin, epsilon=self.epsilon)[0]

    def extend_repr(self) -> str:
        return (
            f"normalized_shape={self.normalized_shape}, begin_norm_axis={self.begin_norm_axis}, "
            f"begin_params_axis={self.begin_params_axis}, gamma={self.gamma}, beta={self.beta}"
        )


def _lengths(where: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)):
        raise ArgumentTypeError(
            where, "normalized_shape", got=f"{value!r} ({type(value).__name__})", takes="a tuple or list of ints"
        )
    if not value:
        raise ArgumentValueError(where, "normalized_shape", got=str(value), takes="at least one length")
    return tuple(arg.positive(where, "normalized_shape", n) for n in value)


def _axis(argument: str, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise OutOfRangeError(
            "LayerNorm", argument, got=str(axis), takes=f"an axis of the input, {-rank} to {rank - 1}"
        )
    return axis % rank


class LayerNormExt(Cell):
    """:class:`LayerNorm` under other keywords, its parameters in ``weight`` and ``bias``.

    Args:
        normalized_shape: lengths of the last axes, which are normalized over; an int for one axis.
        eps: added to the variance.
        elementwise_affine: whether there are scale and shift.
        bias: whether there is a shift.
        dtype: dtype of the parameters; float32 by default.

    Raises:
        ShapeError: the input does not end in ``normalized_shape``.

    >>> import mycelia as ms
    >>> print(ms.nn.LayerNormExt(2)(ms.Tensor([[1.0, 3.0]])).round())
    [[-1.  1.]]
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        where = "LayerNormExt"
        single = isinstance(normalized_shape, int) and not isinstance(normalized_shape, bool)
        self.normalized_shape = _lengths(where, (normalized_shape,) if single else normalized_shape)
        self.eps = arg.number(where, "eps", eps)
        arg.flag(where, "elementwise_affine", elementwise_affine)
        arg.flag(where, "bias", bias)
        self.elementwise_affine = elementwise_affine
        kind = arg.floating_dtype(where, dtype)
        self.weight = self.bias = None
        if elementwise_affine:
            self.weight = arg.parameter(where, "weight", "ones", self.normalized_shape, kind, "weight")
            if bias:
                self.bias = arg.parameter(where, "bias", "zeros", self.normalized_shape, kind, "bias")

    def construct(self, input: Any) -> Any:
        return ops.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extend_repr(self) -> str:
        return f"normalized_shape={self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Cell):
    """Normalization over groups of channels of each sample.

    Args:
        num_groups: number of groups.
        num_channels: number of channels, a multiple of it.
        eps: added to the variance.
        affine: whether ``gamma`` and ``beta`` are trained.
        gamma_init: initial scale: a name, an Initializer, a number or a Tensor of shape (num_channels,).
        beta_init: initial shift, likewise.
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, num_channels, ...).

    Raises:
        ArgumentValueError: the channels are no multiple of the groups.
        ShapeError: the input has other channels.

    >>> import mycelia as ms
    >>> ms.nn.GroupNorm(2, 4)(ms.ops.ones((1, 4, 3, 3))).shape
    (1, 4, 3, 3)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__()
        self.num_groups = arg.positive("GroupNorm", "num_groups", num_groups)
        self.num_channels = arg.positive("GroupNorm", "num_channels", num_channels)
        if num_channels % num_groups:
            raise ArgumentValueError(
                "GroupNorm",
                "num_channels",
                got=f"{num_channels} with num_groups={num_groups}",
                takes="a multiple of it",
            )
        self.eps = arg.number("GroupNorm", "eps", eps)
        arg.flag("GroupNorm", "affine", affine)
        self.affine = affine
        kind = arg.floating_dtype("GroupNorm", dtype)
        self.gamma = arg.parameter("GroupNorm", "gamma_init", gamma_init, (num_channels,), kind, "gamma", affine)
        self.beta = arg.parameter("GroupNorm", "beta_init", beta_init, (num_channels,), kind, "beta", affine)

    def construct(self, x: Any) -> Any:
        t = arg.channels_of("GroupNorm", "x", x, 1, self.num_channels)
        return ops.group_norm(t, self.num_groups, self.gamma, self.beta, self.eps)

    def extend_repr(self) -> str:
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}"


class _InstanceNorm(Cell):
    """Normalization of each channel of each sample; running statistics are kept and not used."""

    rank: int
    layout: str

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__()
        where, shape = type(self).__name__, (num_features,)
        self.num_features = arg.positive(where, "num_features", num_features)
        self.eps = arg.number(where, "eps", eps)
        self.momentum = arg.fraction(where, "momentum", momentum)
        arg.flag(where, "affine", affine)
        self.affine = affine
        kind = arg.floating_dtype(where, dtype)
        self.moving_mean = arg.parameter(where, "moving_mean_init", "zeros", shape, kind, "mean", False)
        self.moving_variance = arg.parameter(where, "moving_var_init", "ones", shape, kind, "variance", False)
        self.gamma = arg.parameter(where, "gamma_init", gamma_init, shape, kind, "gamma", affine)
        self.beta = arg.parameter(where, "beta_init", beta_init, shape, kind, "beta", affine)

    def construct(self, x: Any) -> Any:
        where = type(self).__name__
        t: Tensor = arg.axes_of_input(where, "x", x, (self.rank,), self.layout)
        arg.channels_of(where, "x", t, 1, self.num_features)
        if self.training:
            self._keep_statistics(t)
        return ops.instance_norm(t, self.gamma, self.beta, self.eps)

    def _keep_statistics(self, t: Tensor) -> None:
        fixed = ops.cast(ops.stop_gradient(t), dt.float32 if t.dtype.itemsize == 2 else t.dtype)
        axes = tuple(range(2, self.rank))
        count = t.size // (t.shape[0] * t.shape[1])
        variance = ops.mean(ops.var(fixed, axes, 0), 0)
        new = apply(
            running_statistics_p, self.moving_mean, self.moving_variance, ops.mean(fixed, (0, *axes)), variance,
            momentum=1 - self.momentum, count=count,
        )  # fmt: skip
        set_value(self.moving_mean, new[0])
        set_value(self.moving_variance, new[1])

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, gamma={self.gamma}, "
            f"beta={self.beta}, moving_mean={self.moving_mean}, moving_variance={self.moving_variance}"
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization of sequences: each channel of each sample by its own statistics, always.

    Args:
        num_features: number of channels.
        eps: added to the variance.
        momentum: weight of the old running statistics, which are kept in training and not used.
        affine: whether ``gamma`` and ``beta`` are trained.
        gamma_init: initial scale: a name, an Initializer, a number or a Tensor of shape (num_features,).
        beta_init: initial shift, likewise.
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, num_features, length).

    Raises:
        ShapeError: the input has other channels or axes.

    >>> import mycelia as ms
    >>> ms.nn.InstanceNorm1d(3)(ms.ops.ones((2, 3, 4))).shape
    (2, 3, 4)
    """

    rank = 3
    layout = "(batch, channels, length)"


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization of images; see :class:`InstanceNorm1d`.

    Inputs:
        x: a tensor of shape (batch, num_features, height, width).

    >>> import mycelia as ms
    >>> ms.nn.InstanceNorm2d(3)(ms.ops.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    rank = 4
    layout = "(batch, channels, height, width)"


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of volumes; see :class:`InstanceNorm1d`.

    Inputs:
        x: a tensor of shape (batch, num_features, depth, height, width).

    >>> import mycelia as ms
    >>> ms.nn.InstanceNorm3d(3)(ms.ops.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 4, 4, 4)
    """

    rank = 5
    layout = "(batch, channels, depth, height, width)"
