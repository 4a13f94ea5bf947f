"""Convolution whose kernel elements are moved by learned offsets.

J. Dai et al., "Deformable convolutional networks" (2017); with a factor for each element: X. Zhu et al.,
"Deformable ConvNets v2" (2019). Elements between pixels are read by bilinear interpolation, outside as zero.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import floats
from mycelia.ops.convolution import per_axis
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.linear import accumulator
from mycelia.ops.operands import as_int
from mycelia.ops.registry import operator
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

Ints = tuple[int, ...]
_NAMES = ("x", "weight", "offsets", "bias")


def _infer(
    x: TensorType, w: TensorType, offsets: TensorType, *bias: TensorType, strides: Ints, padding: Ints, dilation: Ints,
    groups: int, offset_groups: int, modulated: bool,
) -> TensorType:  # fmt: skip
    where = "deformable_conv2d"
    check_dtypes(where, (x, w, offsets, *bias), dt.FLOATS, _NAMES)
    for t, name in ((x, "x"), (w, "weight"), (offsets, "offsets")):
        if t.rank != 4:
            raise ShapeError(where, name, got=f"shape {t.shape}", takes="4 axes")
    if w.shape[1] * groups != x.shape[1] or w.shape[0] % groups or x.shape[1] % offset_groups:
        raise ShapeError(
            where, "weight", got=f"shape {w.shape} in {groups} groups and {offset_groups} groups of offsets",
            takes=f"the {x.shape[1]} channels of 'x' of shape {x.shape}",
        )  # fmt: skip
    top, bottom, left, right = padding
    sizes = []
    for size, k, s, d, pad in zip(
        x.shape[2:], w.shape[2:], strides, dilation, (top + bottom, left + right), strict=True
    ):
        if (k - 1) * d + 1 > size + pad:
            raise ShapeError(
                where, "weight", got=f"kernel {w.shape[2:]}", takes=f"a kernel within the padded {x.shape}"
            )
        sizes.append((size + pad - (k - 1) * d - 1) // s + 1)
    count = (3 if modulated else 2) * offset_groups * w.shape[2] * w.shape[3]
    if offsets.shape != (x.shape[0], count, *sizes):
        raise ShapeError(where, "offsets", got=f"shape {offsets.shape}", takes=f"shape {(x.shape[0], count, *sizes)}")
    for b in bias:
        if b.shape != w.shape[:1]:
            raise ShapeError(where, "bias", got=f"shape {b.shape}", takes=f"shape {w.shape[:1]}")
    return TensorType(x.dtype, (x.shape[0], w.shape[0], *sizes))


def _read(rows: Any, y: Any, x: Any, height: int, width: int) -> Any:
    """Pixels (batch, groups, channels, points) at whole places (batch, groups, points), zero outside."""
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    flat = (jnp.clip(y, 0, height - 1) * width + jnp.clip(x, 0, width - 1)).astype(jnp.int32)
    picked = jnp.take_along_axis(rows, flat[:, :, None, :], axis=3)
    return jnp.where(inside[:, :, None, :], picked, 0)


def _lower(
    x: Any, w: Any, offsets: Any, *bias: Any, strides: Ints, padding: Ints, dilation: Ints, groups: int,
    offset_groups: int, modulated: bool,
) -> Any:  # fmt: skip
    wide = accumulator(x.dtype) or x.dtype
    batch, channels, height, width = x.shape
    out, _, kh, kw = w.shape
    rows_out, columns_out = offsets.shape[2:]
    moved = offsets.astype(wide).reshape(batch, -1, offset_groups, kh * kw, rows_out, columns_out)
    row = np.arange(rows_out) * strides[0] - padding[0]
    column = np.arange(columns_out) * strides[1] - padding[2]
    tap_y, tap_x = np.divmod(np.arange(kh * kw), kw)
    # the first third moves along the width, the second along the height, the last one scales
    at_x = moved[:, 0] + (column[None, None, :] + tap_x[:, None, None] * dilation[1])
    at_y = moved[:, 1] + (row[None, :, None] + tap_y[:, None, None] * dilation[0])
    at_x, at_y = (a.reshape(batch, offset_groups, -1) for a in (at_x, at_y))
    rows = x.astype(wide).reshape(batch, offset_groups, channels // offset_groups, height * width)
    low_y, low_x = jnp.floor(at_y), jnp.floor(at_x)
    share_y, share_x = at_y - low_y, at_x - low_x
    total: Any = 0
    for up, weight_y in ((0, 1 - share_y), (1, share_y)):
        for right, weight_x in ((0, 1 - share_x), (1, share_x)):
            total = total + _read(rows, low_y + up, low_x + right, height, width) * (weight_y * weight_x)[:, :, None]
    taken = total.reshape(batch, offset_groups, channels // offset_groups, kh * kw, rows_out, columns_out)
    if modulated:
        taken = taken * moved[:, 2][:, :, None]
    columns = taken.reshape(batch, groups, channels // groups, kh * kw, rows_out, columns_out)
    kernel = w.astype(wide).reshape(groups, out // groups, channels // groups, kh * kw)
    made = jnp.einsum("ngckhw,gock->ngohw", columns, kernel).reshape(batch, out, rows_out, columns_out)
    for b in bias:
        made = made + b.astype(wide)[:, None, None]
    return made.astype(x.dtype)


def _wave(*shape: int) -> np.ndarray[Any, Any]:
    return np.sin(np.arange(float(np.prod(shape))) * 1.7 + 0.3).reshape(shape)


def _attrs(**given: Any) -> dict[str, Any]:
    usual = {
        "strides": (1, 1),
        "padding": (0, 0, 0, 0),
        "dilation": (1, 1),
        "groups": 1,
        "offset_groups": 1,
        "modulated": True,
    }
    return {**usual, **given}


deformable_conv_p = Primitive(
    "deformable_conv", infer=_infer, lower=_lower, derived_vjp=True,
    samples=lambda: [
        Sample((_wave(1, 2, 4, 5), _wave(3, 2, 2, 2), _wave(1, 12, 3, 4) * 0.7), _attrs()),
        Sample(
            (_wave(2, 4, 5, 4), _wave(2, 2, 3, 2), _wave(2, 24, 3, 3) * 1.3, _wave(2)),
            _attrs(strides=(2, 1), padding=(1, 1, 0, 1), dilation=(1, 2), groups=2, offset_groups=2, modulated=False),
        ),
        Bad(
            (_wave(1, 2, 4, 5), _wave(3, 2, 2, 2), _wave(1, 8, 3, 4)), _attrs(), ShapeError, "'offsets' got shape"
        ),
        Bad((_wave(1, 3, 4, 5), _wave(3, 2, 2, 2), _wave(1, 12, 3, 4)), _attrs(), ShapeError, "3 channels"),
    ],
)  # fmt: skip


@operator()
def deformable_conv2d(
    x: Any, weight: Any, offsets: Any, kernel_size: Any, strides: Any, padding: Any, bias: Any = None,
    dilations: Any = (1, 1, 1, 1), groups: int = 1, deformable_groups: int = 1, modulated: bool = True,
) -> Tensor:  # fmt: skip
    """Convolution of images whose kernel elements are moved by offsets.

    Args:
        x: a float tensor of shape (batch, in, height, width).
        weight: a tensor of shape (out, in / groups, kernel height, kernel width).
        offsets: a tensor of shape (batch, 3 * deformable_groups * kernel elements, height', width'): first how far
            each element moves along the width, then along the height, then what it is multiplied with.
        kernel_size: the kernel's height and width, as ``weight`` has them.
        strides: four ints (1, 1, along the height, along the width), or one or two.
        padding: top, bottom, left, right.
        bias: a tensor of shape (out,), or None.
        dilations: like ``strides``.
        groups: number of groups of channels that do not mix.
        deformable_groups: number of groups of input channels with offsets of their own.
        modulated: whether there are factors; without them ``offsets`` has two thirds of its channels.

    Raises:
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> x, w, offsets = ms.ops.ones((1, 1, 4, 4)), ms.ops.ones((1, 1, 3, 3)), ms.ops.zeros((1, 18, 2, 2))
    >>> y = ms.ops.deformable_conv2d(x, w, offsets, (3, 3), 1, (0, 0, 0, 0), modulated=False)
    >>> print(y.flatten())
    [9. 9. 9. 9.]
    """
    where = "deformable_conv2d"
    operands = floats(where, *[v for v in (x, weight, offsets, bias) if v is not None], names=_NAMES)
    kernel = per_axis(kernel_size, 2, where, "kernel_size")
    if operands[1].ndim == 4 and kernel != operands[1].shape[2:]:
        raise ArgumentValueError(
            where, "kernel_size", got=str(kernel_size), takes=f"that of the weight, {operands[1].shape[2:]}"
        )
    pads = padding if isinstance(padding, (tuple, list)) else (padding,) * 4
    if len(pads) != 4:
        raise ArgumentValueError(where, "padding", got=str(padding), takes="four ints: top, bottom, left, right")
    return apply(  # type: ignore[no-any-return]
        deformable_conv_p, *operands, strides=per_axis(strides, 2, where, "strides"),
        padding=tuple([as_int(p, where, "padding") for p in pads]), dilation=per_axis(dilations, 2, where, "dilations"),
        groups=as_int(groups, where, "groups"), offset_groups=as_int(deformable_groups, where, "deformable_groups"),
        modulated=bool(modulated),
    )  # fmt: skip
