"""Images read at arbitrary places, and the places of an affine map.

M. Jaderberg et al., "Spatial transformer networks" (2015). Coordinates run from -1 to 1 over an axis, between the
middles of its outer elements (``align_corners``) or between their outer borders.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float, floats
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.linear import accumulator, matrix_product
from mycelia.ops.operands import as_shape
from mycelia.ops.registry import operator
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant


def _infer(x: TensorType, grid: TensorType, *, mode: str, padding: str, align: bool) -> TensorType:
    check_dtypes("grid_sample", (x, grid), dt.FLOATS, ("input", "grid"))
    n = x.rank - 2
    if n not in (2, 3):
        raise ShapeError("grid_sample", "input", got=f"shape {x.shape}", takes="4 or 5 axes")
    if grid.rank != x.rank or grid.shape[0] != x.shape[0] or grid.shape[-1] != n:
        raise ShapeError(
            "grid_sample", "grid", got=f"shape {grid.shape}",
            takes=f"batch {x.shape[0]}, {n} spatial axes and {n} coordinates on the last axis",
        )  # fmt: skip
    if not all(x.shape[1:]):
        raise ShapeError(
            "grid_sample", "input", got=f"shape {x.shape}", takes="channels and spatial axes that are not empty"
        )
    return TensorType(x.dtype, (*x.shape[:2], *grid.shape[1:-1]))


def _reflected(at: Any, low: float, high: float) -> Any:
    """Coordinates folded back into [low, high] at both ends."""
    if low == high:
        return jnp.zeros_like(at)
    span = high - low
    distance = jnp.abs(at - low)
    turns = jnp.floor(distance / span)
    rest = distance - turns * span
    return jnp.where(turns % 2 == 0, rest + low, span - rest + low)


def _coordinate(raw: Any, size: int, padding: str, align: bool) -> Any:
    at = (raw + 1) * ((size - 1) / 2) if align else ((raw + 1) * size - 1) / 2
    return at if padding == "zeros" else _bounded(at, size, padding, align)


def _bounded(at: Any, size: int, padding: str, align: bool) -> Any:
    if padding == "reflection":
        at = _reflected(at, 0.0, size - 1.0) if align else _reflected(at, -0.5, size - 0.5)
    return jnp.clip(at, 0, size - 1)


def _read(x: Any, places: list[Any], sizes: tuple[int, ...]) -> Any:
    """The elements at integer places, zero outside the image: (batch, channels, points)."""
    inside: Any = True
    flat: Any = 0
    for place, size in zip(places, sizes, strict=True):
        inside = inside & (place >= 0) & (place < size)
        flat = flat * size + jnp.clip(place, 0, size - 1)
    rows = x.reshape(x.shape[0], x.shape[1], -1)
    picked = jnp.take_along_axis(rows, flat[:, None, :], axis=2)
    return jnp.where(inside[:, None, :], picked, 0)


def _as_index(at: Any) -> Any:
    """Whole numbers as int64, those beyond any image (NaN as well) as -1 or a large one."""
    return jnp.clip(jnp.nan_to_num(at, nan=-1.0), -1, 2**31).astype(jnp.int64)


def _cubic_weights(t: Any) -> list[Any]:
    a = -0.75

    def near(d: Any) -> Any:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1

    def far(d: Any) -> Any:
        return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _lower(x: Any, grid: Any, *, mode: str, padding: str, align: bool) -> Any:
    sizes = x.shape[2:]
    n, points = len(sizes), grid.shape[1:-1]
    wide = x.astype(accumulator(x.dtype) or x.dtype)
    raw = grid.astype(wide.dtype).reshape(grid.shape[0], int(np.prod(points)), n)
    # the last coordinate is that of the first spatial axis
    at = [raw[..., n - 1 - i] for i in range(n)]
    if mode == "bicubic":
        made = _cubic(wide, at, sizes, padding, align)
    else:
        at = [_coordinate(a, size, padding, align) for a, size in zip(at, sizes, strict=True)]
        if mode == "nearest":
            made = _read(wide, [_as_index(jnp.round(a)) for a in at], sizes)
        else:
            low = [jnp.floor(a) for a in at]
            share = [a - b for a, b in zip(at, low, strict=True)]
            made = jnp.zeros((), wide.dtype)
            for corner in itertools.product((0, 1), repeat=n):
                weight: Any = 1
                for s, up in zip(share, corner, strict=True):
                    weight = weight * (s if up else 1 - s)
                values = _read(wide, [_as_index(b + up) for b, up in zip(low, corner, strict=True)], sizes)
                made = made + values * weight[:, None, :]
    return made.reshape(*x.shape[:2], *points).astype(x.dtype)


def _cubic(x: Any, raw: list[Any], sizes: tuple[int, ...], padding: str, align: bool) -> Any:
    at = [_coordinate(a, size, "zeros", align) for a, size in zip(raw, sizes, strict=True)]
    low = [jnp.floor(a) for a in at]
    weights = [_cubic_weights(a - b) for a, b in zip(at, low, strict=True)]
    made = jnp.zeros((), x.dtype)
    for i, j in itertools.product(range(4), repeat=2):
        places = [low[0] + (i - 1), low[1] + (j - 1)]
        if padding != "zeros":
            places = [_bounded(p, size, padding, align) for p, size in zip(places, sizes, strict=True)]
        values = _read(x, [_as_index(p) for p in places], sizes)
        made = made + values * (weights[0][i] * weights[1][j])[:, None, :]
    return made


_X = np.sin(np.arange(24.0)).reshape(1, 2, 3, 4)
_GRID = np.array([[[[-1.3, 0.2], [0.1, -0.45]], [[0.93, 0.87], [-0.2, 1.4]]]])


def _attrs(mode: str = "bilinear", padding: str = "zeros", align: bool = False) -> dict[str, Any]:
    return {"mode": mode, "padding": padding, "align": align}


def _samples() -> list[Any]:
    volume, places = (
        np.cos(np.arange(24.0)).reshape(1, 1, 2, 3, 4),
        np.sin(np.arange(12.0)).reshape(1, 2, 2, 1, 3) * 1.4,
    )
    return [
        *[
            Sample((_X, _GRID), _attrs(mode, padding, align), grad=mode != "nearest")
            for mode in ("bilinear", "nearest", "bicubic") for padding in ("zeros", "border", "reflection")
            for align in (False, True)
        ],
        Sample((volume, places), _attrs()), Sample((volume, places), _attrs("nearest", "reflection"), grad=False),
        Bad((_X, _GRID[..., :1]), _attrs(), ShapeError, "coordinates"),
        Bad((_X[0], _GRID), _attrs(), ShapeError, "axes"),
    ]  # fmt: skip


grid_sample_p = Primitive("grid_sample", infer=_infer, lower=_lower, derived_vjp=True, samples=_samples)


@operator()
def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Any = None
) -> Tensor:
    """Read images at arbitrary places.

    Args:
        input: a float tensor of shape (batch, channels, height, width), or (..., depth, height, width).
        grid: places of shape (batch, height', width', 2) as (x, y), or (..., 3) as (x, y, z); -1 and 1 are the
            ends of an axis.
        mode: ``"bilinear"`` (trilinear for volumes), ``"nearest"``, or ``"bicubic"`` for images.
        padding_mode: what lies outside: ``"zeros"``, the ``"border"``, or the image by ``"reflection"``.
        align_corners: whether -1 and 1 are the middles of the outer elements, or their borders (default).

    Returns:
        A tensor of shape (batch, channels, height', width').

    Raises:
        ShapeError: the grid does not fit the image.
        ArgumentValueError: an unknown mode.

    >>> import mycelia as ms
    >>> x = ms.ops.arange(4.0).reshape(1, 1, 2, 2)
    >>> print(ms.ops.grid_sample(x, ms.ops.zeros((1, 1, 1, 2))).flatten())
    [1.5]
    """
    x, places = floats("grid_sample", input, grid, names=("input", "grid"))
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ArgumentValueError("grid_sample", "mode", got=repr(mode), takes='"bilinear", "nearest" or "bicubic"')
    if mode == "bicubic" and x.ndim != 4:
        raise ArgumentValueError(
            "grid_sample", "mode", got=f"'bicubic' for shape {x.shape}", takes="'bicubic' for 4 axes"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentValueError(
            "grid_sample", "padding_mode", got=repr(padding_mode), takes='"zeros", "border" or "reflection"'
        )
    return apply(grid_sample_p, x, places, mode=mode, padding=padding_mode, align=bool(align_corners))  # type: ignore[no-any-return]


@operator()
def affine_grid(theta: Any, size: Any, align_corners: bool = False) -> Tensor:
    """The places that affine maps send the elements of an image to, for :func:`grid_sample`.

    Args:
        theta: maps of shape (batch, 2, 3) for images, or (batch, 3, 4) for volumes.
        size: the shape of the result of sampling, (batch, channels, height, width), or with depth.
        align_corners: see :func:`grid_sample`.

    Returns:
        A tensor of shape (batch, height, width, 2), or (batch, depth, height, width, 3).

    Raises:
        ShapeError: the maps do not fit the size.

    >>> import mycelia as ms
    >>> print(ms.ops.affine_grid(ms.Tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2)).flatten())
    [-0.5  0.   0.5  0. ]
    """
    maps = as_float(theta, "affine_grid", "theta")
    dims = as_shape(size, "affine_grid", "size", minimum=1)
    n = len(dims) - 2
    if n not in (2, 3) or maps.shape != (dims[0], n, n + 1):
        raise ShapeError(
            "affine_grid", "theta", got=f"shape {maps.shape} for size {dims}",
            takes="shape (batch, 2, 3) for a size of 4 ints, or (batch, 3, 4) for one of 5",
        )  # fmt: skip
    lines = []
    for length in dims[2:]:
        if align_corners:
            lines.append(np.linspace(-1, 1, length) if length > 1 else np.zeros(1))
        else:
            lines.append((np.arange(length) * 2 + 1) / length - 1)
    mesh = np.meshgrid(*lines, indexing="ij")
    points = np.stack([*reversed(mesh), np.ones(dims[2:])], -1).reshape(-1, n + 1)
    base = constant(np.ascontiguousarray(points.astype(maps.dtype.np)))
    return reshape(matrix_product(base, maps, False, True), (dims[0], *dims[2:], n))
