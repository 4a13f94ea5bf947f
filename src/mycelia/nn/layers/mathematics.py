"""Norms, moments, products and special functions as Cells."""

from __future__ import annotations

from typing import Any

from mycelia import ops
from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.nn.cell import Cell
from mycelia.nn.layers import arguments as arg
from mycelia.nn.layers.plain import PlainCell
from mycelia.tensor import Tensor


class Norm(Cell):
    """Euclidean norms.

    Args:
        axis: the axis or axes that are folded; all if empty.
        keep_dims: keep them with length 1.

    >>> import mycelia as ms
    >>> print(ms.nn.Norm()(ms.Tensor([3.0, 4.0])))
    5.0
    """

    def __init__(self, axis: Any = (), keep_dims: bool = False) -> None:
        super().__init__()
        self.axis, self._given = _axes("Norm", axis), axis
        arg.flag("Norm", "keep_dims", keep_dims)
        self.keep_dims = keep_dims

    def construct(self, x: Any) -> Any:
        return ops.sqrt(ops.sum(ops.square(x), self.axis or None, self.keep_dims))

    def extend_repr(self) -> str:
        return f"axis={self._given}, keep_dims={self.keep_dims}"


def _axes(where: str, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return ()
    return tuple(
        arg.positive(where, "axis", a, -(2**31)) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))
    )


class ClipByNorm(Cell):
    """Tensors scaled so that their Euclidean norm is at most a given number.

    Args:
        axis: the axis or axes over which the norm is taken; None for all.

    Inputs:
        x: a floating tensor.
        clip_norm: a number, or a tensor that broadcasts with ``x``.

    >>> import mycelia as ms
    >>> print(ms.nn.ClipByNorm()(ms.Tensor([3.0, 4.0]), ms.Tensor(1.0)))
    [0.6 0.8]
    """

    def __init__(self, axis: Any = None) -> None:
        super().__init__()
        self.axis = _axes("ClipByNorm", axis)

    def construct(self, x: Any, clip_norm: Any) -> Any:
        t = arg.floating_input("ClipByNorm", "x", x)
        limit = ops.cast(arg.tensor("ClipByNorm", "clip_norm", clip_norm), t.dtype)
        norm = ops.sqrt(ops.sum(ops.square(t), self.axis or None, True))
        return t * limit / ops.maximum(norm, limit)


class L1Regularizer(Cell):
    """``scale`` times the sum of absolute values.

    Args:
        scale: a positive number.

    >>> import mycelia as ms
    >>> print(ms.nn.L1Regularizer(0.5)(ms.Tensor([1.0, -3.0])))
    2.0
    """

    def __init__(self, scale: float) -> None:
        super().__init__()
        if arg.number("L1Regularizer", "scale", scale) <= 0:
            raise ArgumentValueError("L1Regularizer", "scale", got=str(scale), takes="a positive number")
        self.scale = scale

    def construct(self, weights: Any) -> Any:
        return ops.sum(ops.abs(weights)) * self.scale


class Moments(Cell):
    """Mean and (biased) variance.

    Args:
        axis: the axis or axes that are folded; None for all.
        keep_dims: keep them with length 1.

    Outputs:
        A pair of tensors.

    >>> import mycelia as ms
    >>> mean, variance = ms.nn.Moments()(ms.Tensor([1.0, 3.0]))
    >>> print(mean, variance)
    2.0 1.0
    """

    def __init__(self, axis: Any = None, keep_dims: bool | None = None) -> None:
        super().__init__()
        self.axis = _axes("Moments", axis)
        self.keep_dims = bool(keep_dims)

    def construct(self, x: Any) -> Any:
        t = arg.floating_input("Moments", "x", x)
        wide = ops.cast(t, dt.float32) if t.dtype.itemsize == 2 else t
        mean = ops.mean(wide, self.axis, True)
        variance = ops.mean(ops.square(wide - ops.stop_gradient(mean)), self.axis, self.keep_dims)
        if not self.keep_dims:
            mean = ops.reshape(mean, variance.shape)
        return ops.cast(mean, t.dtype), ops.cast(variance, t.dtype)


class MatMul(Cell):
    """Matrix product.

    Args:
        transpose_x1: swap the last two axes of the first input.
        transpose_x2: swap those of the second.

    >>> import mycelia as ms
    >>> ms.nn.MatMul(transpose_x2=True)(ms.ops.ones((2, 3)), ms.ops.ones((4, 3))).shape
    (2, 4)
    """

    def __init__(self, transpose_x1: bool = False, transpose_x2: bool = False) -> None:
        super().__init__()
        arg.flag("MatMul", "transpose_x1", transpose_x1)
        arg.flag("MatMul", "transpose_x2", transpose_x2)
        self.transpose_x1, self.transpose_x2 = transpose_x1, transpose_x2

    def construct(self, x1: Any, x2: Any) -> Any:
        a = _swapped(x1) if self.transpose_x1 else x1
        return ops.matmul(a, _swapped(x2) if self.transpose_x2 else x2)


def _swapped(x: Any) -> Any:
    t = arg.tensor("MatMul", "x", x)
    return t if t.ndim == 1 else ops.swapaxes(t, -1, -2)


class Range(Cell):
    """Numbers from ``start`` to below ``limit`` by ``delta``; of one argument, from 0 to below it.

    Args:
        start: a number.
        limit: a number or None.
        delta: a number other than 0.

    >>> import mycelia as ms
    >>> print(ms.nn.Range(1, 8, 3)())
    [1 4 7]
    """

    def __init__(self, start: Any, limit: Any = None, delta: Any = 1) -> None:
        super().__init__()
        arg.number("Range", "start", start)
        arg.nonzero("Range", "delta", delta)
        first, last = (0, start) if limit is None else (start, arg.number("Range", "limit", limit))
        kind = dt.int32 if all(isinstance(v, int) for v in (first, last, delta)) else dt.float32
        self.result_tensor = ops.arange(first, last, delta, dtype=kind)

    def construct(self) -> Any:
        return self.result_tensor


class ReduceLogSumExp(Cell):
    """Logarithm of the sum of exponentials over axes.

    Args:
        axis: the axis or axes that are folded; all if empty.
        keep_dims: keep them with length 1.

    >>> import mycelia as ms
    >>> print(ms.nn.ReduceLogSumExp(0)(ms.Tensor([0.0, 0.0])))
    0.6931472
    """

    def __init__(self, axis: Any, keep_dims: bool = False) -> None:
        super().__init__()
        self.axis = _axes("ReduceLogSumExp", axis)
        arg.flag("ReduceLogSumExp", "keep_dims", keep_dims)
        self.keep_dims = keep_dims

    def construct(self, x: Any) -> Any:
        return ops.logsumexp(x, self.axis, self.keep_dims)


class LGamma(PlainCell):
    """Logarithm of the absolute value of the gamma function.

    >>> import mycelia as ms
    >>> f"{ms.nn.LGamma()(ms.Tensor([3.0])).item():.4f}"
    '0.6931'
    """

    def construct(self, x: Any) -> Any:
        return ops.lgamma(x)


class DiGamma(PlainCell):
    """Derivative of :class:`LGamma`.

    >>> import mycelia as ms
    >>> f"{ms.nn.DiGamma()(ms.Tensor([1.0])).item():.4f}"
    '-0.5772'
    """

    def construct(self, x: Any) -> Any:
        return ops.digamma(x)


class IGamma(PlainCell):
    """Regularized lower incomplete gamma function of ``a`` at ``x``.

    >>> import mycelia as ms
    >>> print(ms.nn.IGamma()(ms.Tensor([1.0]), ms.Tensor([0.0])))
    [0.]
    """

    def construct(self, a: Any, x: Any) -> Any:
        return ops.igamma(a, x)


class LBeta(PlainCell):
    """``lgamma(x) + lgamma(y) - lgamma(x + y)``.

    >>> import mycelia as ms
    >>> print(ms.nn.LBeta()(ms.Tensor([1.0]), ms.Tensor([1.0])))
    [0.]
    """

    def construct(self, x: Any, y: Any) -> Any:
        a, b = arg.floating_input("LBeta", "x", x), arg.floating_input("LBeta", "y", y)
        wide = a.dtype if a.dtype.itemsize > 2 else dt.float32
        # the three terms cancel for large arguments, so they are formed in double precision
        p, q = ops.cast(a, dt.float64), ops.cast(b, dt.float64)
        found = ops.lgamma(p) + ops.lgamma(q) - ops.lgamma(p + q)
        return ops.cast(ops.cast(found, wide), a.dtype)


class MatInverse(PlainCell):
    """Inverse of symmetric positive definite matrices.

    >>> import mycelia as ms
    >>> print(ms.nn.MatInverse()(ms.Tensor([[2.0, 0.0], [0.0, 4.0]])))
    [[0.5  0.  ]
     [0.   0.25]]
    """

    def construct(self, a: Any) -> Any:
        return ops.inverse(_square("MatInverse", a))


class MatDet(PlainCell):
    """Determinant of symmetric positive definite matrices.

    >>> import mycelia as ms
    >>> print(ms.nn.MatDet()(ms.Tensor([[2.0, 0.0], [0.0, 4.0]])))
    8.0
    """

    def construct(self, a: Any) -> Any:
        return ops.det(_square("MatDet", a))


def _square(where: str, a: Any) -> Tensor:
    t = arg.floating_input(where, "a", a)
    if t.ndim < 2 or t.shape[-1] != t.shape[-2]:
        raise ShapeError(where, "a", got=f"shape {t.shape}", takes="square matrices")
    return t


class SparseTensorDenseMatmul(Cell):
    """Product of a sparse matrix, given by its elements, and a dense one.

    Args:
        adjoint_st: transpose the sparse matrix first.
        adjoint_dt: transpose the dense one first.

    Inputs:
        indices: rows and columns of the elements, integers of shape (count, 2).
        values: the elements, of shape (count,).
        sparse_shape: a tuple (rows, columns).
        dense: a matrix.

    Raises:
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> net = ms.nn.SparseTensorDenseMatmul()
    >>> print(net(ms.Tensor([[0, 1]]), ms.Tensor([2.0]), (2, 2), ms.Tensor([[1.0], [3.0]])))
    [[6.]
     [0.]]
    """

    def __init__(self, adjoint_st: bool = False, adjoint_dt: bool = False) -> None:
        super().__init__()
        arg.flag("SparseTensorDenseMatmul", "adjoint_st", adjoint_st)
        arg.flag("SparseTensorDenseMatmul", "adjoint_dt", adjoint_dt)
        self.adjoint_st, self.adjoint_dt = adjoint_st, adjoint_dt

    def construct(self, indices: Any, values: Any, sparse_shape: Any, dense: Any) -> Any:
        where = "SparseTensorDenseMatmul"
        if not isinstance(sparse_shape, (tuple, list)) or len(sparse_shape) != 2:
            raise ArgumentTypeError(where, "sparse_shape", got=repr(sparse_shape), takes="a tuple (rows, columns)")
        places = arg.axes_of_input(where, "indices", indices, (2,), "(count, 2)")
        v = arg.tensor(where, "values", values)
        b = arg.axes_of_input(where, "dense", dense, (2,), "a matrix")
        if places.shape != (v.size, 2) or v.ndim != 1:
            raise ShapeError(
                where, "indices", got=f"shape {places.shape}", takes=f"({v.size}, 2), as 'values' {v.shape}"
            )
        rows, columns = ops.unbind(places, 1)
        count, inner = sparse_shape
        if self.adjoint_st:
            rows, columns, count, inner = columns, rows, inner, count
        if self.adjoint_dt:
            b = ops.transpose(b, (1, 0))
        if b.shape[0] != inner:
            raise ShapeError(where, "dense", got=f"shape {b.shape}", takes=f"{inner} rows, as 'sparse_shape' asks")
        return ops.unsorted_segment_sum(ops.expand_dims(v, 1) * ops.gather(b, columns, 0), rows, count)
