"""Sizes of matrices and of differences, condition numbers, and vectors scaled by their size."""

from __future__ import annotations

from typing import Any

from mycelia.core.dtypes import as_dtype
from mycelia.core.errors import ArgumentValueError, ShapeError
from mycelia.ops.calls import as_float, floats
from mycelia.ops.linalg import inverse
from mycelia.ops.norms import as_order, p_norm
from mycelia.ops.operands import as_axes, as_axis, broadcast_shapes, cast
from mycelia.ops.reduction import reduced_shape
from mycelia.ops.registry import operator
from mycelia.ops.shape import reshape, transpose
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_INFINITY = float("inf")


def _converted(x: Any, dtype: Any, where: str, argument: str) -> Tensor:
    made = as_float(x, where, argument)
    return made if dtype is None else cast(made, as_dtype(dtype, where))


@operator()
def matrix_norm(A: Any, ord: Any = "fro", axis: Any = (-2, -1), keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """Norms of matrices.

    Args:
        A: a tensor of two axes or more.
        ord: ``"fro"`` (root of the sum of squares), ``"nuc"`` (sum of singular values), 2 and -2 (largest and
            least singular value), 1 and -1 (largest and least sum of a column's sizes), infinity and
            -infinity (of a row's).
        axis: the axes of rows and columns.
        keepdims: keep the two axes with length 1.
        dtype: convert to this dtype first.

    Raises:
        ArgumentValueError: another ``ord``.

    >>> import mycelia as ms
    >>> print(ms.ops.matrix_norm(ms.Tensor([[3.0, 0.0], [0.0, 4.0]]), "nuc"))
    7.0
    """
    from mycelia.ops.decompositions import svdvals_p

    x = _converted(A, dtype, "matrix_norm", "A")
    if x.ndim < 2 or not isinstance(axis, (tuple, list)) or len(axis) != 2:
        raise ShapeError(
            "matrix_norm", "A", got=f"shape {x.shape} with axis {axis}", takes="two axes of rows and columns"
        )
    rows, columns = (as_axis(a, x.ndim, "matrix_norm") for a in axis)
    if rows == columns:
        raise ArgumentValueError("matrix_norm", "axis", got=str(tuple(axis)), takes="two different axes")
    if ord == "fro":
        return p_norm(x, 2.0, tuple(sorted((rows, columns))), keepdims)
    if ord in (1, -1, _INFINITY, -_INFINITY) and not isinstance(ord, bool):
        summed, folded = (rows, columns) if ord in (1, -1) else (columns, rows)
        sums = p_norm(x, 1.0, (summed,), True)
        made = p_norm(sums, _INFINITY if ord > 0 else -_INFINITY, (folded,), True)
    elif ord in ("nuc", 2, -2):
        others = tuple([a for a in range(x.ndim) if a not in (rows, columns)])
        singular: Any = apply(svdvals_p, transpose(x, (*others, rows, columns)))
        values = p_norm(singular, {"nuc": 1.0, 2: _INFINITY, -2: -_INFINITY}[ord], (len(others),))
        kept = tuple([1 if a in (rows, columns) else d for a, d in enumerate(x.shape)])
        made = reshape(values, kept)
    else:
        takes = "'fro', 'nuc', 1, -1, 2, -2, infinity or -infinity"
        raise ArgumentValueError("matrix_norm", "ord", got=repr(ord), takes=takes)
    return made if keepdims else reshape(made, reduced_shape(x.shape, (rows, columns), False))


def norm_ext(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """``mint``'s form of :func:`norm`: a vector norm over all given axes unless ``p`` is ``"nuc"``.

    >>> import mycelia as ms
    >>> print(norm_ext(ms.Tensor([[3.0, 0.0], [0.0, 4.0]]), 1))
    7.0
    """
    x = _converted(input, dtype, "norm", "input")
    axes = as_axes(dim, x.ndim, "norm", "dim")
    if p == "nuc":
        return matrix_norm(x, "nuc", axes, keepdim)
    return p_norm(x, 2.0 if p in ("fro", None) else as_order(p, "norm", "p"), axes, keepdim)


@operator()
def dist(input: Any, other: Any, p: Any = 2) -> Tensor:
    """The p-norm of the difference of two tensors that broadcast.

    >>> import mycelia as ms
    >>> print(ms.ops.dist(ms.Tensor([1.0, 1.0]), ms.Tensor([4.0, 5.0])))
    5.0
    """
    a, b = floats("dist", input, other)
    broadcast_shapes("dist", [a.shape, b.shape], ("input", "other"))
    difference: Tensor = a - b
    return p_norm(difference, as_order(p, "dist", "p"), tuple(range(difference.ndim)), False)


@operator()
def cond(A: Any, p: Any = None) -> Tensor:
    """Condition numbers of matrices: the norm times the norm of the inverse.

    Args:
        A: a tensor of shape (..., m, n); square unless ``p`` is None, 2 or -2.
        p: see :func:`matrix_norm`; None is 2.

    >>> import mycelia as ms
    >>> print(ms.ops.cond(ms.Tensor([[4.0, 0.0], [0.0, 2.0]])))
    2.0
    """
    x = as_float(A, "cond", "A")
    if p in (None, 2, -2):
        large, small = matrix_norm(x, 2), matrix_norm(x, -2)
        return small / large if p == -2 else large / small
    return matrix_norm(x, p) * matrix_norm(inverse(x), p)


@operator(methods=True)
def renorm(input: Any, p: Any, axis: int, maxnorm: float) -> Tensor:
    """Scale the slices along an axis whose p-norm is above a limit down to it.

    Args:
        input: a tensor of two axes or more.
        p: order of the norm, positive.
        axis: the axis that counts the slices.
        maxnorm: the limit.

    >>> import mycelia as ms
    >>> print(ms.ops.renorm(ms.Tensor([[3.0, 4.0], [0.0, 1.0]]), 2, 0, 1.0))
    [[0.6 0.8]
     [0.  1. ]]
    """
    from mycelia.ops.selection import where

    x = as_float(input, "renorm")
    if x.ndim < 2:
        raise ShapeError("renorm", "input", got=f"shape {x.shape}", takes="two axes or more")
    order = as_order(p, "renorm", "p")
    if not order > 0:
        raise ArgumentValueError("renorm", "p", got=str(p), takes="a positive number")
    limit = as_order(maxnorm, "renorm", "maxnorm")
    kept = as_axis(axis, x.ndim, "renorm")
    sizes: Any = p_norm(x, order, tuple([a for a in range(x.ndim) if a != kept]), True)
    return x * where(sizes > limit, limit / sizes, 1.0)  # type: ignore[no-any-return]


@operator()
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosines of the angles between vectors: their product over the product of their norms.

    Args:
        x1: a tensor.
        x2: a tensor that broadcasts with it.
        dim: the axis of the vectors.
        eps: each norm counts as at least this.

    >>> import mycelia as ms
    >>> print(ms.ops.cosine_similarity(ms.Tensor([[1.0, 0.0]]), ms.Tensor([[3.0, 4.0]])))
    [0.6]
    """
    from mycelia.ops.extremum import maximum
    from mycelia.ops.reduction import reduce_sum
    from mycelia.ops.shape import broadcast_to

    a, b = floats("cosine_similarity", x1, x2, names=("x1", "x2"))
    shape = broadcast_shapes("cosine_similarity", [a.shape, b.shape], ("x1", "x2"))
    axis = as_axis(dim, len(shape), "cosine_similarity", "dim")
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    least = as_order(eps, "cosine_similarity", "eps")
    product: Any = reduce_sum(a * b, (axis,))
    sizes: list[Any] = [maximum(p_norm(t, 2.0, (axis,), False), least) for t in (a, b)]
    return product / (sizes[0] * sizes[1])  # type: ignore[no-any-return]


@operator()
def normalize(input: Any, p: Any = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """Divide vectors by their p-norm, or by ``eps`` where that is larger.

    Args:
        input: a tensor.
        p: order of the norm.
        dim: the axis (or axes) of the vectors.
        eps: the least divisor.

    >>> import mycelia as ms
    >>> print(ms.ops.normalize(ms.Tensor([[3.0, 4.0]])))
    [[0.6 0.8]]
    """
    from mycelia.ops.extremum import maximum

    x = as_float(input, "normalize")
    axes = as_axes(dim, x.ndim, "normalize", "dim")
    size = p_norm(x, as_order(p, "normalize", "p"), axes, True)
    return x / maximum(size, as_order(eps, "normalize", "eps"))
