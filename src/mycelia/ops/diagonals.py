"""Triangles and diagonals of matrices: tril, triu, diag, diagonal, diag_embed.

``diagonal`` reads a diagonal out of two axes and ``diag_embed`` writes one into zeros; each is the other's
gradient.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import attach_in_place
from mycelia.ops.declare import Bad, Sample
from mycelia.ops.operands import as_axis, as_int, as_tensor, cast
from mycelia.ops.registry import attach, operator
from mycelia.ops.selection import masked_fill, where
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant

_M = np.arange(1.0, 13.0).reshape(3, 4)
_CUBE = np.arange(1.0, 25.0).reshape(2, 3, 4)


def _infer_triangle(name: str) -> Any:
    def infer(x: TensorType, *, diagonal: int) -> TensorType:
        if x.rank < 2:
            raise ShapeError(name, "input", got=f"shape {x.shape}", takes="at least two axes")
        return x

    return infer


def _triangle_samples() -> list[Any]:
    return [
        *[Sample((_M,), {"diagonal": k}) for k in (-1, 0, 2, 9)], Sample((_CUBE,), {"diagonal": 1}),
        Sample((np.zeros((2, 0, 3)),), {"diagonal": 0}), Bad((np.zeros(3),), {"diagonal": 0}, ShapeError, "two axes"),
    ]  # fmt: skip


tril_p: Primitive = Primitive(
    "tril", infer=_infer_triangle("tril"), lower=lambda x, *, diagonal: jnp.tril(x, diagonal),
    samples=_triangle_samples,
    vjp=lambda ct, x, out, *, diagonal: [apply(tril_p, ct, diagonal=diagonal)], shard="...ij->...ij", onnx="Trilu",
)  # fmt: skip
triu_p: Primitive = Primitive(
    "triu", infer=_infer_triangle("triu"), lower=lambda x, *, diagonal: jnp.triu(x, diagonal),
    samples=_triangle_samples,
    vjp=lambda ct, x, out, *, diagonal: [apply(triu_p, ct, diagonal=diagonal)], shard="...ij->...ij", onnx="Trilu",
)  # fmt: skip


@operator(methods=True)
def tril(input: Any, diagonal: int = 0) -> Tensor:
    """The lower triangle of the last two axes; zeros above it.

    Args:
        input: a tensor of at least two axes.
        diagonal: which diagonal is the last kept; above the main one if positive.

    Raises:
        ShapeError: fewer than two axes.

    >>> import mycelia as ms
    >>> print(ms.ops.tril(ms.Tensor([[1, 2], [3, 4]])))
    [[1 0]
     [3 4]]
    """
    k = as_int(diagonal, "tril", "diagonal")
    return apply(tril_p, as_tensor(input, "tril"), diagonal=k)  # type: ignore[no-any-return]


@operator(methods=True)
def triu(input: Any, diagonal: int = 0) -> Tensor:
    """The upper triangle of the last two axes; zeros below it.

    Args:
        input: a tensor of at least two axes.
        diagonal: which diagonal is the first kept; above the main one if positive.

    >>> import mycelia as ms
    >>> print(ms.ops.triu(ms.Tensor([[1, 2], [3, 4]])))
    [[1 2]
     [0 4]]
    """
    k = as_int(diagonal, "triu", "diagonal")
    return apply(triu_p, as_tensor(input, "triu"), diagonal=k)  # type: ignore[no-any-return]


def _length(rows: int, columns: int, offset: int) -> int:
    """How long a diagonal of a matrix is."""
    return max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)


def _infer_diagonal(x: TensorType, *, offset: int, axis1: int, axis2: int) -> TensorType:
    rest = tuple([d for i, d in enumerate(x.shape) if i not in (axis1, axis2)])
    return TensorType(x.dtype, (*rest, _length(x.shape[axis1], x.shape[axis2], offset)))


def _lower_diagonal(x: Any, *, offset: int, axis1: int, axis2: int) -> Any:
    length = _length(x.shape[axis1], x.shape[axis2], offset)
    moved = jnp.moveaxis(x, (axis1, axis2), (-2, -1))
    if length == 0:
        return jnp.zeros((*moved.shape[:-2], 0), x.dtype)
    row, column = max(-offset, 0), max(offset, 0)
    square = moved[..., row : row + length, column : column + length]
    flat = square.reshape(*square.shape[:-2], length * length)
    return flat[..., :: length + 1]


def _infer_embed(x: TensorType, *, offset: int, axis1: int, axis2: int, rows: int, columns: int) -> TensorType:
    if x.shape[-1] != _length(rows, columns, offset):
        raise ShapeError(
            "diag_embed", "input", got=f"shape {x.shape}",
            takes=f"a last axis of length {_length(rows, columns, offset)}, a diagonal of {rows} x {columns} elements",
        )  # fmt: skip
    shape = list(x.shape[:-1])
    for axis, d in sorted(((axis1, rows), (axis2, columns))):
        shape.insert(axis, d)
    return TensorType(x.dtype, tuple(shape))


def _lower_embed(x: Any, *, offset: int, axis1: int, axis2: int, rows: int, columns: int) -> Any:
    above = max(-offset, 0)
    zero = np.zeros((), x.dtype)
    spread = lax.pad(x, zero, [(0, 0, 0)] * (x.ndim - 1) + [(above, rows - above - x.shape[-1], 0)])
    row, column = np.arange(rows)[:, None], np.arange(columns)
    matrix = jnp.where(row + offset == column, spread[..., None], zero)
    return jnp.moveaxis(matrix, (-2, -1), (axis1, axis2))


def _embed(ct: Tensor, x: Tensor, offset: int, axis1: int, axis2: int) -> Tensor:
    made: Tensor = apply(
        diag_embed_p, ct, offset=offset, axis1=axis1, axis2=axis2, rows=x.shape[axis1], columns=x.shape[axis2]
    )
    return made


diagonal_p = Primitive(
    "diagonal", infer=_infer_diagonal, lower=_lower_diagonal,
    vjp=lambda ct, x, out, *, offset, axis1, axis2: [_embed(ct, x, offset, axis1, axis2)],
    samples=lambda: [
        *[Sample((_M,), {"offset": k, "axis1": 0, "axis2": 1}) for k in (-1, 0, 2, 7)],
        Sample((_CUBE,), {"offset": 1, "axis1": 2, "axis2": 0}),
        Sample((np.zeros((0, 3)),), {"offset": 0, "axis1": 0, "axis2": 1}),
    ],
)  # fmt: skip
diag_embed_p = Primitive(
    "diag_embed", infer=_infer_embed, lower=_lower_embed,
    vjp=lambda ct, x, out, *, offset, axis1, axis2, rows, columns: [
        apply(diagonal_p, ct, offset=offset, axis1=axis1, axis2=axis2)
    ],
    samples=lambda: [
        Sample((_M,), {"offset": 1, "axis1": 1, "axis2": 2, "rows": 5, "columns": 5}),
        Sample((_M[0],), {"offset": -2, "axis1": 1, "axis2": 0, "rows": 6, "columns": 4}),
        Sample((np.zeros(0),), {"offset": 0, "axis1": 0, "axis2": 1, "rows": 0, "columns": 2}),
        Bad((_M[0],), {"offset": 0, "axis1": 0, "axis2": 1, "rows": 3, "columns": 3}, ShapeError, "length 3"),
    ],
)  # fmt: skip


@operator()
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two axes, as a last axis in their place.

    Args:
        input: a tensor of at least two axes.
        offset: which diagonal; above the main one if positive.
        dim1: the axis of the rows.
        dim2: the axis of the columns.

    Raises:
        ArgumentValueError: ``dim1`` and ``dim2`` are the same axis.
        ShapeError: fewer than two axes.

    >>> import mycelia as ms
    >>> print(ms.ops.diagonal(ms.Tensor([[1, 2], [3, 4]])))
    [1 4]
    """
    x = as_tensor(input, "diagonal")
    if x.ndim < 2:
        raise ShapeError("diagonal", "input", got=f"shape {x.shape}", takes="at least two axes")
    first, second = as_axis(dim1, x.ndim, "diagonal", "dim1"), as_axis(dim2, x.ndim, "diagonal", "dim2")
    if first == second:
        raise ArgumentValueError("diagonal", "dim2", got=str(dim2), takes=f"an axis other than dim1, {dim1}")
    k = as_int(offset, "diagonal", "offset")
    return apply(diagonal_p, x, offset=k, axis1=first, axis2=second)  # type: ignore[no-any-return]


def _diagonal_method(self: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonal of two axes, as a last axis in their place."""
    return diagonal(self, offset, axis1, axis2)


@operator()
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices with the last axis of ``input`` on a diagonal and zeros elsewhere.

    Args:
        input: a tensor of at least one axis.
        offset: which diagonal; above the main one if positive.
        dim1: the axis of the result that holds the rows.
        dim2: the axis of the result that holds the columns.

    Raises:
        ArgumentValueError: ``dim1`` and ``dim2`` are the same axis.
        ShapeError: a tensor without axes.

    >>> import mycelia as ms
    >>> print(ms.ops.diag_embed(ms.Tensor([1, 2]), 1))
    [[0 1 0]
     [0 0 2]
     [0 0 0]]
    """
    x = as_tensor(input, "diag_embed")
    if not x.ndim:
        raise ShapeError("diag_embed", "input", got="shape ()", takes="at least one axis")
    rank = x.ndim + 1
    first, second = as_axis(dim1, rank, "diag_embed", "dim1"), as_axis(dim2, rank, "diag_embed", "dim2")
    if first == second:
        raise ArgumentValueError("diag_embed", "dim2", got=str(dim2), takes=f"an axis other than dim1, {dim1}")
    k = as_int(offset, "diag_embed", "offset")
    n = x.shape[-1] + (k if k >= 0 else -k)
    return apply(diag_embed_p, x, offset=k, axis1=first, axis2=second, rows=n, columns=n)  # type: ignore[no-any-return]


@operator()
def diagflat(input: Any, offset: int = 0) -> Tensor:
    """A matrix with the flattened elements of ``input`` on a diagonal.

    >>> import mycelia as ms
    >>> print(ms.ops.diagflat(ms.Tensor([[1, 2]])))
    [[1 0]
     [0 2]]
    """
    x = as_tensor(input, "diagflat")
    return diag_embed(reshape(x, (x.size,)), offset)


@operator()
def diag(input: Any) -> Tensor:
    """A tensor with ``input`` on its diagonal: of a vector the diagonal matrix, of rank r a tensor of rank 2r.

    Args:
        input: a tensor of at least one axis.

    Returns:
        A tensor of shape ``input.shape + input.shape``.

    >>> import mycelia as ms
    >>> print(ms.ops.diag(ms.Tensor([1, 2])))
    [[1 0]
     [0 2]]
    """
    x = as_tensor(input, "diag")
    if not x.ndim:
        raise ShapeError("diag", "input", got="shape ()", takes="at least one axis")
    return reshape(diag_embed(reshape(x, (x.size,))), x.shape + x.shape)


@operator()
def diag_ext(input: Any, diagonal: int = 0) -> Tensor:
    """The matrix with a vector on a diagonal, or the diagonal of a matrix.

    Args:
        input: a vector or matrix.
        diagonal: which diagonal; above the main one if positive.

    Raises:
        ShapeError: neither one nor two axes.

    >>> import mycelia as ms
    >>> print(ms.ops.diag_ext(ms.Tensor([[1, 2], [3, 4]]), 1))
    [2]
    """
    x = as_tensor(input, "diag")
    if x.ndim not in (1, 2):
        raise ShapeError("diag", "input", got=f"shape {x.shape}", takes="one or two axes")
    return diag_embed(x, diagonal) if x.ndim == 1 else _diagonal_method(x, diagonal)


def _diag_method(self: Tensor, diagonal: int | None = None) -> Tensor:
    """``ops.diag`` without an argument; with one, the matrix with a vector on that diagonal, or that diagonal."""
    return diag(self) if diagonal is None else diag_ext(self, diagonal)


@operator(methods=True)
def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A tensor with ``src`` in place of a diagonal of two axes.

    Args:
        input: a tensor of at least two axes.
        src: a tensor of the shape that :func:`diagonal` gives.
        offset: which diagonal; above the main one if positive.
        dim1: the axis of the rows.
        dim2: the axis of the columns.

    Raises:
        ShapeError: ``src`` has another shape.

    >>> import mycelia as ms
    >>> print(ms.ops.diagonal_scatter(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([8, 9])))
    [[8 2]
     [3 9]]
    """
    x = as_tensor(input, "diagonal_scatter")
    new = cast(as_tensor(src, "diagonal_scatter", "src"), x.dtype)
    taken = diagonal(x, offset, dim1, dim2)
    if new.shape != taken.shape:
        raise ShapeError(
            "diagonal_scatter", "src", got=f"shape {new.shape}", takes=f"shape {taken.shape}, that of the diagonal"
        )  # fmt: skip
    first, second = as_axis(dim1, x.ndim, "diagonal_scatter", "dim1"), as_axis(dim2, x.ndim, "diagonal_scatter", "dim2")
    return where(_on_diagonal(x, offset, first, second), _embed(new, x, offset, first, second), x)  # type: ignore[no-any-return]


def _on_diagonal(x: Tensor, offset: int, axis1: int, axis2: int) -> Tensor:
    """Where two axes have the indices of a diagonal, shaped to broadcast with ``x``."""
    shape = [1] * x.ndim
    shape[axis1], shape[axis2] = x.shape[axis1], x.shape[axis2]
    mask = np.eye(x.shape[axis1], x.shape[axis2], offset, dtype=bool)
    return constant((mask if axis1 < axis2 else mask.T).reshape(shape))


@operator(methods=True)
def fill_diagonal(input: Any, fill_value: Any, wrap: bool = False) -> Tensor:
    """A tensor with one value on its main diagonal.

    Args:
        input: a matrix, or a tensor whose axes have all the same length.
        fill_value: a number.
        wrap: of a tall matrix, start the diagonal again after a row left out.

    Raises:
        ShapeError: fewer than two axes, or more than two of different lengths.

    >>> import mycelia as ms
    >>> print(ms.ops.fill_diagonal(ms.Tensor([[1, 2], [3, 4]]), 9))
    [[9 2]
     [3 9]]
    """
    x = as_tensor(input, "fill_diagonal")
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError("fill_diagonal", "input", got=f"shape {x.shape}", takes="a matrix, or axes of one length")
    mask = np.zeros(x.shape, bool)
    np.fill_diagonal(mask, True, wrap=wrap)
    return masked_fill(x, constant(mask), fill_value)


@operator()
def matrix_band_part(x: Any, lower: Any, upper: Any) -> Tensor:
    """The diagonals of the last two axes from ``lower`` below the main one to ``upper`` above it; zeros elsewhere.

    Args:
        x: a tensor of at least two axes.
        lower: how many diagonals to keep below the main one; all if negative.
        upper: how many to keep above it; all if negative.

    >>> import mycelia as ms
    >>> print(ms.ops.matrix_band_part(ms.Tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), 1, 0))
    [[1 0 0]
     [4 5 0]
     [0 8 9]]
    """
    t = as_tensor(x, "matrix_band_part", "x")
    below = as_int(lower.item() if isinstance(lower, Tensor) else lower, "matrix_band_part", "lower")
    above = as_int(upper.item() if isinstance(upper, Tensor) else upper, "matrix_band_part", "upper")
    kept = t if below < 0 else triu(t, -below)
    return kept if above < 0 else tril(kept, above)


attach_in_place("fill_diagonal_", fill_diagonal)
for _name, _method in (("diagonal", _diagonal_method), ("diag", _diag_method), ("diagflat", diagflat)):
    attach(_name, _method)
