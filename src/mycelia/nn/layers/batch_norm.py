"""Batch normalization with running statistics.

S. Ioffe and C. Szegedy, "Batch normalization", ICML 2015. ``momentum`` is the weight of the OLD statistics:
``moving = momentum * moving + (1 - momentum) * batch``; the variance that is kept is the unbiased one.
"""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError
from mycelia.nn.cell import Cell
from mycelia.nn.layers import arguments as arg
from mycelia.ops.batch_normalization import batch_norm_inference_p, batch_norm_training
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply


class _BatchNorm(Cell):
    """Parameters, statistics and the choice between them."""

    ranks: tuple[int, ...]
    layout: str

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float,
        affine: bool,
        gamma_init: Any,
        beta_init: Any,
        moving_mean_init: Any,
        moving_var_init: Any,
        use_batch_statistics: bool | None,
        data_format: str,
        dtype: Any,
    ) -> None:
        super().__init__()
        where = type(self).__name__
        self.num_features = arg.positive(where, "num_features", num_features)
        self.eps = arg.number(where, "eps", eps)
        self.momentum = arg.fraction(where, "momentum", momentum)
        arg.flag(where, "affine", affine)
        self.affine = affine
        if use_batch_statistics is not None and not isinstance(use_batch_statistics, bool):
            raise ArgumentTypeError(
                where, "use_batch_statistics", got=repr(use_batch_statistics), takes="True, False or None"
            )
        self.use_batch_statistics = use_batch_statistics
        self.data_format = data_format
        kind, shape = arg.floating_dtype(where, dtype), (num_features,)
        self.moving_mean = arg.parameter(where, "moving_mean_init", moving_mean_init, shape, kind, "mean", False)
        self.moving_variance = arg.parameter(where, "moving_var_init", moving_var_init, shape, kind, "variance", False)
        self.gamma = arg.parameter(where, "gamma_init", gamma_init, shape, kind, "gamma", affine)
        self.beta = arg.parameter(where, "beta_init", beta_init, shape, kind, "beta", affine)

    def construct(self, x: Any) -> Any:
        where = type(self).__name__
        axis = len(self.data_format) - 1 if self.data_format[-1] == "C" else 1
        t: Tensor = arg.axes_of_input(where, "x", x, self.ranks, self.layout)
        arg.channels_of(where, "x", t, axis, self.num_features)
        use_batch = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        if use_batch:
            return batch_norm_training(
                t, (self.gamma, self.beta), self.moving_mean, self.moving_variance, 1 - self.momentum, self.eps, axis
            )
        return apply(
            batch_norm_inference_p, t, self.gamma, self.beta, self.moving_mean, self.moving_variance, axis=axis,
            epsilon=self.eps,
        )  # fmt: skip

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, gamma={self.gamma}, "
            f"beta={self.beta}, moving_mean={self.moving_mean}, moving_variance={self.moving_variance}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalization of features.

    Args:
        num_features: number of channels.
        eps: added to the variance.
        momentum: weight of the old statistics, from 0 to 1.
        affine: whether ``gamma`` and ``beta`` are trained.
        gamma_init: initial scale: a name, an Initializer, a number or a Tensor of shape (num_features,).
        beta_init: initial shift.
        moving_mean_init: initial running mean.
        moving_var_init: initial running variance.
        use_batch_statistics: None: the batch's statistics in training and the running ones otherwise; True:
            always the batch's; False: never.
        data_format: ``"NCHW"``.
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, num_features) or (batch, num_features, length).

    Raises:
        ShapeError: the input has other channels or axes.

    >>> import mycelia as ms
    >>> net = ms.nn.BatchNorm1d(1, eps=1e-9).set_train()
    >>> print(net(ms.Tensor([[1.0], [3.0]])).flatten(), net.moving_mean.data)
    [-1.  1.] [0.2]
    """

    ranks = (2, 3)
    layout = "(batch, channels[, length])"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        data_format: str = "NCHW",
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
            use_batch_statistics, arg.choice("BatchNorm1d", "data_format", data_format, ("NCHW",)), dtype,
        )  # fmt: skip


class BatchNorm2d(_BatchNorm):
    """Batch normalization of images.

    Args:
        num_features: number of channels.
        eps: added to the variance.
        momentum: weight of the old statistics, from 0 to 1.
        affine: whether ``gamma`` and ``beta`` are trained.
        gamma_init: initial scale; see :class:`BatchNorm1d`.
        beta_init: initial shift.
        moving_mean_init: initial running mean.
        moving_var_init: initial running variance.
        use_batch_statistics: None, True or False; see :class:`BatchNorm1d`.
        data_format: ``"NCHW"``, or ``"NHWC"`` for channels last.
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, num_features, height, width).

    Raises:
        ShapeError: the input has other channels or axes.

    >>> import mycelia as ms
    >>> ms.nn.BatchNorm2d(3)(ms.ops.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    ranks = (4,)
    layout = "(batch, channels, height, width)"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        data_format: str = "NCHW",
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
            use_batch_statistics, arg.choice("BatchNorm2d", "data_format", data_format, ("NCHW", "NHWC")), dtype,
        )  # fmt: skip


class BatchNorm3d(Cell):
    """Batch normalization of volumes, by a :class:`BatchNorm2d` named ``bn2d``.

    Args:
        num_features: number of channels.
        eps: added to the variance.
        momentum: weight of the old statistics, from 0 to 1.
        affine: whether ``gamma`` and ``beta`` are trained.
        gamma_init: initial scale; see :class:`BatchNorm1d`.
        beta_init: initial shift.
        moving_mean_init: initial running mean.
        moving_var_init: initial running variance.
        use_batch_statistics: None, True or False; see :class:`BatchNorm1d`.
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, num_features, depth, height, width).

    Raises:
        ShapeError: the input has other channels or axes.

    >>> import mycelia as ms
    >>> ms.nn.BatchNorm3d(3)(ms.ops.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 4, 4, 4)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        dtype: Any = dt.float32,
    ) -> None:
        super().__init__()
        self.bn2d = BatchNorm2d(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
            use_batch_statistics, "NCHW", dtype,
        )  # fmt: skip

    def construct(self, x: Any) -> Any:
        t = arg.axes_of_input("BatchNorm3d", "x", x, (5,), "(batch, channels, depth, height, width)")
        arg.channels_of("BatchNorm3d", "x", t, 1, self.bn2d.num_features)
        n, c, d, h, w = t.shape
        return ops.reshape(self.bn2d(ops.reshape(t, (n, c, d * h, w))), t.shape)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization whose statistics are those of the batch over all devices.

    Within one compiled program that is spread over devices the batch is the whole one, so this is batch
    normalization of inputs of any number of axes.

    Args:
        num_features: number of channels.
        eps: added to the variance.
        momentum: weight of the old statistics, from 0 to 1.
        affine: whether ``gamma`` and ``beta`` are trained.
        gamma_init: initial scale; see :class:`BatchNorm1d`.
        beta_init: initial shift.
        moving_mean_init: initial running mean.
        moving_var_init: initial running variance.
        use_batch_statistics: None, True or False; see :class:`BatchNorm1d`.
        process_groups: None, or lists of ranks that form groups.
        dtype: dtype of the parameters.

    Inputs:
        x: a tensor of shape (batch, num_features, ...).

    Raises:
        ShapeError: the input has other channels.

    >>> import mycelia as ms
    >>> ms.nn.SyncBatchNorm(3)(ms.ops.ones((2, 3, 4, 4))).shape
    (2, 3, 4, 4)
    """

    ranks = (2, 3, 4, 5)
    layout = "(batch, channels, ...)"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        process_groups: Any = None,
        dtype: Any = dt.float32,
    ) -> None:
        if process_groups is not None and not isinstance(process_groups, list):
            raise ArgumentTypeError(
                "SyncBatchNorm",
                "process_groups",
                got=type(process_groups).__name__,
                takes="a list of lists of ranks, or None",
            )
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init,
            use_batch_statistics, "NCHW", dtype,
        )  # fmt: skip
        self.process_groups = process_groups
