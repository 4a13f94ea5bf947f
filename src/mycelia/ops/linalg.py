"""Linear equations, determinants, inverses and Cholesky factors of stacks of matrices.

The last two axes are matrices, the axes before them a batch. LAPACK does the work (through ``jax.lax.linalg``);
half types are computed in float32. A singular or indefinite matrix cannot be refused inside a compiled program,
so it gives infinities or NaN, as NumPy's formulas would.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float, floats
from mycelia.ops.declare import Bad, Sample, check_dtypes, conj
from mycelia.ops.linear import matrix_product
from mycelia.ops.operands import as_axis, as_int, as_tensor, cast
from mycelia.ops.registry import attach, operator
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply, constant

INEXACT = dt.FLOATS + dt.COMPLEX

_M = np.array([[2.0, -1.0, 0.5], [0.25, 1.5, -0.75], [1.0, 0.5, 3.0]])
_STACK = np.stack([_M, _M.T + np.eye(3)])
_SPD = _M @ _M.T + np.eye(3)
_SPDS = np.stack([_SPD, 2 * _SPD + np.diag([1.0, 2.0, 3.0])])
_RHS = np.array([[1.0, 2.0], [0.5, -1.0], [-0.25, 3.0]])


def in_float32(lower: Callable[..., Any]) -> Callable[..., Any]:
    """A lowering that computes half types in float32, as LAPACK knows none, and rounds at the end."""

    @wraps(lower)
    def run(*arrays: Any, **attrs: Any) -> Any:
        narrow = arrays[0].dtype
        if narrow.itemsize != 2:
            return lower(*arrays, **attrs)
        out = lower(*[a.astype(np.float32) if a.dtype == narrow else a for a in arrays], **attrs)
        if isinstance(out, tuple):
            return tuple([o.astype(narrow) if o.dtype == np.float32 else o for o in out])
        return out.astype(narrow)

    return run


def check_matrix(where: str, x: TensorType, argument: str = "input", *, square: bool = False) -> None:
    """Refuse what is not a stack of (square) matrices of a floating or complex dtype."""
    check_dtypes(where, (x,), INEXACT, (argument,))
    if x.rank < 2 or (square and x.shape[-1] != x.shape[-2]):
        takes = "square matrices, shape (..., n, n)" if square else "matrices, shape (..., m, n)"
        raise ShapeError(where, argument, got=f"shape {x.shape}", takes=takes)


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of the last two axes."""
    from mycelia.ops.shape import transpose_p

    perm = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    return conj(apply(transpose_p, x, perm=perm))


def _square(where: str) -> Callable[..., TensorType]:
    def infer(x: TensorType, **attrs: Any) -> TensorType:
        check_matrix(where, x, square=True)
        return x

    return infer


def _scalar(where: str) -> Callable[..., TensorType]:
    def infer(x: TensorType) -> TensorType:
        check_matrix(where, x, square=True)
        return TensorType(x.dtype, x.shape[:-2])

    return infer


def _square_samples() -> list[Any]:
    return [
        Sample((_M,)), Sample((_STACK,)), Sample((np.array([[2.5]]),)), Sample((np.zeros((0, 2, 2)),)),
        Bad((_RHS,), {}, ShapeError, "square"), Bad((_RHS[0],), {}, ShapeError, "square"),
    ]  # fmt: skip


det_p = Primitive(
    "det", infer=_scalar("det"), lower=in_float32(jnp.linalg.det), derived_vjp=True, onnx="Det",
    samples=_square_samples,
)  # fmt: skip


def _real(dtype: dt.DType) -> dt.DType:
    return {dt.complex64: dt.float32, dt.complex128: dt.float64}.get(dtype, dtype)


def _infer_slogdet(x: TensorType) -> tuple[TensorType, ...]:
    check_matrix("slogdet", x, square=True)
    return TensorType(x.dtype, x.shape[:-2]), TensorType(_real(x.dtype), x.shape[:-2])


slogdet_p = Primitive(
    "slogdet", infer=_infer_slogdet, lower=in_float32(lambda x: tuple(jnp.linalg.slogdet(x))), multi=True,
    derived_vjp=True, samples=_square_samples,
)  # fmt: skip


def _vjp_inverse(ct: Tensor, x: Tensor, out: Tensor) -> list[Any]:
    back = adjoint(out)
    return [-matrix_product(matrix_product(back, ct), back)]


inverse_p = Primitive(
    "inverse", infer=_square("inverse"), lower=in_float32(jnp.linalg.inv), vjp=_vjp_inverse,
    samples=_square_samples,
)  # fmt: skip


def _infer_solve(a: TensorType, b: TensorType) -> TensorType:
    check_matrix("solve", a, "A", square=True)
    check_dtypes("solve", (a, b), INEXACT, ("A", "B"))
    if b.rank < 2 or b.shape[:-1] != a.shape[:-1]:
        raise ShapeError(
            "solve", "B", got=f"shape {b.shape}", takes=f"shape {(*a.shape[:-1], 'k')}, rows as 'A' {a.shape} has"
        )
    return b


def _vjp_solve(ct: Tensor, a: Tensor, b: Tensor, out: Tensor) -> list[Any]:
    back = apply(solve_p, adjoint(a), ct)
    return [lambda: -matrix_product(back, adjoint(out)), back]


#: x of ``a @ x == b`` for stacks of matrices of the same batch.
solve_p: Primitive = Primitive(
    "solve", infer=_infer_solve, lower=in_float32(jnp.linalg.solve), vjp=_vjp_solve,
    samples=lambda: [
        Sample((_M, _RHS)), Sample((_STACK, np.stack([_RHS, -_RHS]))), Sample((_M, np.zeros((3, 0)))),
        Bad((_M, _RHS[:2]), {}, ShapeError, "rows as"), Bad((_RHS, _RHS), {}, ShapeError, "square"),
    ],
)  # fmt: skip


def _infer_triangular(
    a: TensorType, b: TensorType, *, lower: bool, transpose: bool, adjoint: bool, unit: bool
) -> TensorType:
    check_matrix("solve_triangular", a, "A", square=True)
    check_dtypes("solve_triangular", (a, b), INEXACT, ("A", "b"))
    if b.rank < 2 or b.shape[:-1] != a.shape[:-1]:
        raise ShapeError("solve_triangular", "b", got=f"shape {b.shape}", takes=f"rows as 'A' of shape {a.shape} has")
    return b


@in_float32
def _lower_triangular(a: Any, b: Any, *, lower: bool, transpose: bool, adjoint: bool, unit: bool) -> Any:
    return lax.linalg.triangular_solve(
        a, b, left_side=True, lower=lower, transpose_a=transpose or adjoint, conjugate_a=adjoint, unit_diagonal=unit
    )


#: x of ``a @ x == b`` where only one triangle of ``a`` counts (``transpose``/``adjoint``: that of ``a``).
solve_triangular_p = Primitive(
    "solve_triangular", infer=_infer_triangular, lower=_lower_triangular, derived_vjp=True,
    samples=lambda: [
        *[
            Sample((_M, _RHS), {"lower": low, "transpose": flip, "adjoint": False, "unit": unit})
            for low, flip, unit in ((True, False, False), (False, True, False), (False, False, True))
        ],
        Bad(
            (_M, _RHS[:2]), {"lower": True, "transpose": False, "adjoint": False, "unit": False}, ShapeError, "rows as"
        ),
    ],
)  # fmt: skip


def _lower_cholesky(x: Any, *, upper: bool) -> Any:
    factor = jnp.linalg.cholesky(x, symmetrize_input=True)
    return jnp.conj(jnp.swapaxes(factor, -1, -2)) if upper else factor


#: The triangular factor of (the symmetric part of) a positive definite matrix.
cholesky_p = Primitive(
    "cholesky", infer=_square("cholesky"), lower=in_float32(_lower_cholesky), derived_vjp=True,
    samples=lambda: [
        Sample((_SPD,), {"upper": False}), Sample((_SPDS,), {"upper": True}),
        Sample((np.zeros((0, 2, 2)),), {"upper": False}), Sample((-_SPD,), {"upper": False}, grad=False),
        Bad((_RHS,), {"upper": False}, ShapeError, "square"),
    ],
)  # fmt: skip

matrix_exp_p = Primitive(
    "matrix_exp", infer=_square("matrix_exp"), derived_vjp=True,
    lower=in_float32(lambda x: jnp.zeros_like(x) if not x.size else jax.scipy.linalg.expm(x)),
    samples=lambda: [
        Sample((_M * 0.3,)), Sample((_STACK * 0.2,)), Sample((np.zeros((0, 2, 2)),)), Sample((np.zeros((2, 2)),)),
    ],
)  # fmt: skip


# Public operators ---------------------------------------------------------------------------------------


@operator(methods=("det", "matrix_determinant"), aliases=("matrix_determinant",))
def det(input: Any) -> Tensor:
    """Determinants of square matrices.

    Args:
        input: a tensor of shape (..., n, n).

    Returns:
        A tensor of shape (...).

    Raises:
        ShapeError: the last two axes differ.

    >>> import mycelia as ms
    >>> print(f"{ms.ops.det(ms.Tensor([[1.0, 2.0], [3.0, 4.0]])).item():.4f}")
    -2.0000
    """
    return apply(det_p, as_float(input, "det"))  # type: ignore[no-any-return]


@operator(methods=("slogdet", "log_matrix_determinant"), aliases=("log_matrix_determinant",))
def slogdet(input: Any) -> tuple[Tensor, Tensor]:
    """Sign and logarithm of the size of the determinants of square matrices.

    >>> import mycelia as ms
    >>> sign, log = ms.ops.slogdet(ms.Tensor([[0.0, 1.0], [1.0, 0.0]]))
    >>> print(sign, log)
    -1.0 0.0
    """
    sign, log = apply(slogdet_p, as_float(input, "slogdet"))
    return sign, log


@operator(methods=True)
def logdet(input: Any) -> Tensor:
    """Logarithm of the determinants of square matrices; NaN where a determinant is negative.

    >>> import mycelia as ms
    >>> print(ms.ops.logdet(ms.Tensor([[1.0, 0.0], [0.0, 1.0]])))
    0.0
    """
    from mycelia.ops.elementary import log
    from mycelia.ops.selection import where

    sign, size = slogdet(input)
    if sign.dtype.is_complex:
        return log(sign) + size
    return where(sign < 0.0, float("nan"), size)  # type: ignore[no-any-return]


@operator(methods=True, aliases=("matrix_inverse",))
def inverse(input: Any) -> Tensor:
    """Inverses of square matrices; infinities or NaN where a matrix is singular.

    >>> import mycelia as ms
    >>> print(ms.ops.inverse(ms.Tensor([[2.0, 0.0], [0.0, 4.0]])))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    return apply(inverse_p, as_float(input, "inverse"))  # type: ignore[no-any-return]


def _column(b: Tensor, a: Tensor) -> tuple[Tensor, bool]:
    """Right-hand sides as columns; and whether it was a single vector for each matrix."""
    if b.ndim == 1 or b.shape == a.shape[:-1]:
        return reshape(b, (*b.shape, 1)), True
    return b, False


def _batched(a: Tensor, b: Tensor, where: str, names: tuple[str, str]) -> tuple[Tensor, Tensor]:
    """Both with the batch axes that they broadcast to."""
    from mycelia.ops.operands import broadcast_shapes
    from mycelia.ops.shape import broadcast_to

    if a.shape[:-2] == b.shape[:-2]:
        return a, b
    lead = broadcast_shapes(where, [a.shape[:-2], b.shape[:-2]], names)
    return broadcast_to(a, (*lead, *a.shape[-2:])), broadcast_to(b, (*lead, *b.shape[-2:]))


@operator()
def solve(A: Any, B: Any) -> Tensor:
    """Solutions of linear equations: x of ``A @ x == B``.

    Args:
        A: square matrices, of shape (..., n, n).
        B: right-hand sides, of shape (..., n, k), or (n,), or (..., n) with the same batch as ``A``.

    Returns:
        A tensor of the shape of ``B``, batch axes broadcast.

    Raises:
        ShapeError: the shapes do not fit.

    >>> import mycelia as ms
    >>> print(ms.ops.solve(ms.Tensor([[2.0, 0.0], [0.0, 4.0]]), ms.Tensor([2.0, 2.0])))
    [1.  0.5]
    """
    a, b = floats("solve", A, B, names=("A", "B"))
    columns, single = _column(b, a)
    x: Tensor = apply(solve_p, *_batched(a, columns, "solve", ("A", "B")))
    return reshape(x, x.shape[:-1]) if single else x


@operator()
def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False) -> Tensor:
    """X of ``matrix @ x == rhs``, or of the conjugate transpose with ``adjoint``.

    >>> import mycelia as ms
    >>> print(ms.ops.matrix_solve(ms.Tensor([[2.0, 0.0], [0.0, 4.0]]), ms.Tensor([[2.0], [2.0]])))
    [[1. ]
     [0.5]]
    """
    a, b = floats("matrix_solve", matrix, rhs, names=("matrix", "rhs"))
    return solve(_adjoint(a) if adjoint else a, b)


_adjoint = adjoint


def solve_triangular(
    A: Any, b: Any, *, lower: bool = False, transpose: bool = False, adjoint: bool = False, unit_diagonal: bool = False
) -> Tensor:
    """X of ``A @ x == b`` for triangular matrices; the other triangle is not read.

    Args:
        A: square matrices, of shape (..., n, n).
        b: right-hand sides, of shape (..., n, k), or (..., n) with the same batch as ``A``.
        lower: which triangle counts.
        transpose: solve with the transpose of that triangle.
        adjoint: solve with its conjugate transpose.
        unit_diagonal: take the diagonal as ones.

    >>> import mycelia as ms
    >>> print(solve_triangular(ms.Tensor([[2.0, 9.0], [0.0, 4.0]]), ms.Tensor([11.0, 4.0])))
    [1. 1.]
    """
    a, rhs = floats("solve_triangular", A, b, names=("A", "b"))
    columns, single = _column(rhs, a)
    x: Tensor = apply(
        solve_triangular_p, *_batched(a, columns, "solve_triangular", ("A", "b")), lower=bool(lower),
        transpose=bool(transpose), adjoint=bool(adjoint), unit=bool(unit_diagonal),
    )  # fmt: skip
    return reshape(x, x.shape[:-1]) if single else x


@operator(methods=True)
def triangular_solve(
    b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """X of ``A @ x == b`` for triangular matrices, and ``A``.

    Args:
        b: right-hand sides, of shape (..., n, k).
        A: square matrices, of shape (..., n, n).
        upper: which triangle counts.
        transpose: solve with the transpose.
        unitriangular: take the diagonal as ones.

    >>> import mycelia as ms
    >>> x, _ = ms.ops.triangular_solve(ms.Tensor([[11.0], [4.0]]), ms.Tensor([[2.0, 9.0], [0.0, 4.0]]))
    >>> print(x)
    [[1.]
     [1.]]
    """
    a = as_float(A, "triangular_solve", "A")
    return solve_triangular(a, b, lower=not upper, transpose=transpose, unit_diagonal=unitriangular), a


@operator(methods=True)
def cholesky(input_x: Any, upper: bool = False) -> Tensor:
    """Cholesky factors of positive definite matrices: ``L`` of ``L @ L.T``; NaN where one is not definite.

    Args:
        input_x: a tensor of shape (..., n, n); its symmetric part counts.
        upper: give the transpose of ``L``.

    >>> import mycelia as ms
    >>> print(ms.ops.cholesky(ms.Tensor([[4.0, 2.0], [2.0, 5.0]])))
    [[2. 0.]
     [1. 2.]]
    """
    return apply(cholesky_p, as_float(input_x, "cholesky", "input_x"), upper=bool(upper))  # type: ignore[no-any-return]


@operator(methods=True)
def cholesky_solve(input: Any, input2: Any, upper: bool = False) -> Tensor:
    """X of ``A @ x == input``, given the Cholesky factor of A.

    Args:
        input: right-hand sides, of shape (..., n, k).
        input2: the factor, of shape (..., n, n).
        upper: whether the factor is upper triangular.

    >>> import mycelia as ms
    >>> print(ms.ops.cholesky_solve(ms.Tensor([[8.0]]), ms.Tensor([[2.0]])))
    [[2.]]
    """
    b, factor = floats("cholesky_solve", input, input2, names=("input", "input2"))
    first = solve_triangular(factor, b, lower=not upper, adjoint=bool(upper))
    return solve_triangular(factor, first, lower=not upper, adjoint=not upper)


@operator(methods=True)
def cholesky_inverse(input_x: Any, upper: bool = False) -> Tensor:
    """The inverse of A, given the Cholesky factor of A.

    >>> import mycelia as ms
    >>> print(ms.ops.cholesky_inverse(ms.Tensor([[2.0]])))
    [[0.25]]
    """
    factor = as_float(input_x, "cholesky_inverse", "input_x")
    check_matrix("cholesky_inverse", TensorType(factor.dtype, factor.shape), "input_x", square=True)
    eye = np.broadcast_to(np.eye(factor.shape[-1], dtype=factor.dtype.np), factor.shape)
    return cholesky_solve(constant(np.ascontiguousarray(eye)), factor, upper)


@operator(methods=True)
def matrix_power(input: Any, n: int) -> Tensor:
    """Powers of square matrices, by repeated squaring; a negative power is one of the inverse.

    Args:
        input: a tensor of shape (..., m, m).
        n: an int; 0 gives the identity.

    >>> import mycelia as ms
    >>> print(ms.ops.matrix_power(ms.Tensor([[1.0, 1.0], [0.0, 1.0]]), 5))
    [[1. 5.]
     [0. 1.]]
    """
    power = as_int(n, "matrix_power", "n")
    x = as_tensor(input, "matrix_power")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError("matrix_power", "input", got=f"shape {x.shape}", takes="square matrices, shape (..., n, n)")
    if power < 0:
        x, power = inverse(x), -power
    if power == 0:
        return constant(np.ascontiguousarray(np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype.np), x.shape)))
    result: Tensor | None = None
    while power:
        if power & 1:
            result = x if result is None else matrix_product(result, x)
        power >>= 1
        if power:
            x = matrix_product(x, x)
    assert result is not None
    return result


@operator(methods=True)
def matrix_exp(input: Any) -> Tensor:
    """Exponentials of square matrices, by scaling and squaring of a Padé approximation.

    A. H. Al-Mohy and N. J. Higham, "A new scaling and squaring algorithm for the matrix exponential" (2009).

    >>> import mycelia as ms
    >>> print(ms.ops.matrix_exp(ms.ops.zeros((2, 2))))
    [[1. 0.]
     [0. 1.]]
    """
    return apply(matrix_exp_p, as_float(input, "matrix_exp"))  # type: ignore[no-any-return]


@operator()
def trace(input: Any) -> Tensor:
    """The sum of the diagonal of a matrix.

    >>> import mycelia as ms
    >>> print(ms.ops.trace(ms.Tensor([[1, 2], [3, 4]])))
    5
    """
    x = as_tensor(input, "trace")
    if x.ndim != 2:
        raise ShapeError("trace", "input", got=f"shape {x.shape}", takes="a matrix")
    return _trace_method(x)


def _trace_method(self: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """The sum along a diagonal of two axes.

    Args:
        self: a tensor of two axes or more.
        offset: how far above the main diagonal.
        axis1: the axis of the rows.
        axis2: the axis of the columns.
        dtype: convert to this dtype first.
    """
    from mycelia.core.dtypes import as_dtype
    from mycelia.ops.diagonals import diagonal
    from mycelia.ops.reduction import sum as total

    if self.ndim < 2:
        raise ShapeError("trace", "self", got=f"shape {self.shape}", takes="two axes or more")
    x = self if dtype is None else cast(self, as_dtype(dtype, "trace"))
    a, b = as_axis(axis1, x.ndim, "trace", "axis1"), as_axis(axis2, x.ndim, "trace", "axis2")
    return total(diagonal(x, offset, a, b), -1)


attach("trace", _trace_method)
