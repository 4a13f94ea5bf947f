"""Convolution in one, two and three dimensions, its two gradients, and transposed convolution.

A convolution here is what the field calls one: a cross-correlation of channels-first images with OI...
kernels. It is linear in the image and in the kernel, and so are its gradients, which are primitives of
their own: ``conv_input_grad`` (a transposed convolution) and ``conv_weight_grad``. The vjp of each of the
three is made of the other two, so derivatives of any order stay within them. ``channels_last`` says that
images have their channels on the last axis; kernels keep their layout.

XLA's CPU compiler has fast code for channels-last images and ...IO kernels only. It transposes others to that form,
but not inside branches and loops, where it falls back to code that is ten to a hundred times slower. So all three
are lowered to convolutions of that form, with the transposes around them. With several groups each is one convolution
with as many groups, but for the gradient of depthwise kernels, whose elements are sums of products.
"""

from __future__ import annotations

from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.operands import as_int, same_dtype
from mycelia.ops.reduction import reduce_sum
from mycelia.ops.registry import operator
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

Ints = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]

_AXES = {1: "W", 2: "HW", 3: "DHW"}


def channel_axis(rank: int, channels_last: bool) -> int:
    """The axis of the channels of an image with ``rank`` axes."""
    return rank - 1 if channels_last else 1


def spatial(shape: Ints, channels_last: bool) -> Ints:
    """The lengths of the axes that are neither batch nor channels."""
    return shape[1:-1] if channels_last else shape[2:]


def conv_shape(
    x: Ints, w: Ints, strides: Ints, padding: Pairs, dilation: Ints, groups: int, channels_last: bool
) -> Ints:
    """The shape of a convolution's result, or a located error."""
    n = len(x) - 2
    if n not in _AXES:
        raise ShapeError(
            "conv", "input", got=f"shape {x}", takes="3, 4 or 5 axes: batch, channels and 1 to 3 spatial ones"
        )
    name = f"conv{n}d"
    if len(w) != len(x):
        raise ShapeError(
            name, "weight", got=f"shape {w}", takes=f"{len(x)} axes: output and input channels, then the kernel"
        )
    for values, argument in ((strides, "stride"), (padding, "padding"), (dilation, "dilation")):
        if len(values) != n:
            raise ArgumentValueError(name, argument, got=str(values), takes=f"{n} values, one for each spatial axis")
    channels = x[channel_axis(len(x), channels_last)]
    if w[1] * groups != channels:
        raise ShapeError(
            name, "weight", got=f"shape {w} with {w[1]} input channels in each of {groups} groups",
            takes=f"{channels} channels in all, as 'input' of shape {x} has",
        )  # fmt: skip
    if w[0] % groups:
        raise ShapeError(name, "weight", got=f"{w[0]} output channels", takes=f"a multiple of the {groups} groups")
    made = []
    for size, k, s, (lo, hi), d in zip(spatial(x, channels_last), w[2:], strides, padding, dilation, strict=True):
        reach, padded = (k - 1) * d + 1, size + lo + hi
        if k < 1 or reach > padded:
            raise ShapeError(
                name, "weight", got=f"kernel {w[2:]} with dilation {dilation}, {reach} wide on an axis",
                takes=f"a kernel within the padded input, {padded} wide (shape {x}, padding {padding})",
            )  # fmt: skip
        made.append((padded - reach) // s + 1)
    return (x[0], *made, w[0]) if channels_last else (x[0], w[0], *made)


def _infer_conv(
    x: TensorType, w: TensorType, bias: TensorType | None = None, *, strides: Ints, padding: Pairs, dilation: Ints,
    groups: int, channels_last: bool,
) -> TensorType:  # fmt: skip
    types = (x, w) if bias is None else (x, w, bias)
    check_dtypes(f"conv{x.rank - 2}d", types, dt.FLOATS, ("input", "weight", "bias"))
    shape = conv_shape(x.shape, w.shape, strides, padding, dilation, groups, channels_last)
    if bias is not None and bias.shape != (w.shape[0],):
        raise ShapeError(
            f"conv{x.rank - 2}d",
            "bias",
            got=f"shape {bias.shape}",
            takes=f"({w.shape[0]},), one value an output channel",
        )
    return TensorType(x.dtype, shape)


def _last(x: Any, channels_last: bool) -> Any:
    """An image with its channels on the last axis."""
    return x if channels_last else lax.transpose(x, (0, *range(2, x.ndim), 1))


def _as_given(x: Any, channels_last: bool) -> Any:
    """An image that has its channels on the last axis, with its channels where they belong."""
    return x if channels_last else lax.transpose(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))


def _correlate(
    x: Any, w: Any, strides: Ints, padding: Pairs, dilation: Ints, groups: int, spread: Ints | None = None
) -> Any:
    """A channels-last image, its elements ``spread`` apart, with a kernel whose last axes are in and out."""
    axes = _AXES[len(strides)]
    return lax.conv_general_dilated(
        x, w, strides, padding, lhs_dilation=spread, rhs_dilation=dilation, feature_group_count=groups,
        dimension_numbers=(f"N{axes}C", f"{axes}IO", f"N{axes}C"),
    )  # fmt: skip


def _lower_conv(x: Any, w: Any, bias: Any = None, *, channels_last: bool, **attrs: Any) -> Any:
    y = _correlate(_last(x, channels_last), lax.transpose(w, (*range(2, w.ndim), 1, 0)), **attrs)
    return _as_given(y if bias is None else y + bias, channels_last)


def _vjp_conv(ct: Tensor, x: Tensor, w: Tensor, bias: Tensor | None = None, *, out: Tensor, **attrs: Any) -> list[Any]:
    cts = [
        lambda: apply(conv_input_grad_p, ct, w, input_shape=x.shape, **attrs),
        lambda: apply(conv_weight_grad_p, ct, x, weight_shape=w.shape, **attrs),
    ]
    if bias is not None:
        keep = channel_axis(ct.ndim, attrs["channels_last"])
        cts.append(lambda: reduce_sum(ct, tuple([i for i in range(ct.ndim) if i != keep])))
    return cts


def _attrs(
    n: int, strides: Ints | None = None, padding: Pairs | None = None, dilation: Ints | None = None, groups: int = 1,
    channels_last: bool = False,
) -> dict[str, Any]:  # fmt: skip
    return {
        "strides": strides or (1,) * n, "padding": padding or ((0, 0),) * n, "dilation": dilation or (1,) * n,
        "groups": groups, "channels_last": channels_last,
    }  # fmt: skip


def _wave(*shape: int) -> np.ndarray[Any, Any]:
    return np.sin(np.arange(float(np.prod(shape))) * 1.7).reshape(shape)


#: Image, kernel and attributes of the samples of all three primitives.
_CASES: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], dict[str, Any]]] = [
    (_wave(2, 3, 5, 6), _wave(4, 3, 2, 3), _attrs(2)),
    (_wave(1, 2, 6, 5), _wave(2, 2, 3, 2), _attrs(2, (2, 3), ((1, 2), (0, 1)), (1, 2))),
    (_wave(2, 4, 5, 5), _wave(6, 2, 3, 3), _attrs(2, (2, 2), ((1, 1), (1, 1)), groups=2)),
    (_wave(1, 3, 4, 4), _wave(3, 1, 3, 3), _attrs(2, (1, 1), ((1, 1), (1, 1)), groups=3)),
    (_wave(2, 3, 7), _wave(2, 3, 3), _attrs(1, (2,), ((1, 0),))),
    (_wave(1, 2, 3, 4, 3), _wave(2, 2, 2, 2, 2), _attrs(3, (1, 2, 1), ((0, 0), (1, 1), (0, 1)))),
    (_wave(2, 5, 6, 3), _wave(4, 3, 2, 3), _attrs(2, (2, 1), ((0, 1), (1, 1)), channels_last=True)),
    (np.zeros((0, 3, 4, 4)), _wave(2, 3, 3, 3), _attrs(2)),
]


def _conv_samples() -> list[Any]:
    x, w, attrs = _CASES[0]
    return [
        *[Sample((x, w), a) for x, w, a in _CASES],
        *[Sample((x, w, _wave(w.shape[0])), a) for x, w, a in _CASES],
        Bad((x, _wave(4, 2, 2, 2)), attrs, ShapeError, "3 channels in all"),
        Bad((x, _wave(4, 3, 9, 2)), attrs, ShapeError, "within the padded input"),
        Bad((x, w, _wave(3)), attrs, ShapeError, "one value an output channel"),
        Bad((x, w[0]), attrs, ShapeError, "4 axes"), Bad((_wave(2, 2), w), attrs, ShapeError, "spatial"),
    ]  # fmt: skip


conv_p = Primitive("conv", infer=_infer_conv, lower=_lower_conv, vjp=_vjp_conv, samples=_conv_samples)


def _check_result(where: str, made: Ints, ct: TensorType) -> None:
    if made != ct.shape:
        raise ShapeError(
            where, "input", got=f"shape {ct.shape}", takes=f"shape {made}, which the convolution would make"
        )


def _infer_input_grad(ct: TensorType, w: TensorType, *, input_shape: Ints, **attrs: Any) -> TensorType:
    check_dtypes("conv_transpose", (ct, w), dt.FLOATS, ("input", "weight"))
    _check_result("conv_transpose", conv_shape(input_shape, w.shape, **attrs), ct)
    return TensorType(ct.dtype, input_shape)


def _reaches(values: Ints, steps: Ints) -> list[int]:
    """How many places so many elements cover that are so far apart."""
    return [(n - 1) * step + 1 for n, step in zip(values, steps, strict=True)]


def _lower_input_grad(
    ct: Any, w: Any, *, input_shape: Ints, strides: Ints, padding: Pairs, dilation: Ints, groups: int,
    channels_last: bool,
) -> Any:  # fmt: skip
    if not ct.size or not w.size:
        return jnp.zeros(input_shape, ct.dtype)
    n, kernel = len(strides), w.shape[2:]
    ct = _last(ct, channels_last)
    pads = []
    for size, made, reach, (low, _) in zip(
        spatial(input_shape, channels_last), _reaches(ct.shape[1:-1], strides), _reaches(kernel, dilation), padding,
        strict=True,
    ):  # fmt: skip
        pads.append((reach - 1 - low, size - made + low))
    # (out, in / groups, kernel) to (kernel, out / groups, in), backwards
    w = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    w = lax.transpose(lax.rev(w, range(3, n + 3)), (*range(3, n + 3), 1, 0, 2)).reshape(*kernel, w.shape[1], -1)
    return _as_given(_correlate(ct, w, (1,) * n, tuple(pads), dilation, groups, strides), channels_last)


def _vjp_input_grad(c: Tensor, ct: Tensor, w: Tensor, out: Tensor, *, input_shape: Ints, **attrs: Any) -> list[Any]:
    return [
        lambda: apply(conv_p, c, w, **attrs),
        lambda: apply(conv_weight_grad_p, ct, c, weight_shape=w.shape, **attrs),
    ]


conv_input_grad_p = Primitive(
    "conv_input_grad", infer=_infer_input_grad, lower=_lower_input_grad, vjp=_vjp_input_grad,
    samples=lambda: [
        *[
            Sample((_wave(*conv_shape(x.shape, w.shape, **a)), w), {"input_shape": x.shape, **a})
            for x, w, a in _CASES
        ],
        Bad((_wave(2, 4, 4, 3), _CASES[0][1]), {"input_shape": (2, 3, 5, 6), **_attrs(2)}, ShapeError, "would make"),
    ],
)  # fmt: skip


def _infer_weight_grad(ct: TensorType, x: TensorType, *, weight_shape: Ints, **attrs: Any) -> TensorType:
    check_dtypes("conv_weight_grad", (ct, x), dt.FLOATS, ("ct", "input"))
    _check_result("conv_weight_grad", conv_shape(x.shape, weight_shape, **attrs), ct)
    return TensorType(ct.dtype, weight_shape)


#: Up to this many places of a kernel are unrolled.
_FEW_PLACES = 36


def _lower_depthwise_grad(ct: Any, x: Any, weight_shape: Ints, strides: Ints, padding: Pairs, dilation: Ints) -> Any:
    """The gradient of a kernel of one channel in and out a group, place by place; channels-last images."""
    wide = jnp.promote_types(ct.dtype, jnp.float32)
    ct, x = (
        ct.astype(wide),
        lax.pad(x.astype(wide), jnp.zeros((), wide), [(0, 0, 0), *[(*p, 0) for p in padding], (0, 0, 0)]),
    )
    spans, axes = _reaches(ct.shape[1:-1], strides), tuple(range(ct.ndim - 1))
    made = []
    for place in np.ndindex(*weight_shape[2:]):
        begin = [i * step for i, step in zip(place, dilation, strict=True)]
        end = [b + span for b, span in zip(begin, spans, strict=True)]
        part = lax.slice(x, (0, *begin, 0), (x.shape[0], *end, x.shape[-1]), (1, *strides, 1))
        made.append(jnp.sum(part * ct, axes))
    return jnp.stack(made, -1).reshape(weight_shape)


def _lower_weight_grad(
    ct: Any, x: Any, *, weight_shape: Ints, strides: Ints, padding: Pairs, dilation: Ints, groups: int,
    channels_last: bool,
) -> Any:  # fmt: skip
    if not ct.size or not x.size:
        return jnp.zeros(weight_shape, ct.dtype)
    n, batch = len(strides), ct.shape[0]
    ct, x = _last(ct, channels_last), _last(x, channels_last)
    if weight_shape[:2] == (groups, 1) and groups > 1 and prod(weight_shape[2:]) <= _FEW_PLACES:
        return _lower_depthwise_grad(ct, x, weight_shape, strides, padding, dilation).astype(ct.dtype)
    pads = []
    for size, made, reach, (low, _) in zip(
        x.shape[1:-1], _reaches(ct.shape[1:-1], strides), _reaches(weight_shape[2:], dilation), padding, strict=True
    ):
        pads.append((low, reach - 1 + made - size - low))
    # The batch is what is summed over: (in / groups, places, groups * batch) with (places, batch, out) as the kernel.
    x = x.reshape(*x.shape[:-1], groups, -1)
    x = lax.transpose(x, (n + 2, *range(1, n + 1), n + 1, 0)).reshape(-1, *x.shape[1 : n + 1], groups * batch)
    kernel = lax.transpose(ct, (*range(1, n + 1), 0, n + 1))
    made_w = _correlate(x, kernel, dilation, tuple(pads), strides, groups)
    return lax.transpose(made_w, (n + 1, 0, *range(1, n + 1)))


def _vjp_weight_grad(c: Tensor, ct: Tensor, x: Tensor, out: Tensor, *, weight_shape: Ints, **attrs: Any) -> list[Any]:
    return [
        lambda: apply(conv_p, x, c, **attrs),
        lambda: apply(conv_input_grad_p, ct, c, input_shape=x.shape, **attrs),
    ]


conv_weight_grad_p = Primitive(
    "conv_weight_grad", infer=_infer_weight_grad, lower=_lower_weight_grad, vjp=_vjp_weight_grad,
    samples=lambda: [
        *[
            Sample((_wave(*conv_shape(x.shape, w.shape, **a)), x), {"weight_shape": w.shape, **a})
            for x, w, a in _CASES
        ],
        Bad((_wave(2, 4, 4, 3), _CASES[0][0]), {"weight_shape": (4, 3, 2, 3), **_attrs(2)}, ShapeError, "would make"),
    ],
)  # fmt: skip


def per_axis(value: Any, n: int, where: str, argument: str, minimum: int = 1) -> Ints:
    """An int for each of ``n`` axes, of an int or of a sequence of n (or one) ints.

    Raises:
        ArgumentValueError: another number of values, or one below ``minimum``.
        ArgumentTypeError: not ints.
    """
    if type(value) is int:
        made = (value,) * n
    elif isinstance(value, (tuple, list)):
        made = tuple([as_int(v, where, argument) for v in value])
        if len(made) == 1:
            made = made * n
        elif len(made) == n + 2 and made[:2] == (1, 1):
            made = made[2:]
    else:
        made = (as_int(value, where, argument),) * n
    if len(made) != n or min(made) < minimum:
        raise ArgumentValueError(
            where, argument, got=str(value), takes=f"an int, or {n} of them, of at least {minimum}"
        )
    return made


def pad_pairs(value: Any, n: int, where: str, argument: str = "padding") -> Pairs:
    """Padding before and after each axis: of an int, of n ints (both sides alike), or of 2n ints in pairs."""
    if isinstance(value, (tuple, list)) and len(value) == 2 * n and n > 1:
        flat = per_axis(value, 2 * n, where, argument, 0)
        return tuple([(flat[2 * i], flat[2 * i + 1]) for i in range(n)])
    if isinstance(value, (tuple, list)) and n == 1 and len(value) == 2:
        lo, hi = per_axis(value, 2, where, argument, 0)
        return ((lo, hi),)
    return tuple([(p, p) for p in per_axis(value, n, where, argument, 0)])


def same_pads(sizes: Ints, kernel: Ints, strides: Ints, dilation: Ints) -> Pairs:
    """Padding with which the result has ``ceil(size / stride)`` elements; an odd one goes to the end."""
    made = []
    for size, k, s, d in zip(sizes, kernel, strides, dilation, strict=True):
        total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
        made.append((total // 2, total - total // 2))
    return tuple(made)


def mode_pads(
    pad_mode: Any, padding: Any, sizes: Ints, kernel: Ints, strides: Ints, dilation: Ints, where: str
) -> Pairs:
    """Padding pairs of MindSpore's ``pad_mode`` and ``padding``.

    Raises:
        ArgumentValueError: an unknown mode, or a padding beside ``"same"`` or ``"valid"``.
    """
    if not isinstance(pad_mode, str) or pad_mode.lower() not in ("same", "valid", "pad"):
        raise ArgumentValueError(where, "pad_mode", got=repr(pad_mode), takes='"same", "valid" or "pad"')
    mode = pad_mode.lower()
    if mode == "pad":
        return pad_pairs(padding, len(kernel), where)
    if padding != 0 and any(p != 0 for pair in pad_pairs(padding, len(kernel), where) for p in pair):
        raise ArgumentValueError(where, "padding", got=str(padding), takes=f'0 with pad_mode "{mode}"')
    return same_pads(sizes, kernel, strides, dilation) if mode == "same" else ((0, 0),) * len(kernel)


def _operands(where: str, n: int, input: Any, weight: Any, bias: Any) -> tuple[Tensor, Tensor, Tensor | None, bool]:
    """Image, kernel and bias of one dtype; and whether a batch axis was added."""
    given: tuple[Any, ...] = (input, weight) if bias is None else (input, weight, bias)
    if not (
        isinstance(input, Tensor) and isinstance(weight, Tensor) and input._value.dtype == weight._value.dtype
        and (bias is None or (isinstance(bias, Tensor) and bias._value.dtype == input._value.dtype))
    ):  # fmt: skip
        given = same_dtype(where, *given, names=("input", "weight", "bias"))
    x, w = given[0], given[1]
    if x.ndim not in (n + 1, n + 2):
        raise ShapeError(where, "input", got=f"shape {x.shape}", takes=f"{n + 2} axes, or {n + 1} without the batch")
    if w.ndim != n + 2:
        raise ShapeError(
            where, "weight", got=f"shape {w.shape}", takes=f"{n + 2} axes: output and input channels, then the kernel"
        )
    single = x.ndim == n + 1
    return (reshape(x, (1, *x.shape)) if single else x), w, (given[2] if bias is not None else None), single


def _groups(value: Any, where: str) -> int:
    groups = as_int(value, where, "groups")
    if groups < 1:
        raise ArgumentValueError(where, "groups", got=str(value), takes="a positive int")
    return groups


def _conv(
    n: int, input: Any, weight: Any, bias: Any, stride: Any, pad_mode: str, padding: Any, dilation: Any, groups: Any
) -> Tensor:
    where = f"conv{n}d"
    x, w, b, single = _operands(where, n, input, weight, bias)
    strides, steps = per_axis(stride, n, where, "stride"), per_axis(dilation, n, where, "dilation")
    pads = mode_pads(pad_mode, padding, x.shape[2:], w.shape[2:], strides, steps, where)
    operands = (x, w) if b is None else (x, w, b)
    y: Tensor = apply(
        conv_p,
        *operands,
        strides=strides,
        padding=pads,
        dilation=steps,
        groups=_groups(groups, where),
        channels_last=False,
    )
    return reshape(y, y.shape[1:]) if single else y


@operator()
def conv1d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolution over one spatial axis; see :func:`conv2d`.

    Args:
        input: a tensor of shape (batch, in, length).
        weight: a tensor of shape (out, in / groups, kernel).
        bias: a tensor of shape (out,), or None.
        stride: see :func:`conv2d`, like the rest.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``.
        padding: an int, or a pair for before and after.
        dilation: distance of kernel elements.
        groups: number of groups.

    >>> import mycelia as ms
    >>> print(ms.ops.conv1d(ms.Tensor([[[1.0, 2.0, 3.0]]]), ms.Tensor([[[1.0, 1.0]]])))
    [[[3. 5.]]]
    """
    return _conv(1, input, weight, bias, stride, pad_mode, padding, dilation, groups)


@operator()
def conv2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolution of images with kernels, summed over input channels (a cross-correlation).

    Args:
        input: a tensor of shape (batch, in, height, width), or without the batch.
        weight: a tensor of shape (out, in / groups, kernel height, kernel width).
        bias: a tensor of shape (out,), or None.
        stride: step of the kernel, an int or a pair.
        pad_mode: ``"valid"`` pads nothing; ``"same"`` pads zeros so that the result has
            ``ceil(size / stride)`` elements, an odd one at the end; ``"pad"`` pads ``padding`` zeros.
        padding: an int, (height, width), or (top, bottom, left, right); 0 unless the mode is ``"pad"``.
        dilation: distance of neighbouring kernel elements, an int or a pair.
        groups: input and output channels are split into this many groups that do not mix.

    Returns:
        A tensor of shape (batch, out, height', width').

    Raises:
        ShapeError: channels do not fit, or the kernel is larger than the padded image.
        ArgumentValueError: a stride, padding, dilation or mode that is none.

    >>> import mycelia as ms
    >>> y = ms.ops.conv2d(ms.ops.ones((1, 3, 32, 32)), ms.ops.ones((8, 3, 3, 3)), stride=2, pad_mode="same")
    >>> y.shape
    (1, 8, 16, 16)
    """
    return _conv(2, input, weight, bias, stride, pad_mode, padding, dilation, groups)


@operator()
def conv3d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Convolution over three spatial axes; see :func:`conv2d`.

    Args:
        input: a tensor of shape (batch, in, depth, height, width).
        weight: a tensor of shape (out, in / groups, kernel depth, kernel height, kernel width).
        bias: a tensor of shape (out,), or None.
        stride: see :func:`conv2d`, like the rest.
        pad_mode: ``"valid"``, ``"same"`` or ``"pad"``.
        padding: an int, three, or six ints.
        dilation: distance of kernel elements.
        groups: number of groups.

    >>> import mycelia as ms
    >>> ms.ops.conv3d(ms.ops.ones((1, 2, 4, 5, 6)), ms.ops.ones((3, 2, 2, 2, 2))).shape
    (1, 3, 3, 4, 5)
    """
    return _conv(3, input, weight, bias, stride, pad_mode, padding, dilation, groups)


def convolution(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """``mint``'s form of convolution: ``padding`` is a number or the words ``"valid"`` and ``"same"``.

    The number of spatial axes is that of ``weight``. ``"same"`` asks for a stride of 1.

    Raises:
        ArgumentValueError: ``"same"`` with a larger stride.

    >>> import mycelia as ms
    >>> convolution(ms.ops.ones((1, 2, 5)), ms.ops.ones((3, 2, 3)), padding="same").shape
    (1, 3, 5)
    """
    n = getattr(weight, "ndim", 4) - 2
    if not isinstance(padding, str):
        return _conv(n, input, weight, bias, stride, "pad", padding, dilation, groups)
    if padding == "same" and any(s != 1 for s in per_axis(stride, n, f"conv{n}d", "stride")):
        raise ArgumentValueError(
            f"conv{n}d", "padding", got="'same' with a stride above 1", takes="'same' with a stride of 1"
        )
    return _conv(n, input, weight, bias, stride, padding, 0, dilation, groups)


def transposed_convolution(
    where: str, n: int, input: Any, weight: Any, bias: Any = None, stride: Any = 1, pad_mode: str = "pad",
    padding: Any = 0, output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """The gradient of a convolution with respect to its image, as an operator of its own.

    Args:
        where: the operator's name in messages.
        n: number of spatial axes.
        input: a tensor of shape (batch, in, ...).
        weight: a tensor of shape (in, out / groups, kernel...).
        bias: a tensor of shape (out,), or None.
        stride: step of the convolution it is the gradient of.
        pad_mode: ``"pad"``: the result has ``(size - 1) * stride + kernel - padding`` elements; ``"same"``:
            ``size * stride``; ``"valid"``: ``(size - 1) * stride + max(kernel, stride)``.
        padding: padding of that convolution, with ``"pad"``.
        output_padding: elements added at the end, less than the stride or the dilation, with ``"pad"``.
        groups: number of groups.
        dilation: distance of kernel elements.
    """
    x, w, b, single = _operands(where, n, input, weight, bias)
    strides, steps = per_axis(stride, n, where, "stride"), per_axis(dilation, n, where, "dilation")
    extra = per_axis(output_padding, n, where, "output_padding", 0)
    for e, s, d in zip(extra, strides, steps, strict=True):
        if e and e >= max(s, d):
            raise ArgumentValueError(
                where, "output_padding", got=str(output_padding), takes="less than the stride or the dilation"
            )
    reach = tuple([(k - 1) * d + 1 for k, d in zip(w.shape[2:], steps, strict=True)])
    pads = mode_pads(pad_mode, padding, (1,) * n, w.shape[2:], strides, steps, where)
    mode = pad_mode.lower()
    if mode != "pad" and any(extra):
        raise ArgumentValueError(where, "output_padding", got=str(output_padding), takes=f'0 with pad_mode "{mode}"')
    if mode == "same":
        sizes = tuple([size * s for size, s in zip(x.shape[2:], strides, strict=True)])
        pads = same_pads(sizes, w.shape[2:], strides, steps)
    elif mode == "valid":
        sizes = tuple([(size - 1) * s + max(r, s) for size, s, r in zip(x.shape[2:], strides, reach, strict=True)])
    else:
        sizes = tuple(
            [(size - 1) * s + r - lo - hi + e
             for size, s, r, (lo, hi), e in zip(x.shape[2:], strides, reach, pads, extra, strict=True)]
        )  # fmt: skip
    if min(sizes) < 1:
        raise ShapeError(
            where, "padding", got=f"{padding} for input {x.shape}", takes="less, so that the result is not empty"
        )
    count = _groups(groups, where)
    if x.shape[1] != w.shape[0] or x.shape[1] % count:
        raise ShapeError(
            where, "weight", got=f"shape {w.shape} with {w.shape[0]} input channels in {count} groups",
            takes=f"the {x.shape[1]} channels of 'input' of shape {x.shape}, a multiple of the groups",
        )  # fmt: skip
    out_shape = (x.shape[0], w.shape[1] * count, *sizes)
    y: Tensor = apply(
        conv_input_grad_p, x, w, input_shape=out_shape, strides=strides, padding=pads, dilation=steps, groups=count,
        channels_last=False,
    )  # fmt: skip
    if b is not None:
        if b.shape != (out_shape[1],):
            raise ShapeError(
                where, "bias", got=f"shape {b.shape}", takes=f"({out_shape[1]},), one value an output channel"
            )
        y = y + reshape(b, (1, out_shape[1], *(1,) * n))
    return reshape(y, y.shape[1:]) if single else y


@operator()
def conv_transpose1d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """Transposed convolution over one spatial axis; see :func:`conv_transpose2d`.

    >>> import mycelia as ms
    >>> ms.ops.conv_transpose1d(ms.ops.ones((1, 2, 4)), ms.ops.ones((2, 3, 3)), stride=2).shape
    (1, 3, 9)
    """
    return transposed_convolution(
        "conv_transpose1d", 1, input, weight, bias, stride, "pad", padding, output_padding, groups, dilation
    )


@operator()
def conv_transpose2d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """Transposed convolution, the gradient of :func:`conv2d` with respect to its image.

    Args:
        input: a tensor of shape (batch, in, height, width), or without the batch.
        weight: a tensor of shape (in, out / groups, kernel height, kernel width).
        bias: a tensor of shape (out,), or None.
        stride: an int or a pair.
        padding: an int or a pair; takes this much off each side of the result.
        output_padding: an int or a pair; adds this much at the end.
        groups: number of groups.
        dilation: distance of kernel elements, an int or a pair.

    Returns:
        A tensor of shape (batch, out, height', width') with
        ``size' = (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1``.

    Raises:
        ShapeError: channels do not fit, or the result would be empty.

    >>> import mycelia as ms
    >>> ms.ops.conv_transpose2d(ms.ops.ones((1, 2, 4, 4)), ms.ops.ones((2, 3, 3, 3)), stride=2, padding=1).shape
    (1, 3, 7, 7)
    """
    return transposed_convolution(
        "conv_transpose2d", 2, input, weight, bias, stride, "pad", padding, output_padding, groups, dilation
    )


@operator()
def conv_transpose3d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """Transposed convolution over three spatial axes; see :func:`conv_transpose2d`.

    >>> import mycelia as ms
    >>> ms.ops.conv_transpose3d(ms.ops.ones((1, 2, 4, 4, 4)), ms.ops.ones((2, 3, 3, 3, 3))).shape
    (1, 3, 6, 6, 6)
    """
    return transposed_convolution(
        "conv_transpose3d", 3, input, weight, bias, stride, "pad", padding, output_padding, groups, dilation
    )


@operator()
def conv3d_transpose(
    inputs: Any, weight: Any, pad_mode: str = "valid", padding: Any = 0, stride: Any = 1, dilation: Any = 1,
    group: int = 1, output_padding: Any = 0,
) -> Tensor:  # fmt: skip
    """Transposed convolution over three spatial axes with MindSpore's ``pad_mode``.

    Args:
        inputs: a tensor of shape (batch, in, depth, height, width).
        weight: a tensor of shape (in, out / group, kernel...).
        pad_mode: see :func:`transposed_convolution`.
        padding: an int, three or six ints, with ``"pad"``.
        stride: an int or three.
        dilation: an int or three.
        group: number of groups.
        output_padding: an int or three.

    >>> import mycelia as ms
    >>> ms.ops.conv3d_transpose(ms.ops.ones((1, 2, 4, 4, 4)), ms.ops.ones((2, 3, 3, 3, 3))).shape
    (1, 3, 6, 6, 6)
    """
    return transposed_convolution(
        "conv3d_transpose", 3, inputs, weight, None, stride, pad_mode, padding, output_padding, group, dilation
    )
