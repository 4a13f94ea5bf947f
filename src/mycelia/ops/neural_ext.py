"""Operators of networks with the later names, orders and defaults of arguments, as ``mint`` has them.

Convolutions take a padding instead of a mode, pooling a step that is the window by default, activations and dropout
``inplace``; batch normalization comes in three steps for statistics that are gathered from several devices.
"""

from __future__ import annotations

from typing import Any

from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ops.activation import gelu
from mycelia.ops.batch_normalization import batch_norm
from mycelia.ops.calls import as_float, overwrite
from mycelia.ops.convolution import conv1d, conv2d, conv3d
from mycelia.ops.cross_entropy import nll_loss
from mycelia.ops.dropout import dropout, dropout2d
from mycelia.ops.elementary import rsqrt
from mycelia.ops.losses import binary_cross_entropy, binary_cross_entropy_with_logits, kl_div, smooth_l1_loss
from mycelia.ops.max_avg_pooling import avg_pooling, max_pooling
from mycelia.ops.operands import as_tensor, cast
from mycelia.ops.power import square
from mycelia.ops.reduction import mean, sum as sum_
from mycelia.ops.shape import reshape, transpose
from mycelia.ops.softmax import log_softmax, softmax
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import set_value

# convolution


def _padding(where: str, padding: Any, n: int, stride: Any) -> tuple[str, Any]:
    """Mode and padding: the same number on both sides of an axis, or one of the two words."""
    if isinstance(padding, str):
        if padding not in ("valid", "same"):
            raise ArgumentValueError(where, "padding", got=repr(padding), takes='numbers, "valid" or "same"')
        if padding == "same" and any(s != 1 for s in (stride if isinstance(stride, (tuple, list)) else (stride,))):
            raise ArgumentValueError(where, "padding", got='"same"', takes=f"numbers with stride {stride}")
        return padding, 0
    if isinstance(padding, (tuple, list)) and len(padding) == n:
        return "pad", tuple([p for p in padding for _ in range(2)])
    return "pad", padding


def conv1d_ext(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Convolution along one axis; ``padding`` is a number, ``"valid"`` or ``"same"``. See :func:`mycelia.ops.conv1d`.

    >>> import mycelia as ms
    >>> ms.mint.nn.functional.conv1d(ms.mint.ones((1, 2, 8)), ms.mint.ones((3, 2, 3)), padding=1).shape
    (1, 3, 8)
    """
    mode, pads = _padding("conv1d", padding, 1, stride)
    return conv1d(input, weight, bias, stride, mode, pads, dilation, groups)


def conv2d_ext(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Convolution of images; ``padding`` is one or two numbers, ``"valid"`` or ``"same"``. See
    :func:`mycelia.ops.conv2d`.

    >>> import mycelia as ms
    >>> ms.mint.nn.functional.conv2d(ms.mint.ones((1, 2, 8, 8)), ms.mint.ones((3, 2, 3, 3)), padding=1).shape
    (1, 3, 8, 8)
    """  # noqa: D205
    mode, pads = _padding("conv2d", padding, 2, stride)
    return conv2d(input, weight, bias, stride, mode, pads, dilation, groups)


def conv3d_ext(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Convolution of volumes; ``padding`` is one or three numbers, ``"valid"`` or ``"same"``. See
    :func:`mycelia.ops.conv3d`.

    >>> import mycelia as ms
    >>> ms.mint.nn.functional.conv3d(ms.mint.ones((1, 2, 4, 4, 4)), ms.mint.ones((3, 2, 3, 3, 3))).shape
    (1, 3, 2, 2, 2)
    """  # noqa: D205
    mode, pads = _padding("conv3d", padding, 3, stride)
    return conv3d(input, weight, bias, stride, mode, pads, dilation, groups)


def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Tensor:
    """Convolution along time of a tensor of shape (time, batch, channels).

    Args:
        input: a tensor of shape (time, batch, in).
        weight: a tensor of shape (kernel, in, out).
        bias: a tensor of shape (out,).
        pad: zeros before and after the time axis.

    >>> import mycelia as ms
    >>> ms.mint.conv_tbc(ms.mint.ones((5, 1, 2)), ms.mint.ones((3, 2, 4)), ms.mint.zeros((4,))).shape
    (3, 1, 4)
    """
    x, w = as_tensor(input, "conv_tbc"), as_tensor(weight, "conv_tbc", "weight")
    if x.ndim != 3 or w.ndim != 3:
        raise ShapeError("conv_tbc", "input", got=f"shape {x.shape} and weight {w.shape}", takes="three axes each")
    made = conv1d_ext(transpose(x, (1, 2, 0)), transpose(w, (2, 1, 0)), bias, 1, pad)
    back: Tensor = transpose(made, (2, 0, 1))
    return back


# pooling


def avg_pool1d_ext(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """Means of windows along one axis; the step is the window by default. See :func:`mycelia.ops.avg_pool1d`.

    >>> import mycelia as ms
    >>> print(ms.mint.nn.functional.avg_pool1d(ms.Tensor([[[1.0, 3.0, 2.0, 4.0]]]), 2))
    [[[2. 3.]]]
    """
    return avg_pooling("avg_pool1d", 1, input, kernel_size, stride, "pad", padding, ceil_mode, count_include_pad)


def avg_pool2d_ext(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Tensor:  # fmt: skip
    """Means of windows over images; the step is the window by default. See :func:`mycelia.ops.avg_pool2d`.

    >>> import mycelia as ms
    >>> print(ms.mint.nn.functional.avg_pool2d(ms.Tensor([[[[1.0, 3.0], [2.0, 4.0]]]]), 2))
    [[[[2.5]]]]
    """
    return avg_pooling(
        "avg_pool2d", 2, input, kernel_size, stride, "pad", padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d_ext(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> Tensor:  # fmt: skip
    """Means of windows over volumes; the step is the window by default. See :func:`mycelia.ops.avg_pool3d`.

    >>> import mycelia as ms
    >>> ms.mint.nn.functional.avg_pool3d(ms.mint.ones((1, 1, 4, 4, 4)), 2).shape
    (1, 1, 2, 2, 2)
    """
    return avg_pooling(
        "avg_pool3d", 3, input, kernel_size, stride, "pad", padding, ceil_mode, count_include_pad, divisor_override
    )


def max_pool2d_ext(
    input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:  # fmt: skip
    """Largest elements of windows over images; the step is the window by default. See :func:`mycelia.ops.max_pool2d`.

    >>> import mycelia as ms
    >>> print(ms.mint.nn.functional.max_pool2d(ms.Tensor([[[[1.0, 3.0], [2.0, 4.0]]]]), 2))
    [[[[4.]]]]
    """
    return max_pooling("max_pool2d", 2, input, kernel_size, stride, "pad", padding, dilation, ceil_mode, return_indices)


# normalization


def batch_norm_ext(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Normalize each channel; see :func:`mycelia.ops.batch_norm`.

    >>> import mycelia as ms
    >>> x, zero, one = ms.Tensor([[2.0]]), ms.Tensor([0.0]), ms.Tensor([1.0])
    >>> print(ms.mint.nn.functional.batch_norm(x, zero, one, eps=0.0))
    [[2.]]
    """
    return batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def _channels(x: Tensor, values: Any, where: str, argument: str) -> Any:
    t = as_tensor(values, where, argument)
    if t.shape != (x.shape[1],):
        raise ShapeError(where, argument, got=f"shape {t.shape}", takes=f"one value for each of {x.shape[1]} channels")
    return reshape(t, (-1, *(1,) * (x.ndim - 2)))


def batch_norm_stats(input: Any, eps: float) -> tuple[Tensor, Tensor]:
    """The mean of each channel (axis 1), and one over the root of its variance plus ``eps``.

    >>> import mycelia as ms
    >>> print(*ms.mint.batch_norm_stats(ms.Tensor([[1.0], [3.0]]), 0.0))
    [2.] [1.]
    """
    x = as_float(input, "batch_norm_stats")
    if x.ndim < 2:
        raise ShapeError("batch_norm_stats", "input", got=f"shape {x.shape}", takes="shape (batch, channels, ...)")
    axes = tuple([i for i in range(x.ndim) if i != 1])
    center = mean(x, axes)
    apart: Any = x
    variance: Any = mean(square(apart - _channels(x, center, "batch_norm_stats", "mean")), axes)
    return center, rsqrt(variance + eps)


def batch_norm_gather_stats_with_counts(
    input: Any, mean: Any, invstd: Any, running_mean: Any = None, running_var: Any = None, momentum: float = 0.1,
    eps: float = 1e-5, counts: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Statistics of several parts of a batch as those of the whole; the running ones are overwritten.

    Args:
        input: the part at hand; its values do not matter.
        mean: means of the parts, of shape (parts, channels).
        invstd: their inverse deviations.
        running_mean: overwritten if given, like ``running_var``, by ``(1 - momentum) * old + momentum * new``.
        running_var: takes the unbiased variance.
        momentum: weight of the new values.
        eps: what was added to the variances.
        counts: how many values a channel each part has, of shape (parts,).

    Returns:
        Mean and inverse deviation of each channel.

    >>> import mycelia as ms
    >>> means, inverse, counts = ms.Tensor([[1.0], [3.0]]), ms.Tensor([[1.0], [1.0]]), ms.Tensor([2.0, 2.0])
    >>> center, _ = ms.mint.batch_norm_gather_stats_with_counts(means, means, inverse, counts=counts)
    >>> print(center)
    [2.]
    """
    where = "batch_norm_gather_stats_with_counts"
    centers, inverses = as_float(mean, where, "mean"), as_float(invstd, where, "invstd")
    if counts is None:
        raise ArgumentTypeError(where, "counts", got="None", takes="the number of values of each part")
    weights: Any = reshape(cast(as_tensor(counts, where, "counts"), centers.dtype), (-1, 1))
    total: Any = sum_(weights)
    inverse: Any = inverses
    part: Any = centers
    center: Any = sum_(part * weights, 0) / total
    spread = 1 / (inverse * inverse) - eps
    variance: Any = sum_((spread + square(part - center)) * weights, 0) / total
    if running_mean is not None and running_var is not None:
        unbiased = variance * total / (total - 1)
        set_value(running_mean, cast((1 - momentum) * running_mean + momentum * center, running_mean.dtype))
        set_value(running_var, cast((1 - momentum) * running_var + momentum * unbiased, running_var.dtype))
    return center, rsqrt(variance + eps)


def batch_norm_elemt(
    input: Any, weight: Any = None, bias: Any = None, mean: Any = None, invstd: Any = None, eps: float = 1e-5
) -> Tensor:
    """``(input - mean) * invstd * weight + bias`` for each channel (axis 1).

    >>> import mycelia as ms
    >>> x, mean, inverse = ms.Tensor([[1.0], [3.0]]), ms.Tensor([2.0]), ms.Tensor([1.0])
    >>> print(ms.mint.batch_norm_elemt(x, mean=mean, invstd=inverse).flatten())
    [-1.  1.]
    """
    where = "batch_norm_elemt"
    x = as_float(input, where)
    for name, value in (("mean", mean), ("invstd", invstd)):
        if value is None:
            raise ArgumentTypeError(where, name, got="None", takes="a tensor of shape (channels,)")
    apart: Any = x
    made = (apart - _channels(x, mean, where, "mean")) * _channels(x, invstd, where, "invstd")
    made = made if weight is None else made * _channels(x, weight, where, "weight")
    return cast(made if bias is None else made + _channels(x, bias, where, "bias"), x.dtype)


# losses


def binary_cross_entropy_ext(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """Cross entropy of probabilities with binary targets; see :func:`mycelia.ops.binary_cross_entropy`.

    >>> import mycelia as ms
    >>> loss = ms.mint.nn.functional.binary_cross_entropy(ms.Tensor([0.5]), ms.Tensor([1.0]))
    >>> print(f"{loss.item():.4f}")
    0.6931
    """
    return binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits_ext(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    """Cross entropy of ``sigmoid(input)`` with binary targets; the reduction comes before ``pos_weight``.

    >>> import mycelia as ms
    >>> loss = ms.mint.nn.functional.binary_cross_entropy_with_logits(ms.Tensor([0.0]), ms.Tensor([1.0]))
    >>> print(f"{loss.item():.4f}")
    0.6931
    """
    return binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div_ext(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Kullback-Leibler divergence of targets from log-predictions; see :func:`mycelia.ops.kl_div`.

    >>> import mycelia as ms
    >>> print(ms.mint.nn.functional.kl_div(ms.Tensor([0.0]), ms.Tensor([1.0])))
    0.0
    """
    return kl_div(input, target, reduction, log_target)


def nll_loss_ext(
    input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """Minus the log-probability of the target class; see :func:`mycelia.ops.nll_loss`.

    >>> import mycelia as ms
    >>> print(ms.mint.nn.functional.nll_loss(ms.Tensor([[-1.0, -2.0]]), ms.Tensor([1])))
    2.0
    """
    return nll_loss(input, target, weight, ignore_index, reduction)


def smooth_l1_loss_ext(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Squares of small differences, absolute values of large ones; see :func:`mycelia.ops.smooth_l1_loss`.

    >>> import mycelia as ms
    >>> print(ms.mint.nn.functional.smooth_l1_loss(ms.Tensor([0.0, 0.0]), ms.Tensor([1.0, 3.0])))
    1.5
    """
    return smooth_l1_loss(input, target, beta, reduction)


# activations and dropout


def _axis_without(dim: Any, rank: int) -> Any:
    """What no axis has always stood for: the first of one, two or four axes fewer than three, else the second."""
    return (0 if rank in (0, 1, 3) else 1) if dim is None else dim


def softmax_ext(input: Any, dim: Any = None, dtype: Any = None) -> Tensor:
    """Softmax along an axis; without one, along axis 0 of tensors of 0, 1 or 3 axes, else along axis 1.

    >>> import mycelia as ms
    >>> print(ms.mint.nn.functional.softmax(ms.Tensor([0.0, 0.0])))
    [0.5 0.5]
    """
    x = as_tensor(input, "softmax")
    return softmax(x, _axis_without(dim, x.ndim), dtype=dtype)


def log_softmax_ext(input: Any, dim: Any = None, *, dtype: Any = None) -> Tensor:
    """Logarithm of softmax along an axis; without one, as :func:`softmax_ext`.

    >>> import mycelia as ms
    >>> print(f"{ms.mint.special.log_softmax(ms.Tensor([0.0, 0.0]))[0].item():.4f}")
    -0.6931
    """
    x = as_tensor(input, "log_softmax")
    return log_softmax(x, _axis_without(dim, x.ndim), dtype=dtype)


def npu_gelu(input: Any, approximate: str = "none") -> Tensor:
    """:func:`mycelia.ops.gelu`.

    >>> import mycelia as ms
    >>> print(ms.mint.npu_gelu(ms.Tensor([0.0])))
    [0.]
    """
    return gelu(input, approximate)


def _put(input: Any, made: Tensor, inplace: bool, where: str) -> Tensor:
    if not inplace:
        return made
    if not isinstance(input, Tensor):
        raise ArgumentTypeError(where, "input", got=type(input).__name__, takes="a Tensor to be overwritten")
    return overwrite(input, made, where)


def dropout_ext(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero elements with probability ``p``; see :func:`mycelia.ops.dropout`. ``inplace`` overwrites the tensor.

    >>> import mycelia as ms
    >>> print(ms.mint.nn.functional.dropout(ms.Tensor([1.0, 2.0]), training=False))
    [1. 2.]
    """
    return _put(input, dropout(input, p, training), inplace, "dropout")


def dropout2d_ext(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels with probability ``p``; see :func:`mycelia.ops.dropout2d`.

    >>> import mycelia as ms
    >>> ms.mint.nn.functional.dropout2d(ms.mint.ones((1, 8, 4, 4))).shape
    (1, 8, 4, 4)
    """
    return _put(input, dropout2d(input, p, training), inplace, "dropout2d")
