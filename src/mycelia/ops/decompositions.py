"""Decompositions of matrices: QR, singular values, eigenvalues, LU, and least squares made of them.

The last two axes are matrices, the axes before them a batch. LAPACK does the work; half types are computed in
float32. Signs and phases of the factors are LAPACK's, and gradients are those of ``jax``: they exist where
singular values or eigenvalues are distinct. General eigenvalue problems run on the CPU only.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from mycelia.core import dtypes as dt
from mycelia.core.errors import ArgumentTypeError, ArgumentValueError, ShapeError
from mycelia.ir.primitive import Primitive
from mycelia.ir.types import TensorType
from mycelia.ops.calls import as_float, floats
from mycelia.ops.declare import Bad, Sample, check_dtypes, conj
from mycelia.ops.linalg import INEXACT, _real, adjoint, check_matrix, in_float32, solve_triangular
from mycelia.ops.linear import matrix_product
from mycelia.ops.operands import as_tensor, cast
from mycelia.ops.registry import attach, operator
from mycelia.ops.shape import reshape
from mycelia.tensor import Tensor
from mycelia.tensor.dispatch import apply

_TALL = np.array([[2.0, -1.0, 0.5], [0.25, 1.5, -0.75], [1.0, 0.5, 3.0], [-0.5, 2.0, 1.0]])
_M = _TALL[:3]
_SYMMETRIC = _M + _M.T
#: The distance from 1 to the next number.
_SPACING = {dt.float16: 2.0**-10, dt.bfloat16: 2.0**-7, dt.float32: 2.0**-23, dt.float64: 2.0**-52}


def _sides(x: TensorType) -> tuple[int, int, int]:
    m, n = x.shape[-2:]
    return m, n, min(m, n)


def _infer_qr(x: TensorType, *, mode: str) -> tuple[TensorType, ...]:
    check_matrix("qr", x)
    m, n, k = _sides(x)
    inner = m if mode == "complete" else k
    return TensorType(x.dtype, (*x.shape[:-2], m, inner)), TensorType(x.dtype, (*x.shape[:-2], inner, n))


qr_p = Primitive(
    "qr", infer=_infer_qr, lower=in_float32(lambda x, *, mode: tuple(jnp.linalg.qr(x, mode=mode))), multi=True,
    derived_vjp=True,
    samples=lambda: [
        Sample((_TALL,), {"mode": "reduced"}), Sample((_M,), {"mode": "complete"}),
        Sample((np.stack([_TALL, 2 * _TALL]),), {"mode": "reduced"}),
        Sample((_TALL.T,), {"mode": "reduced"}, grad=False), Sample((_TALL,), {"mode": "complete"}, grad=False),
        Bad((_M[0],), {"mode": "reduced"}, ShapeError, "matrices"),
    ],
)  # fmt: skip


def _infer_svd(x: TensorType, *, full_matrices: bool) -> tuple[TensorType, ...]:
    check_matrix("svd", x)
    m, n, k = _sides(x)
    lead = x.shape[:-2]
    s = TensorType(_real(x.dtype), (*lead, k))
    u, v = (m, n) if full_matrices else (k, k)
    return s, TensorType(x.dtype, (*lead, m, u)), TensorType(x.dtype, (*lead, n, v))


@in_float32
def _lower_svd(x: Any, *, full_matrices: bool) -> tuple[Any, ...]:
    u, s, vh = jnp.linalg.svd(x, full_matrices=full_matrices)
    return s, u, jnp.conj(jnp.swapaxes(vh, -1, -2))


#: Singular values in descending order, U and V of ``U @ diag(s) @ V.T``.
svd_p = Primitive(
    "svd", infer=_infer_svd, lower=_lower_svd, multi=True, derived_vjp=True,
    samples=lambda: [
        Sample((_TALL,), {"full_matrices": False}), Sample((_M,), {"full_matrices": False}),
        Sample((np.stack([_TALL.T, 2 * _TALL.T]),), {"full_matrices": False}),
        Sample((_TALL,), {"full_matrices": True}, grad=False),
        Bad((_M[0],), {"full_matrices": True}, ShapeError, "matrices"),
    ],
)  # fmt: skip


def _infer_svdvals(x: TensorType) -> TensorType:
    check_matrix("svd", x)
    return TensorType(_real(x.dtype), (*x.shape[:-2], _sides(x)[2]))


#: Singular values in descending order.
svdvals_p = Primitive(
    "svdvals", infer=_infer_svdvals, lower=in_float32(lambda x: jnp.linalg.svd(x, compute_uv=False)), derived_vjp=True,
    samples=lambda: [Sample((_TALL,)), Sample((_M,)), Sample((np.stack([_TALL.T, 2 * _TALL.T]),))],
)  # fmt: skip


def _infer_eigh(x: TensorType, *, lower: bool) -> tuple[TensorType, ...]:
    check_matrix("eigh", x, square=True)
    return TensorType(_real(x.dtype), x.shape[:-1]), x


@in_float32
def _lower_eigh(x: Any, *, lower: bool) -> tuple[Any, ...]:
    half = jnp.tril(x, -1) if lower else jnp.conj(jnp.swapaxes(jnp.triu(x, 1), -1, -2))
    centre = jnp.eye(x.shape[-1], dtype=x.dtype) * jnp.real(x)
    full = half + jnp.conj(jnp.swapaxes(half, -1, -2)) + centre
    values, vectors = jnp.linalg.eigh(full, symmetrize_input=False)
    return values, vectors


#: Eigenvalues in ascending order and eigenvectors of the symmetric matrix in one triangle.
eigh_p = Primitive(
    "eigh", infer=_infer_eigh, lower=_lower_eigh, multi=True, derived_vjp=True,
    samples=lambda: [
        Sample((_SYMMETRIC,), {"lower": True}), Sample((_M,), {"lower": False}),
        Sample((np.stack([_SYMMETRIC, 2 * _SYMMETRIC]),), {"lower": True}),
        Bad((_TALL,), {"lower": True}, ShapeError, "square"),
    ],
)  # fmt: skip


def _complex(dtype: dt.DType) -> dt.DType:
    return dt.complex128 if dtype in (dt.float64, dt.complex128) else dt.complex64


def _infer_eig(x: TensorType) -> tuple[TensorType, ...]:
    check_matrix("eig", x, square=True)
    made = _complex(x.dtype)
    return TensorType(made, x.shape[:-1]), TensorType(made, x.shape)


def _infer_eigvals(x: TensorType) -> TensorType:
    check_matrix("eigvals", x, square=True)
    return TensorType(_complex(x.dtype), x.shape[:-1])


def _widened(x: Any) -> Any:
    return x.astype(jnp.float32) if x.dtype.itemsize == 2 else x


#: Eigenvalues and right eigenvectors of a general matrix, in complex numbers.
eig_p = Primitive(
    "eig", infer=_infer_eig, lower=lambda x: tuple(jnp.linalg.eig(_widened(x))), multi=True, differentiable=False,
    samples=lambda: [
        Sample((_M,), grad=False, dtypes=False), Sample((np.stack([_M, _SYMMETRIC]),), grad=False, dtypes=False),
    ],
)  # fmt: skip

#: Eigenvalues of a general matrix, in complex numbers.
eigvals_p = Primitive(
    "eigvals", infer=_infer_eigvals, lower=lambda x: jnp.linalg.eigvals(_widened(x)), differentiable=False,
    samples=lambda: [Sample((_M,), grad=False), Sample((np.stack([_M, _SYMMETRIC]),), grad=False)],
)  # fmt: skip


def _infer_lu(x: TensorType) -> tuple[TensorType, ...]:
    check_matrix("lu", x)
    m, _, k = _sides(x)
    lead = x.shape[:-2]
    return x, TensorType(dt.int32, (*lead, k)), TensorType(dt.int32, (*lead, m))


#: The two factors in one matrix, the rows exchanged at each step (from 0), and the permutation they make.
lu_p = Primitive(
    "lu", infer=_infer_lu, lower=in_float32(lambda x: tuple(lax.linalg.lu(x))), multi=True, derived_vjp=True,
    samples=lambda: [
        Sample((_M,)), Sample((np.stack([_M, _SYMMETRIC]),)), Sample((_TALL,)), Sample((_TALL.T,)),
        Bad((_M[0],), {}, ShapeError, "matrices"),
    ],
)  # fmt: skip


def _infer_permutation(pivots: TensorType, *, size: int) -> TensorType:
    if not pivots.dtype.is_integer or not pivots.rank:
        raise ShapeError("lu_unpack", "LU_pivots", got=str(pivots), takes="integers of shape (..., k)")
    return TensorType(dt.int32, (*pivots.shape[:-1], size))


#: The permutation of rows that a sequence of row exchanges (from 0) makes.
pivots_to_permutation_p = Primitive(
    "pivots_to_permutation", infer=_infer_permutation, differentiable=False,
    lower=lambda pivots, *, size: lax.linalg.lu_pivots_to_permutation(pivots.astype(jnp.int32), size),
    samples=lambda: [
        Sample((np.array([1, 2, 2], np.int32),), {"size": 3}, grad=False, dtypes=False),
        Sample((np.array([[2, 1], [0, 3]], np.int32),), {"size": 4}, grad=False, dtypes=False),
    ],
)  # fmt: skip


def _infer_householder(x: TensorType) -> tuple[TensorType, ...]:
    check_matrix("geqrf", x)
    return x, TensorType(x.dtype, (*x.shape[:-2], _sides(x)[2]))


@in_float32
def _lower_geqrf(x: Any) -> tuple[Any, ...]:
    reflectors, tau = jnp.linalg.qr(x, mode="raw")
    return jnp.swapaxes(reflectors, -1, -2), tau


#: A QR decomposition as LAPACK keeps it: R with the reflectors below the diagonal, and their factors.
geqrf_p = Primitive(
    "geqrf", infer=_infer_householder, lower=_lower_geqrf, multi=True,
    differentiable=False,
    samples=lambda: [Sample((_TALL,), grad=False), Sample((np.stack([_M, _SYMMETRIC]),), grad=False)],
)  # fmt: skip


def _infer_orgqr(a: TensorType, tau: TensorType) -> TensorType:
    check_matrix("orgqr", a)
    check_dtypes("orgqr", (a, tau), INEXACT, ("input", "input2"))
    if tau.rank != a.rank - 1 or tau.shape[:-1] != a.shape[:-2] or tau.shape[-1] > _sides(a)[2]:
        raise ShapeError(
            "orgqr",
            "input2",
            got=f"shape {tau.shape}",
            takes=f"the batch of {a.shape} and at most {_sides(a)[2]} factors",
        )
    return a


#: The orthogonal matrix that a product of reflectors makes.
orgqr_p = Primitive(
    "orgqr", infer=_infer_orgqr, lower=in_float32(lax.linalg.householder_product),
    differentiable=False,
    samples=lambda: [
        Sample((_TALL, np.array([1.5, 1.2, 1.1])), grad=False), Bad((_TALL, np.ones(4)), {}, ShapeError, "at most 3"),
    ],
)  # fmt: skip


# Public operators ---------------------------------------------------------------------------------------


@operator()
def qr(input: Any, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """QR decompositions: an orthogonal and an upper triangular matrix whose product is the input.

    Args:
        input: a tensor of shape (..., m, n).
        mode: ``"reduced"`` for shapes (..., m, k) and (..., k, n) with ``k = min(m, n)``; ``"complete"`` for
            (..., m, m) and (..., m, n).

    Raises:
        ArgumentValueError: another mode.

    >>> import mycelia as ms
    >>> q, r = ms.ops.qr(ms.Tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> print(abs(r[0, 0].item()))
    5.0
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentValueError("qr", "mode", got=repr(mode), takes='"reduced" or "complete"')
    q, r = apply(qr_p, as_float(input, "qr"), mode=mode)
    return q, r


def _qr_method(self: Tensor, some: bool = True) -> tuple[Tensor, Tensor]:
    """:func:`mycelia.ops.qr` of the tensor, reduced if ``some``."""
    return qr(self, "reduced" if some else "complete")


@operator(methods=True)
def svd(input: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """Singular value decompositions: ``input == U @ diag(s) @ V.T``.

    Args:
        input: a tensor of shape (..., m, n).
        full_matrices: give square U and V.
        compute_uv: False gives the singular values only.

    Returns:
        ``s`` of shape (..., k) in descending order, U of shape (..., m, k) and V of shape (..., n, k), with
        ``k = min(m, n)`` (m and n if full).

    >>> import mycelia as ms
    >>> s, u, v = ms.ops.svd(ms.Tensor([[3.0, 0.0], [0.0, 4.0]]))
    >>> print(s)
    [4. 3.]
    """
    x = as_float(input, "svd")
    if not compute_uv:
        return apply(svdvals_p, x)
    return tuple(apply(svd_p, x, full_matrices=bool(full_matrices)))


def eigh(A: Any, UPLO: str = "L") -> tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order and eigenvectors of symmetric (Hermitian) matrices.

    Args:
        A: a tensor of shape (..., n, n); one triangle is read.
        UPLO: which one, ``"L"`` or ``"U"``.

    >>> import mycelia as ms
    >>> values, vectors = eigh(ms.Tensor([[2.0, 0.0], [0.0, 1.0]]))
    >>> print(values)
    [1. 2.]
    """
    if UPLO not in ("L", "U"):
        raise ArgumentValueError("eigh", "UPLO", got=repr(UPLO), takes='"L" or "U"')
    values, vectors = apply(eigh_p, as_float(A, "eigh", "A"), lower=UPLO == "L")
    return values, vectors


@operator()
def eig(A: Any) -> tuple[Tensor, Tensor]:
    """Eigenvalues and right eigenvectors of square matrices, in complex numbers; without gradients.

    >>> import mycelia as ms
    >>> values, vectors = ms.ops.eig(ms.Tensor([[2.0, 0.0], [0.0, 1.0]]))
    >>> print(values)
    [2.+0.j 1.+0.j]
    """
    values, vectors = apply(eig_p, as_float(A, "eig", "A"))
    return values, vectors


@operator(methods=True)
def eigvals(A: Any) -> Tensor:
    """Eigenvalues of square matrices, in complex numbers; without gradients.

    >>> import mycelia as ms
    >>> print(ms.ops.eigvals(ms.Tensor([[2.0, 0.0], [0.0, 1.0]])))
    [2.+0.j 1.+0.j]
    """
    return apply(eigvals_p, as_float(A, "eigvals", "A"))  # type: ignore[no-any-return]


@operator()
def pinv(x: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """Pseudo-inverses (E. H. Moore, R. Penrose), from the singular values that are large enough.

    Args:
        x: a tensor of shape (..., m, n).
        atol: singular values up to this count as zero; 0 by default.
        rtol: or up to this times the largest; by default ``max(m, n)`` times the spacing of the dtype, or 0 if
            ``atol`` is given.
        hermitian: the matrices are symmetric (Hermitian): use eigenvalues.

    Returns:
        A tensor of shape (..., n, m).

    >>> import mycelia as ms
    >>> print(ms.ops.pinv(ms.Tensor([[2.0], [0.0]])))
    [[0.5 0. ]]
    """
    from mycelia.ops.extremum import maximum
    from mycelia.ops.norms import p_norm
    from mycelia.ops.rounding import abs as absolute
    from mycelia.ops.selection import where

    tensor = as_float(x, "pinv", "x")
    check_matrix("pinv", TensorType(tensor.dtype, tensor.shape), "x", square=hermitian)
    if not tensor.size:
        return reshape(tensor, (*tensor.shape[:-2], tensor.shape[-1], tensor.shape[-2]))
    if hermitian:
        s, u = eigh(tensor)
        v, size = u, absolute(s)
        largest: Any = p_norm(size, float("inf"), (size.ndim - 1,))
    else:
        s, u, v = svd(tensor)
        size = s
        largest = s[..., 0]
    spacing = _SPACING[s.dtype] * max(tensor.shape[-2:])
    least = 0.0 if atol is None else atol
    relative = (spacing if atol is None else 0.0) if rtol is None else rtol
    limit: Any = maximum(as_tensor(least, "pinv", "atol", s.dtype), largest * relative)
    large = size > reshape(limit, (*limit.shape, 1))
    inverted = where(large, 1.0 / where(large, s, 1.0), 0.0)
    scaled = v * reshape(cast(inverted, tensor.dtype), (*s.shape[:-1], 1, s.shape[-1]))
    return matrix_product(scaled, conj(u), False, True)


@operator(methods=True)
def lstsq(input: Any, A: Any) -> Tensor:
    """Least squares: the y that makes ``input @ y`` closest to ``A``, the shortest one if there are several.

    Args:
        input: a matrix (m, n).
        A: right-hand sides (m, k), or (m,).

    Returns:
        A tensor of shape (n, k), with k = 1 for a vector.

    Raises:
        ShapeError: the numbers of rows differ.

    >>> import mycelia as ms
    >>> print(f"{ms.ops.lstsq(ms.Tensor([[1.0], [1.0]]), ms.Tensor([1.0, 3.0])).item():.3f}")
    2.000
    """
    x, b = floats("lstsq", input, A, names=("input", "A"))
    if x.ndim != 2:
        raise ShapeError("lstsq", "input", got=f"shape {x.shape}", takes="a matrix")
    if b.ndim not in (1, 2) or b.shape[0] != x.shape[0]:
        raise ShapeError(
            "lstsq", "A", got=f"shape {b.shape}", takes=f"{x.shape[0]} rows, as 'input' of shape {x.shape} has"
        )
    columns = reshape(b, (b.shape[0], 1)) if b.ndim == 1 else b
    return matrix_product(pinv(x), columns)


def lu_factor(a: Any) -> tuple[Tensor, Tensor]:
    """LU decompositions with row exchanges: both factors in one matrix, and the exchanges (counted from 0).

    >>> import mycelia as ms
    >>> packed, pivots = lu_factor(ms.Tensor([[0.0, 2.0], [1.0, 0.0]]))
    >>> print(pivots)
    [1 1]
    """
    packed, pivots, _ = apply(lu_p, as_float(a, "lu_factor", "a"))
    return packed, pivots


def _pivots(value: Any, where_: str) -> Tensor:
    made: Any = as_tensor(value, where_, "LU_pivots")
    if not made.dtype.is_integer:
        raise ArgumentTypeError(where_, "LU_pivots", got=f"dtype {made.dtype}", takes="integers")
    return made - 1  # type: ignore[no-any-return]


def _triangles(packed: Tensor) -> tuple[Tensor, Tensor]:
    """The unit lower and the upper triangular factor."""
    from mycelia.ops.diagonals import tril, triu
    from mycelia.tensor.dispatch import constant

    m, n = packed.shape[-2:]
    k = min(m, n)
    lower: Any = tril(packed[..., :k], -1)
    return lower + constant(np.eye(m, k, dtype=packed.dtype.np)), triu(packed[..., :k, :])


def _permutation_matrix(order: Tensor, dtype: dt.DType) -> Tensor:
    """P with ``P[order[i], i] == 1``."""
    from mycelia.tensor.dispatch import constant

    size = order.shape[-1]
    rows: Any = constant(np.arange(size, dtype=np.int32).reshape(size, 1))
    return cast(rows == reshape(order, (*order.shape[:-1], 1, size)), dtype)


@operator()
def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Any, Any, Any]:
    """P, L and U with ``P @ L @ U`` the decomposed matrices.

    Args:
        LU_data: both factors in one matrix, of shape (..., m, n).
        LU_pivots: row exchanges counted from 1, of shape (..., min(m, n)).
        unpack_data: False gives None for L and U.
        unpack_pivots: False gives None for P.

    >>> import mycelia as ms
    >>> p, l, u = ms.ops.lu_unpack(ms.Tensor([[1.0, 0.0], [0.5, 2.0]]), ms.Tensor([2, 2]))
    >>> print(p)
    [[0. 1.]
     [1. 0.]]
    """
    packed = as_float(LU_data, "lu_unpack", "LU_data")
    check_matrix("lu_unpack", TensorType(packed.dtype, packed.shape), "LU_data")
    matrix = None
    if unpack_pivots:
        order = apply(pivots_to_permutation_p, _pivots(LU_pivots, "lu_unpack"), size=packed.shape[-2])
        matrix = _permutation_matrix(order, packed.dtype)
    return (matrix, *(_triangles(packed) if unpack_data else (None, None)))


def lu(a: Any) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U with ``P @ L @ U == a``: a permutation, a unit lower and an upper triangular matrix.

    >>> import mycelia as ms
    >>> p, l, u = lu(ms.Tensor([[0.0, 2.0], [1.0, 0.0]]))
    >>> print(u)
    [[1. 0.]
     [0. 2.]]
    """
    packed, _, order = apply(lu_p, as_float(a, "lu", "a"))
    return (_permutation_matrix(order, packed.dtype), *_triangles(packed))


@operator()
def lu_solve(b: Any, LU_data: Any, LU_pivots: Any) -> Tensor:
    """X of ``A @ x == b``, given the LU decomposition of A.

    Args:
        b: right-hand sides, of shape (..., n, k).
        LU_data: both factors in one matrix, of shape (..., n, n).
        LU_pivots: row exchanges counted from 1, of shape (..., n).

    >>> import mycelia as ms
    >>> print(ms.ops.lu_solve(ms.Tensor([[2.0], [3.0]]), ms.Tensor([[1.0, 0.0], [0.0, 2.0]]), ms.Tensor([2, 2])))
    [[3.]
     [1.]]
    """
    rhs, packed = floats("lu_solve", b, LU_data, names=("b", "LU_data"))
    check_matrix("lu_solve", TensorType(packed.dtype, packed.shape), "LU_data", square=True)
    order = apply(pivots_to_permutation_p, _pivots(LU_pivots, "lu_solve"), size=packed.shape[-1])
    permuted = matrix_product(_permutation_matrix(order, packed.dtype), rhs, True)
    return solve_triangular(packed, solve_triangular(packed, permuted, lower=True, unit_diagonal=True))


def _lu_solve_method(self: Tensor, LU_data: Any, LU_pivots: Any) -> Tensor:
    """:func:`mycelia.ops.lu_solve` with the tensor as right-hand sides."""
    return lu_solve(self, LU_data, LU_pivots)


@operator(methods=True)
def geqrf(input: Any) -> tuple[Tensor, Tensor]:
    """A QR decomposition as LAPACK keeps it: R with the reflectors below it, and the factors of those.

    >>> import mycelia as ms
    >>> a, tau = ms.ops.geqrf(ms.Tensor([[3.0], [4.0]]))
    >>> print(abs(a[0, 0].item()))
    5.0
    """
    a, tau = apply(geqrf_p, as_float(input, "geqrf"))
    return a, tau


@operator(methods=True)
def orgqr(input: Any, input2: Any) -> Tensor:
    """The first columns of the orthogonal matrix that :func:`geqrf`'s reflectors make.

    Args:
        input: reflectors below the diagonal, of shape (..., m, n) with ``m >= n``.
        input2: their factors, of shape (..., k).

    >>> import mycelia as ms
    >>> q = ms.ops.orgqr(*ms.ops.geqrf(ms.Tensor([[3.0], [4.0]])))
    >>> print(q.abs())
    [[0.6]
     [0.8]]
    """
    return apply(orgqr_p, *floats("orgqr", input, input2, names=("input", "input2")))  # type: ignore[no-any-return]


@operator()
def ormqr(input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Tensor:
    """The product of a matrix with the whole orthogonal matrix that reflectors make.

    Args:
        input: reflectors below the diagonal, of shape (..., m, k).
        tau: their factors, of shape (..., k).
        other: a tensor of shape (..., m, n), or (..., n, m) from the right.
        left: multiply from the left.
        transpose: use the (conjugate) transpose of the orthogonal matrix.

    >>> import mycelia as ms
    >>> a, tau = ms.ops.geqrf(ms.Tensor([[3.0], [4.0]]))
    >>> print(ms.ops.ormqr(a, tau, ms.Tensor([[3.0], [4.0]]), transpose=True).abs()[0])
    [5.]
    """
    from mycelia.ops.joining import concat
    from mycelia.tensor.dispatch import constant

    a, factors, matrix = floats("ormqr", input, tau, other, names=("input", "tau", "other"))
    check_matrix("ormqr", TensorType(a.dtype, a.shape))
    rows, columns = a.shape[-2:]
    if rows > columns:
        a = concat((a, constant(np.zeros((*a.shape[:-1], rows - columns), a.dtype.np))), -1)
    q: Tensor = apply(orgqr_p, a, factors)
    q = adjoint(q) if transpose else q
    return matrix_product(q, matrix) if left else matrix_product(matrix, q)


attach("qr", _qr_method)
attach("lu_solve", _lu_solve_method)
attach("ormqr", ormqr)
