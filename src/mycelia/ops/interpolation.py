"""Images resampled to another size: nearest, linear, cubic and area interpolation.

Every mode but ``area`` is a weighted sum of a few elements (taps) along each spatial axis, one axis after the
other. ``resample`` gathers the taps; its transpose ``resample_grad`` gathers, for each element of the image, the
results that used it, so that neither scatters. Cubic weights are those of R. Keys, "Cubic convolution
interpolation for digital image processing" (1981) with the coefficient -0.75, or in the mode ``"keys"`` -0.5 with
taps outside the image left out and the others rescaled.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.adaptive_pooling import adaptive_avg_pool_p
from mycelia.ops.calls import as_float
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.linear import accumulator
from mycelia.ops.operands import as_int, as_tensor
from mycelia.ops.registry import operator
from mycelia.ops.shape import reshape, transpose
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

Ints = tuple[int, ...]


def _cubic(distance: Any, a: float) -> Any:
    d = np.abs(distance)
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _taps(size: int, count: int, mode: str, align: bool, step: float) -> tuple[Any, Any]:
    """For each of ``count`` results along an axis of ``size``: the places it reads, and their weights.

    ``step`` is the distance of results in elements; 0 for ``size / count``.
    """
    index = np.arange(count, dtype=np.float64)
    scale = step or size / max(count, 1)
    if mode in ("nearest", "nearest-exact"):
        at = np.floor((index + (0.5 if mode == "nearest-exact" else 0.0)) * scale)
        return np.minimum(at.astype(np.int64), size - 1)[:, None], np.ones((count, 1))
    if align:
        position = index * ((size - 1) / (count - 1)) if count > 1 else np.zeros(count)
    else:
        position = (index + 0.5) * scale - 0.5
    if mode == "linear":
        position = np.maximum(position, 0.0)
        low = np.minimum(np.floor(position), size - 1).astype(np.int64)
        share = np.clip(position - low, 0.0, 1.0)
        places = np.stack([low, np.minimum(low + 1, size - 1)], 1)
        return places, np.stack([1 - share, share], 1)
    low = np.floor(position).astype(np.int64)
    places = low[:, None] + np.arange(-1, 3)
    weights = _cubic(position[:, None] - places, -0.5 if mode == "keys" else -0.75)
    if mode == "keys":
        weights = np.where((places >= 0) & (places < size), weights, 0.0)
        weights = weights / weights.sum(1, keepdims=True)
    return np.clip(places, 0, size - 1), weights


def _transposed(size: int, places: Any, weights: Any) -> tuple[Any, Any]:
    """For each element of the image: the results that read it, and with which weight (0 fills up)."""
    used: list[dict[int, float]] = [{} for _ in range(size)]
    for result, (row, shares) in enumerate(zip(places.tolist(), weights.tolist(), strict=True)):
        for place, share in zip(row, shares, strict=True):
            used[place][result] = used[place].get(result, 0.0) + share
    width = max([len(u) for u in used], default=0) or 1
    back, factors = np.zeros((size, width), np.int64), np.zeros((size, width))
    for element, results in enumerate(used):
        for k, (result, share) in enumerate(results.items()):
            back[element, k], factors[element, k] = result, share
    return back, factors


def _weighted(x: Any, axis: int, places: Any, weights: Any, fill: bool) -> Any:
    """The sum over taps of weight times element along an axis; where a weight fills up, nothing is read."""
    total: Any = 0
    shape = [1] * x.ndim
    shape[axis] = len(places)
    for k in range(places.shape[1]):
        part = jnp.take(x, places[:, k], axis=axis)
        weight = weights[:, k].reshape(shape).astype(x.dtype)
        if fill:
            part = jnp.where(weight == 0, 0, part * weight)
        elif not (weight == 1).all():
            part = part * weight
        total = total + part
    return total


def _axes(rank: int, sizes: Ints) -> range:
    return range(rank - len(sizes), rank)


def _infer(x: TensorType, *, sizes: Ints, mode: str, align: bool, steps: tuple[float, ...]) -> TensorType:
    check_dtypes("interpolate", (x,), dt.FLOATS)
    lead = x.rank - len(sizes)
    if lead < 1 or not all(x.shape[lead:]) or min(sizes) < 1:
        raise ShapeError(
            "interpolate", "input", got=f"shape {x.shape} for size {sizes}", takes="spatial axes that are not empty"
        )
    return TensorType(x.dtype, x.shape[:lead] + sizes)


def _lower(x: Any, *, sizes: Ints, mode: str, align: bool, steps: tuple[float, ...]) -> Any:
    wide = x.astype(accumulator(x.dtype) or x.dtype)
    for axis, count, step in zip(_axes(x.ndim, sizes), sizes, steps, strict=True):
        if count != wide.shape[axis] or step:
            places, weights = _taps(wide.shape[axis], count, mode, align, step)
            wide = _weighted(wide, axis, places, weights, False)
    return wide.astype(x.dtype)


def _infer_grad(ct: TensorType, *, input_shape: Ints, **attrs: Any) -> TensorType:
    made = _infer(TensorType(ct.dtype, input_shape), **attrs)
    if made.shape != ct.shape:
        raise ShapeError("interpolate", "ct", got=f"shape {ct.shape}", takes=f"shape {made.shape}")
    return TensorType(ct.dtype, input_shape)


def _lower_grad(ct: Any, *, input_shape: Ints, sizes: Ints, mode: str, align: bool, steps: tuple[float, ...]) -> Any:
    wide = ct.astype(accumulator(ct.dtype) or ct.dtype)
    for axis, count, step in zip(_axes(ct.ndim, sizes), sizes, steps, strict=True):
        size = input_shape[axis]
        if count != size or step:
            places, weights = _transposed(size, *_taps(size, count, mode, align, step))
            wide = _weighted(wide, axis, places, weights, True)
    return wide.astype(ct.dtype)


def _image(*shape: int) -> np.ndarray[Any, Any]:
    return np.sin(np.arange(float(np.prod(shape))) * 1.7).reshape(shape)


def _attrs(sizes: Ints, mode: str, align: bool = False, steps: tuple[float, ...] | None = None) -> dict[str, Any]:
    return {"sizes": sizes, "mode": mode, "align": align, "steps": steps or (0.0,) * len(sizes)}


_CASES: list[tuple[Any, dict[str, Any]]] = [
    *[(_image(1, 2, 4, 5), _attrs((7, 3), mode)) for mode in ("nearest", "nearest-exact", "linear", "cubic", "keys")],
    *[(_image(1, 1, 4, 5), _attrs((7, 3), mode, True)) for mode in ("linear", "cubic")],
    (_image(2, 1, 6), _attrs((4,), "linear")), (_image(1, 1, 2, 3, 4), _attrs((3, 3, 7), "linear")),
    (_image(1, 1, 4, 4), _attrs((6, 6), "linear", False, (1 / 1.7, 1 / 1.7))),
    (_image(1, 1, 3), _attrs((1,), "linear", True)),
    (np.zeros((0, 2, 4, 4)), _attrs((2, 8), "nearest")),
]  # fmt: skip

resample_p = Primitive(
    "resample", infer=_infer, lower=_lower,
    vjp=lambda ct, x, out, **attrs: [apply(resample_grad_p, ct, input_shape=x.shape, **attrs)],
    samples=lambda: [
        *[Sample((x,), attrs) for x, attrs in _CASES],
        Bad((np.zeros((1, 1, 0)),), _attrs((2,), "nearest"), ShapeError, "not empty"),
    ],
)  # fmt: skip

#: The transpose of ``resample``.
resample_grad_p: Primitive = Primitive(
    "resample_grad", infer=_infer_grad, lower=_lower_grad,
    vjp=lambda c, ct, out, *, input_shape, **attrs: [apply(resample_p, c, **attrs)],
    samples=lambda: [
        Sample((_image(*x.shape[: x.ndim - len(a["sizes"])], *a["sizes"]),), {"input_shape": x.shape, **a})
        for x, a in _CASES
    ],
)  # fmt: skip


# Public operators ---------------------------------------------------------------------------------------

#: For each mode: its name for an axis, and the ranks it is for.
_MODES = {
    "nearest": ("nearest", (3, 4, 5)), "nearest-exact": ("nearest-exact", (3, 4, 5)), "linear": ("linear", (3,)),
    "bilinear": ("linear", (4,)), "trilinear": ("linear", (5,)), "bicubic": ("cubic", (4,)),
    "area": ("area", (3, 4, 5)),
}  # fmt: skip


def _numbers(value: Any, n: int, argument: str) -> tuple[float, ...]:
    given = value if isinstance(value, (tuple, list)) else (value,) * n
    if len(given) != n or not all(isinstance(v, (int, float)) and not isinstance(v, bool) and v > 0 for v in given):
        raise ArgumentValueError("interpolate", argument, got=str(value), takes=f"a positive number or {n} of them")
    return tuple(float(v) for v in given)


def _interpolate(
    where: str, input: Any, size: Any, scale_factor: Any, mode: str, align_corners: Any, recompute: Any, cubic: str
) -> Tensor:
    x = as_float(input, where)
    if mode not in _MODES:
        raise ArgumentValueError(where, "mode", got=repr(mode), takes=", ".join(_MODES))
    kind, ranks = _MODES[mode]
    if x.ndim not in ranks:
        raise ShapeError(
            where, "input", got=f"shape {x.shape}", takes=f"{' or '.join(map(str, ranks))} axes for {mode!r}"
        )
    if (size is None) == (scale_factor is None):
        given = "both" if size is not None else "neither"
        raise ArgumentValueError(where, "size", got=f"{given} of size and scale_factor", takes="one of them")
    if align_corners is not None and kind not in ("linear", "cubic"):
        raise ArgumentValueError(
            where, "align_corners", got=f"{align_corners} for {mode!r}", takes="None unless linear or cubic"
        )
    n = x.ndim - 2
    steps = (0.0,) * n
    if size is not None:
        if recompute:
            raise ArgumentValueError(
                where, "recompute_scale_factor", got="True with 'size'", takes="True with 'scale_factor'"
            )
        given = size.tolist() if isinstance(size, Tensor) else size
        sizes = tuple([as_int(s, where, "size") for s in (given if isinstance(given, (tuple, list)) else (given,) * n)])
        if len(sizes) != n or min(sizes) < 1:
            raise ArgumentValueError(where, "size", got=str(size), takes=f"a positive int or {n} of them")
    else:
        factors = _numbers(scale_factor, n, "scale_factor")
        sizes = tuple([int(np.floor(d * f)) for d, f in zip(x.shape[2:], factors, strict=True)])
        if min(sizes) < 1:
            raise ArgumentValueError(
                where, "scale_factor", got=str(scale_factor), takes=f"factors that leave elements of {x.shape}"
            )
        if not recompute and kind != "area":
            steps = tuple([0.0 if d * f == s else 1 / f for d, f, s in zip(x.shape[2:], factors, sizes, strict=True)])
    if kind == "area":
        return apply(adaptive_avg_pool_p, x, sizes=sizes)  # type: ignore[no-any-return]
    align = bool(align_corners)
    if kind == "cubic" and not align:
        kind = cubic
    return apply(resample_p, x, sizes=sizes, mode=kind, align=align, steps=steps)  # type: ignore[no-any-return]


@operator()
def interpolate(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
    recompute_scale_factor: Any = None,
) -> Tensor:  # fmt: skip
    """Resample images to another size.

    Args:
        input: a float tensor of shape (batch, channels, length), (..., height, width) or
            (..., depth, height, width).
        size: the new lengths of the spatial axes, an int or a tuple.
        scale_factor: or what they are multiplied with (and rounded down), a number or a tuple.
        mode: ``"nearest"`` (the element at ``floor(i * scale)``), ``"nearest-exact"`` (nearest to the middle),
            ``"linear"`` for 3 axes, ``"bilinear"`` and ``"bicubic"`` for 4, ``"trilinear"`` for 5, ``"area"``
            (averages).
        align_corners: let the first and last elements coincide; else the outer borders do. For linear and
            cubic modes. Without it cubic weights have the coefficient -0.5 and leave out what lies outside the
            image, with it -0.75 and the border is repeated.
        recompute_scale_factor: step by the quotient of the lengths instead of ``scale_factor``.

    Returns:
        A tensor of shape (batch, channels, *size).

    Raises:
        ArgumentValueError: not exactly one of size and scale factor, or an unknown mode.
        ShapeError: the mode is for another number of axes.

    >>> import mycelia as ms
    >>> print(ms.ops.interpolate(ms.Tensor([[[1.0, 2.0]]]), size=4))
    [[[1. 1. 2. 2.]]]
    """
    return _interpolate("interpolate", input, size, scale_factor, mode, align_corners, recompute_scale_factor, "keys")


def interpolate_ext(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
    recompute_scale_factor: Any = None,
) -> Tensor:  # fmt: skip
    """``mint``'s form of :func:`interpolate`: cubic weights have the coefficient -0.75 always.

    >>> import mycelia as ms
    >>> interpolate_ext(ms.ops.ones((1, 1, 2, 2)), size=(3, 3), mode="bicubic").shape
    (1, 1, 3, 3)
    """
    return _interpolate("interpolate", input, size, scale_factor, mode, align_corners, recompute_scale_factor, "cubic")


@operator()
def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
    recompute_scale_factor: Any = None,
) -> Tensor:  # fmt: skip
    """Another name of :func:`interpolate`.

    >>> import mycelia as ms
    >>> ms.ops.upsample(ms.ops.ones((1, 1, 2, 2)), size=(4, 4)).shape
    (1, 1, 4, 4)
    """
    return _interpolate("upsample", input, size, scale_factor, mode, align_corners, recompute_scale_factor, "keys")


def _factor(value: Any, where: str, argument: str) -> int:
    factor = as_int(value, where, argument)
    if factor < 1:
        raise ArgumentValueError(where, argument, got=str(value), takes="a positive int")
    return factor


@operator()
def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """Channels laid out as blocks of pixels (W. Shi et al., "Real-time single image super-resolution", 2016).

    Args:
        input: a tensor of shape (..., channels * r * r, height, width).
        upscale_factor: r, the side of a block.

    Returns:
        A tensor of shape (..., channels, height * r, width * r).

    Raises:
        ShapeError: the channels are no multiple of ``r * r``.

    >>> import mycelia as ms
    >>> print(ms.ops.pixel_shuffle(ms.ops.arange(4).reshape(1, 4, 1, 1), 2)[0, 0])
    [[0 1]
     [2 3]]
    """
    x, r = as_tensor(input, "pixel_shuffle"), _factor(upscale_factor, "pixel_shuffle", "upscale_factor")
    if x.ndim < 3 or x.shape[-3] % (r * r):
        raise ShapeError(
            "pixel_shuffle", "input", got=f"shape {x.shape}", takes=f"a multiple of {r * r} channels on axis -3"
        )
    *lead, c, h, w = x.shape
    k = len(lead)
    split = reshape(x, (*lead, c // (r * r), r, r, h, w))
    moved = transpose(split, (*range(k), k, k + 3, k + 1, k + 4, k + 2))
    return reshape(moved, (*lead, c // (r * r), h * r, w * r))


@operator()
def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """Blocks of pixels laid out as channels: the inverse of :func:`pixel_shuffle`.

    Args:
        input: a tensor of shape (..., channels, height * r, width * r).
        downscale_factor: r, the side of a block.

    Raises:
        ShapeError: height or width is no multiple of r.

    >>> import mycelia as ms
    >>> print(ms.ops.pixel_unshuffle(ms.ops.arange(4).reshape(1, 1, 2, 2), 2).flatten())
    [0 1 2 3]
    """
    x, r = as_tensor(input, "pixel_unshuffle"), _factor(downscale_factor, "pixel_unshuffle", "downscale_factor")
    if x.ndim < 3 or x.shape[-1] % r or x.shape[-2] % r:
        raise ShapeError(
            "pixel_unshuffle", "input", got=f"shape {x.shape}", takes=f"multiples of {r} as height and width"
        )
    *lead, c, h, w = x.shape
    k = len(lead)
    split = reshape(x, (*lead, c, h // r, r, w // r, r))
    moved = transpose(split, (*range(k), k, k + 2, k + 4, k + 1, k + 3))
    return reshape(moved, (*lead, c * r * r, h // r, w // r))


@operator()
def channel_shuffle(x: Any, groups: int) -> Tensor:
    """Channels of several groups dealt out in turn (X. Zhang et al., "ShuffleNet", 2018).

    Args:
        x: a tensor of shape (batch, channels, ...).
        groups: number of groups, a divisor of the channels.

    >>> import mycelia as ms
    >>> print(ms.ops.channel_shuffle(ms.ops.arange(4).reshape(1, 4, 1, 1), 2).flatten())
    [0 2 1 3]
    """
    t = as_tensor(x, "channel_shuffle", "x")
    count = _factor(groups, "channel_shuffle", "groups")
    if t.ndim < 2 or t.shape[1] % count:
        raise ShapeError(
            "channel_shuffle", "x", got=f"shape {t.shape}", takes=f"a multiple of {count} channels on axis 1"
        )
    split = reshape(t, (t.shape[0], count, t.shape[1] // count, *t.shape[2:]))
    return reshape(transpose(split, (0, 2, 1, *range(3, split.ndim))), t.shape)
