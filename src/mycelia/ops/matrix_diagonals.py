"""Bands of diagonals taken out of matrices and put into them.

A band goes from diagonal ``low`` to ``high`` (0 is the main one, positive ones are above it) and is kept as rows,
the highest first, as long as the longest; shorter ones stand at the left or at the right of their row. Taking
them out and putting them into zeros are each other's transposes.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.declare import Bad, Sample, check_dtypes
from mycelia.ops.operands import as_int, as_tensor, cast
from mycelia.ops.registry import operator
from mycelia.ops.selection import where
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant

_ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


def _length(rows: int, columns: int, k: int) -> int:
    """How many elements diagonal ``k`` has."""
    return max(min(rows + min(k, 0), columns - max(k, 0)), 0)


def _width(rows: int, columns: int, low: int, high: int) -> int:
    return max([_length(rows, columns, k) for k in range(low, high + 1)], default=0)


def _places(rows: int, columns: int, low: int, high: int, align: str) -> tuple[Any, Any]:
    """For each place of the band: the flat position in the matrix, and whether there is one."""
    width = _width(rows, columns, low, high)
    above, below = align.split("_")
    position = np.zeros((high - low + 1, width), np.int64)
    there = np.zeros(position.shape, bool)
    for row, k in enumerate(range(high, low - 1, -1)):
        count = _length(rows, columns, k)
        index = np.arange(count)
        side = above if k >= 0 else below
        first = width - count if side == "RIGHT" else 0
        position[row, first : first + count] = (index + max(-k, 0)) * columns + index + max(k, 0)
        there[row, first : first + count] = True
    return position, there


def _check_band(rows: int, columns: int, low: int, high: int) -> None:
    if low > high or (rows and columns and not (-rows < low < columns and -rows < high < columns)):
        raise ArgumentValueError(
            "matrix_diag", "k", got=str((low, high)), takes=f"a range of diagonals from {1 - rows} to {columns - 1}"
        )


def _infer_taken(x: TensorType, *, low: int, high: int, align: str) -> TensorType:
    if x.rank < 2:
        raise ShapeError("matrix_diag_part", "x", got=f"shape {x.shape}", takes="matrices, shape (..., m, n)")
    rows, columns = x.shape[-2:]
    _check_band(rows, columns, low, high)
    return TensorType(x.dtype, (*x.shape[:-2], high - low + 1, _width(rows, columns, low, high)))


def _lower_taken(x: Any, *, low: int, high: int, align: str) -> Any:
    position, there = _places(x.shape[-2], x.shape[-1], low, high, align)
    flat = x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])
    if not flat.shape[-1]:
        return jnp.zeros((*x.shape[:-2], *position.shape), x.dtype)
    return jnp.where(there, flat[..., position], jnp.zeros((), x.dtype))


def _infer_put(band: TensorType, *, rows: int, columns: int, low: int, high: int, align: str) -> TensorType:
    _check_band(rows, columns, low, high)
    wanted = (high - low + 1, _width(rows, columns, low, high))
    if band.shape[-2:] != wanted:
        raise ShapeError("matrix_diag", "x", got=f"shape {band.shape}", takes=f"{wanted} as its last lengths")
    return TensorType(band.dtype, (*band.shape[:-2], rows, columns))


def _lower_put(band: Any, *, rows: int, columns: int, low: int, high: int, align: str) -> Any:
    position, there = _places(rows, columns, low, high, align)
    source = np.zeros(rows * columns, np.int64)
    filled = np.zeros(rows * columns, bool)
    source[position[there]] = np.flatnonzero(there)
    filled[position[there]] = True
    flat = band.reshape(*band.shape[:-2], band.shape[-2] * band.shape[-1])
    if not flat.shape[-1] or not rows * columns:
        return jnp.zeros((*band.shape[:-2], rows, columns), band.dtype)
    made = jnp.where(filled, flat[..., source], jnp.zeros((), band.dtype))
    return made.reshape(*band.shape[:-2], rows, columns)


_X = np.arange(24.0).reshape(2, 3, 4) + 1


def _attrs(low: int, high: int, align: str = "RIGHT_LEFT", **size: int) -> dict[str, Any]:
    return {**size, "low": low, "high": high, "align": align}


matrix_diagonals_p = Primitive(
    "matrix_diagonals", infer=_infer_taken, lower=_lower_taken,
    vjp=lambda ct, x, out, **attrs: [
        apply(matrix_of_diagonals_p, ct, rows=x.shape[-2], columns=x.shape[-1], **attrs)
    ],
    samples=lambda: [
        *[Sample((_X,), _attrs(-1, 2, align)) for align in _ALIGNMENTS], Sample((_X[0],), _attrs(0, 0)),
        Sample((_X[:0],), _attrs(-2, -1)), Bad((_X,), _attrs(1, 0), ArgumentValueError, "a range of diagonals"),
        Bad((_X,), _attrs(0, 4), ArgumentValueError, "from -2 to 3"),
        Bad((_X[0, 0],), _attrs(0, 0), ShapeError, "matrices"),
    ],
)  # fmt: skip

matrix_of_diagonals_p: Primitive = Primitive(
    "matrix_of_diagonals", infer=_infer_put, lower=_lower_put,
    vjp=lambda ct, band, out, *, rows, columns, **attrs: [apply(matrix_diagonals_p, ct, **attrs)],
    samples=lambda: [
        *[Sample((_X[:, :, :3],), _attrs(-1, 1, align, rows=3, columns=4)) for align in _ALIGNMENTS],
        Sample((_X[0, :1],), _attrs(0, 0, rows=4, columns=5)),
        Bad((_X,), _attrs(0, 0, rows=4, columns=4), ShapeError, "as its last lengths"),
    ],
)  # fmt: skip


def _band(k: Any, where_: str) -> tuple[int, int]:
    """The lowest and highest diagonal of an int, a pair, or an integer tensor of one or two elements."""
    given = as_tensor(k, where_, "k").tolist() if not isinstance(k, (int, tuple, list)) else k
    values = given if isinstance(given, (tuple, list)) else (given,)
    if len(values) not in (1, 2):
        raise ArgumentValueError(where_, "k", got=str(k), takes="one diagonal, or the lowest and the highest")
    made = [as_int(v, where_, "k") for v in values]
    return made[0], made[-1]


def _alignment(align: Any, where_: str) -> str:
    if align not in _ALIGNMENTS:
        raise ArgumentValueError(where_, "align", got=repr(align), takes=", ".join(_ALIGNMENTS))
    return str(align)


def _as_number(value: Any, where_: str, argument: str) -> int:
    return as_int(value.item() if isinstance(value, Tensor) else value, where_, argument)


def _padded(made: Tensor, there: Any, padding: Any, where_: str) -> Tensor:
    """``padding`` where ``there`` is False."""
    value = cast(as_tensor(padding, where_, "padding_value"), made.dtype)
    if there.all():
        return made
    return where(constant(there), made, value)  # type: ignore[no-any-return]


@operator()
def matrix_diag_part(x: Any, k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """A band of diagonals of matrices.

    Args:
        x: a tensor of shape (..., m, n).
        k: a diagonal, or the lowest and the highest one.
        padding_value: what fills the rows of shorter diagonals.
        align: on which side of their rows shorter diagonals above and below the main one stand.

    Returns:
        A tensor of shape (..., diagonals, longest), the highest diagonal first; without that axis for one diagonal.

    Raises:
        ArgumentValueError: no such diagonals.

    >>> import mycelia as ms
    >>> print(ms.ops.matrix_diag_part(ms.Tensor([[1, 2], [3, 4]]), (-1, 0)))
    [[1 4]
     [3 0]]
    """
    t = as_tensor(x, "matrix_diag_part", "x")
    low, high = _band(k, "matrix_diag_part")
    side = _alignment(align, "matrix_diag_part")
    band: Tensor = apply(matrix_diagonals_p, t, low=low, high=high, align=side)
    there = _places(t.shape[-2], t.shape[-1], low, high, side)[1]
    made = _padded(band, there, padding_value, "matrix_diag_part")
    return reshape(made, (*t.shape[:-2], made.shape[-1])) if low == high else made


@operator()
def matrix_diag(
    x: Any, k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Matrices with a given band of diagonals.

    Args:
        x: diagonals of shape (..., diagonals, longest), or (..., longest) for one.
        k: a diagonal, or the lowest and the highest one.
        num_rows: number of rows; by default as few as the diagonals need.
        num_cols: number of columns, likewise.
        padding_value: what stands outside the band.
        align: on which side of their rows shorter diagonals above and below the main one stand.

    >>> import mycelia as ms
    >>> print(ms.ops.matrix_diag(ms.Tensor([1, 2]), 1))
    [[0 1 0]
     [0 0 2]
     [0 0 0]]
    """
    t = as_tensor(x, "matrix_diag", "x")
    low, high = _band(k, "matrix_diag")
    side = _alignment(align, "matrix_diag")
    if not t.ndim or (low != high and t.ndim < 2):
        raise ShapeError("matrix_diag", "x", got=f"shape {t.shape}", takes="shape (..., diagonals, longest)")
    longest = t.shape[-1]
    least_rows, least_columns = longest + max(-high, 0), longest + max(low, 0)
    rows, columns = (_as_number(v, "matrix_diag", n) for v, n in ((num_rows, "num_rows"), (num_cols, "num_cols")))
    if rows < 0 and columns < 0:
        rows = columns = max(least_rows, least_columns)
    rows, columns = (least_rows if rows < 0 else rows), (least_columns if columns < 0 else columns)
    band = reshape(t, (*t.shape[:-1], 1, longest)) if low == high else t
    made: Tensor = apply(matrix_of_diagonals_p, band, rows=rows, columns=columns, low=low, high=high, align=side)
    return _padded(made, _inside(rows, columns, low, high), padding_value, "matrix_diag")


def _inside(rows: int, columns: int, low: int, high: int) -> Any:
    distance = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    return (distance >= low) & (distance <= high)


@operator()
def matrix_set_diag(x: Any, diagonal: Any, k: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Matrices with a band of diagonals replaced.

    Args:
        x: a tensor of shape (..., m, n).
        diagonal: the new diagonals, of shape (..., diagonals, longest), or (..., longest) for one.
        k: a diagonal, or the lowest and the highest one.
        align: on which side of their rows shorter diagonals above and below the main one stand.

    >>> import mycelia as ms
    >>> print(ms.ops.matrix_set_diag(ms.Tensor([[1, 2], [3, 4]]), ms.Tensor([8, 9])))
    [[8 2]
     [3 9]]
    """
    t = as_tensor(x, "matrix_set_diag", "x")
    given = cast(as_tensor(diagonal, "matrix_set_diag", "diagonal"), t.dtype)
    check_dtypes("matrix_set_diag", (TensorType(t.dtype, t.shape),), dt.ALL, ("x",))
    if t.ndim < 2:
        raise ShapeError("matrix_set_diag", "x", got=f"shape {t.shape}", takes="matrices, shape (..., m, n)")
    low, high = _band(k, "matrix_set_diag")
    rows, columns = t.shape[-2:]
    band = reshape(given, (*given.shape[:-1], 1, given.shape[-1])) if low == high else given
    if band.shape[:-2] != t.shape[:-2]:
        raise ShapeError("matrix_set_diag", "diagonal", got=f"shape {given.shape}", takes=f"the batch of 'x' {t.shape}")
    side = _alignment(align, "matrix_set_diag")
    made = apply(matrix_of_diagonals_p, band, rows=rows, columns=columns, low=low, high=high, align=side)
    return where(constant(_inside(rows, columns, low, high)), made, t)  # type: ignore[no-any-return]
