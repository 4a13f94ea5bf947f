"""Class forms of resampled images, with the choices of where a result looks in the image.

Result ``i`` of ``n`` along an axis of ``size`` elements looks at ``i * size / n``; with half pixel centers at
``(i + 0.5) * size / n - 0.5``; with aligned corners at ``i * (size - 1) / (n - 1)``. Nearest neighbours are read
at the place rounded down (rounded, with aligned corners). A linear result is a product with the matrix of weights
along each axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ops.grid_sampling import affine_grid, grid_sample
from mycelia.ops.indexing import index_select
from mycelia.ops.interpolation import interpolate
from mycelia.ops.legacy.form import form
from mycelia.ops.linear import matmul
from mycelia.ops.operands import as_shape, as_tensor, cast
from mycelia.ops.shape import swapaxes
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import constant

__all__ = [
    "AffineGrid", "GridSampler2D", "GridSampler3D", "ResizeBilinearV2", "ResizeLinear1D", "ResizeNearestNeighbor",
    "ResizeNearestNeighborV2", "UpsampleNearest3D", "UpsampleTrilinear3D",
]  # fmt: skip

_Array = np.ndarray[Any, Any]


def _positions(size: int, count: int, align_corners: bool, half_pixel: bool) -> _Array:
    index = np.arange(count, dtype=np.float64)
    if align_corners:
        return index * ((size - 1) / (count - 1)) if count > 1 else index
    return (index + 0.5) * (size / count) - 0.5 if half_pixel else index * (size / count)


def _image(where: str, image: Any, size: Any, axes: int) -> tuple[Tensor, tuple[int, ...]]:
    x = as_tensor(image, where, "image")
    wanted = as_shape(size, where, "size", minimum=1)
    if x.ndim != axes + 2 or len(wanted) != axes:
        raise ShapeError(
            where, "size", got=f"{wanted} for an image of shape {x.shape}", takes=f"{axes} lengths, and {axes + 2} axes"
        )
    if not all(x.shape[2:]):
        raise ShapeError(where, "image", got=f"shape {x.shape}", takes="an image that is not empty")
    return x, wanted


def _check_places(where: str) -> Any:
    def check(*, align_corners: bool, half_pixel_centers: bool, **given: Any) -> None:
        if align_corners and half_pixel_centers:
            raise ArgumentValueError(where, "half_pixel_centers", got="True with align_corners", takes="one of the two")

    return check


def _nearest(where: str) -> Any:
    def compute(image: Any, size: Any, align_corners: bool, half_pixel_centers: bool) -> Tensor:
        x, wanted = _image(where, image, size, 2)
        for axis, count in enumerate(wanted, 2):
            at = _positions(x.shape[axis], count, align_corners, half_pixel_centers)
            at = np.floor(at + 0.5) if align_corners or half_pixel_centers else np.floor(at)
            x = index_select(x, axis, constant(np.clip(at, 0, x.shape[axis] - 1).astype(np.int64)))
        return x

    return compute


def _linear_weights(size: int, positions: _Array) -> _Array:
    """A matrix with a row of weights for each result."""
    at = np.clip(positions, 0, size - 1)
    low = np.minimum(np.floor(at).astype(np.int64), size - 1)
    weights = np.zeros((len(at), size))
    rows = np.arange(len(at))
    np.add.at(weights, (rows, low), 1 - (at - low))
    np.add.at(weights, (rows, np.minimum(low + 1, size - 1)), at - low)
    return weights


def _weighted(x: Tensor, axis: int, weights: _Array) -> Tensor:
    matrix = constant(weights.T.astype(x.dtype.np))
    last = axis == x.ndim - 1
    made = matmul(x if last else swapaxes(x, axis, -1), matrix)
    return made if last else swapaxes(made, axis, -1)


def _linear(x: Tensor, wanted: tuple[int, ...], align_corners: bool, half_pixel: bool) -> Tensor:
    wide = x if x.dtype is dt.float64 else cast(x, dt.float32)
    for axis, count in reversed(list(enumerate(wanted, 2))):
        positions = _positions(x.shape[axis], count, align_corners, half_pixel)
        wide = _weighted(wide, axis, _linear_weights(x.shape[axis], positions))
    return cast(wide, x.dtype) if x.dtype.is_floating else wide


def _bilinear(image: Any, size: Any, align_corners: bool, half_pixel_centers: bool) -> Tensor:
    return _linear(*_image("ResizeBilinearV2", image, size, 2), bool(align_corners), bool(half_pixel_centers))


def _linear_1d(x: Any, size: Any, mode: str) -> Tensor:
    return _linear(*_image("ResizeLinear1D", x, size, 1), mode == "align_corners", mode == "half_pixel")


def _check_mode(coordinate_transformation_mode: str) -> None:
    if coordinate_transformation_mode not in ("align_corners", "half_pixel", "asymmetric"):
        raise ArgumentValueError(
            "ResizeLinear1D", "coordinate_transformation_mode", got=repr(coordinate_transformation_mode),
            takes='"align_corners", "half_pixel" or "asymmetric"',
        )  # fmt: skip


def _sampled(input_x: Any, grid: Any, mode: str, padding: str, align_corners: bool) -> Tensor:
    return grid_sample(input_x, grid, mode, padding, bool(align_corners))


def _upsampled(mode: str) -> Any:
    def compute(x: Any, output_size: Any, scales: Any, align_corners: Any = None) -> Any:
        align = None if mode == "nearest" else bool(align_corners)
        return interpolate(x, output_size, scales, mode, align)

    return compute


_PLACES = "(align_corners=False, half_pixel_centers=False)(image, size)"
_GRID = "(interpolation_mode='bilinear', padding_mode='zeros', align_corners=False)(input_x, grid)"
AffineGrid = form("AffineGrid(align_corners=False)(theta, output_size)", affine_grid)
GridSampler2D = form(f"GridSampler2D{_GRID}", _sampled)
GridSampler3D = form(f"GridSampler3D{_GRID}", _sampled)
ResizeBilinearV2 = form(f"ResizeBilinearV2{_PLACES}", _bilinear, _check_places("ResizeBilinearV2"))
ResizeLinear1D = form(
    "ResizeLinear1D(coordinate_transformation_mode='align_corners')(x, size)", _linear_1d, _check_mode
)
ResizeNearestNeighbor = form(
    "ResizeNearestNeighbor(size, align_corners=False, half_pixel_centers=False)(input_x)",
    _nearest("ResizeNearestNeighbor"),
    _check_places("ResizeNearestNeighbor"),
)
ResizeNearestNeighborV2 = form(
    f"ResizeNearestNeighborV2{_PLACES}", _nearest("ResizeNearestNeighborV2"), _check_places("ResizeNearestNeighborV2")
)
UpsampleNearest3D = form("UpsampleNearest3D()(x, output_size=None, scales=None)", _upsampled("nearest"))
UpsampleTrilinear3D = form(
    "UpsampleTrilinear3D(align_corners=False)(x, output_size=None, scales=None)", _upsampled("trilinear")
)
