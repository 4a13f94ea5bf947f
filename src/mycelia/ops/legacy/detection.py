"""Boxes in images: how much they overlap, how they are encoded, which are kept, and what lies in them.

A box is ``(x1, y1, x2, y2)``. Overlaps and encodings count pixels, so that the width is ``x2 - x1 + 1``;
suppression and RoI Align (K. He et al., "Mask R-CNN", 2017) take coordinates as points.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.elementary import exp, log
from mycelia.ops.extremum import maximum, minimum
from mycelia.ops.indexing import gather, gather_d, index_select
from mycelia.ops.joining import stack
from mycelia.ops.legacy.form import form
from mycelia.ops.operands import as_int, as_tensor, cast
from mycelia.ops.outputs import one
from mycelia.ops.reduction import mean
from mycelia.ops.rounding import floor
from mycelia.ops.selection import clamp, where
from mycelia.ops.shape import broadcast_to, reshape
from mycelia.ops.sorting import sort
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant

__all__ = [
    "IOU", "BoundingBoxDecode", "BoundingBoxEncode", "CheckValid", "NMSWithMask", "ROIAlign", "bounding_box_decode",
    "bounding_box_encode", "check_valid", "iou",
]  # fmt: skip


def _boxes(value: Any, where_: str, argument: str) -> tuple[Any, Any, Any, Any]:
    """The four columns of a table of boxes."""
    t = as_float(value, where_, argument)
    if t.ndim != 2 or t.shape[1] != 4:
        raise ShapeError(where_, argument, got=f"shape {t.shape}", takes="(number of boxes, 4)")
    return t[:, 0], t[:, 1], t[:, 2], t[:, 3]


def iou(anchor_boxes: Any, gt_boxes: Any, mode: str = "iou") -> Tensor:
    """How much boxes overlap: the area of the intersection over that of the union.

    Args:
        anchor_boxes: boxes of shape (n, 4).
        gt_boxes: boxes of shape (m, 4).
        mode: ``"iou"``, or ``"iof"`` for the area of the intersection over that of the box of ``gt_boxes``.

    Returns:
        A tensor of shape (m, n).

    Raises:
        ArgumentValueError: an unknown mode.
        ShapeError: no tables of boxes.

    >>> import mycelia as ms
    >>> print(ms.ops.iou(ms.Tensor([[0.0, 0.0, 9.0, 9.0]]), ms.Tensor([[0.0, 0.0, 9.0, 4.0]])))
    [[0.5]]
    """
    _check_overlap(mode)
    x1, y1, x2, y2 = _boxes(anchor_boxes, "iou", "anchor_boxes")
    u1, v1, u2, v2 = (reshape(c, (-1, 1)) for c in _boxes(gt_boxes, "iou", "gt_boxes"))
    width: Any = maximum(minimum(x2, u2) - maximum(x1, u1) + 1, 0)
    height: Any = maximum(minimum(y2, v2) - maximum(y1, v1) + 1, 0)
    common = width * height
    own: Any = (u2 - u1 + 1) * (v2 - v1 + 1)
    if mode == "iof":
        return common / own  # type: ignore[no-any-return]
    return common / (own + (x2 - x1 + 1) * (y2 - y1 + 1) - common)  # type: ignore[no-any-return]


def _check_overlap(mode: str) -> None:
    if mode not in ("iou", "iof"):
        raise ArgumentValueError("iou", "mode", got=repr(mode), takes='"iou" or "iof"')


def _middle(x1: Any, y1: Any, x2: Any, y2: Any) -> tuple[Any, Any, Any, Any]:
    """Center, width and height."""
    return (x1 + x2) * 0.5, (y1 + y2) * 0.5, x2 - x1 + 1, y2 - y1 + 1


def _four(values: Any, where_: str, argument: str) -> tuple[float, ...]:
    if not isinstance(values, (tuple, list)) or len(values) != 4:
        raise ArgumentValueError(where_, argument, got=repr(values), takes="four numbers")
    return tuple([float(v) for v in values])


def bounding_box_encode(
    anchor_box: Any, groundtruth_box: Any, means: Any = (0.0, 0.0, 0.0, 0.0), stds: Any = (1.0, 1.0, 1.0, 1.0)
) -> Tensor:
    """Boxes as offsets from anchors: moves in units of the anchor's size, and logarithms of the ratios of sizes.

    Args:
        anchor_box: boxes of shape (n, 4).
        groundtruth_box: boxes of the same shape.
        means: subtracted from the offsets.
        stds: then divides them.

    Returns:
        A tensor of shape (n, 4).

    >>> import mycelia as ms
    >>> box = ms.Tensor([[0.0, 0.0, 9.0, 9.0]])
    >>> print(ms.ops.bounding_box_encode(box, box + 1))
    [[0.1 0.1 0.  0. ]]
    """
    where_ = "bounding_box_encode"
    middle, spread = _four(means, where_, "means"), _four(stds, where_, "stds")
    px, py, pw, ph = _middle(*_boxes(anchor_box, where_, "anchor_box"))
    gx, gy, gw, gh = _middle(*_boxes(groundtruth_box, where_, "groundtruth_box"))
    deltas = ((gx - px) / pw, (gy - py) / ph, log(gw / pw), log(gh / ph))
    made: Tensor = stack([(d - m) / s for d, m, s in zip(deltas, middle, spread, strict=True)], -1)
    return made


def bounding_box_decode(
    anchor_box: Any, deltas: Any, max_shape: Any, means: Any = (0.0, 0.0, 0.0, 0.0), stds: Any = (1.0, 1.0, 1.0, 1.0),
    wh_ratio_clip: float = 0.016,
) -> Tensor:  # fmt: skip
    """Boxes of anchors and offsets, within an image; the reverse of :func:`bounding_box_encode`.

    Args:
        anchor_box: boxes of shape (n, 4).
        deltas: offsets of the same shape.
        max_shape: height and width of the image.
        means: see :func:`bounding_box_encode`.
        stds: see :func:`bounding_box_encode`.
        wh_ratio_clip: the largest change of a width or height is one over this.

    >>> import mycelia as ms
    >>> box = ms.Tensor([[0.0, 0.0, 9.0, 9.0]])
    >>> print(ms.ops.bounding_box_decode(box, ms.Tensor([[0.1, 0.1, 0.0, 0.0]]), (20, 20)))
    [[ 1.  1. 10. 10.]]
    """
    where_ = "bounding_box_decode"
    middle, spread = _four(means, where_, "means"), _four(stds, where_, "stds")
    height, width = max_shape
    px, py, pw, ph = _middle(*_boxes(anchor_box, where_, "anchor_box"))
    dx, dy, dw, dh = (d * s + m for d, m, s in zip(_boxes(deltas, where_, "deltas"), middle, spread, strict=True))
    most = abs(float(np.log(wh_ratio_clip)))
    gx, gy = px + pw * dx, py + ph * dy
    gw, gh = pw * exp(clamp(dw, -most, most)), ph * exp(clamp(dh, -most, most))
    corners = [gx - gw * 0.5 + 0.5, gy - gh * 0.5 + 0.5, gx + gw * 0.5 - 0.5, gy + gh * 0.5 - 0.5]
    made: Tensor = stack([clamp(c, 0, e) for c, e in zip(corners, (width, height) * 2, strict=True)], -1)
    return made


def check_valid(bboxes: Any, img_metas: Any) -> Tensor:
    """Which boxes lie within an image.

    Args:
        bboxes: boxes of shape (n, 4).
        img_metas: height, width and the ratio that both are multiplied with.

    Returns:
        A bool vector.

    >>> import mycelia as ms
    >>> boxes = ms.Tensor([[0.0, 0.0, 9.0, 9.0], [0.0, 0.0, 20.0, 9.0]])
    >>> print(ms.ops.check_valid(boxes, ms.Tensor([10.0, 10.0, 1.0])))
    [ True False]
    """
    x1, y1, x2, y2 = _boxes(bboxes, "check_valid", "bboxes")
    meta: Any = as_tensor(img_metas, "check_valid", "img_metas")
    if meta.shape != (3,):
        raise ShapeError("check_valid", "img_metas", got=f"shape {meta.shape}", takes="height, width and ratio")
    height, width = meta[0] * meta[2] - 1, meta[1] * meta[2] - 1
    return (x1 >= 0) & (y1 >= 0) & (x2 <= width) & (y2 <= height)  # type: ignore[no-any-return]


BoundingBoxDecode = form(
    "BoundingBoxDecode(max_shape, means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0), wh_ratio_clip=0.016)"
    "(anchor_box, deltas)",
    bounding_box_decode,
)
BoundingBoxEncode = form(
    "BoundingBoxEncode(means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0))(anchor_box, groundtruth_box)",
    bounding_box_encode,
)
CheckValid = form("CheckValid()(bboxes, img_metas)", check_valid)
IOU = form("IOU(mode='iou')(anchor_boxes, gt_boxes)", iou, _check_overlap)

# suppression


def _infer_kept(boxes: TensorType, *, threshold: float) -> TensorType:
    check_dtypes("nms", (boxes,), dt.FLOATS, ("boxes",))
    if boxes.rank != 2 or boxes.shape[1] != 4:
        raise ShapeError("nms", "boxes", got=f"shape {boxes.shape}", takes="(number of boxes, 4)")
    return TensorType(dt.bool_, boxes.shape[:1])


def _lower_kept(boxes: Any, *, threshold: float) -> Any:
    if not len(boxes):
        return jnp.zeros(0, bool)
    wide = boxes.astype(jnp.promote_types(boxes.dtype, jnp.float32))
    area = (wide[:, 2] - wide[:, 0]) * (wide[:, 3] - wide[:, 1])
    order = jnp.arange(len(boxes))

    def suppress(i: Any, kept: Any) -> Any:
        box = wide[i]
        width = jnp.minimum(box[2], wide[:, 2]) - jnp.maximum(box[0], wide[:, 0])
        height = jnp.minimum(box[3], wide[:, 3]) - jnp.maximum(box[1], wide[:, 1])
        common = jnp.maximum(width, 0) * jnp.maximum(height, 0)
        close = common > threshold * (area[i] + area - common)
        return kept & ~(close & (order > i) & kept[i])

    return lax.fori_loop(0, len(boxes), suppress, jnp.ones(len(boxes), bool))


_ROWS = np.array([[1.0, 1.0, 10.0, 10.0], [0.0, 0.0, 9.0, 9.0], [20.0, 20.0, 30.0, 30.0], [2.0, 2.0, 9.0, 9.0]])

#: Which boxes, best first, are kept if each kept box suppresses later ones that overlap more than a threshold.
nms_p = Primitive(
    "nms", infer=_infer_kept, lower=_lower_kept, differentiable=False,
    samples=lambda: [
        Sample((_ROWS,), {"threshold": 0.5}), Sample((_ROWS,), {"threshold": 0.7}),
        Sample((_ROWS,), {"threshold": 0.0}), Sample((np.zeros((0, 4)),), {"threshold": 0.5}),
        Bad((_ROWS[:, :3],), {"threshold": 0.5}, ShapeError, "number of boxes"),
    ],
)  # fmt: skip


def _suppressed(bboxes: Any, iou_threshold: float) -> tuple[Tensor, Tensor, Tensor]:
    """The boxes in the order of their scores, their numbers in it, and which are kept."""
    t = as_float(bboxes, "NMSWithMask", "bboxes")
    if t.ndim != 2 or t.shape[1] != 5:
        raise ShapeError("NMSWithMask", "bboxes", got=f"shape {t.shape}", takes="(number of boxes, 5): box and score")
    ranked = index_select(t, 0, sort(t[:, 4], -1, True)[1])
    kept = one(nms_p, ranked[:, :4], threshold=float(iou_threshold))
    return ranked, constant(np.arange(t.shape[0], dtype=np.int32)), kept


NMSWithMask = form("NMSWithMask(iou_threshold=0.5)(bboxes)", _suppressed)

# regions


def _align(
    features: Any, rois: Any, pooled_height: int, pooled_width: int, spatial_scale: float, sample_num: int,
    roi_end_mode: int,
) -> Tensor:  # fmt: skip
    """The mean of ``sample_num²`` samples, each interpolated linearly, in each cell of a grid over each region."""
    x, regions = as_float(features, "ROIAlign", "features"), as_float(rois, "ROIAlign", "rois")
    if x.ndim != 4 or regions.ndim != 2 or regions.shape[1] != 5:
        raise ShapeError("ROIAlign", "rois", got=f"shape {regions.shape}", takes="(n, 5), and features of four axes")
    n, (channels, height, width) = regions.shape[0], x.shape[1:]
    wide: Any = cast(regions, dt.float32)
    rows = _samples(wide[:, 2], wide[:, 4], spatial_scale, pooled_height * sample_num, roi_end_mode)
    columns = _samples(wide[:, 1], wide[:, 3], spatial_scale, pooled_width * sample_num, roi_end_mode)
    images: Any = reshape(gather(x, cast(wide[:, 0], dt.int32), 0), (n, channels, height * width))
    total: Any = 0
    for y, share_y in _neighbours(rows, height):
        for c, share_c in _neighbours(columns, width):
            places: Any = reshape(y, (n, -1, 1)) * width + reshape(c, (n, 1, -1))
            flat = broadcast_to(reshape(places, (n, 1, -1)), (n, channels, places.shape[1] * places.shape[2]))
            read: Any = reshape(gather_d(images, 2, flat), (n, channels, *places.shape[1:]))
            total = total + read * cast(reshape(share_y, (n, 1, -1, 1)) * reshape(share_c, (n, 1, 1, -1)), x.dtype)
    cells = reshape(total, (n, channels, pooled_height, sample_num, pooled_width, sample_num))
    return mean(cells, (3, 5))


def _samples(start: Any, end: Any, scale: float, count: int, end_mode: int) -> Any:
    """Evenly spaced coordinates over each region: one row for each."""
    first = start * scale
    length = (end + 1) * scale - first if end_mode else maximum(end * scale - first, 1.0)
    steps = constant(((np.arange(count) + 0.5) / count).astype(np.float32))
    return reshape(first, (-1, 1)) + reshape(length, (-1, 1)) * steps


def _neighbours(at: Any, size: int) -> list[tuple[Any, Any]]:
    """The two places beside each coordinate and their shares; both shares are 0 outside the image."""
    inside = (at >= -1) & (at <= size)
    held: Any = clamp(at, 0, size - 1)
    low: Any = floor(held)
    far: Any = held - low
    places = cast(low, dt.int32)
    beside: Any = minimum(places + 1, size - 1)
    return [(places, where(inside, 1 - far, 0)), (beside, where(inside, far, 0))]


def _check_align(
    pooled_height: int, pooled_width: int, spatial_scale: float, sample_num: int, roi_end_mode: int
) -> None:
    numbers = {"pooled_height": pooled_height, "pooled_width": pooled_width, "sample_num": sample_num}
    for name, value in numbers.items():
        if as_int(value, "ROIAlign", name) < 1:
            raise ArgumentValueError("ROIAlign", name, got=str(value), takes="an int of at least 1")
    if roi_end_mode not in (0, 1):
        raise ArgumentValueError("ROIAlign", "roi_end_mode", got=str(roi_end_mode), takes="0 or 1")


ROIAlign = form(
    "ROIAlign(pooled_height, pooled_width, spatial_scale, sample_num=2, roi_end_mode=1)(features, rois)",
    _align,
    _check_align,
)
